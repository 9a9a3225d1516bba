"""Which questions, and which kinds of questions, have error bars that miss the truth by far."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from countless import Estimator
from countless.errors import CountlessError
from countless.evaluation.evaluate import random_workload

QUESTIONS = 2_000
FAR = 2.0  # the factor by which an interval misses


@dataclass(frozen=True)
class Miss:
    """A question whose truth is outside the interval, by this factor."""

    where: str
    kind: str
    truth: int
    low: float
    rows: float
    high: float
    factor: float


@dataclass
class Honesty:
    """Questions by kind, those whose truth is outside the interval, the refused ones, and the misses by far."""

    asked: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    misses: list[Miss] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The counts and the misses as plain data."""
        counts = {name: dict(getattr(self, name)) for name in ("asked", "outside", "refused")}
        return counts | {"misses": [asdict(miss) for miss in self.misses]}


def miss_factor(truth: float, low: float, high: float) -> float:
    """The factor by which the truth is outside an interval; 1 if it is inside. Less than one row counts as one row.

    >>> miss_factor(10, 5, 20), miss_factor(50, 5, 20), miss_factor(0, 4, 9), miss_factor(1, 0, 0)
    (1.0, 2.5, 4.0, 1.0)
    """
    below, above = max(low, 1.0) / max(truth, 1.0), max(truth, 1.0) / max(high, 1.0)
    return max(1.0, below if truth < low else 1.0, above if truth > high else 1.0)


def measure_honesty(model: Estimator, table: Any, questions: int = QUESTIONS, seed: int = 0) -> Honesty:
    """Ask the model questions of every kind, and compare its intervals with the true counts."""
    queries = random_workload(model.schema, table, questions, seed, kinds=True)
    result = Honesty()
    for query, answer in zip(queries, model.answer_many([query.where for query in queries]), strict=True):
        result.asked[query.kind] += 1
        if isinstance(answer, CountlessError):
            result.refused[query.kind] += 1
            continue
        result.outside[query.kind] += not answer.low <= query.rows <= answer.high
        factor = miss_factor(query.rows, answer.low, answer.high)
        if factor > FAR:
            numbers = (answer.low, answer.rows, answer.high, factor)
            result.misses.append(Miss(query.where, query.kind, query.rows, *numbers))
    result.misses.sort(key=lambda miss: -miss.factor)
    return result
