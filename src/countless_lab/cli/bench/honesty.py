"""``countless bench honesty``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from countless import Estimator
from countless.cli.parameters.options import json_option
from countless.cli.terminal import display as show
from countless_lab.cli.options import count_option
from countless_lab.diagnosis.honesty import QUESTIONS, measure_honesty


@click.command(epilog="\b\nExample:\n  countless bench honesty people.parquet people.countless")
@click.argument("table")
@click.argument("model", type=click.Path(path_type=Path))
@count_option("--questions", QUESTIONS, "About this many.")
@count_option("--seed", 0, "Seed of the questions.", least=0)
@click.option(
    "--show", "most_shown", type=click.IntRange(min=0), default=20, show_default=True, help="Worst misses listed."
)
@json_option
def honesty(table: str, model: Path, questions: int, seed: int, most_shown: int, as_json: bool) -> None:
    """Ask MODEL questions of every kind, and list those whose 90% interval misses TABLE's count by a factor of 2.

    A truth or an end of an interval below one row counts as one row.
    """
    result = measure_honesty(Estimator.load(model), table, questions, seed)
    if as_json:
        click.echo(json.dumps(result.to_json()))
        return
    results = show.results()
    far = {kind: sum(miss.kind == kind for miss in result.misses) for kind in result.asked}
    for kind, count in result.asked.items():
        numbers = f"{result.outside[kind]} outside, {far[kind]} by more than 2x, {result.refused[kind]} refused"
        results.print(f"{kind}: {show.plural(count, 'question')}, {numbers}", soft_wrap=True)
    for miss in result.misses[:most_shown]:
        interval = f"{miss.low:,.0f} to {miss.high:,.0f}, truth {miss.truth:,}, off by {miss.factor:.1f}x"
        results.print(f"  {miss.kind}: {miss.where}: {miss.rows:,.0f} ({interval})", soft_wrap=True)
    total = f"{show.plural(sum(result.asked.values()), 'question')}, {sum(result.outside.values())} outside"
    results.print(f"{total}, {len(result.misses)} by more than a factor of 2", soft_wrap=True)
