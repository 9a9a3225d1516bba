"""Ranking of column groups by how much of the planner's error their joint statistics would explain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from countless.advise.questions import PlannerQuestion

Rows = Callable[[str], float | None]

COUNTABLE = 10_000  # most combinations of values in a list of PostgreSQL's statistics
SIZE_PENALTY = 0.75  # factor of the gain for each column of a set: a larger set must gain clearly more
LEAST_GAIN = 0.1  # in the logarithm of a served question's q-error: smaller gains may be the model's own error
LEAST_SHARE = 0.01  # of the total error
SHORTLIST = 8  # pairs that are joined to larger sets


@dataclass
class EstimatedQuestion:
    """A question, the estimates of planner and model, and the columns that chosen statistics already serve."""

    question: PlannerQuestion
    planner: float
    model: float
    served_columns: set[str] = field(default_factory=set)

    @property
    def unserved_columns(self) -> set[str]:
        """The filtered columns that no chosen statistics serve."""
        return set(self.question.filters) - self.served_columns

    @property
    def error(self) -> float:
        """The logarithm of the planner's q-error against the model."""
        return abs(math.log(max(1.0, self.planner) / max(1.0, self.model)))


@dataclass(frozen=True)
class Candidate:
    """Columns whose joint statistics would reduce the sum of errors by ``gain``, in this many ``questions``."""

    columns: tuple[str, ...]
    gain: float
    questions: int
    equality: bool


class Ranking:
    """Chooses sets of columns greedily, each the best given those before.

    Statistics on a set serve a question that filters two or more of its columns, by equality or, if the columns have
    few combinations of values, in any way. Then the planner knows the joint selectivity of these filters, which the
    model estimates, and multiplies it with the rest as before. Each column of a question is served once.
    """

    def __init__(
        self,
        estimated_questions: Sequence[EstimatedQuestion],
        combinations: Callable[[tuple[str, ...]], int],
        planner: Rows,
        model: Rows,
    ) -> None:
        self.estimated_questions = estimated_questions
        self._combinations = combinations
        self._planner, self._model = planner, model

    def choose(self, most: int) -> list[Candidate]:
        """Up to ``most`` sets, the one with the largest gain first."""
        candidates: list[Candidate] = []
        total = sum(estimated.error for estimated in self.estimated_questions)
        while len(candidates) < most:
            pairs = [self._candidate(pair) for pair in self._pairs()]
            pairs.sort(key=lambda candidate: -candidate.gain)
            larger = [self._candidate(columns) for columns in _joined(pairs[:SHORTLIST])]
            best = max(
                [*pairs[:1], *larger],
                key=lambda candidate: candidate.gain * SIZE_PENALTY ** len(candidate.columns),
                default=None,
            )
            if best is None or best.gain < max(LEAST_GAIN * best.questions, LEAST_SHARE * total, 1e-9):
                break
            candidates.append(best)
            self._mark_served(best.columns)
        return candidates

    def served(self, estimated: EstimatedQuestion, columns: tuple[str, ...]) -> set[str]:
        """The columns of a question that statistics on ``columns`` would serve; empty if fewer than two."""
        filtered = set(columns) & estimated.unserved_columns
        by_equality = {name for name in filtered if estimated.question.filters[name].equality}
        if by_equality != filtered and self._combinations(columns) > COUNTABLE:
            filtered = by_equality
        return filtered if len(filtered) > 1 else set()

    def _pairs(self) -> list[tuple[str, ...]]:
        pairs: dict[tuple[str, ...], None] = {}
        for estimated in self.estimated_questions:
            pairs.update(dict.fromkeys(itertools.combinations(sorted(estimated.unserved_columns), 2)))
        return list(pairs)

    def _candidate(self, columns: tuple[str, ...]) -> Candidate:
        gain, questions, equality = 0.0, 0, False
        for estimated in self.estimated_questions:
            served = self.served(estimated, columns)
            corrected = self._corrected_estimate(estimated, served)
            if corrected is not None:
                gain += estimated.error - EstimatedQuestion(estimated.question, corrected, estimated.model).error
                questions += 1
                equality = equality or all(estimated.question.filters[name].equality for name in served)
        return Candidate(columns, gain, questions, equality)

    def _corrected_estimate(self, estimated: EstimatedQuestion, served: set[str]) -> float | None:
        """The planner's estimate if it knew the joint selectivity of the filters on the ``served`` columns."""
        if not served:
            return None
        clause = estimated.question.clause_on(served)
        planner, model = self._planner(clause), self._model(clause)
        if planner is None or model is None:
            return None
        return estimated.planner * max(1.0, model) / max(1.0, planner)

    def _mark_served(self, columns: tuple[str, ...]) -> None:
        for estimated in self.estimated_questions:
            served = self.served(estimated, columns)
            corrected = self._corrected_estimate(estimated, served)
            if corrected is not None:
                estimated.planner = corrected
                estimated.served_columns |= served


def _joined(pairs: Sequence[Candidate]) -> list[tuple[str, ...]]:
    """Sets of three columns from two overlapping pairs."""
    sets: dict[tuple[str, ...], None] = {}
    for first, second in itertools.combinations(pairs, 2):
        columns = tuple(sorted({*first.columns, *second.columns}))
        if len(columns) == 3:
            sets[columns] = None
    return list(sets)
