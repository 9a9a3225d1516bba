"""The jobs of growth: make a table, fit it, draw questions, answer them; each measured in a process of its own.

Only what a job itself needs is imported, so that its memory is that of the fit, or of the serving, and nothing else.
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
from typing import Any, ClassVar

import numpy as np

import countless
from countless._version import __version__
from countless.data.atomic_files import json_bytes, write_bytes
from countless.data.encoding.available_memory import peak_memory
from countless_lab.growth.clauses import clauses
from countless_lab.growth.dimensions import FitSettings, GrowthPoint
from countless_lab.runner.job import Job

Facts = dict[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True)
class GeneratedTable:
    """The table of a fit, in Parquet files, until it is fitted."""

    one_thread: ClassVar[bool] = False

    fit: FitSettings

    @property
    def name(self) -> str:
        return f"table-{_label(self.fit)}"

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def to_json(self) -> Facts:
        return asdict(self.fit.table)

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "tables" / self.name,)

    def run(self, folder: Path, say: Say) -> Facts:
        (place,) = self.outputs(folder)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        say("generating")
        self.fit.table.write(place)
        return {}


@dataclass(frozen=True)
class FittedModel:
    """A model file, which points with the same table and training share. The table is removed when it is there."""

    one_thread: ClassVar[bool] = False

    fit: FitSettings

    @property
    def name(self) -> str:
        return f"model-{_label(self.fit)}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (GeneratedTable(self.fit).name,)

    def to_json(self) -> Facts:
        return {**asdict(self.fit), "library": __version__}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "models" / f"{self.name}.countless",)

    def run(self, folder: Path, say: Say) -> Facts:
        (table,), (model,) = GeneratedTable(self.fit).outputs(folder), self.outputs(folder)
        model.parent.mkdir(parents=True, exist_ok=True)
        say("fitting")
        started = time.perf_counter()
        stages = _Stages()
        estimator = countless.fit(
            str(table / "*.parquet"),
            budget=self.fit.budget,
            seed=self.fit.table.seed,
            max_distinct=self.fit.max_distinct,
            network=self.fit.network,
            listener=stages,
        )
        by_stage = stages.seconds()
        estimator.save(model)
        facts = {
            "seconds": round(time.perf_counter() - started, 3),
            "stages": by_stage,
            "rows_per_second": estimator.report["rows_per_second"],
            "epochs": estimator.report["epochs"],
            "parameters": estimator.report["parameters"],
            "columns": len(estimator.columns),
            "file_bytes": model.stat().st_size,
            "peak_bytes": peak_memory(),
        }
        shutil.rmtree(table, ignore_errors=True)
        return facts


@dataclass(frozen=True)
class DrawnClauses:
    """The questions of a point: drawn apart, since that takes more memory than to answer them."""

    one_thread: ClassVar[bool] = False

    point: GrowthPoint

    @property
    def name(self) -> str:
        return f"{self.point.name}-clauses"

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def to_json(self) -> Facts:
        point = self.point
        return {**asdict(point.fit.table), "queries": point.queries, "filters": point.filters, "always": point.always}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "clauses" / f"{self.point.name}.json",)

    def run(self, folder: Path, say: Say) -> Facts:
        (path,) = self.outputs(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        point = self.point
        write_bytes(path, json_bytes(clauses(point.fit.table, point.queries, point.filters, point.always)))
        return {}


@dataclass(frozen=True)
class ServedPoint:
    """The latency of a point's questions, one by one and, if it has a batch, many in a call."""

    one_thread: ClassVar[bool] = True  # of a question; batches bring threads of their own

    point: GrowthPoint

    @property
    def name(self) -> str:
        return self.point.name

    @property
    def needs(self) -> tuple[str, ...]:
        return FittedModel(self.point.fit).name, DrawnClauses(self.point).name

    def to_json(self) -> Facts:
        return self.point.settings

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return ()

    def run(self, folder: Path, say: Say) -> Facts:
        (model,), (questions,) = FittedModel(self.point.fit).outputs(folder), DrawnClauses(self.point).outputs(folder)
        asked: list[str] = json.loads(questions.read_text(encoding="utf-8"))
        say("asking")
        facts = serve(model, asked, self.point.repeats, self.point.batch)
        return {**facts, "peak_bytes": peak_memory()}


def serve(model: Path, asked: Sequence[str], repeats: int, batch: int | None) -> Facts:
    """Load a model and answer every clause ``repeats`` times; with ``batch``, this many in a call too."""
    started = time.perf_counter()
    estimator = countless.load(model)
    loaded = time.perf_counter()
    estimator.estimate(asked[0])
    answered = time.perf_counter()
    ms = np.empty((repeats, len(asked)))
    for again in range(repeats):
        for index, clause in enumerate(asked):
            ms[again, index] = 1e3 * _seconds(estimator.estimate, clause)
    fastest = ms.min(axis=0)
    facts: Facts = {
        "load_ms": 1e3 * (loaded - started),
        "first_ms": 1e3 * (answered - loaded),
        "latency_ms": {f"p{place}": float(np.percentile(fastest, place)) for place in (50, 90, 99)},
        "queries": len(asked),
        "loop_per_second": 1e3 * len(asked) / float(ms.sum(axis=1).min()),
    }
    if batch is not None:
        calls = [asked[first : first + batch] for first in range(0, len(asked), batch)]
        totals = [sum(_seconds(estimator.estimate_many, call) for call in calls) for _ in range(repeats)]
        facts["many_per_second"] = len(asked) / min(totals)
    facts["torch_imported"] = "torch" in sys.modules
    return facts


def jobs_of(points: Iterable[GrowthPoint]) -> list[Job]:
    """The jobs of all points, those of one fit one after the other."""
    by_fit: dict[FitSettings, list[GrowthPoint]] = {}
    for point in points:
        by_fit.setdefault(point.fit, []).append(point)
    jobs: list[Job] = []
    for fit, sharing in by_fit.items():
        jobs += [GeneratedTable(fit), FittedModel(fit)]
        for point in sharing:
            jobs += [DrawnClauses(point), ServedPoint(point)]
    return jobs


def remove_models(folder: Path) -> None:
    """Remove the tables, models and questions, which nothing needs once all points are measured."""
    for name in ("tables", "models", "clauses"):
        shutil.rmtree(folder / name, ignore_errors=True)


class _Stages(countless.Listener):
    """How long every stage of a fit takes."""

    def __init__(self) -> None:
        self.started: dict[str, float] = {}

    def stage(self, name: str) -> None:
        self.started[name] = time.perf_counter()

    def seconds(self) -> dict[str, float]:
        """Seconds by stage, the last of which ends now."""
        ends = [*self.started.values(), time.perf_counter()]
        return {name: round(end - start, 3) for (name, start), end in zip(self.started.items(), ends[1:], strict=True)}


def _label(fit: FitSettings) -> str:
    """A name for files: the size of the table, and a digest of all the rest."""
    digest = hashlib.blake2b(json.dumps(asdict(fit), sort_keys=True).encode(), digest_size=4).hexdigest()
    return f"{fit.table.rows}x{len(fit.table.distinct)}-{digest}"


def _seconds(answer: Callable[[Any], Any], question: Any) -> float:
    started = time.perf_counter()
    answer(question)
    return time.perf_counter() - started
