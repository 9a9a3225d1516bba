"""``countless info``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
from rich.table import Table

from countless.cli import show
from countless.cli.options import json_option, model_argument
from countless.engine.kernel import SWITCH_OFF
from countless.estimator.estimator import Estimator


@click.command(epilog="\b\nExample:\n  countless info people.countless")
@model_argument
@json_option
def info(model: Path, as_json: bool) -> None:
    """What does MODEL hold?"""
    estimator = Estimator.load(model)
    facts = estimator.info()
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    console = show.results()
    console.print(
        f"{model}: {facts['rows']:,} rows, {len(facts['columns'])} columns, {show.size(model.stat().st_size)}"
    )
    table = Table("column", "type", "distinct", "NULLs", "stored as", box=None, pad_edge=False, header_style="bold")
    for column in facts["columns"]:
        table.add_row(
            column["name"],
            column["type"],
            f"{column['distinct']:,}",
            "yes" if column["has_null"] else "",
            show.storage(facts["rows"], column["codes"], column["digits"], column["grid_cells"]),
        )
    console.print(table)
    for column in facts["left_out"]:
        console.print(f"left out  {column['name']}: {column['reason']}")
    network = facts["model"]
    console.print(
        f"model     {network['blocks']} blocks of 2 x {network['hidden']} units, embedding {network['embedding']}, "
        f"{facts['parameters']:,} parameters"
    )
    training = facts["training"]
    if training:
        console.print(
            f"training  {training['epochs']:g} epochs in {show.duration(training['seconds'])}, "
            f"{training['train_bits']:.2f} bits a row masked"
        )
    interval = facts["interval"]
    if interval["factor"] is not None:
        level, queries = interval["level"], interval["queries"]
        console.print(f"interval  a factor of {show.factor(interval['factor'])} at {level:.0%}, from {queries} queries")
    console.print(f"library   Countless {facts['library']}")
    console.print(f"engine    {_engine(facts['compiled'])}", soft_wrap=True)


def _engine(compiled: bool) -> str:
    if compiled:
        return "compiled"
    if os.environ.get(SWITCH_OFF):
        return f"NumPy, which is slower: {SWITCH_OFF} is set"
    return "NumPy, which is slower: install again with a C compiler for the compiled one"
