"""A trial: one idea on one table, fitted for some seconds, and the errors of its answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import countless
from countless import workload
from countless.evaluation.evaluate import QUANTILES, evaluate
from countless_lab.ablation.ideas import IDEAS
from countless_lab.paper.cells import QuestionSet
from countless_lab.runner.job import ExperimentJob, Result, Say

QUESTION_SEED = 7_001  # of the queries to select ideas by; published figures use the seeds 0 to 4


@dataclass(frozen=True)
class AblationTrial(ExperimentJob):
    """A model made by an idea in this many ``seconds`` of training, and its q-errors on the queries ``asked``."""

    asked: QuestionSet
    idea: str
    seconds: float
    seed: int = 0

    @property
    def name(self) -> str:
        return f"{self.asked.data.name}-{self.idea}-{self.seconds:g}s-{self.seed}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.asked.name,)

    def to_json(self) -> Result:
        return {**asdict(self), "options": dict(IDEAS[self.idea].options)}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "models" / f"{self.name}.countless",)

    def run(self, folder: Path, say: Say) -> Result:
        data = self.asked.data
        say("fitting")
        options: dict[str, Any] = {"exclude": data.exclude, "calibrate": False, **IDEAS[self.idea].arguments()}
        estimator = countless.fit(data.open(), budget=self.seconds, seed=self.seed, clock="processor", **options)
        path = self.new_output(folder)
        estimator.save(path)
        say("asking")
        queries = workload.load(self.asked.output(folder))
        errors = np.array(evaluate(partial(estimator.estimate, method="particles"), queries, "particles").q_errors)
        report = estimator.report
        return {
            "bits": {name: report[f"{name}_bits"] for name in ("train", "masked", "unmasked")},
            "epochs": report["epochs"],
            "rows_per_second": report["rows_per_second"],
            "parameters": report["parameters"],
            "file_bytes": path.stat().st_size,
            "q_error": {name: float(np.percentile(errors, percentile)) for name, percentile in QUANTILES.items()},
            "spread": float(np.sqrt(np.mean(np.log(errors) ** 2))),
        }
