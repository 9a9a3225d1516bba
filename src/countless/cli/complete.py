"""The ``countless complete`` command: fill in missing values of rows."""

from __future__ import annotations

from pathlib import Path

import click
from rich.progress import Progress

from countless.cli.parameters.options import Names, model_argument, table_argument
from countless.cli.terminal import display as show
from countless.data.atomic_files import require_writable
from countless.data.sources.csv_files import CsvFile
from countless.estimator.estimator import Estimator
from countless.estimator.rows.completed import Completed


@click.command(
    epilog="\b\nExamples:\n"
    "  countless complete people.countless people.csv -o completed.csv\n"
    "  countless complete people.countless people.csv -o completed.parquet --columns age --probabilities cells.csv\n"
    "  countless complete people.countless people.csv -o completed.csv --draws --seed 7"
)
@model_argument
@table_argument()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Where to write: .csv or .parquet."
)
@click.option("--columns", type=Names(), help="Fill in these columns only  [default: all that the model holds]")
@click.option("--draws", is_flag=True, help="Draw values by their probabilities instead of taking the most likely.")
@click.option("--seed", type=click.IntRange(min=0), help="Another seed draws other values  [default: the model's own]")
@click.option(
    "--probabilities",
    "cells",
    type=click.Path(path_type=Path),
    help="Write row, column, value and probability of every cell that was filled in: .csv or .parquet.",
)
def complete(
    model: Path,
    table: str | CsvFile,
    output: Path,
    columns: tuple[str, ...] | None,
    draws: bool,
    seed: int | None,
    cells: Path | None,
) -> None:
    """Fill in missing values of TABLE.

    NULL becomes the most likely value, given the other values of the row. Columns that TABLE lacks are added. Text
    columns are filled in only with --draws.
    """
    require_writable(output)
    if cells is not None:
        require_writable(cells)
    estimator = Estimator.load(model)
    console = show.progress()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("filling in", total=None)
        completed = estimator.complete(
            table,
            columns=columns,
            draws=draws,
            seed=seed,
            watch=lambda done, total: bar.update(task, completed=done, total=total),
        )
    completed.write(output)
    if cells is not None:
        completed.cells.write(str(cells))
    console.print(f"{_summary(completed)}; wrote {output}{'' if cells is None else f' and {cells}'}", soft_wrap=True)


def _summary(completed: Completed) -> str:
    rows = show.plural(completed.rows, "row")
    if not len(completed.cells) and not completed.left:
        return f"nothing was missing in {rows}"
    omitted = f", left {show.plural(completed.left, 'missing text')} out" if completed.left else ""
    return f"filled in {show.plural(len(completed.cells), 'cell')} of {rows}{omitted}"
