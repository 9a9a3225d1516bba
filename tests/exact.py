"""What stands in for an estimator that errs nowhere: how the rows of a small table are spread, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countless.arrays import BoolArray, IntArray
from countless.data.encoding.table import Table as Encoded
from countless.estimator.answers.aggregates.aggregates import answer_select
from countless.estimator.answers.aggregates.result import QueryResult
from countless.estimator.answers.distributions.joint import Joint
from countless.estimator.answers.estimate import Estimate
from countless.estimator.calibration.conformal import Calibration, Shape
from countless.query.compile import Compiler
from countless.query.question import Question
from countless.query.select.outer_statement import Outer


def column_codes(table: Encoded) -> list[IntArray]:
    """One code per row of every column."""
    return [np.concatenate(codes) for codes in zip(*table.blocks(), strict=True)]


class ExactTable:
    """A table that is asked as an estimator is."""

    def __init__(self, source: Any) -> None:
        self.encoded = Encoded.encode(source)
        self.schema = self.encoded.schema
        self.asked: list[tuple[str, ...]] = []  # the columns of every joint
        self._codes = column_codes(self.encoded)
        self._compiler = Compiler(self.schema)
        self._outer = Outer(self.schema)

    def prepare(self, where: str | None) -> ExactRows:
        return ExactRows(self, self._compiler.compile("TRUE" if where is None else where))

    def query(self, sql: str, calibration: Calibration | None = None) -> QueryResult:
        """The statement's result, as an estimator would find it."""
        prepare: Any = self.prepare  # what aggregates ask of a prepared question, ExactRows has
        return answer_select(
            prepare, self._compiler, self._outer, sql, calibration or Calibration(()), calibration is not None
        )

    def estimate(self, question: Question) -> Estimate:
        rows = float(np.count_nonzero(self._kept(question)))
        return Estimate(question.where, rows, rows / self.schema.rows, rows, rows, 0.9, "exact", True, 0.0)

    def joint(self, columns: Sequence[str], question: Question) -> Joint:
        self.asked.append(tuple(columns))
        places = tuple(self._compiler.column(name) for name in columns)
        matches = self._kept(question)
        own = np.stack([self._codes[place][matches] for place in places], axis=1)
        codes, rows = np.unique(own, axis=0, return_counts=True)
        return Joint(places, codes, rows.astype(np.float64), self.estimate(question), 0.0, True, True, Shape())

    def _kept(self, question: Question) -> BoolArray:
        matches = np.zeros(self.schema.rows, dtype=bool)
        for box in question.region.boxes:
            inside = np.ones(self.schema.rows, dtype=bool)
            for item in box.filters:
                inside &= item.constraint.weights[self._codes[self.schema.column_of(item.positions[0])]] > 0
            matches |= inside
        return matches


@dataclass(frozen=True)
class ExactRows:
    """The rows of a condition, as a prepared question has them."""

    table: ExactTable
    question: Question
    evidence: None = None

    @property
    def total(self) -> Estimate:
        return self.table.estimate(self.question)

    def joint_of(self, indexes: Sequence[int], groups: int) -> Joint:
        return self.table.joint([self.table.schema.names[index] for index in indexes], self.question)
