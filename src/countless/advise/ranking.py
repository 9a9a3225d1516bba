"""Ranking of column groups by how much of the planner's error their joint statistics would explain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from countless.advise.questions import PlannerQuestion

Rows = Callable[[str], float | None]

COUNTABLE = 10_000  # combinations of values: this many a list of PostgreSQL's can hold at most
LARGER = 0.75  # of the gain of a larger set: the smaller one must have less to lose to it
LEAST = 0.1  # logarithm of the factor taken off a question that is served: less is the model's own error
LEAST_SHARE = 0.01  # of all the error
SHORTLIST = 8  # pairs of which larger sets are made


@dataclass
class Judged:
    """A question, what planner and model expect, and the columns for which the planner has been put right."""

    question: PlannerQuestion
    planner: float
    model: float
    settled: set[str] = field(default_factory=set)

    @property
    def error(self) -> float:
        """The logarithm of the planner's q-error against the model."""
        return abs(math.log(max(1.0, self.planner) / max(1.0, self.model)))


@dataclass(frozen=True)
class Candidate:
    """Columns whose joint statistics take ``gain`` off the sum of errors, of this many ``questions``."""

    columns: tuple[str, ...]
    gain: float
    questions: int
    equality: bool


class Ranking:
    """Chooses sets of columns one by one, each the best after the ones before.

    Statistics on a set serve a question that filters two or more of its columns, by equality or, where the columns have
    few combinations of values, in any way. Then the planner knows what these filters keep together, which the model
    tells, and multiplies with the rest as before; each column of a question is served once.
    """

    def __init__(
        self, judged: Sequence[Judged], combinations: Callable[[tuple[str, ...]], int], planner: Rows, model: Rows
    ) -> None:
        self.judged = judged
        self._combinations = combinations
        self._planner, self._model = planner, model

    def choose(self, most: int) -> list[Candidate]:
        """Up to ``most`` sets, the one with the largest gain first."""
        chosen: list[Candidate] = []
        total = sum(one.error for one in self.judged)
        while len(chosen) < most:
            pairs = [self._candidate(pair) for pair in self._pairs()]
            pairs.sort(key=lambda candidate: -candidate.gain)
            larger = [self._candidate(columns) for columns in _joined(pairs[:SHORTLIST])]
            found = max(
                [*pairs[:1], *larger],
                key=lambda candidate: candidate.gain * LARGER ** len(candidate.columns),
                default=None,
            )
            if found is None or found.gain < max(LEAST * found.questions, LEAST_SHARE * total, 1e-9):
                break
            chosen.append(found)
            self._settle(found.columns)
        return chosen

    def served(self, one: Judged, columns: tuple[str, ...]) -> set[str]:
        """The columns of a question that statistics on ``columns`` would serve, if there are two or more."""
        asked = (set(columns) & set(one.question.parts)) - one.settled
        if not all(one.question.parts[name].equality for name in asked) and self._combinations(columns) > COUNTABLE:
            asked = {name for name in asked if one.question.parts[name].equality}
        return asked if len(asked) > 1 else set()

    def _pairs(self) -> list[tuple[str, ...]]:
        found: dict[tuple[str, ...], None] = {}
        for one in self.judged:
            found.update(dict.fromkeys(itertools.combinations(sorted(set(one.question.parts) - one.settled), 2)))
        return list(found)

    def _candidate(self, columns: tuple[str, ...]) -> Candidate:
        gain, questions, equality = 0.0, 0, False
        for one in self.judged:
            served = self.served(one, columns)
            better = self._put_right(one, served)
            if better is not None:
                gain += one.error - Judged(one.question, better, one.model).error
                questions += 1
                equality = equality or all(one.question.parts[name].equality for name in served)
        return Candidate(columns, gain, questions, equality)

    def _put_right(self, one: Judged, served: set[str]) -> float | None:
        """What the planner would expect if it knew the rows that the filters on these columns keep together."""
        if not served:
            return None
        clause = one.question.about(served)
        planner, model = self._planner(clause), self._model(clause)
        if planner is None or model is None:
            return None
        return one.planner * max(1.0, model) / max(1.0, planner)

    def _settle(self, columns: tuple[str, ...]) -> None:
        for one in self.judged:
            served = self.served(one, columns)
            better = self._put_right(one, served)
            if better is not None:
                one.planner = better
                one.settled |= served


def _joined(pairs: Sequence[Candidate]) -> list[tuple[str, ...]]:
    """Sets of three that two of the pairs make."""
    found: dict[tuple[str, ...], None] = {}
    for first, second in itertools.combinations(pairs, 2):
        columns = tuple(sorted({*first.columns, *second.columns}))
        if len(columns) == 3:
            found[columns] = None
    return list(found)
