"""The ``countless info`` command: show what a model file contains."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from countless.cli.parameters.options import json_option, model_argument
from countless.cli.terminal import display as show
from countless.engine.columns.kernel import SWITCH_OFF
from countless.estimator.estimator import Estimator
from countless.store import COLUMNS, EVIDENCE, PAIRS, TEXT, member_bytes, substrings_of
from countless_command import leaving_at_once


@click.command(epilog="\b\nExample:\n  countless info people.countless")
@model_argument
@json_option
def info(model: Path, as_json: bool) -> None:
    """What does MODEL hold?"""
    with leaving_at_once():
        estimator = Estimator.load(model)
    properties = {**estimator.info(), "bytes": member_bytes(model)}
    if as_json:
        click.echo(json.dumps(properties, ensure_ascii=False))
        return
    console = show.results()
    count = len(properties["columns"]) + len(properties["texts"])
    console.print(
        f"{model}: {properties['rows']:,} rows, {show.plural(count, 'column')}, {show.size(model.stat().st_size)}"
    )
    console.print(show.columns_table(estimator.schema))
    for column in properties["derived"]:
        console.print(f"derived   {column['name']}: {column['sql']}", soft_wrap=True)
    for column in properties["left_out"]:
        console.print(f"left out  {column['name']}: {column['reason']}")
    network = properties["model"]
    if network:
        console.print(
            f"model     {network['blocks']} blocks of 2 x {network['hidden']} units, embedding {network['embedding']}"
            f"{_orders(network)}"
        )
    if properties["counts"]:
        counted = properties["counts"]
        console.print(
            f"summary   of {show.plural(counted['columns'], 'column')} and {show.plural(counted['pairs'], 'pair')} of "
            f"columns ({counted['sparse_pairs']} value by value), counted in the table, {show.size(counted['bytes'])}"
        )
    if properties["text_model"]:
        sizes, names = properties["text_model"], ", ".join(text["name"] for text in properties["texts"])
        grams = f"n-grams of {', '.join(map(str, sizes['grams']))} in {sizes['buckets']:,} buckets"
        console.print(
            f"model     of {names}: a Transformer of {show.plural(sizes['blocks'], 'block')}, width "
            f"{sizes['width']}, inner {sizes['inner']}, {show.plural(sizes['heads'], 'head')}, "
            f"{grams if sizes['grams'] else 'n-grams none'}",
            soft_wrap=True,
        )
    for text in properties["texts"]:
        if text["summary"]:
            counted = text["summary"]
            sampled = f", estimated from {counted['sampled_rows']:,} rows" if "sampled_rows" in counted else ""
            console.print(
                f"summary   of {text['name']}: {counted['substrings']:,} substrings that occur in at least "
                f"{counted['threshold']} rows{sampled}, {show.size(counted['bytes'])}"
            )
    console.print(f"size      {properties['parameters']:,} parameters")
    training = properties["training"]
    if training.get("epochs"):
        console.print(f"training  {show.trained(training)}", soft_wrap=True)
    if training.get("workload"):
        console.print(f"workload  {show.workload_summary(**training['workload'])}")
    if "text" in training:
        text = training["text"]
        console.print(f"training  of {', '.join(text['columns'])}: {show.trained(text)}", soft_wrap=True)
    for entry in training.get("updates", ()):
        console.print(f"update    {_update(entry)}", soft_wrap=True)
    if properties["evidence"]:
        rows, evidence_size = (
            show.plural(properties["evidence"]["rows"], "row"),
            show.size(properties["evidence"]["bytes"]),
        )
        console.print(
            f"evidence  {rows} of the table, whole, in {evidence_size} of the file (countless strip leaves them out)"
        )
    else:
        console.print(
            "evidence  none: no rows of the table are in the file, so the network and exact counts answer alone"
        )
    console.print(
        f"bytes     {_shares(properties['bytes'], [text['name'] for text in properties['texts']])}", soft_wrap=True
    )
    console.print(f"interval  {show.error_bars(properties['interval'])}", soft_wrap=True)
    console.print(f"library   Countless {properties['library']}")
    console.print(f"engine    {_engine(properties['compiled'])}", soft_wrap=True)


def _shares(sizes: dict[str, int], texts: list[str]) -> str:
    """The bytes of each part of the file, the largest first."""
    names = {
        "schema.json": "values of columns",
        f"networks/{COLUMNS}.safetensors": "network",
        f"networks/{TEXT}.safetensors": "network of text",
        f"summaries/{PAIRS}.safetensors": "counts of values and pairs",
        **{
            f"summaries/{substrings_of(index)}.safetensors": f"substrings of {name}" for index, name in enumerate(texts)
        },
        f"rows/{EVIDENCE}.safetensors": "evidence rows",
        "calibration.json": "error bars",
        "report.json": "report",
    }
    return ", ".join(f"{names[member]} {show.size(count)}" for member, count in sizes.items() if member in names)


def _orders(network: dict[str, Any]) -> str:
    orders = network["orders"]
    if len(orders) > 1:
        return f"; {len(orders)} orders of the columns"
    return "" if orders[0] == sorted(orders[0]) else "; an order of its own, not the table's"


def _update(entry: dict[str, Any]) -> str:
    """One line of the history of updates."""
    after = entry.get("bits_after", {})
    bits = [
        f"bits a {entry.get('unit', 'row')} of {kind} ones {before:.2f}, then {after[kind]:.2f}"
        for kind, before in entry.get("bits_before", {}).items()
        if before is not None and after.get(kind) is not None
    ]
    return ", ".join([f"{entry['when'][:10]}: {show.plural(entry['rows'], 'new row')}", *bits])


def _engine(compiled: bool) -> str:
    if compiled:
        return "compiled"
    if os.environ.get(SWITCH_OFF):
        return f"NumPy, which is slower: {SWITCH_OFF} is set"
    return "NumPy, which is slower: install again with a C compiler for the compiled one"
