"""The best figure of a row or column, marked in a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from countless.sheet import Strong


def best(values: Sequence[float | None], texts: Sequence[str], among: Iterable[int] | None = None) -> list[str]:
    """The texts, the one with the least value strong; those that are written alike are alike."""
    places = range(len(values)) if among is None else list(among)
    known = {place: value for place in places if (value := values[place]) is not None}
    if not known:
        return list(texts)
    least = _value(texts[min(known, key=lambda place: known[place])])
    return [Strong(text) if place in known and _value(text) == least else text for place, text in enumerate(texts)]


def _value(text: str) -> str:
    """A figure without its deviation."""
    return text.split(" ± ")[0]
