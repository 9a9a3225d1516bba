"""The steps of the scoreboard: jobs that each measure one thing about one table, in a process of its own.

Only what a step itself needs is imported, when it runs: its memory and time are part of what is measured.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from countless.errors import CountlessError
from countless_lab.measurement.memory import held_memory
from countless_lab.scoreboard.scale import ScoreboardScale
from countless_lab.scoreboard.tables import BenchmarkTable

ASKED_BEFORE_MEMORY = 1_000  # questions after which the memory of a process that answers is read
WORKLOADS = ("people", "paper")
STAGES = (  # by how the names of a fit's stages begin
    ("read", ("opening", "reading", "copying")),
    ("encode", ("encoding", "shuffling", "finding")),
    ("train", ("training",)),
    ("count", ("counting",)),
    ("calibrate", ("calibrating", "stopped early")),
)

Facts = dict[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True)
class TableRun:
    """What the steps of a table share: where it is, how much to measure, and digests of the code.

    ``code`` is the product's; ``generators`` is that of the code that draws questions.
    """

    table: BenchmarkTable
    source: Path
    source_bytes: int
    scale: ScoreboardScale
    code: str
    generators: str

    @property
    def label(self) -> str:
        """The table, and how it is cut."""
        return self.table.name if self.scale.rows is None else f"{self.table.name}-{self.scale.rows}"

    @property
    def rows(self) -> int | None:
        """How many rows to use; None is all."""
        return min((rows for rows in (self.table.rows, self.scale.rows) if rows is not None), default=None)

    @property
    def run(self) -> str:
        """The training and the code, of which models and answers are kept side by side."""
        return f"{self.scale.name}-{self.scale.budget:g}s-{self.code}"

    def table_facts(self) -> Facts:
        """What the table that is measured depends on."""
        return {"exclude": self.table.exclude, "rows": self.rows, "bytes": self.source_bytes}


@dataclass(frozen=True)
class ScoreboardStep(ABC):
    """A job of the scoreboard; ``title`` is shown while it runs."""

    one_thread: ClassVar[bool] = False
    doing: ClassVar[str]

    given: TableRun

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the result."""

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """The steps before it."""

    @property
    def title(self) -> str:
        """The table, and what is done."""
        return f"{self.given.table.name}: {self.doing}"

    @property
    @abstractmethod
    def expected_seconds(self) -> float:
        """A rough guess, for the time left."""

    @abstractmethod
    def to_json(self) -> Facts:
        """What the result depends on."""

    @abstractmethod
    def outputs(self, folder: Path) -> tuple[Path, ...]:
        """The files that it leaves."""

    @abstractmethod
    def run(self, folder: Path, say: Say) -> Facts:
        """Measure it."""


@dataclass(frozen=True)
class PrepareTable(ScoreboardStep):
    """The table as it is measured: without the excluded columns, cut to a sample, as Parquet with zstd."""

    doing: ClassVar[str] = "preparing the table"

    @property
    def name(self) -> str:
        return f"{self.given.label}-table"

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    @property
    def expected_seconds(self) -> float:
        return 10.0

    def to_json(self) -> Facts:
        return self.given.table_facts()

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "tables" / f"{self.given.label}.parquet",)

    def run(self, folder: Path, say: Say) -> Facts:
        from countless.data.columns.types import quote_identifier
        from countless.data.sources.file_formats import quote_path
        from countless.data.sources.source import Source

        path = _first_output(self, folder)
        source, exclude = Source.open(self.given.source), self.given.table.exclude
        if self.given.rows is not None and source.count() > self.given.rows:
            source = source.sampled(self.given.rows, 0)
        columns = f"* EXCLUDE ({', '.join(map(quote_identifier, exclude))})" if exclude else "*"
        partial = path.with_suffix(".partial")
        target = f"{quote_path(str(partial))} (FORMAT parquet, COMPRESSION zstd)"
        source.run(f"COPY (SELECT {columns} FROM {source.table}) TO {target}")
        os.replace(partial, path)
        written = Source.open(path)
        return {"rows": written.count(), "columns": len(written.columns()), "parquet_bytes": path.stat().st_size}


@dataclass(frozen=True)
class DrawQuestions(ScoreboardStep):
    """Both workloads with their true counts."""

    doing: ClassVar[str] = "drawing questions and counting their true rows"

    @property
    def name(self) -> str:
        scale = self.given.scale
        sizes = f"{scale.paper_questions}-{scale.questions_per_kind}"
        return f"{self.given.label}-questions-{self.given.generators}-{sizes}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (PrepareTable(self.given).name,)

    @property
    def expected_seconds(self) -> float:
        return 60.0

    def to_json(self) -> Facts:
        return self.given.table_facts()

    def file(self, folder: Path, workload: str) -> Path:
        """The questions of one workload."""
        return folder / "questions" / f"{self.name}.{workload}.jsonl"

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return tuple(self.file(folder, workload) for workload in WORKLOADS)

    def run(self, folder: Path, say: Say) -> Facts:
        from countless.data.sources.source import Source
        from countless.workload import save
        from countless_lab.scoreboard.workloads import draw_workloads

        _first_output(self, folder)
        (table,) = PrepareTable(self.given).outputs(folder)
        scale = self.given.scale
        drawn = draw_workloads(Source.open(table), scale.paper_questions, scale.questions_per_kind)
        for workload, queries in drawn.items():
            save(self.file(folder, workload), queries)
        return {workload: len(queries) for workload, queries in drawn.items()}


@dataclass(frozen=True)
class FitTable(ScoreboardStep):
    """A fit by the command line, with default options but for the budget and the seed."""

    doing: ClassVar[str] = "fitting"

    seed: int

    @property
    def name(self) -> str:
        return f"{self.given.label}-fit-{self.seed}-{self.given.run}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (PrepareTable(self.given).name,)

    @property
    def title(self) -> str:
        return f"{super().title}, seed {self.seed}"

    @property
    def expected_seconds(self) -> float:
        return 1.2 * self.given.scale.budget

    def to_json(self) -> Facts:
        return self.given.table_facts()

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "models" / f"{self.given.label}-{self.seed}-{self.given.run}.countless",)

    def run(self, folder: Path, say: Say) -> Facts:
        model = _first_output(self, folder)
        (table,) = PrepareTable(self.given).outputs(folder)
        return fit_by_command(table, model, "--budget", f"{self.given.scale.budget:g}s", "--seed", str(self.seed))


@dataclass(frozen=True)
class MeasureRate(ScoreboardStep):
    """Training rows a second on a sample of the rows: with the machine to itself, and beside a busy loop per core."""

    doing: ClassVar[str] = "training rate, alone and beside busy processes"

    @property
    def name(self) -> str:
        return f"{self.given.label}-rate-{self.given.run}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (PrepareTable(self.given).name,)

    @property
    def expected_seconds(self) -> float:
        return 3 * self.given.scale.rate_seconds + 10

    def to_json(self) -> Facts:
        return {**self.given.table_facts(), "seconds": self.given.scale.rate_seconds}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return ()

    def run(self, folder: Path, say: Say) -> Facts:
        from countless_lab.measurement.training_rate import training_rates

        (table,) = PrepareTable(self.given).outputs(folder)
        return training_rates(table, self.given.scale.rate_seconds)


@dataclass(frozen=True)
class AskModel(ScoreboardStep):
    """A model's answers to both workloads, each question asked once."""

    one_thread: ClassVar[bool] = True
    doing: ClassVar[str] = "asking the model"

    seed: int

    @property
    def name(self) -> str:
        return f"{self.given.label}-ask-{self.seed}-{self.given.run}-{_drawn(self.given)}"

    @property
    def needs(self) -> tuple[str, ...]:
        return FitTable(self.given, self.seed).name, DrawQuestions(self.given).name

    @property
    def title(self) -> str:
        return f"{super().title}, seed {self.seed}"

    @property
    def expected_seconds(self) -> float:
        return 1.2 * self.given.scale.seconds

    def to_json(self) -> Facts:
        return {**self.given.table_facts(), "seconds": self.given.scale.seconds}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "answers" / f"{self.name}.json",)

    def run(self, folder: Path, say: Say) -> Facts:
        from countless import load
        from countless.errors import QueryError
        from countless.workload import load as load_queries
        from countless_lab.measurement.timer import timed
        from countless_lab.scoreboard.answers import Answers, write_answers
        from countless_lab.scoreboard.answers import ask as ask_all

        answers = _first_output(self, folder)
        (model,) = FitTable(self.given, self.seed).outputs(folder)
        estimator, load_ms = timed(lambda: load(model))
        found: dict[str, dict[str, Answers]] = {}
        memory: list[int] = []
        asked = 0

        def answer(where: str) -> Any:
            nonlocal asked
            asked += 1
            if asked == ASKED_BEFORE_MEMORY:
                memory.append(held_memory(os.getpid()))
            return estimator.estimate(where)

        estimator.estimate("1 = 1")  # what a process does once is not part of a question
        for workload in WORKLOADS:
            queries = load_queries(DrawQuestions(self.given).file(folder, workload))
            found[workload] = {"countless": ask_all("countless", answer, queries, self.given.scale.seconds, QueryError)}
        write_answers(answers, found)
        return {
            "load_ms": round(load_ms, 1),
            "resident_bytes": memory[0] if memory else held_memory(os.getpid()),
            "bytes": model.stat().st_size,
        }


@dataclass(frozen=True)
class AskOpponents(ScoreboardStep):
    """The answers of DuckDB's exact count, of samples, and of a scan of codes.

    One of the samples has as many bytes as the first model, if that is there: this step comes after it.
    """

    one_thread: ClassVar[bool] = True
    doing: ClassVar[str] = "asking DuckDB, samples and a scan"

    @property
    def name(self) -> str:
        return f"{self.given.label}-oppose-{self.given.run}-{_drawn(self.given)}"

    @property
    def needs(self) -> tuple[str, ...]:
        return PrepareTable(self.given).name, DrawQuestions(self.given).name

    @property
    def expected_seconds(self) -> float:
        return 4 * self.given.scale.opponent_seconds

    def to_json(self) -> Facts:
        return {**self.given.table_facts(), "seconds": self.given.scale.opponent_seconds}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "answers" / f"{self.name}.json",)

    def run(self, folder: Path, say: Say) -> Facts:
        from countless.workload import load as load_queries
        from countless_lab.scoreboard.answers import ask as ask_all
        from countless_lab.scoreboard.answers import write_answers
        from countless_lab.scoreboard.opponents import SAMPLE_ROWS, DuckDBTable, scan_answers

        answers = _first_output(self, folder)
        (table,), (model,) = PrepareTable(self.given).outputs(folder), FitTable(self.given, 0).outputs(folder)
        memory = DuckDBTable(table)
        methods = {"duckdb": memory.exact, "sample": memory.sample(SAMPLE_ROWS)}
        facts: Facts = {"sample_rows": min(SAMPLE_ROWS, memory.rows)}
        if model.is_file():
            rows = facts["same_bytes_rows"] = memory.rows_of_bytes(model.stat().st_size)
            methods["same bytes"] = memory.sample(rows)
        found, seconds = {}, self.given.scale.opponent_seconds
        for workload in WORKLOADS:
            queries = load_queries(DrawQuestions(self.given).file(folder, workload))
            found[workload] = {method: ask_all(method, answer, queries, seconds) for method, answer in methods.items()}
            if workload == "paper" and not any("LIKE" in query.where for query in queries):
                scanned = scan_answers(memory, queries, seconds)
                if scanned is not None:
                    found[workload]["scan"], _ = scanned
        write_answers(answers, found)
        return facts


def fit_by_command(table: Path, model: Path, *options: str) -> Facts:
    """Fit a table by the command line; its time, its memory and its stages."""
    from countless import load

    command = [sys.executable, "-P", "-m", "countless.cli.main", "fit", str(table), "-o", str(model), *options]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"ended with exit code {done.returncode}"]
        raise CountlessError(lines[-1][-500:])
    report = load(model).report
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "fit_peak_bytes": used.ru_maxrss * 1024,
        "stages": _grouped(report.get("stages", [])),
        "training": _trained(report),
    }


def steps_of(given: TableRun) -> list[ScoreboardStep]:
    """All steps of a table in order. Opponents come after the first seed's model, whose size one of the samples has."""
    steps: list[ScoreboardStep] = [PrepareTable(given), DrawQuestions(given)]
    for seed in range(given.scale.seeds):
        steps += [FitTable(given, seed), AskModel(given, seed)]
    return [*steps, MeasureRate(given), AskOpponents(given)]


def _first_output(step: ScoreboardStep, folder: Path) -> Path:
    """Where a step writes, in a folder that is there."""
    path = step.outputs(folder)[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _drawn(given: TableRun) -> str:
    """The questions, as the names of answers tell them."""
    return DrawQuestions(given).name.removeprefix(f"{given.label}-")


def _grouped(stages: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Wall and processor seconds of the groups of stages."""
    found = {name: {"seconds": 0.0, "cpu_seconds": 0.0} for name, _ in STAGES}
    for stage in stages:
        group = next((name for name, starts in STAGES if stage["name"].startswith(starts)), "read")
        for unit in ("seconds", "cpu_seconds"):
            found[group][unit] = round(found[group][unit] + stage[unit], 2)
    return found


def _trained(report: dict[str, Any]) -> dict[str, Any]:
    """Rows a second and passes of each network."""
    networks = {"columns": report} if "rows_per_second" in report else {}
    networks |= {"text": report["text"]} if "text" in report else {}
    return {
        name: {"rows_per_second": round(found["rows_per_second"]), "epochs": round(found["epochs"], 3)}
        for name, found in networks.items()
    }
