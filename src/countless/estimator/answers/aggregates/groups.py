"""The groups of a statement: their codes, their rows, and which evidence rows are in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.columns.schema import Column, Schema
from countless.data.evidence import Hits
from countless.engine.memo import Memo
from countless.estimator.answers.aggregates.aggregate_intervals import Ends
from countless.estimator.answers.aggregates.group_fusion import counts_of_hits
from countless.estimator.answers.distributions.evidence_values import part_codes, tally
from countless.estimator.answers.distributions.joint import Joint
from countless.estimator.answers.estimate import Estimate
from countless.query.compile import Compiler
from countless.query.select.selection import RowExpression

if TYPE_CHECKING:
    from countless.estimator.prepared import PreparedQuestion

LEAST_ROWS = 0.5  # groups with fewer rows are left out
MAX_CACHED = 16  # expressions whose values are cached with the evidence rows


class DerivedColumns:
    """The columns of a condition's hits: columns of the table, and values of expressions."""

    def __init__(self, compiler: Compiler, hits: Hits) -> None:
        self._compiler = compiler
        self.hits = hits

    def column(self, column: int | RowExpression) -> tuple[Column, IntArray]:
        """A column with all values of the evidence rows, and the code of each hit in it."""
        if isinstance(column, int):
            schema = self._compiler.schema
            if (part := schema.calendar_part(column)) is not None:
                return schema.coded_column(column), part_codes(part, self.hits)
            return self.hits.rows.schema.coded[column], self.hits.codes(column)
        tables = self._compiler.evidence
        assert tables is not None
        cache: Memo = self.hits.rows.derived.setdefault("expressions", Memo(MAX_CACHED))
        derived, codes = cache.once(column, lambda: tables.column(column))
        return derived, codes[self.hits.marks]


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a statement: their codes (groups, columns), and the rows of each.

    ``group_by`` has what the statement groups by, and ``columns`` the values of the codes. ``joint`` are the counts
    that the groups were found in; without GROUP BY there are none. ``left_out`` is how many rows are in groups that are
    not shown, because they are too small or have no hit. ``ends`` are the groups' error bars from the evidence, if any.
    """

    group_by: tuple[int, ...] | tuple[RowExpression, ...]
    columns: tuple[Column, ...]
    codes: IntArray
    rows: FloatArray
    total: Estimate
    joint: Joint | None = None
    left_out: float = 0.0
    ends: Ends | None = None

    @classmethod
    def of(
        cls,
        rows: PreparedQuestion,
        schema: Schema,
        groups: tuple[int, ...] | tuple[RowExpression, ...],
        derived: DerivedColumns | None,
        least_hits: int = 1,
    ) -> Groups:
        """All groups that probably have a row; without GROUP BY one group, however few rows it has.

        Values of expressions are shown only if at least ``least_hits`` evidence rows share them.
        """
        total = rows.total
        if not groups:
            return cls(groups, (), np.zeros((1, 0), dtype=np.int64), np.array([total.rows]), total)
        indexes = [group for group in groups if isinstance(group, int)]
        if not indexes:
            assert derived is not None
            return cls._of_hits(groups, total, derived, least_hits)
        joint = rows.joint_of(indexes, len(indexes))
        is_shown = joint.rows >= LEAST_ROWS
        bars, left_out = joint.bars, float(joint.rows[~is_shown].sum())
        ends = None if bars is None else (bars.low[is_shown], bars.high[is_shown])
        columns = tuple(schema.coded_column(index) for index in indexes)
        return cls(groups, columns, joint.codes[is_shown], joint.rows[is_shown], joint.total, joint, left_out, ends)

    @classmethod
    def _of_hits(
        cls,
        groups: tuple[int, ...] | tuple[RowExpression, ...],
        total: Estimate,
        derived: DerivedColumns,
        least_hits: int,
    ) -> Groups:
        """The groups of expressions, which only evidence rows have."""
        derived_columns = [derived.column(group) for group in groups]
        columns = tuple(column for column, _ in derived_columns)
        codes, hits = tally([hit_codes for _, hit_codes in derived_columns], [column.size for column in columns])
        bars = counts_of_hits(hits.astype(np.float64), total, derived.hits.count)
        is_shown = hits >= least_hits
        left_out = float(bars.rows[~is_shown].sum()) if len(hits) else total.rows
        ends = bars.low[is_shown], bars.high[is_shown]
        return cls(groups, columns, codes[is_shown], bars.rows[is_shown], total, None, left_out, ends)

    @property
    def column_indexes(self) -> tuple[int, ...] | None:
        """The indexes of the grouping columns; None if the statement groups by expressions."""
        indexes = tuple(group for group in self.group_by if isinstance(group, int))
        return indexes if len(indexes) == len(self.group_by) else None

    def groups_of(self, codes: IntArray) -> tuple[IntArray, BoolArray]:
        """The group of each combination that is in one, by its first codes; and which combinations are in a group."""
        group_keys, keys = self._keys(self.codes), self._keys(codes)
        is_in_group: BoolArray = np.isin(keys, group_keys)
        return np.searchsorted(group_keys, keys[is_in_group]), is_in_group

    def groups_of_hits(self, derived: DerivedColumns) -> IntArray:
        """The group of each hit, -1 if it is in none."""
        if not self.group_by:
            return np.zeros(derived.hits.count, dtype=np.int64)
        codes = np.stack([derived.column(group)[1] for group in self.group_by], axis=1)
        group_ids: IntArray = np.full(derived.hits.count, -1, dtype=np.int64)
        known_ids, is_in_group = self.groups_of(codes)
        group_ids[is_in_group] = known_ids
        return group_ids

    def scaled(self, group_ids: IntArray, rows: FloatArray) -> FloatArray:
        """The ``rows`` of parts of groups, scaled to add up to the rows of each group."""
        sums = np.bincount(group_ids, rows, len(self.rows))
        scales = np.divide(self.rows, sums, out=np.zeros(len(self.rows)), where=sums > 0)
        scaled: FloatArray = rows * scales[group_ids]
        return scaled

    def _keys(self, codes: IntArray) -> IntArray:
        """One number for each combination of the groups' codes, in the order of the combinations."""
        keys: IntArray = np.zeros(len(codes), dtype=np.int64)
        for index, column in enumerate(self.columns):
            keys = keys * column.size + codes[:, index]
        return keys
