"""The best figure of a row or column, marked in a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from countless.sheet import Strong


def best(values: Sequence[float | None], texts: Sequence[str], candidates: Iterable[int] | None = None) -> list[str]:
    """The texts, with the smallest value in bold, and all texts that show the same figure."""
    indices = range(len(values)) if candidates is None else list(candidates)
    values_at = {index: value for index in indices if (value := values[index]) is not None}
    if not values_at:
        return list(texts)
    best_text = _value(texts[min(values_at, key=lambda index: values_at[index])])
    return [
        Strong(text) if index in values_at and _value(text) == best_text else text for index, text in enumerate(texts)
    ]


def _value(text: str) -> str:
    """A figure without its deviation."""
    return text.split(" ± ")[0]
