"""The ``countless info`` command: show what a model file contains."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
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
    size = show.size(model.stat().st_size)
    console.print(f"{model}: {properties['rows']:,} rows, {show.plural(count, 'column')}, {size}")
    console.print(show.columns_table(estimator.schema))
    for line in _lines(properties):
        console.print(line, soft_wrap=True)


def _lines(properties: dict[str, Any]) -> Iterator[str]:
    """All that a file holds beside the columns, a line for each item."""
    for column in properties["derived"]:
        yield f"derived   {column['name']}: {column['sql']}"
    for column in properties["left_out"]:
        yield f"left out  {column['name']}: {column['reason']}"
    yield from _column_model_lines(properties)
    yield from _text_model_lines(properties)
    yield f"size      {properties['parameters']:,} parameters"
    yield from _training_lines(properties["training"])
    evidence = properties["evidence"]
    if evidence:
        rows, size = show.plural(evidence["rows"], "row"), show.size(evidence["bytes"])
        yield f"evidence  {rows} of the table, whole, in {size} of the file (countless strip leaves them out)"
    else:
        yield "evidence  none: no rows of the table are in the file, so the network and exact counts answer alone"
    yield f"bytes     {_shares(properties['bytes'], [text['name'] for text in properties['texts']])}"
    yield f"interval  {show.error_bars(properties['interval'])}"
    yield f"library   Countless {properties['library']}"
    yield f"engine    {_engine(properties['compiled'])}"


def _column_model_lines(properties: dict[str, Any]) -> Iterator[str]:
    network, counts = properties["model"], properties["counts"]
    if network:
        sizes = f"{network['blocks']} blocks of 2 x {network['hidden']} units, embedding {network['embedding']}"
        yield f"model     {sizes}{_orders(network)}"
    if counts:
        hidden = counts["columns"] - len(properties["columns"])  # parts of dates, which no schema lists
        columns, pairs = show.plural(counts["columns"] - hidden, "column"), show.plural(counts["pairs"], "pair")
        columns += f", {show.plural(hidden, 'hidden part')} of dates" if hidden else ""
        sparse = f"({counts['sparse_pairs']} value by value), counted in the table, {show.size(counts['bytes'])}"
        yield f"summary   of {columns} and {pairs} of them {sparse}"


def _text_model_lines(properties: dict[str, Any]) -> Iterator[str]:
    network = properties["text_model"]
    if network:
        names = ", ".join(text["name"] for text in properties["texts"])
        grams = f"n-grams of {', '.join(map(str, network['grams']))} in {network['buckets']:,} buckets"
        yield (
            f"model     of {names}: a Transformer of {show.plural(network['blocks'], 'block')}, width "
            f"{network['width']}, inner {network['inner']}, {show.plural(network['heads'], 'head')}, "
            f"{grams if network['grams'] else 'n-grams none'}"
        )
    for text in properties["texts"]:
        counts = text["summary"]
        if counts:
            sampled = f", estimated from {counts['sampled_rows']:,} rows" if "sampled_rows" in counts else ""
            yield (
                f"summary   of {text['name']}: {counts['substrings']:,} substrings that occur in at least "
                f"{counts['threshold']} rows{sampled}, {show.size(counts['bytes'])}"
            )


def _training_lines(training: dict[str, Any]) -> Iterator[str]:
    if training.get("epochs"):
        yield f"training  {show.trained(training)}"
    if training.get("workload"):
        yield f"workload  {show.workload_summary(**training['workload'])}"
    if "text" in training:
        text = training["text"]
        yield f"training  of {', '.join(text['columns'])}: {show.trained(text)}"
    for entry in training.get("updates", ()):
        yield f"update    {_update(entry)}"


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
