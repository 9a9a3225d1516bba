"""One idea on one table: a fit of so many seconds, and what its answers are worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import countless
from countless import workload
from countless.bench.ablation.ideas import IDEAS
from countless.bench.subjects import Subject
from countless.data.source import Source
from countless.data.table import EncodeOptions, Table
from countless.estimator.evaluate import QUANTILES, evaluate, random_workload

QUESTION_SEED = 7_001  # of queries to select by: what is published is measured with the seeds 0 to 4

Say = Callable[[str], None]


@dataclass(frozen=True)
class Questions:
    """Random queries on a table, with their true counts, for all the trials on it."""

    subject: Subject
    queries: int

    @property
    def name(self) -> str:
        return f"{self.subject.name}-questions"

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def file(self, folder: Path) -> Path:
        """Where the queries are."""
        return folder / "questions" / f"{self.subject.name}.jsonl"

    def run(self, folder: Path, say: Say) -> dict[str, Any]:
        source = Source.open(self.subject.source)
        say("reading the table")
        schema = Table.encode(source, EncodeOptions(exclude=self.subject.exclude)).schema
        say("counting queries")
        asked = random_workload(schema, source, self.queries, QUESTION_SEED)
        path = self.file(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        workload.save(path, asked)
        return {"queries": len(asked), "rows": schema.rows, "columns": len(schema.columns)}


@dataclass(frozen=True)
class Trial:
    """A model of ``subject`` made by an idea in so many ``seconds`` of training, and its q-errors."""

    questions: Questions
    idea: str
    seconds: float
    seed: int = 0

    @property
    def name(self) -> str:
        return f"{self.questions.subject.name}-{self.idea}-{self.seconds:g}s-{self.seed}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.questions.name,)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "options": dict(IDEAS[self.idea].options)}

    def file(self, folder: Path) -> Path:
        """Where the model is."""
        return folder / "models" / f"{self.name}.countless"

    def run(self, folder: Path, say: Say) -> dict[str, Any]:
        subject = self.questions.subject
        say("fitting")
        options = IDEAS[self.idea].arguments()
        options["training"] = {**options.get("training", {}), "clock": "processor"}
        estimator = countless.fit(
            subject.source, exclude=subject.exclude, budget=self.seconds, seed=self.seed, calibrate=False, **options
        )
        path = self.file(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        estimator.save(path)
        say("asking")
        asked = workload.load(self.questions.file(folder))
        errors = np.array(evaluate(estimator.estimate, asked, "particles").q_errors)
        report = estimator.report
        return {
            "bits": {name: report[f"{name}_bits"] for name in ("train", "masked", "unmasked")},
            "epochs": report["epochs"],
            "rows_per_second": report["rows_per_second"],
            "parameters": report["parameters"],
            "file_bytes": path.stat().st_size,
            "q_error": {name: float(np.percentile(errors, place)) for name, place in QUANTILES.items()},
            "spread": float(np.sqrt(np.mean(np.log(errors) ** 2))),
        }
