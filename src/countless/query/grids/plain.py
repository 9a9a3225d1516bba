"""Comparisons with literals on a column that has a grid, read without SQL: what :mod:`.survey` makes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from countless.arrays import BoolArray
from countless.data.columns.schema import Schema
from countless.query.boxes import filter_of
from countless.query.domains.domain_search import Search, read_literal
from countless.query.domains.plain_comparison import BETWEEN, IN, IS_NULL, PlainComparison
from countless.query.grids.few_cuts import FewAtoms
from countless.query.grids.line import Line
from countless.query.grids.ranges import Cut, Ranges
from countless.query.grids.scale import Key, Scale
from countless.region import Filter

Asked = Sequence[tuple[PlainComparison, bool]]  # comparisons, and whether each is denied


class GridSearch:
    """The lines of a schema's grids, and the values of evidence rows, if there are any. Safe to share by threads."""

    def __init__(self, schema: Schema, seen: Search | None) -> None:
        self._schema, self._seen = schema, seen
        self._lines: dict[int, Line] = {}

    def line(self, index: int) -> Line | None:
        """The line of the column at ``index``, if it has a grid; it is made when first needed."""
        column = self._schema.coded[index]
        if column.grid is None:
            return None
        if index not in self._lines:
            self._lines[index] = Line(column, column.grid)
        return self._lines[index]

    def satisfied(self, index: int, asked: Asked) -> tuple[bool, Filter | None] | None:
        """Whether some values of a grid's column pass all comparisons, and the filter, unless every value does.

        None if a literal must be read by DuckDB.
        """
        line = self.line(index)
        assert line is not None
        seen: BoolArray | None = None
        found: list[Ranges | None] = []
        for comparison, denied in asked:
            ranges = None if comparison.operator == IS_NULL else ranges_of(comparison, line)
            if ranges is None and comparison.operator != IS_NULL:
                return None
            found.append(ranges)
            if self._seen is not None:
                own = self._seen.satisfied(index, comparison, denied)
                if own is None:
                    return None
                seen = own if seen is None else seen & own
        atoms = FewAtoms(line, {cut for ranges in found if ranges is not None for cut in ranges.cuts()})
        chosen, null = atoms.alive, line.has_null
        for ranges, (_, denied) in zip(found, asked, strict=True):
            inside = [False] * len(chosen) if ranges is None else atoms.within(ranges)
            chosen = [old and new != denied for old, new in zip(chosen, inside, strict=True)]
            null = null and ranges is None and not denied
        if not (null or any(chosen)) and (seen is None or not seen.any()):
            return False, None
        if chosen == atoms.alive and null == line.has_null and (seen is None or seen.all()):
            return True, None
        most = atoms.most_rows(chosen, null) if line.grid.unique else None
        return True, filter_of(self._schema, index, atoms.weights(chosen, null), seen, most)


def ranges_of(comparison: PlainComparison, line: Line) -> Ranges | None:
    """Where ``comparison`` is true; None if one of its literals must be read by DuckDB."""
    kind, keys = line.column.type, []
    for constant in comparison.constants:
        text = read_literal(kind, constant)
        if text is None:
            return None
        keys.append(line.scale.read(kind, text))
    if comparison.operator == BETWEEN:
        return Ranges(((cut_beside(keys[0], 0, line.scale), cut_beside(keys[1], 1, line.scale)),))
    if comparison.operator == IN:
        return Ranges(tuple((cut_beside(key, 0, line.scale), cut_beside(key, 1, line.scale)) for key in keys))
    return compared(comparison.operator, keys[0], line.scale)


def compared(operator: str, key: Key, scale: Scale) -> Ranges:
    """Where a value compares so with ``key``."""
    before, after = cut_beside(key, 0, scale), cut_beside(key, 1, scale)
    if operator == "=":
        return Ranges(((before, after),))
    if operator == "<>":
        return Ranges(((None, before), (after, None)))
    if operator in ("<", "<="):
        return Ranges(((None, before if operator == "<" else after),))
    return Ranges(((after if operator == ">" else before, None),))


def cut_beside(key: Key, side: int, scale: Scale) -> Cut:
    """The cut beside ``key``; if no value can be there, the one after the last value that can be below it."""
    if scale.step is None or (isinstance(key, float) and not math.isfinite(key)):
        return key, side
    if isinstance(key, int) and isinstance(scale.step, int) and key % scale.step == 0:
        return key, side
    steps = Fraction(key) / scale.step
    return (key, side) if steps.denominator == 1 else (math.floor(steps) * scale.step, 1)
