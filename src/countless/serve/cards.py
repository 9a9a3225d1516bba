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


def card(column: Column, distribution: Distribution, top: int, search: str | None) -> dict[str, Any]:
    """The card of ``column``, with at most ``top`` values, and only those that contain ``search``."""
    kind = kind_of(column)
    values, others = (
        (_bins(column, distribution), None) if kind in ("number", "time") else _values(distribution, top, search)
    )
    return {
        "column": column.name,
        "kind": kind,
        "values": values,
        "others": others,
        "disagreement": snap_to_zero(distribution.disagreement),
        "counted": distribution.counted,
        "sampled": distribution.sampled,
    }


def searched(schema: Schema, body: DistributionRequest) -> dict[str, str]:
    """The text to search for in each column of ``body.search``, which must be a requested category."""
    indices = {schema.find(name) for name in body.columns}
    searches = {}
    for name, text in body.search.items():
        index = schema.find(name)
        if index is None or index not in indices or schema.columns[index].is_text:
            raise UnsupportedQueryError(f'"{name}" is searched but not among the columns: add it to them')
        if kind_of(schema.coded[index]) != "category":
            raise UnsupportedQueryError(f'"{name}" is shown in bins, which have no values to search: leave search out')
        searches[schema.coded[index].name] = text.casefold()
    return searches


def _bins(column: Column, distribution: Distribution) -> list[dict[str, Any]]:
    numeric = is_number(column.type)
    lows, highs, *numbers = distribution.columns
    return [
        {"from": _edge(low, numeric), "to": _edge(high, numeric), **_numbers(bin_numbers)}
        for low, high, *bin_numbers in zip(lows, highs, *numbers, strict=True)
    ]


def _edge(text: str | None, numeric: bool) -> float | str | None:
    """A number as a number; a whole one without a fraction."""
    if text is None or not numeric:
        return text
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _values(
    distribution: Distribution, top: int, search: str | None
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    texts, *numbers = distribution.columns
    indices: Sequence[int] = range(len(texts))
    if search is not None:
        indices = [index for index, text in enumerate(texts) if text is not None and search in text.casefold()]
    listed = [{"value": texts[index], **_numbers([series[index] for series in numbers])} for index in indices[:top]]
    unlisted = indices[top:]
    if not unlisted:
        return listed, None
    rows, shares = (_at(numbers[NUMBERS.index(name)], unlisted) for name in ("rows", "share"))
    counted = is_more_than_noise(rows)
    return listed, {"values": len(unlisted), "share": float(shares[counted].sum()), "rows": float(rows[counted].sum())}


def _at(numbers: Sequence[float], indices: Sequence[int]) -> FloatArray:
    """The numbers at these indices; a range is sliced, since it may have many thousands."""
    if isinstance(indices, range):
        return np.array(numbers[indices.start : indices.stop])
    return np.array([numbers[index] for index in indices])


def _numbers(numbers: Sequence[float]) -> dict[str, float]:
    by_name = dict(zip(NUMBERS, numbers, strict=True))
    cleaned = {name: snap_to_zero(by_name[name]) for name in ("rows", "low", "high")}
    return by_name | cleaned | ({} if cleaned["rows"] else {"share": 0.0})
