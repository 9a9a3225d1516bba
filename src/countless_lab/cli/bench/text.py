"""``countless bench text``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, TaskID

from countless.cli.parameters.options import json_option
from countless.cli.terminal import display as show
from countless_lab.cli.options import count_option
from countless_lab.contests.text import TextContestOptions, contest
from countless_lab.measurement.contenders import ContestListener, Measured
from countless_lab.measurement.requirements import require_lab


class ContestDisplay(ContestListener):
    """A bar for the contender at work, and a line for each that is done."""

    def __init__(self, console: Console, bar: Progress) -> None:
        self._console, self._bar = console, bar
        self._task: TaskID | None = None

    def counting(self, queries: int) -> None:
        self._console.print(f"counting {queries:,} random queries ...")

    def begins(self, name: str, queries: int) -> None:
        self._task = self._bar.add_task(name, total=queries)

    def answered(self) -> None:
        assert self._task is not None
        self._bar.advance(self._task)

    def ends(self, measured: Measured) -> None:
        assert self._task is not None
        self._bar.remove_task(self._task)
        self._console.print(f"{measured.name}: {measured.to_json()['ms_p50']:.2f} ms")


@click.command(epilog="\b\nExample:\n  countless bench text urls.parquet urls.countless --json")
@click.argument("table")
@click.argument("model", type=click.Path(path_type=Path))
@count_option("--queries", TextContestOptions.queries, "Pieces to look for.")
@count_option("--slow-queries", TextContestOptions.slow_queries, "Of them, for the methods that take long.")
@count_option("--mix-queries", TextContestOptions.mix_queries, "Patterns of all kinds.")
@count_option("--samples", TextContestOptions.samples, "Samples of the paper's methods.")
@count_option("--seed", TextContestOptions.seed, "Seed of the questions.", least=0)
@json_option
def text(
    table: str, model: Path, queries: int, slow_queries: int, mix_queries: int, samples: int, seed: int, as_json: bool
) -> None:
    """Compare every way to count strings of TABLE that match a pattern.

    Side by side: the default method with and without the counts of substrings, the paper's methods, a 1% row sample,
    DuckDB's own guess and its scan. With --json the last line of standard output is one object. Takes some minutes.
    """
    require_lab()
    options = TextContestOptions(queries, slow_queries, mix_queries, samples, seed=seed)
    console = show.progress()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        result = contest(table, model, options, ContestDisplay(console, bar))
    _show(result)
    if as_json:
        click.echo(json.dumps(result))


def _show(result: dict[str, Any]) -> None:
    console = show.results()
    headings = ("queries", "ms p50", "ms p99", "q p50", "q p95", "q p99", "q p99.9", "q max")
    table = show.plain_table("method", right=headings)
    for name, figures in result["contains"].items():
        errors = [show.factor(figures[key]) for key in ("q_p50", "q_p95", "q_p99", "q_p99.9", "q_max")]
        table.add_row(name, f"{figures['queries']:,}", f"{figures['ms_p50']:.2f}", f"{figures['ms_p99']:.2f}", *errors)
    console.print("does a string contain a piece of 3 to 5 characters?")
    console.print(table)
    for name, ratio in result["ratios"].items():
        console.print(f"{ratio:9.2f}x  {name}")
    for name, classes in result["mix"].items():
        console.print(f"patterns of many kinds, {name}: q-errors")
        kinds = show.plain_table("class", "queries", "p50", "p95", "p99", "max")
        for kind, figures in classes.items():
            errors = [show.factor(figures[key]) for key in ("p50", "p95", "p99", "max")]
            kinds.add_row(kind, f"{figures['queries']:,}", *errors)
        console.print(kinds)
    absent = result["absent"]["particles"]
    console.print(f"where no row matches: {absent['p50']:.2g} rows in the median, {absent['max']:.2g} at most")
    anchored, sample = result["anchored_ms"], result["per_sample"]
    console.print(f"anchored patterns: {anchored['p50']:.2f} ms median, {anchored['p99']:.2f} ms p99")
    console.print(
        f"a sampled string: {sample['naive_ms']:.3f} ms, {sample['ratio']:.0f} times as long without a cache; "
        f"a sample of skipping {sample['skipping_ms']:.3f} ms, {sample['skipping_ratio']:.0f} times"
    )
