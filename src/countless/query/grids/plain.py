"""Comparisons with literals on a column that has a grid, without SQL: the fast twin of :mod:`.survey`."""

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

Comparisons = Sequence[tuple[PlainComparison, bool]]  # comparisons, each with whether it is negated


class GridSearch:
    """Searches the lines of a schema's grids, and the evidence rows' values, if any. Safe to share by threads."""

    def __init__(self, schema: Schema, evidence_search: Search | None) -> None:
        self._schema, self._evidence_search = schema, evidence_search
        self._lines: dict[int, Line] = {}

    def line(self, index: int) -> Line | None:
        """The line of the column at ``index``, if it has a grid; it is made when first needed."""
        column = self._schema.coded[index]
        if column.grid is None:
            return None
        if index not in self._lines:
            self._lines[index] = Line(column, column.grid)
        return self._lines[index]

    def satisfied(self, index: int, comparisons: Comparisons) -> tuple[bool, Filter | None] | None:
        """Whether any values of a grid's column satisfy all comparisons, and the filter for them.

        The filter is None if every value satisfies them, or none does. The result is None if only DuckDB can read one
        of the literals.
        """
        line = self.line(index)
        assert line is not None
        matches: BoolArray | None = None
        ranges_of_each: list[Ranges | None] = []
        for comparison, is_negated in comparisons:
            ranges = None if comparison.operator == IS_NULL else ranges_of(comparison, line)
            if ranges is None and comparison.operator != IS_NULL:
                return None
            ranges_of_each.append(ranges)
            if self._evidence_search is not None:
                comparison_matches = self._evidence_search.satisfied(index, comparison, is_negated)
                if comparison_matches is None:
                    return None
                matches = comparison_matches if matches is None else matches & comparison_matches
        atoms = FewAtoms(line, {cut for ranges in ranges_of_each if ranges is not None for cut in ranges.cuts()})
        selected, allows_null = atoms.can_hold_value, line.has_null
        for ranges, (_, is_negated) in zip(ranges_of_each, comparisons, strict=True):
            inside = [False] * len(selected) if ranges is None else atoms.within(ranges)
            selected = [before and is_inside != is_negated for before, is_inside in zip(selected, inside, strict=True)]
            allows_null = allows_null and ranges is None and not is_negated
        if not (allows_null or any(selected)) and (matches is None or not matches.any()):
            return False, None
        is_all = selected == atoms.can_hold_value and allows_null == line.has_null
        if is_all and (matches is None or matches.all()):
            return True, None
        max_rows = atoms.most_rows(selected, allows_null) if line.grid.unique else None
        return True, filter_of(self._schema, index, atoms.weights(selected, allows_null), matches, max_rows)


def ranges_of(comparison: PlainComparison, line: Line) -> Ranges | None:
    """The ranges in which ``comparison`` is true; None if only DuckDB can read one of its literals."""
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
    return operator_ranges(comparison.operator, keys[0], line.scale)


def operator_ranges(operator: str, key: Key, scale: Scale) -> Ranges:
    """The ranges of values that compare with ``key`` by the operator."""
    cut_before, cut_after = cut_beside(key, 0, scale), cut_beside(key, 1, scale)
    if operator == "=":
        return Ranges(((cut_before, cut_after),))
    if operator == "<>":
        return Ranges(((None, cut_before), (cut_after, None)))
    if operator in ("<", "<="):
        return Ranges(((None, cut_before if operator == "<" else cut_after),))
    return Ranges(((cut_after if operator == ">" else cut_before, None),))


def cut_beside(key: Key, side: int, scale: Scale) -> Cut:
    """The cut before (0) or after (1) ``key``; if it is no possible value, the cut after the next lower one."""
    if scale.step is None or (isinstance(key, float) and not math.isfinite(key)):
        return key, side
    if isinstance(key, int) and isinstance(scale.step, int) and key % scale.step == 0:
        return key, side
    steps = Fraction(key) / scale.step
    return (key, side) if steps.denominator == 1 else (math.floor(steps) * scale.step, 1)
