"""The ``countless query`` command: answer a SELECT with aggregates."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import click

from countless.cli.parameters.options import json_option, model_argument
from countless.cli.terminal import display as show
from countless.estimator.answers.aggregates.result import QueryResult
from countless.estimator.estimator import Estimator
from countless_command import leaving_at_once

SMALL_DISAGREEMENT = 0.01  # a larger one between the parts of an answer is reported


@click.command(
    epilog="\b\nExamples:\n"
    '  countless query people.countless "SELECT city, count(*), avg(age) FROM t GROUP BY city ORDER BY 2 DESC"\n'
    "  countless query people.countless \"SELECT median(age) FROM t WHERE city = 'Oslo'\" --intervals\n"
    '  countless query people.countless "SELECT city, count(*) FROM t GROUP BY ALL HAVING count(*) > 100" --csv'
)
@model_argument
@click.argument("sql")
@click.option("--intervals", is_flag=True, help="Add columns with the ends of every aggregate's error bar.")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def query(model: Path, sql: str, intervals: bool, as_json: bool, as_csv: bool) -> None:
    """Answer SQL, a SELECT with aggregates, from a model.

    It may have count, sum, avg, stddev, variance, median and quantiles of columns, expressions of these, a WHERE, GROUP
    BY up to three columns, HAVING, ORDER BY and LIMIT. With evidence rows, columns may be expressions too, such as
    hour(ts). The table may have any name.
    """
    if as_json and as_csv:
        raise click.UsageError("give either --json or --csv")
    with leaving_at_once():
        result = Estimator.load(model).query(sql, intervals=intervals)
    if as_json:
        click.echo(json.dumps(_plain(result), ensure_ascii=False, default=str))
        return
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.names)
        writer.writerows(result.rows)
    else:
        click.echo(str(result))
    click.echo(_summary(result), err=True)


def _plain(result: QueryResult) -> dict[str, Any]:
    return {
        "columns": [{"name": name, "type": kind} for name, kind in zip(result.names, result.types, strict=True)],
        "rows": [list(row) for row in result.rows],
        "count": result.count.to_json(),
        "left_out_rows": result.left_out_rows,
        "disagreement": result.disagreement,
        "ms": result.ms,
    }


def _summary(result: QueryResult) -> str:
    notes = [f"of about {show.rows(result.count.rows)} rows"]
    if result.left_out_rows >= 1:
        notes.append(f"{show.rows(result.left_out_rows)} of them in groups too small to list")
    if result.disagreement > SMALL_DISAGREEMENT:
        notes.append(f"parts of the answer differed by up to {result.disagreement:.1%}")
    return "; ".join([*notes, f"{result.ms:.1f} ms"])
