"""Simple questions about the values of a table, whose answers are compared with DuckDB's counts."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from countless import Estimator
from countless.data.columns.types import quote_identifier, sql_literal
from countless.data.sources.source import Source
from countless.errors import CountlessError, QueryTooLargeError
from countless.estimator.answers.estimate import Estimate

COLUMNS = 12  # that questions are about
VALUES = 3  # of each column
CLAUSE_CHARACTERS = 200  # of a clause that are shown


def wrong_answers(model: Estimator, source: Source, seed: int) -> list[str]:
    """Defects of the model's answers about the table that it was fitted to, a sentence each."""
    if model.rows != source.count():
        return [f"the model has {model.rows} rows, the table {source.count()}"]
    clauses = list(simple_clauses(model, source, seed))
    defects = []
    counts = source.counts(clauses)
    for clause, count, answer in zip(clauses, counts, model.answer_many(clauses, threads=1), strict=True):
        wrong = _wrong(answer, count, model.rows)
        if wrong:
            text = clause if len(clause) <= CLAUSE_CHARACTERS else f"{clause[:CLAUSE_CHARACTERS]}..."
            defects.append(f"WHERE {text}: {wrong}")
    return defects


def simple_clauses(model: Estimator, source: Source, seed: int) -> Iterator[str]:
    """``IS NULL``, ``=``, ``<`` and ``IN`` about some columns and some of their values."""
    rng = random.Random(seed)
    schema = model.schema
    columns = [(column.name, column.type) for column in schema.columns]
    columns += [(column.name, column.type) for column in schema.texts]
    for name, kind in rng.sample(columns, min(COLUMNS, len(columns))):
        quoted = quote_identifier(name)
        yield f"{quoted} IS NULL"
        literals = [sql_literal(text, kind) for text in random_values(source, name, VALUES, seed)]
        for literal in literals:
            yield f"{quoted} = {literal}"
            yield f"{quoted} < {literal}"
        if literals:
            yield f"{quoted} IN ({', '.join(literals)})"


def random_values(source: Source, name: str, count: int, seed: int) -> list[str]:
    """Some distinct values of a column as DuckDB prints them, the same for the same seed."""
    column = quote_identifier(name)
    distinct = f"SELECT DISTINCT CAST({column} AS VARCHAR) AS text FROM {source.table} WHERE {column} IS NOT NULL"
    rows = source.rows(f"SELECT text FROM ({distinct}) ORDER BY hash(text, {seed}), text LIMIT {count}")
    return [str(text) for (text,) in rows]


def _wrong(answer: Estimate | CountlessError, count: int, rows: int) -> str | None:
    if isinstance(answer, QueryTooLargeError):  # a string of ten thousand characters, of a text column
        return None
    if isinstance(answer, CountlessError):
        return f"refused, though DuckDB counts {count}: {str(answer).splitlines()[0]}"
    numbers = (answer.low, answer.rows, answer.high)
    if not all(math.isfinite(number) and 0 <= number <= rows for number in numbers):
        return f"{answer.rows} rows, from {answer.low} to {answer.high}, of {rows}"
    if answer.low > answer.high:
        return f"the error bar begins at {answer.low} and ends at {answer.high}"
    if answer.exact and round(answer.rows) != count:
        return f"exactly {answer.rows}, but DuckDB counts {count}"
    return None
