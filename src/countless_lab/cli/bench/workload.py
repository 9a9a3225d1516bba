"""``countless bench workload``."""

from __future__ import annotations

import json
from typing import Any

import click

from countless.cli.parameters.options import Names, json_option
from countless.cli.terminal import display as show
from countless_lab.cli.options import count_option
from countless_lab.contests.workload import WorkloadContestOptions, contest
from countless_lab.measurement.requirements import require_lab


@click.command(epilog="\b\nExample:\n  countless bench workload people.parquet --exclude id --epochs 6 --json")
@click.argument("table")
@click.option("--exclude", type=Names(), default=(), help="Leave these columns out.")
@click.option("--epochs", type=click.IntRange(min=1), help="Passes over the table  [default: by its size, 20 to 100]")
@count_option("--templates", WorkloadContestOptions.templates, "Sets of 3 to 8 columns that are filtered together.")
@count_option("--queries", WorkloadContestOptions.queries, "Queries of the workload.")
@count_option("--asked", WorkloadContestOptions.asked, "Questions of each kind that the models are asked.")
@count_option("--seeds", WorkloadContestOptions.seeds, "Seeds of everything random.")
@json_option
def workload(
    table: str,
    exclude: tuple[str, ...],
    epochs: int | None,
    templates: int,
    queries: int,
    asked: int,
    seeds: int,
    as_json: bool,
) -> None:
    """Measure what a workload is worth on TABLE.

    Fits TABLE twice for each seed, equally long: without a workload, and with random queries about a few sets of
    columns. Both are then asked other queries about these sets, and random ones.
    """
    require_lab()
    console = show.progress()
    options = WorkloadContestOptions(epochs, templates, queries, asked, seeds, exclude)
    result = contest(table, options, lambda stage: console.print(f"{stage} ..."))
    _show(result)
    if as_json:
        click.echo(json.dumps(result))


def _show(result: dict[str, Any]) -> None:
    table = show.plain_table("questions", "fit", right=("mean", "p50", "p90", "p95", "p99"))
    for questions, models in result["table"].items():
        for model, errors in models.items():
            table.add_row(questions, model, *map(show.factor, errors.values()))
    console = show.results()
    console.print("q-errors (the mean is the geometric one):")
    console.print(table)
