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

CodeBox = dict[int, Codes]  # column index -> allowed values; a column that allows all values is left out


def cover(formula: Formula) -> list[CodeBox]:
    """Boxes whose union is the formula; they may overlap."""
    if isinstance(formula, Leaf):
        return [{formula.column: formula.codes}]
    if isinstance(formula, All):
        boxes: list[CodeBox] = [{}]
        for part in formula.parts:
            part_boxes = cover(part)
            boxes = _bounded(
                common for box in boxes for part_box in part_boxes if (common := intersect(box, part_box)) is not None
            )
        return boxes
    return _bounded(box for part in formula.parts for box in cover(part))


def disjoint(boxes: list[CodeBox]) -> list[CodeBox]:
    """Boxes with the same union, no two of which share a row. The first box stays whole."""
    result: list[CodeBox] = []
    for box in boxes:
        pieces = [box]
        for earlier in result.copy():
            pieces = _bounded(remainder for piece in pieces for remainder in subtract(piece, earlier))
        result = _bounded([*result, *pieces])
    return result


def intersect(first: CodeBox, second: CodeBox) -> CodeBox | None:
    """The rows in both, or None if there are none."""
    common = dict(first)
    for column, codes in second.items():
        common[column] = common[column] & codes if column in common else codes
        if not common[column].any():
            return None
    return common


def subtract(box: CodeBox, removed: CodeBox) -> list[CodeBox]:
    """The rows of ``box`` that are not in ``removed``, as disjoint boxes: one for each column of ``removed``."""
    if intersect(box, removed) is None:
        return [box]
    pieces = []
    inside = dict(box)
    for column, codes in removed.items():
        outside = intersect(inside, {column: ~codes})
        if outside is not None:
            pieces.append(outside)
        inside[column] = inside[column] & codes if column in inside else codes
    return pieces


def filter_of(
    schema: Schema, index: int, weights: Codes, evidence_matches: BoolArray | None = None, max_rows: int | None = None
) -> Filter:
    """A filter on a column that is not text, over positions. ``max_rows`` is the most that can satisfy it."""
    return Filter(
        schema.positions(index), set_of(weights, schema.coded_column(index).radices), evidence_matches, max_rows
    )


def set_of(weights: Codes, radices: tuple[int, ...], allowed_count: int | None = None) -> ValueSet | DigitSet:
    """A constraint on a column whose codes have these ``radices``; ``allowed_count`` is how many codes it allows."""
    return ValueSet(weights, allowed_count=allowed_count) if len(radices) == 1 else DigitSet(weights, radices)


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
