"""``countless bench speed``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress
from rich.table import Table as TextTable

from countless.bench.contest import contest
from countless.bench.speed import Options, one_thread
from countless.cli import show
from countless.cli.bench.watch import ContestWatch
from countless.cli.fitting import fit_and_save
from countless.cli.options import Names, json_option


@click.command(
    epilog="\b\nExamples:\n"
    "  countless bench speed people.parquet people.countless\n"
    "  countless bench speed people.parquet --exclude id --epochs 20 --json"
)
@click.argument("table")
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option(
    "--queries",
    type=click.IntRange(min=1),
    default=Options.queries,
    show_default=True,
    help="Random queries of each seed.",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=Options.seeds, show_default=True, help="How many seeds to draw from."
)
@click.option(
    "--slow-queries",
    type=click.IntRange(min=1),
    default=Options.slow_queries,
    show_default=True,
    help="Queries for the methods that take long.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=Options.repeats,
    show_default=True,
    help="Times to ask the quick methods each query; the fastest counts.",
)
@click.option("--methods", type=Names(), help="Only these beside particles, such as skipping-100,duckdb.")
@click.option("--exclude", type=Names(), default=(), help="Without MODEL: columns to leave out of the fit.")
@click.option("--epochs", type=click.IntRange(min=1), help="Without MODEL: passes over the table.")
@json_option
def speed(
    table: str,
    model: Path | None,
    queries: int,
    seeds: int,
    slow_queries: int,
    repeats: int,
    methods: tuple[str, ...] | None,
    exclude: tuple[str, ...],
    epochs: int | None,
    as_json: bool,
) -> None:
    """Time every way to count, on the same random queries of TABLE.

    Side by side: the default method, the paper's samplers with and without skipping, many questions at once, DuckDB's
    exact count on the file, and a 1% row sample. Without MODEL, TABLE is fitted first. With --json the last line of
    standard output is one object.
    """
    with one_thread():
        pass  # says now, not after the counting, if a package is missing
    options = Options(queries, seeds, repeats, slow_queries, methods)
    with tempfile.TemporaryDirectory() as scratch:
        if model is None:
            model = Path(scratch) / "bench.countless"
            fit_and_save(show.progress(), table, model, resume=False, exclude=exclude, epochs=epochs)
        console = show.progress()
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            facts = contest(table, model, options, ContestWatch(console, bar))
    _show(facts)
    if as_json:
        click.echo(json.dumps(facts))


def _show(facts: dict[str, Any]) -> None:
    console = show.results()
    table = TextTable(box=None, pad_edge=False, header_style="bold")
    headings = (
        "method",
        "queries",
        "ms p50",
        "ms p99",
        "per second",
        "q p50",
        "q p95",
        "q p99",
        "q max",
        "forward rows",
    )
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    for name, found in facts["methods"].items():
        errors = [show.factor(found[key]) for key in ("q_p50", "q_p95", "q_p99", "q_max")]
        rows = f"{found['forward_rows']:,.0f}" if "forward_rows" in found else ""
        times = (f"{found['ms_p50']:.3f}", f"{found['ms_p99']:.3f}", f"{found['per_second']:,.0f}")
        table.add_row(name, f"{found['queries']:,}", *times, *errors, rows)
    console.print(table)
    console.print("against particles, on the queries that both answered: medians of latency, and q_p99 of q-errors;")
    console.print("estimate_many is given as its mean, and its throughput against a loop of single questions")
    for name, ratio in facts["ratios"].items():
        console.print(f"{ratio:9.2f}x  {name}")
    process = facts["process"]
    asking, numpy = process["estimate_ms"], process["import_numpy_ms"]
    console.print(f"a whole countless estimate takes {asking:.0f} ms, import numpy alone {numpy:.0f} ms")
    console.print(f"a serving process holds {process['serving_mb']:.0f} MB")
