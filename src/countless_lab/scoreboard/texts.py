"""The texts of the scoreboard's page."""

from __future__ import annotations

INTRODUCTION = """# Scoreboard

What a user gets: the default `fit`, with a budget of {budget}, and the default `estimate`{cut}. `make scoreboard`
measures all of it and writes this page; do not edit it. A figure in brackets is that of the previous run.

![q-errors and latency of Countless, of samples and of DuckDB, one panel a table]({picture})

Measured on {machine}."""

HOW_TO_READ = """## How to read it

- **q-error**: the factor between the estimate and the truth, both at least one row. "10+ rows" leaves out questions
  with fewer true rows.
- **90% hold**: how often the truth lies in the interval; it should be 90% or a little more. **width** is the median
  factor between its ends.
- **Questions of the paper's kind** have 5 to 12 filters with the literals of a random row; of a table of text alone,
  they ask whether a string contains a piece of 3 to 5 characters. **Questions as people ask** have 1 to 5 filters, as
  many of each kind. A question that is refused counts as an answer of 0 rows. Both are drawn from the table alone,
  with a fixed seed; the truth is DuckDB's.
- **sample**: a uniform sample of 100,000 rows in DuckDB's memory; the other takes as many bytes as the model file when
  it is stored as Parquet (zstd, sorted by the columns that pack best). **nearer**: how often Countless, and how often
  the sample of 100,000 rows, is nearer to the truth.
- **ms** is processor time of one thread for a whole question, each asked once. DuckDB counts on the table in its
  memory. The scan is a loop in C over byte-packed codes of all rows, without reading SQL: the least that a count can
  cost. Methods are asked in a random order until their time is over, so slow ones answer fewer questions; ratios
  compare the questions that both answered.
- **rows/s** are training rows on a sample of the table, with the machine to itself, and beside one busy loop for each
  core.
- Quick runs train for a minute, with two seeds: the range between them is what chance does.

Commands: `make scoreboard` (about 90 minutes on two idle cores), `make scoreboard QUICK=1` (about 12),
`make scoreboard TABLES=adult`. The tables are those of [tables.toml](../src/countless_lab/scoreboard/tables.toml);
those that are not on the machine are skipped. The data are in [results/scoreboard/](results/scoreboard/)."""
