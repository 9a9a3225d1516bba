"""The jobs of growth: make a table, fit it, draw questions, answer them. Each is measured in a process of its own.

A job imports only what it needs, so that its memory is that of the fit, or of the serving, alone.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import countless
from countless._version import __version__
from countless.data.atomic_files import json_bytes, write_bytes
from countless.data.encoding.available_memory import peak_memory
from countless_lab.growth.clauses import random_clauses
from countless_lab.growth.dimensions import FitSettings, GrowthPoint
from countless_lab.runner.job import ExperimentJob, Result, Say


@dataclass(frozen=True)
class GeneratedTable(ExperimentJob):
    """The table of a fit, in Parquet files, until it is fitted."""

    fit: FitSettings

    @property
    def name(self) -> str:
        return f"table-{_label(self.fit)}"

    def to_json(self) -> Result:
        return asdict(self.fit.table)

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "tables" / self.name,)

    def run(self, folder: Path, say: Say) -> Result:
        table = self.output(folder)
        shutil.rmtree(table, ignore_errors=True)
        table.mkdir(parents=True)
        say("generating")
        self.fit.table.write(table)
        return {}


@dataclass(frozen=True)
class FittedModel(ExperimentJob):
    """A model file, shared by points with the same table and training. The table is removed once it is fitted."""

    fit: FitSettings

    @property
    def name(self) -> str:
        return f"model-{_label(self.fit)}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (GeneratedTable(self.fit).name,)

    def to_json(self) -> Result:
        return {**asdict(self.fit), "library": __version__}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "models" / f"{self.name}.countless",)

    def run(self, folder: Path, say: Say) -> Result:
        table, model = GeneratedTable(self.fit).output(folder), self.new_output(folder)
        say("fitting")
        started = time.perf_counter()
        estimator = countless.fit(
            str(table / "*.parquet"),
            budget=self.fit.budget,
            seed=self.fit.table.seed,
            max_distinct=self.fit.max_distinct,
            network=self.fit.network,
        )
        estimator.save(model)
        result = {
            "seconds": round(time.perf_counter() - started, 3),
            "stages": {stage["name"]: stage["seconds"] for stage in estimator.report["stages"]},
            "rows_per_second": estimator.report["rows_per_second"],
            "epochs": estimator.report["epochs"],
            "parameters": estimator.report["parameters"],
            "columns": len(estimator.columns),
            "file_bytes": model.stat().st_size,
            "peak_bytes": peak_memory(),
        }
        shutil.rmtree(table, ignore_errors=True)
        return result


@dataclass(frozen=True)
class DrawnClauses(ExperimentJob):
    """The questions of a point. They are drawn in a job of their own, which takes more memory than answering them."""

    point: GrowthPoint

    @property
    def name(self) -> str:
        return f"{self.point.name}-clauses"

    def to_json(self) -> Result:
        point = self.point
        return {**asdict(point.fit.table), "queries": point.queries, "filters": point.filters, "always": point.always}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "clauses" / f"{self.point.name}.json",)

    def run(self, folder: Path, say: Say) -> Result:
        point = self.point
        drawn = random_clauses(point.fit.table, point.queries, point.filters, point.always)
        write_bytes(self.new_output(folder), json_bytes(drawn))
        return {}


@dataclass(frozen=True)
class ServedPoint(ExperimentJob):
    """The latency of a point's questions, one by one and, if it has a batch, many in a call."""

    one_thread = True  # for each question; batches start threads of their own

    point: GrowthPoint

    @property
    def name(self) -> str:
        return self.point.name

    @property
    def needs(self) -> tuple[str, ...]:
        return FittedModel(self.point.fit).name, DrawnClauses(self.point).name

    def to_json(self) -> Result:
        return self.point.settings

    def run(self, folder: Path, say: Say) -> Result:
        clauses: list[str] = json.loads(DrawnClauses(self.point).output(folder).read_text(encoding="utf-8"))
        say("asking")
        latencies = serve(FittedModel(self.point.fit).output(folder), clauses, self.point.repeats, self.point.batch)
        return {**latencies, "peak_bytes": peak_memory()}


def serve(model: Path, clauses: Sequence[str], repeats: int, batch: int | None) -> Result:
    """Load a model and answer every clause ``repeats`` times; with ``batch``, this many in a call too."""
    started = time.perf_counter()
    estimator = countless.load(model)
    loaded = time.perf_counter()
    estimator.estimate(clauses[0])
    answered = time.perf_counter()
    ms = np.empty((repeats, len(clauses)))
    for repeat in range(repeats):
        for index, clause in enumerate(clauses):
            ms[repeat, index] = 1e3 * _seconds(estimator.estimate, clause)
    fastest = ms.min(axis=0)
    measurements: Result = {
        "load_ms": 1e3 * (loaded - started),
        "first_ms": 1e3 * (answered - loaded),
        "latency_ms": {f"p{p}": float(np.percentile(fastest, p)) for p in (50, 90, 99)},
        "queries": len(clauses),
        "loop_per_second": 1e3 * len(clauses) / float(ms.sum(axis=1).min()),
    }
    if batch is not None:
        calls = [clauses[first : first + batch] for first in range(0, len(clauses), batch)]
        totals = [sum(_seconds(estimator.estimate_many, call) for call in calls) for _ in range(repeats)]
        measurements["many_per_second"] = len(clauses) / min(totals)
    measurements["torch_imported"] = "torch" in sys.modules
    return measurements


def jobs_of(points: Iterable[GrowthPoint]) -> list[ExperimentJob]:
    """The jobs of all points, those of one fit one after the other."""
    by_fit: dict[FitSettings, list[GrowthPoint]] = {}
    for point in points:
        by_fit.setdefault(point.fit, []).append(point)
    jobs: list[ExperimentJob] = []
    for fit, sharing in by_fit.items():
        jobs += [GeneratedTable(fit), FittedModel(fit)]
        for point in sharing:
            jobs += [DrawnClauses(point), ServedPoint(point)]
    return jobs


def remove_models(folder: Path) -> None:
    """Remove the tables, models and questions, which are not needed once all points are measured."""
    for name in ("tables", "models", "clauses"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _label(fit: FitSettings) -> str:
    """A name for files: the size of the table, and a digest of the settings."""
    digest = hashlib.blake2b(json.dumps(asdict(fit), sort_keys=True).encode(), digest_size=4).hexdigest()
    return f"{fit.table.rows}x{len(fit.table.distinct)}-{digest}"


def _seconds(answer: Callable[[Any], Any], question: Any) -> float:
    started = time.perf_counter()
    answer(question)
    return time.perf_counter() - started
