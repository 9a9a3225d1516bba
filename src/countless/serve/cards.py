"""Cards of the web page: a column's distribution as its most frequent values and the rest, or as bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from countless.arrays import FloatArray
from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import is_number
from countless.errors import UnsupportedQueryError
from countless.estimator.answers.distributions.distribution import NUMBERS, Distribution
from countless.serve.api.requests import DistributionRequest
from countless.serve.float_noise import is_more_than_noise, snap_to_zero
from countless.serve.models import kind_of


def card(column: Column, found: Distribution, top: int, search: str | None) -> dict[str, Any]:
    """The card of ``column``, with at most ``top`` values, and only those that contain ``search``."""
    kind = kind_of(column)
    values, others = (_bins(column, found), None) if kind in ("number", "time") else _values(found, top, search)
    return {
        "column": column.name,
        "kind": kind,
        "values": values,
        "others": others,
        "disagreement": snap_to_zero(found.disagreement),
        "counted": found.counted,
        "sampled": found.sampled,
    }


def searched(schema: Schema, asked: DistributionRequest) -> dict[str, str]:
    """What is looked for, by its column: one of those asked for, and a category."""
    places = {schema.find(name) for name in asked.columns}
    found = {}
    for name, text in asked.search.items():
        place = schema.find(name)
        if place is None or place not in places or schema.columns[place].is_text:
            raise UnsupportedQueryError(f'"{name}" is searched but not among the columns: add it to them')
        if kind_of(schema.coded[place]) != "category":
            raise UnsupportedQueryError(f'"{name}" is shown in bins, which have no values to search: leave search out')
        found[schema.coded[place].name] = text.casefold()
    return found


def _bins(column: Column, found: Distribution) -> list[dict[str, Any]]:
    numeric = is_number(column.type)
    lows, highs, *numbers = found.columns
    return [
        {"from": _edge(low, numeric), "to": _edge(high, numeric), **_numbers(each)}
        for low, high, *each in zip(lows, highs, *numbers, strict=True)
    ]


def _edge(text: str | None, numeric: bool) -> float | str | None:
    """A number as a number; a whole one without a fraction."""
    if text is None or not numeric:
        return text
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _values(found: Distribution, top: int, search: str | None) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    texts, *numbers = found.columns
    chosen: Sequence[int] = range(len(texts))
    if search is not None:
        chosen = [index for index, text in enumerate(texts) if text is not None and search in text.casefold()]
    told = [{"value": texts[index], **_numbers([each[index] for each in numbers])} for index in chosen[:top]]
    rest = chosen[top:]
    if not rest:
        return told, None
    rows, shares = (_some(numbers[NUMBERS.index(name)], rest) for name in ("rows", "share"))
    counted = is_more_than_noise(rows)
    return told, {"values": len(rest), "share": float(shares[counted].sum()), "rows": float(rows[counted].sum())}


def _some(numbers: Sequence[float], places: Sequence[int]) -> FloatArray:
    """The numbers at some places, of which there may be many thousands."""
    if isinstance(places, range):
        return np.array(numbers[places.start : places.stop])
    return np.array([numbers[place] for place in places])


def _numbers(each: Sequence[float]) -> dict[str, float]:
    found = dict(zip(NUMBERS, each, strict=True))
    cleared = {name: snap_to_zero(found[name]) for name in ("rows", "low", "high")}
    return found | cleared | ({} if cleared["rows"] else {"share": 0.0})
