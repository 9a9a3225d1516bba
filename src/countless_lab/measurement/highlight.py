"""The best figure of a row or column, marked in a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from countless.sheet import Strong


def best(values: Sequence[float | None], texts: Sequence[str], among: Iterable[int] | None = None) -> list[str]:
    """The texts, the one with the least value strong; those that are written alike are alike."""
    indices = range(len(values)) if among is None else list(among)
    known = {index: value for index in indices if (value := values[index]) is not None}
    if not known:
        return list(texts)
    least = _value(texts[min(known, key=lambda index: known[index])])
    return [Strong(text) if index in known and _value(text) == least else text for index, text in enumerate(texts)]


def _value(text: str) -> str:
    """A figure without its deviation."""
    return text.split(" ± ")[0]
