"""Validation of arguments before any work: integers and column names."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from countless.errors import QueryTypeError


def whole(value: Any, name: str, minimum: int) -> int:
    """``value`` as a whole number of at least ``minimum``; ``name`` is for the error message.

    >>> whole(3, "the seed", 0)
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise QueryTypeError(f"{name} must be a whole number, not {value!r}") from None
    if isinstance(value, bool):
        raise QueryTypeError(f"{name} must be a whole number, not {value!r}")
    if number < minimum:
        raise QueryTypeError(f"{name} must be at least {minimum}, not {number}")
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
