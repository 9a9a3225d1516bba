"""Dataclasses that are frozen for the type checker alone, for what every question makes several of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def record(*, eq: bool = False) -> Callable[[type[Class]], type[Class]]:
    """A frozen dataclass for mypy, which rejects assignments; a plain one at run time, made in a quarter of the time.

    With ``eq`` it is equal to others by its fields, and has their hash.

    >>> @record(eq=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1) == Point(1, 0), Point(1)
    (True, Point(x=1, y=0))
    """
    return dataclass(eq=eq, unsafe_hash=eq)
