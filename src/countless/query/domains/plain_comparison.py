"""Comparisons of a column with literals, without SQL."""

from __future__ import annotations

from typing import NamedTuple

BETWEEN, IN, IS_NULL = "BETWEEN", "IN", "IS NULL"
NUMBER, STRING, BOOLEAN = "number", "string", "boolean"


class Constant(NamedTuple):
    """A literal: its kind (number, string, truth value, or the type that it is cast to) and its text."""

    kind: str
    text: str


class PlainComparison(NamedTuple):
    """An operator between a column and literals: ``= <> < <= > >=``, BETWEEN, IN, or IS NULL."""

    operator: str
    constants: tuple[Constant, ...] = ()
