"""Validation of arguments before any work: integers and column names."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from countless.errors import QueryTypeError


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
