"""The ``countless sample`` command: draw synthetic rows from a model."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

from countless.cli.parameters.options import json_option, model_argument, output_option
from countless.cli.terminal import display as show
from countless.data.atomic_files import require_writable
from countless.estimator.estimator import Estimator
from countless_command import leaving_at_once

MIN_EFFECTIVE_SHARE = 0.9  # a smaller effective sample size gets a note


@click.command(
    epilog="\b\nExamples:\n"
    "  countless sample people.countless\n"
    "  countless sample people.countless --where \"city = 'Oslo'\" --count 1000 -o oslo.parquet\n"
    "  countless sample pages.countless --where \"url LIKE '%.org/%'\" --seed 7 --json"
)
@model_argument
@click.option("--count", type=click.IntRange(min=1), default=10, show_default=True, help="How many rows to draw.")
@click.option("--where", metavar="CLAUSE", help="Draw among the rows that match this clause.")
@click.option("--seed", type=click.IntRange(min=0), help="Another seed draws other rows  [default: the model's own]")
@click.option("--no-stored", is_flag=True, help="Let the model write all rows, also under a condition on text.")
@output_option("the rows")
@json_option
def sample(
    model: Path, count: int, where: str | None, seed: int | None, no_stored: bool, out: Path | None, as_json: bool
) -> None:
    """Draw synthetic rows from a model.

    With --where every row matches the clause. Under a condition on text, evidence rows that match come first. These are
    rows of the table, and a note says how many. Prints one row per line, with tabs between the columns. The first line
    has the names, if there are several columns. A text that is longer than the model reads ends with an ellipsis.
    """
    if out is not None:
        require_writable(out)
    with leaving_at_once():
        drawn = Estimator.load(model).sample(count, where=where, seed=seed, stored=not no_stored)
    if len(drawn) < count:
        shortage = f"only {len(drawn):,} of {show.plural(count, 'row')} could be drawn"
        all_stored = drawn.stored == len(drawn)
        why = "no more evidence rows match" if all_stored else "the others failed the condition, again and again"
        click.echo(f"note: {shortage}: {why}", err=True)
    if drawn.stored:
        click.echo(f"note: {drawn.stored:,} of them are stored rows of the table (--no-stored: none)", err=True)
    if drawn.effective_size < MIN_EFFECTIVE_SHARE * len(drawn):
        worth = f"{show.plural(len(drawn), 'row')} are worth about {drawn.effective_size:,.0f} independent ones"
        click.echo(f"note: {worth}", err=True)
    if out is not None:
        drawn.write(out)
        show.wrote(len(drawn), "row", out)
        return
    if len(drawn.names) > 1 and not as_json:
        click.echo("\t".join(map(_escaped, drawn.names)))
    for row, cut, log_prob in zip(drawn.rows, drawn.cut, drawn.log_probs.tolist(), strict=True):
        named = dict(zip(drawn.names, row, strict=True))
        record = {"row": named, "log_prob": None if math.isnan(log_prob) else log_prob, "cut": list(cut)}
        click.echo(json.dumps(record, ensure_ascii=False, default=str) if as_json else line(named, cut))


def line(row: dict[str, Any], cut: tuple[str, ...]) -> str:
    r"""A row as one line; characters that would break the line are escaped.

    >>> line({"a": "x\ty", "b": None, "c": "é", "d": 3}, ("c",))
    'x\\ty\tNULL\té…\t3'
    """
    return "\t".join(_escaped(value) + "…" * (name in cut) for name, value in row.items())


def _escaped(value: Any) -> str:
    if value is None:
        return "NULL"
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in str(value))
