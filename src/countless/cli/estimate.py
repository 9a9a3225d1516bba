"""The ``countless estimate`` command: estimate the row counts of conditions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from countless.cli.parameters.options import json_option, method_options, model_argument
from countless.data.sources.regular_files import read_stdin, read_text
from countless.errors import CountlessError, DataError
from countless.estimator.answers.estimate import UNCALIBRATED, Estimate, format_interval, format_rows, format_share
from countless.estimator.estimator import Estimator
from countless_command import leaving_at_once

BARE_DATE = re.compile(r"'\d{4}-\d\d-\d\d'", re.ASCII)  # a timestamp is compared with its midnight


@click.command(
    epilog="\b\nExamples:\n"
    "  countless estimate people.countless \"age > 35 AND city = 'Oslo'\"\n"
    '  countless estimate people.countless "age > 35" --json\n'
    "  countless estimate people.countless --file queries.sql --json\n"
    '  countless estimate people.countless "age > 35" --table-rows 1200000'
)
@model_argument
@click.argument("where", required=False)
@click.option(
    "--file",
    "queries",
    type=click.Path(path_type=Path),
    help="One WHERE clause per line, -- for comments; - is standard input.",
)
@click.option(
    "--table-rows",
    type=click.IntRange(min=1),
    help="Current number of rows of the table; answers are scaled to it  [default: the rows that were fitted]",
)
@method_options()
@json_option
def estimate(
    model: Path,
    where: str | None,
    queries: Path | None,
    table_rows: int | None,
    method: str,
    particles: int | None,
    as_json: bool,
) -> int:
    """How many rows match WHERE, a clause in SQL?

    With --file, every line of the file is a clause. A line that cannot be answered prints its own error, the other
    lines are answered, and the exit code is 1.
    """
    if (where is None) == (queries is None):
        raise click.UsageError("give either a WHERE clause or --file")
    options = {"method": method, "particles": particles, "table_rows": table_rows}
    with leaving_at_once():
        estimator = Estimator.load(model)
        if where is not None:
            return _estimate_one(estimator, where, as_json, options)
        assert queries is not None
        return _estimate_file(estimator, queries, as_json, options)


def _estimate_one(estimator: Estimator, where: str, as_json: bool, options: dict[str, Any]) -> int:
    """Print the answer to one clause, with notes; return the exit code."""
    answer = estimator.estimate(where, **options)
    click.echo(_json(answer.to_json()) if as_json else _line(answer))
    if not answer.calibrated:
        click.echo(f"note: {UNCALIBRATED}", err=True)
    if answer.rows == 0 or BARE_DATE.search(where):
        explanation = estimator.explain(where)
        for sentence in (*(explanation.unseen if answer.rows == 0 else ()), *explanation.notes):
            click.echo(f"note: {sentence}", err=True)
    return 0


def _estimate_file(estimator: Estimator, queries: Path, as_json: bool, options: dict[str, Any]) -> int:
    """Print the answer to each line of a file, or its error; return the exit code."""
    lines = [
        (number, line)
        for number, line in enumerate(_lines(queries), 1)
        if line.strip() and not line.lstrip().startswith("--")
    ]
    results = estimator.answer_many([line for _, line in lines], **options)
    for (number, line), result in zip(lines, results, strict=True):
        if not isinstance(result, CountlessError):
            click.echo(_json(result.to_json()) if as_json else f"{_line(result)}  {result.where}")
        elif as_json:
            click.echo(_json({"where": line.strip(), "line": number, "error": str(result)}))
        else:
            click.echo(f"line {number}: error: {result}", err=True)
    return 1 if any(isinstance(result, CountlessError) for result in results) else 0


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)


def _lines(path: Path) -> list[str]:
    try:
        return (read_stdin() if str(path) == "-" else read_text(path)).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}; --file takes a text file with one clause per line") from None


def _line(answer: Estimate) -> str:
    noun = "row" if format_rows(answer.rows) == "1" else "rows"
    message = f"{format_interval(answer)}; {format_share(answer.selectivity)} of the table; {answer.ms:.1f} ms"
    return f"{format_rows(answer.rows)} {noun}  ({message})"
