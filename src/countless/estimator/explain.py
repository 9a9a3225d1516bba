"""How a question was answered, for a person who wonders."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from countless.data.schema import Schema
from countless.engine.density import Density
from countless.estimator.estimate import Estimate
from countless.query.compile import Comparison, Question


@dataclass(frozen=True)
class BoxExplanation:
    """One disjoint box: the columns it visits in order, and what came of it."""

    visited: tuple[str, ...]
    density: float
    exact: bool
    particles: int
    forward_rows: int


@dataclass(frozen=True)
class Explanation:
    """How a question was answered."""

    estimate: Estimate
    comparisons: tuple[Comparison, ...]
    boxes: tuple[BoxExplanation, ...]
    visited: tuple[str, ...]
    skipped: tuple[str, ...]
    stages_ms: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def explanation(
    schema: Schema, question: Question, found: Density, estimate: Estimate, stages_ms: dict[str, float]
) -> Explanation:
    """Put together what the rooms know, in the names of the table's columns."""
    boxes = []
    for answer in found.answers:
        columns = dict.fromkeys(schema.columns[schema.column_of(position)].name for position in answer.visited)
        boxes.append(
            BoxExplanation(tuple(columns), answer.density, answer.exact, answer.particles, answer.forward_rows)
        )
    asked = {name for box in boxes for name in box.visited}
    names = [column.name for column in schema.columns]
    return Explanation(
        estimate=estimate,
        comparisons=question.comparisons,
        boxes=tuple(boxes),
        visited=tuple(name for name in names if name in asked),
        skipped=tuple(name for name in names if name not in asked),
        stages_ms=stages_ms,
    )
