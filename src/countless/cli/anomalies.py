"""The ``countless anomalies`` command: list the rows that a model finds least likely."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress

from countless.cli.parameters.options import json_option, model_argument, output_option, table_argument
from countless.cli.terminal import display as show
from countless.data.atomic_files import require_writable
from countless.data.sources.csv_files import CsvFile
from countless.estimator.estimator import Estimator


@click.command(
    epilog="\b\nExamples:\n"
    "  countless anomalies people.countless people.parquet\n"
    "  countless anomalies people.countless new_people.csv --top 5 --json\n"
    "  countless anomalies people.countless new_people.csv --top 100 -o odd.csv"
)
@model_argument
@table_argument()
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="How many rows to show.")
@output_option("them")
@json_option
def anomalies(model: Path, table: str | CsvFile, top: int, out: Path | None, as_json: bool) -> None:
    """Which rows of TABLE are the least likely, and why?

    Rows are numbered from 0. Each line has the natural logarithm of the row's probability, the column that makes it
    unlikely, the probability of its value given the other columns, and the expected value. Rows with values that the
    model has never seen come first: their probability is zero, and its logarithm is null in JSON. With --json there is
    one object per line.
    """
    if out is not None:
        require_writable(out)
    estimator = Estimator.load(model)
    console = show.progress()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading rows", total=None)
        frame = estimator.anomalies(table, top, watch=lambda done, total: bar.update(task, completed=done, total=total))
    if out is not None:
        frame.write(out)
        show.wrote(len(frame), "row", out)
        return
    if not as_json:
        click.echo(str(frame) if len(frame) else "the table has no rows")
        return
    for line in frame.to_dicts():
        click.echo(json.dumps(_finite(line), ensure_ascii=False))


def _finite(line: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in line.items()
    }
