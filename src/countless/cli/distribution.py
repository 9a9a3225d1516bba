"""The ``countless distribution`` command: show the distribution of columns, optionally under a condition."""

from __future__ import annotations

import json
from pathlib import Path

import click

from countless.cli.parameters.options import BinsOrEdges, json_option, model_argument, output_option
from countless.cli.terminal import display as show
from countless.data.atomic_files import require_writable
from countless.estimator.answers.distributions.distribution import SORTS, Distribution
from countless.estimator.estimator import Estimator
from countless_command import leaving_at_once


@click.command(
    epilog="\b\nExamples:\n"
    '  countless distribution people.countless city --where "age > 35"\n'
    "  countless distribution people.countless age --bins 10\n"
    "  countless distribution people.countless age --bins 20,40,60 -o ages.csv\n"
    '  countless distribution people.countless city job --where "age > 35" --json'
)
@model_argument
@click.argument("columns", metavar="COLUMN...", nargs=-1, required=True)
@click.option("--where", metavar="CLAUSE", help="Of the rows that match this clause.")
@click.option(
    "--bins",
    type=BinsOrEdges(),
    help="Group numbers and times into about this many bins, or into bins between edges such as 20,40,60.",
)
@click.option("--sort", type=click.Choice(SORTS), default=SORTS[0], show_default=True, help="What comes first.")
@output_option("the values")
@json_option
def distribution(
    model: Path,
    columns: tuple[str, ...],
    where: str | None,
    bins: int | tuple[str, ...] | None,
    sort: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Which values does a column have, and how many rows each?

    With several columns, every combination of values is listed. Each count has an error bar. Counts that the model
    stores are exact.
    """
    if out is not None:
        require_writable(out)
    with leaving_at_once():
        result = Estimator.load(model).distribution(columns, where, bins=bins, sort=sort)
    if out is not None:
        result.write(out)
        show.wrote(len(result), "line", out)
        return
    click.echo(json.dumps(_plain(result), ensure_ascii=False, default=str) if as_json else str(result))


def _plain(result: Distribution) -> dict[str, object]:
    return {
        "where": result.total.where,
        "total": result.total.to_json(),
        "values": result.to_dicts(),
        "outside": result.outside,
        "disagreement": result.disagreement,
        "counted": result.counted,
        "sampled": result.sampled,
        "ms": result.ms,
    }
