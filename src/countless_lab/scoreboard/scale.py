"""How much a run of the scoreboard measures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ScoreboardScale:
    """How long to train, how many questions to ask, and for how long at most.

    ``seconds`` bounds the answers to one workload, by the model and by each opponent; ``rows`` cuts every table.
    """

    name: str = "full"
    budget: float = 300.0
    seeds: int = 1
    paper_questions: int = 5_000
    questions_per_kind: int = 100
    seconds: float = 120.0
    opponent_seconds: float = 40.0
    rate_seconds: float = 10.0
    rows: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


FULL = ScoreboardScale()
QUICK = ScoreboardScale(
    "quick",
    budget=60.0,
    seeds=2,
    paper_questions=1_000,
    questions_per_kind=20,
    seconds=30.0,
    opponent_seconds=10.0,
    rate_seconds=5.0,
)
