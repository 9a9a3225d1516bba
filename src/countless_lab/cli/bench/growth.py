"""``countless bench growth``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from countless.cli.parameters.options import ChosenNames, Duration, json_option
from countless.cli.terminal import display as show
from countless.data.atomic_files import json_bytes, write_bytes
from countless_lab.cli.options import count_option
from countless_lab.cli.sweep_display import run_sweep, say_failures
from countless_lab.growth.dimensions import DIMENSIONS, GrowthSizes
from countless_lab.growth.jobs import jobs_of, remove_models
from countless_lab.growth.picture import draw
from countless_lab.growth.report import Record, records_along, report
from countless_lab.measurement.requirements import require_lab
from countless_lab.runner.store import ResultStore

SIZES = GrowthSizes()


@click.command(
    epilog="\b\nExamples:\n"
    "  countless bench growth -o growth/\n"
    "  countless bench growth -o growth/ --only columns,filters --budget 60s"
)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The folder for the results.")
@click.option("--budget", type=Duration(), default=SIZES.budget, help="Time to train each model for  [default: 15s]")
@count_option("--queries", SIZES.queries, "Questions per point.")
@click.option(
    "--rows-most",
    type=click.IntRange(min=1_000),
    default=max(SIZES.rows),
    show_default=True,
    help="Rows of the largest table.",
)
@click.option(
    "--only",
    type=ChosenNames(DIMENSIONS),
    default=DIMENSIONS,
    help=f"Dimensions to measure  [default: {','.join(DIMENSIONS)}]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=SIZES.seed,
    show_default=True,
    help="Seed of everything random.",
)
@json_option
def growth(
    output: Path, budget: float, queries: int, rows_most: int, only: tuple[str, ...], seed: int, as_json: bool
) -> int:
    """Draw how latency, training, memory and file size grow with the table and the question.

    Generates tables, fits each for a while, and asks it random questions, every fit and every serving process measured
    by itself. The folder gets growth.json and growth.png. A point that the folder holds already, measured with the same
    options, is not measured again: after Ctrl-C, the same command goes on.
    """
    require_lab()
    points = replace(SIZES, budget=budget, queries=queries, seed=seed).up_to(rows_most).points()
    outcome = run_sweep(jobs_of(point for point in points if point.dimension in only), output, alone=True)
    command = (
        f"countless bench growth -o DIR --budget {budget:g}s --queries {queries} --rows-most {rows_most} "
        f"--only {','.join(only)} --seed {seed}"
    )
    record = report(points, ResultStore(output), command)
    for name, content in (("growth.json", json_bytes(record)), ("growth.png", draw(record))):
        show.progress().print(f"wrote {write_bytes(output / name, content)}", soft_wrap=True)
    if not outcome.failed:
        remove_models(output)
    if as_json:
        click.echo(json.dumps(record))
    else:
        _show(record)
    return say_failures(outcome)


def _show(figures: Record) -> None:
    console = show.results()
    headings = ("p50 ms", "p99 ms", "clauses/s", "train rows/s", "fit", "fit memory", "serving memory", "file")
    for dimension in DIMENSIONS:
        records = records_along(figures["points"], dimension)
        if not records:
            continue
        table = show.plain_table(right=(dimension, *headings))
        for record in records:
            table.add_row(f"{record['value']:,}", *_cells(record["fit"], record["serving"]))
        console.print(table)
        console.print()
    for name, value in figures["ratios"].items():
        console.print(f"{show.factor(value)}x  {name}")


def _cells(fit: Record, serving: Record) -> list[str]:
    return [
        f"{serving['latency_ms']['p50']:.2f}",
        f"{serving['latency_ms']['p99']:.2f}",
        f"{serving.get('many_per_second', serving['loop_per_second']):,.0f}",
        f"{fit['rows_per_second']:,}",
        show.duration(fit["seconds"]),
        show.size(fit["peak_bytes"]),
        show.size(serving["peak_bytes"]),
        show.size(fit["file_bytes"]),
    ]
