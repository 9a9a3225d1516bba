"""The evidence rows of a model: how many of them, and which, satisfy a condition."""

from __future__ import annotations

from countless.arrays import BoolArray
from countless.data.columns.schema import Schema
from countless.data.evidence import EvidenceRows
from countless.engine.evidence import CodedRows
from countless.estimator.calibration.posterior import SampleCount
from countless.query.compile import Question


class Evidence:
    """The evidence rows of a table, ready to be counted."""

    def __init__(self, schema: Schema, rows: EvidenceRows) -> None:
        self.rows = rows
        self._total = schema.rows
        positions = [schema.positions(index) for index in range(len(schema.coded))]
        self._coded = CodedRows(rows.codes, [column.size for column in rows.schema.coded], positions)

    def hits(self, question: Question) -> SampleCount:
        """How many of them satisfy the condition."""
        return SampleCount(self._coded.count_region(question.region, question.among), self.rows.rows, self._total)

    def marks(self, question: Question) -> BoolArray:
        """Which of them do."""
        return self._coded.mark_region(question.region, question.among)
