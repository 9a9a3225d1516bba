"""``countless bench rate``."""

from __future__ import annotations

import json

import click

from countless.cli.parameters.options import Names, json_option
from countless.cli.terminal import display as show
from countless_lab.cli.options import count_option
from countless_lab.measurement.training_rate import training_rates


@click.command(epilog="\b\nExample:\n  countless bench rate people.parquet --rounds 3")
@click.argument("table")
@click.option("--exclude", type=Names(), default=(), help="Leave these columns out.")
@click.option("--seconds", type=click.FloatRange(min=1), default=8.0, show_default=True, help="Of each fit.")
@count_option("--rounds", 3, "Fits of each kind, in turn.")
@json_option
def rate(table: str, exclude: tuple[str, ...], seconds: float, rounds: int, as_json: bool) -> None:
    """Measure how fast a fit of TABLE trains, alone and beside a busy loop per core.

    Rows a second of wall time, the median of some rounds. Alone means beside what else the machine does.
    """
    rates = training_rates(table, seconds, rounds, exclude)
    if as_json:
        click.echo(json.dumps(rates))
        return
    busy_rate = f"{rates['busy']:,.0f} beside a busy loop per core, {rates['ratio']:.0%} of it"
    show.results().print(f"{rates['alone']:,.0f} rows/s alone, {busy_rate}")
