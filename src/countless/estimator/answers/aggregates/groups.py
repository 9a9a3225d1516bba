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

LEAST = 0.5  # rows: groups that hold fewer are left out
KEPT = 16  # expressions whose values are kept with the evidence rows


class DerivedColumns:
    """The columns of a condition's hits: the table's, and those that expressions make of them."""

    def __init__(self, compiler: Compiler, hits: Hits) -> None:
        self._compiler = compiler
        self.hits = hits

    def column(self, column: int | RowExpression) -> tuple[Column, IntArray]:
        """A column with all values of the evidence, and the code of each hit."""
        if isinstance(column, int):
            schema = self._compiler.schema
            if (part := schema.calendar_part(column)) is not None:
                return schema.coded_column(column), part_codes(part, self.hits)
            return self.hits.rows.schema.coded[column], self.hits.codes(column)
        tables = self._compiler.evidence
        assert tables is not None
        kept: Memo = self.hits.rows.derived.setdefault("expressions", Memo(KEPT))
        found, codes = kept.once(column, lambda: tables.column(column))
        return found, codes[self.hits.marks]


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a statement: their codes (groups, columns), and the rows of each.

    ``columns`` have the values of the codes. ``places`` are those of the columns in the schema, or None if expressions
    are grouped by, which the model does not know. ``ends`` are the error bars that follow from the evidence, if any.
    ``left_out`` is how many rows are in groups that are not listed, because they are too small or have no hit. Without
    GROUP BY there is no ``joint`` that they were found in.
    """

    asked: tuple[int, ...] | tuple[RowExpression, ...]
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
        """All groups that a row is likely to be in; without GROUP BY there is one, however few rows it has.

        Values of expressions are shown only if at least ``least_hits`` evidence rows share them.
        """
        total = rows.total
        if not groups:
            return cls(groups, (), np.zeros((1, 0), dtype=np.int64), np.array([total.rows]), total)
        places = [group for group in groups if isinstance(group, int)]
        if not places:
            assert derived is not None
            return cls._of_hits(groups, total, derived, least_hits)
        joint = rows.joint_of(places, len(places))
        kept = joint.rows >= LEAST
        bars, left_out = joint.bars, float(joint.rows[~kept].sum())
        ends = None if bars is None else (bars.low[kept], bars.high[kept])
        columns = tuple(schema.coded_column(place) for place in places)
        return cls(groups, columns, joint.codes[kept], joint.rows[kept], joint.total, joint, left_out, ends)

    @classmethod
    def _of_hits(
        cls,
        groups: tuple[int, ...] | tuple[RowExpression, ...],
        total: Estimate,
        derived: DerivedColumns,
        least_hits: int,
    ) -> Groups:
        """Groups that only evidence rows know."""
        found = [derived.column(group) for group in groups]
        columns = tuple(column for column, _ in found)
        codes, hits = tally([own for _, own in found], [column.size for column in columns])
        bars = counts_of_hits(hits.astype(np.float64), total, derived.hits.count)
        kept = hits >= least_hits
        left_out = float(bars.rows[~kept].sum()) if len(hits) else total.rows
        ends = bars.low[kept], bars.high[kept]
        return cls(groups, columns, codes[kept], bars.rows[kept], total, None, left_out, ends)

    @property
    def places(self) -> tuple[int, ...] | None:
        """The places of the columns that are grouped by, if they are columns of the table."""
        places = tuple(group for group in self.asked if isinstance(group, int))
        return places if len(places) == len(self.asked) else None

    def owners_of(self, codes: IntArray) -> tuple[IntArray, BoolArray]:
        """The group of each combination that is in one, by its first codes, and which combinations these are."""
        keys, wanted = self._keys(self.codes), self._keys(codes)
        kept: BoolArray = np.isin(wanted, keys)
        return np.searchsorted(keys, wanted[kept]), kept

    def owners(self, derived: DerivedColumns) -> IntArray:
        """The group of each hit, -1 if it is in none."""
        if not self.asked:
            return np.zeros(derived.hits.count, dtype=np.int64)
        found: IntArray = np.full(derived.hits.count, -1, dtype=np.int64)
        owners, kept = self.owners_of(np.stack([derived.column(group)[1] for group in self.asked], axis=1))
        found[kept] = owners
        return found

    def scaled(self, owner: IntArray, rows: FloatArray) -> FloatArray:
        """Parts of groups, each with its ``owner``, made to add up to the rows of the groups."""
        sums = np.bincount(owner, rows, len(self.rows))
        scales = np.divide(self.rows, sums, out=np.zeros(len(self.rows)), where=sums > 0)
        scaled: FloatArray = rows * scales[owner]
        return scaled

    def _keys(self, codes: IntArray) -> IntArray:
        """One number for each combination of the groups' codes, which rises as they do."""
        found: IntArray = np.zeros(len(codes), dtype=np.int64)
        for index, column in enumerate(self.columns):
            found = found * column.size + codes[:, index]
        return found
