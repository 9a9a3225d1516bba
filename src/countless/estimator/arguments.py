"""Validation of arguments before any work: integers and column names."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from countless.data.sources.csv_files import wrong_separator
from countless.errors import DataError, QueryTypeError

if TYPE_CHECKING:
    from countless.data.sources.source import Source


def whole(value: Any, what: str, least: int) -> int:
    """``value`` as a whole number, which must not be less than ``least``.

    >>> whole(3, "the seed", 0)
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise QueryTypeError(f"{what} must be a whole number, not {value!r}") from None
    if isinstance(value, bool):
        raise QueryTypeError(f"{what} must be a whole number, not {value!r}")
    if number < least:
        raise QueryTypeError(f"{what} must be at least {least}, not {number}")
    return number


def names_of(columns: Any) -> list[str]:
    """The names of one column or more: a string is one name.

    >>> names_of("age"), names_of(("age", "city"))
    (['age'], ['age', 'city'])
    """
    if isinstance(columns, str):
        return [columns]
    names = list(columns) if isinstance(columns, Iterable) else [columns]
    if not names or not all(isinstance(name, str) for name in names):
        raise QueryTypeError(f"give the name of a column, or a list of names, not {columns!r}")
    return names


def require_columns(source: Source, names: Sequence[str]) -> None:
    """An error if the table lacks one of the model's columns."""
    present = {name.casefold() for name, _ in source.columns()}
    missing = [name for name in names if name.casefold() not in present]
    if missing:
        hint = None if source.csv is None else wrong_separator(source)
        remedy = hint or "take the table it was fitted on"
        raise DataError(f"the table lacks the model's columns {', '.join(missing[:5])}: {remedy}")
