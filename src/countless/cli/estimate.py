"""The ``countless estimate`` command: estimate the row counts of conditions."""

from __future__ import annotations

import json
from pathlib import Path

import click

from countless.cli.parameters.options import json_option, method_options, model_argument
from countless.data.sources.regular_files import read_stdin, read_text
from countless.errors import CountlessError, DataError
from countless.estimator.answers.estimate import UNCALIBRATED, Estimate, format_interval, format_rows
from countless.estimator.estimator import Estimator
from countless_command import leaving_at_once


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
    with leaving_at_once():
        return _answered(Estimator.load(model), where, queries, as_json, method, particles, table_rows)


def _answered(
    estimator: Estimator,
    where: str | None,
    queries: Path | None,
    as_json: bool,
    method: str,
    particles: int | None,
    table_rows: int | None,
) -> int:
    """Print the answers; the exit code."""
    if where is not None:
        answer = estimator.estimate(where, method=method, particles=particles, table_rows=table_rows)
        click.echo(json.dumps(answer.to_json(), ensure_ascii=False) if as_json else _line(answer))
        if not answer.calibrated:
            click.echo(f"note: {UNCALIBRATED}", err=True)
        if answer.rows == 0:
            for sentence in estimator.explain(where).unseen:
                click.echo(f"note: {sentence}", err=True)
        return 0
    assert queries is not None
    lines = [
        (number, line)
        for number, line in enumerate(_lines(queries), 1)
        if line.strip() and not line.lstrip().startswith("--")
    ]
    answers = estimator.answer_many(
        [line for _, line in lines], method=method, particles=particles, table_rows=table_rows
    )
    for (number, line), found in zip(lines, answers, strict=True):
        _echo(found, number, line, as_json)
    return 1 if any(isinstance(found, CountlessError) for found in answers) else 0


def _echo(answered: Estimate | CountlessError, number: int, line: str, as_json: bool) -> None:
    if isinstance(answered, CountlessError) and not as_json:
        click.echo(f"line {number}: error: {answered}", err=True)
    elif isinstance(answered, CountlessError):
        click.echo(json.dumps({"where": line.strip(), "line": number, "error": str(answered)}, ensure_ascii=False))
    else:
        answer = (
            json.dumps(answered.to_json(), ensure_ascii=False) if as_json else f"{_line(answered)}  {answered.where}"
        )
        click.echo(answer)


def _lines(path: Path) -> list[str]:
    try:
        return (read_stdin() if str(path) == "-" else read_text(path)).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}; --file takes a text file with one clause per line") from None


def _line(answer: Estimate) -> str:
    noun = "row" if format_rows(answer.rows) == "1" else "rows"
    message = f"{format_interval(answer)}; {answer.selectivity:.3%} of the table; {answer.ms:.1f} ms"
    return f"{format_rows(answer.rows)} {noun}  ({message})"
