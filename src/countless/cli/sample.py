"""``countless sample``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from countless.cli.options import json_option, model_argument
from countless.estimator.estimator import Estimator
from countless.estimator.sampling import Sample


@click.command(
    epilog="\b\nExamples:\n"
    "  countless sample pages.countless\n"
    "  countless sample pages.countless --where \"url LIKE '%.org/%'\" --count 3\n"
    "  countless sample pages.countless --seed 7 --json"
)
@model_argument
@click.option("--count", type=click.IntRange(min=1), default=10, show_default=True, help="How many rows to draw.")
@click.option("--where", metavar="CLAUSE", help="Draw among the rows that match this clause.")
@click.option("--seed", type=click.IntRange(min=0), help="Another seed draws other rows  [default: the model's own]")
@json_option
def sample(model: Path, count: int, where: str | None, seed: int | None, as_json: bool) -> None:
    """Which rows would a model write?

    Draws rows from a model of text columns, each by its probability. Prints a row per line, with tabs between its
    columns; a text that goes on beyond what the model sees ends with an ellipsis.
    """
    for row in Estimator.load(model).sample(count, where=where, seed=seed):
        click.echo(json.dumps(row.to_json(), ensure_ascii=False) if as_json else line(row))


def line(row: Sample) -> str:
    r"""A row for people; what would break the line is escaped.

    >>> line(Sample({"a": "x\ty", "b": None, "c": "é"}, 0.1, ("c",)))
    'x\\ty\tNULL\té…'
    """
    texts = (_shown(text) + "…" * (name in row.cut) for name, text in row.row.items())
    return "\t".join(texts)


def _shown(text: str | None) -> str:
    if text is None:
        return "NULL"
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
