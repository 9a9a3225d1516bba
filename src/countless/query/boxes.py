"""Conversion of a formula to boxes: overlapping as written, or disjoint."""

from __future__ import annotations

from collections.abc import Iterable

from countless.arrays import BoolArray
from countless.data.columns.schema import Schema
from countless.errors import QueryTooLargeError
from countless.query.domains.truth import Codes
from countless.query.formula import All, Formula, Leaf
from countless.region import DigitSet, Filter, ValueSet

MOST_BOXES = 256

CodeBox = dict[int, Codes]  # column -> its allowed values: some, never all or none


def cover(formula: Formula) -> list[CodeBox]:
    """Boxes whose union is the formula; they may overlap."""
    if isinstance(formula, Leaf):
        return [{formula.column: formula.codes}]
    if isinstance(formula, All):
        boxes: list[CodeBox] = [{}]
        for part in formula.parts:
            others = cover(part)
            boxes = _bounded(both for box in boxes for other in others if (both := intersect(box, other)) is not None)
        return boxes
    return _bounded(box for part in formula.parts for box in cover(part))


def disjoint(boxes: list[CodeBox]) -> list[CodeBox]:
    """Boxes with the same union, no two of which share a row. The first box stays whole."""
    result: list[CodeBox] = []
    for box in boxes:
        pieces = [box]
        for earlier in result.copy():
            pieces = _bounded(rest for piece in pieces for rest in subtract(piece, earlier))
        result = _bounded([*result, *pieces])
    return result


def intersect(one: CodeBox, two: CodeBox) -> CodeBox | None:
    """The rows in both, or None if there are none."""
    both = dict(one)
    for column, codes in two.items():
        both[column] = both[column] & codes if column in both else codes
        if not both[column].any():
            return None
    return both


def subtract(box: CodeBox, other: CodeBox) -> list[CodeBox]:
    """The rows of ``box`` that are not in ``other``, as disjoint boxes: one for each column in which they leave it."""
    if intersect(box, other) is None:
        return [box]
    pieces = []
    inside = dict(box)
    for column, codes in other.items():
        outside = intersect(inside, {column: ~codes})
        if outside is not None:
            pieces.append(outside)
        inside[column] = inside[column] & codes if column in inside else codes
    return pieces


def filter_of(
    schema: Schema, index: int, weights: Codes, seen: BoolArray | None = None, most: int | None = None
) -> Filter:
    """A set of values of a column that is not text, in terms of the model's positions; ``most`` rows have them."""
    return Filter(schema.positions(index), set_of(weights, schema.coded_column(index).radices), seen, most)


def set_of(weights: Codes, radices: tuple[int, ...], allowed: int | None = None) -> ValueSet | DigitSet:
    """A set of values of a column whose codes have these digits; ``allowed`` of them, if that is known."""
    return ValueSet(weights, allowed=allowed) if len(radices) == 1 else DigitSet(weights, radices)


def _bounded(boxes: Iterable[CodeBox]) -> list[CodeBox]:
    result = []
    for box in boxes:
        result.append(box)
        if len(result) > MOST_BOXES:
            raise QueryTooLargeError(
                f"the clause splits into more than {MOST_BOXES} disjoint boxes: "
                "use fewer ORs between different columns, or ask its parts one by one"
            )
    return result
