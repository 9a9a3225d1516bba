"""How much a run of the scoreboard measures, and in which steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from countless_lab.scoreboard.tables import BenchmarkTable

STEPS = ("questions", "fit", "rate", "ask", "oppose")


@dataclass(frozen=True)
class Scale:
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


FULL = Scale()
QUICK = Scale(
    "quick",
    budget=60.0,
    seeds=2,
    paper_questions=1_000,
    questions_per_kind=20,
    seconds=30.0,
    opponent_seconds=10.0,
    rate_seconds=5.0,
)


@dataclass(frozen=True)
class Step:
    """One thing to do in a process of its own, for a table and, where it depends on one, a training seed."""

    name: str
    table: BenchmarkTable
    seed: int | None = None

    @property
    def title(self) -> str:
        """What is shown while it runs."""
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"{self.table.name}: {TITLES[self.name]}{seed}"

    def expected_seconds(self, scale: Scale) -> float:
        """A rough guess, for the time left."""
        return {
            "questions": 60.0,
            "fit": 1.2 * scale.budget,
            "rate": 3 * scale.rate_seconds + 10,
            "ask": 1.2 * scale.seconds,
            "oppose": 4 * scale.opponent_seconds,
        }[self.name]


TITLES = {
    "questions": "drawing questions and counting their true rows",
    "fit": "fitting",
    "rate": "training rate, alone and beside busy processes",
    "ask": "asking the model",
    "oppose": "asking DuckDB, samples and a scan",
}


def steps_of(tables: Sequence[BenchmarkTable], scale: Scale) -> list[Step]:
    """All steps in order. Opponents come after the first seed's model, whose size one of the samples has."""
    steps = []
    for table in tables:
        steps.append(Step("questions", table))
        for seed in range(scale.seeds):
            steps += [Step("fit", table, seed), Step("ask", table, seed)]
        steps += [Step("rate", table), Step("oppose", table)]
    return steps
