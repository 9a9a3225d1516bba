"""The evidence rows of a model: which of them satisfy a condition, and how many."""

from __future__ import annotations

import numpy as np

from countless.arrays import BoolArray, IntArray
from countless.cached_property import cached_property
from countless.data.columns.schema import Schema
from countless.data.evidence import EvidenceRows
from countless.engine.evidence import CodedRows
from countless.engine.row_sets import RowSets, pairs_of_rows
from countless.estimator.calibration.posterior import SampleCount
from countless.query.question import Question
from countless.region import Box, Filter, Region

PAIR_SEED = 0  # rows are paired in random order, because similar rows may be stored next to each other


class Evidence:
    """The evidence rows of a table, ready to be counted."""

    def __init__(self, schema: Schema, rows: EvidenceRows) -> None:
        self.rows = rows
        self._schema, self._visible = schema, schema.visible
        positions = schema.spans[: len(schema.coded)]
        self._coded = CodedRows(rows.codes, [column.size for column in rows.schema.coded], positions)
        self._row_sets = RowSets(lambda item: self._mark_region(Region((Box((item,)),))))
        self._pairs: dict[int, IntArray] = {}

    def hits(self, question: Question) -> SampleCount:
        """How many rows satisfy the condition."""
        region, among = question.region, question.among
        if among is None:
            count = sum([self.count_box(box) for box in region.boxes])  # no row is in two boxes
        else:
            count = self._rows_for(region).count_region(region, among)
        return SampleCount(count, self.rows.rows, self._schema.rows)

    def matches(self, question: Question) -> BoolArray:
        """Which rows satisfy the condition."""
        return self._mark_region(question.region, question.among)

    def count_box(self, box: Box) -> int:
        """How many rows are in a box."""
        if not box.texts:
            if len(box.filters) == 1:
                return self._count_filter(box)
            count = self._row_sets.count(box.filters)
            if count is not None:
                return count
        return self._count_box(box)

    def _count_filter(self, box: Box) -> int:
        """How many rows are in a box of one filter: counted once while the filter is cached."""
        row_set = self._row_sets.of(box.filters[0])
        if row_set.count is None:
            row_set.count = self._count_box(box)
        return row_set.count

    def _count_box(self, box: Box) -> int:
        region = Region((box,))
        return self._rows_for(region).count_region(region)

    def _mark_region(self, region: Region, among: BoolArray | None = None) -> BoolArray:
        return self._rows_for(region).mark_region(region, among)

    def count_strings(self, text_index: int, pattern: bytes) -> int:
        """How many rows match a pattern; ``text_index`` is the column's index among the text columns."""
        index = self._schema.index_of_text(text_index)
        column = self.rows.schema.coded[index]
        matches: BoolArray = np.zeros(column.size, dtype=np.bool_)
        matches[: len(column.values)] = column.strings.like(pattern)
        return self._coded.count([(index, matches)])

    def differences(self, value: Filter, others: Box) -> float | None:
        """How often two rows with the same value of a column differ in whether they satisfy ``others``.

        The result is relative to how often two random rows differ. It is slightly above 0 if no pair differs, and None
        for a hidden column.
        """
        column = self._coded.column_of(value)
        if column is None:
            return None
        if column not in self._pairs:
            codes, size = self.rows.codes[column], self.rows.schema.coded[column].size
            self._pairs[column] = pairs_of_rows(codes, size, self._shuffled)
        pairs = self._pairs[column]
        count = len(pairs) // 2
        matches = self._rows_for(Region((others,))).mark_some(others, pairs)
        share = np.count_nonzero(matches) / max(1, 2 * count)
        expected = 2.0 * share * (1.0 - share) * count
        return float((np.count_nonzero(matches[:count] != matches[count:]) + 1.0) / (expected + 1.0))

    def _rows_for(self, region: Region) -> CodedRows:
        """The coded rows, with calendar parts if the region has a filter on one."""
        if self._schema.calendar:
            visible = self._visible
            if any(one_filter.positions[0] >= visible for box in region.boxes for one_filter in box.filters):
                return self._with_calendar
        return self._coded

    @cached_property
    def _shuffled(self) -> IntArray:
        """The rows in random order."""
        order: IntArray = np.random.default_rng(PAIR_SEED).permutation(self.rows.rows)
        return order

    @cached_property
    def _with_calendar(self) -> CodedRows:
        """The coded rows with hidden columns, whose codes follow from the timestamps."""
        schema, rows, visible = self._schema, self.rows, len(self._schema.coded)
        parts = [part.codes(rows.schema.coded[part.of].values)[rows.codes[part.of]] for part in schema.calendar]
        sizes = [column.size for column in rows.schema.coded]
        return CodedRows(
            (*rows.codes[:visible], *(codes.astype(np.uint16) for codes in parts), *rows.codes[visible:]),
            (*sizes[:visible], *(column.size for column in schema.hidden), *sizes[visible:]),
            schema.spans,
        )
