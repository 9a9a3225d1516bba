"""The steps of the scoreboard: jobs that each measure one thing about one table, in a process of its own.

A step imports what it needs when it runs, and nothing else: its memory and time are part of what is measured.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from countless.errors import CountlessError
from countless_lab.measurement.memory import held_memory
from countless_lab.runner.job import ExperimentJob, Result, Say
from countless_lab.scoreboard.tables import BenchmarkTable, ScoreboardScale

QUESTIONS_BEFORE_MEMORY = 1_000  # answers after which the memory of the process is measured
WORKLOADS = ("people", "paper")
STAGES = (  # groups of a fit's stages, by how their names begin
    ("read", ("opening", "reading", "copying")),
    ("encode", ("encoding", "shuffling", "finding")),
    ("train", ("training",)),
    ("count", ("counting",)),
    ("calibrate", ("calibrating", "stopped early")),
)


@dataclass(frozen=True)
class TableRun:
    """What the steps of a table share: its file, how much to measure, and digests of the code.

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
    def run_label(self) -> str:
        """The training and the code: models and answers of each are stored side by side."""
        return f"{self.scale.name}-{self.scale.budget:g}s-{self.code}"


@dataclass(frozen=True)
class ScoreboardStep(ExperimentJob):
    """A job of the scoreboard; ``title`` is shown while it runs."""

    doing: ClassVar[str]

    table_run: TableRun

    @property
    def needs(self) -> tuple[str, ...]:
        return (PrepareTable(self.table_run).name,)

    @property
    def title(self) -> str:
        """The table, and what is done."""
        return f"{self.table_run.table.name}: {self.doing}"

    @property
    @abstractmethod
    def expected_seconds(self) -> float:
        """A rough guess, for the time left."""

    def to_json(self) -> Result:
        return {
            "exclude": self.table_run.table.exclude,
            "rows": self.table_run.rows,
            "bytes": self.table_run.source_bytes,
        }


@dataclass(frozen=True)
class PrepareTable(ScoreboardStep):
    """The table as it is measured: without the excluded columns, cut to a sample, as Parquet with zstd."""

    doing = "preparing the table"
    needs = ()
    expected_seconds = 10.0

    @property
    def name(self) -> str:
        return f"{self.table_run.label}-table"

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "tables" / f"{self.table_run.label}.parquet",)

    def run(self, folder: Path, say: Say) -> Result:
        from countless.data.columns.types import quote_identifier
        from countless.data.sources.file_formats import quote_path
        from countless.data.sources.source import Source

        path = self.new_output(folder)
        source, exclude = Source.open(self.table_run.source), self.table_run.table.exclude
        if self.table_run.rows is not None and source.count() > self.table_run.rows:
            source = source.sampled(self.table_run.rows, 0)
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

    doing = "drawing questions and counting their true rows"
    expected_seconds = 60.0

    @property
    def name(self) -> str:
        return f"{self.table_run.label}-{self.questions}"

    @property
    def questions(self) -> str:
        """The name of the questions, which is part of the names of answers."""
        scale = self.table_run.scale
        return f"questions-{self.table_run.generators}-{scale.paper_questions}-{scale.questions_per_kind}"

    def file(self, folder: Path, workload: str) -> Path:
        """The questions of one workload."""
        return folder / "questions" / f"{self.name}.{workload}.jsonl"

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return tuple(self.file(folder, workload) for workload in WORKLOADS)

    def run(self, folder: Path, say: Say) -> Result:
        from countless.data.sources.source import Source
        from countless.workload import save
        from countless_lab.scoreboard.workloads import draw_workloads

        self.new_output(folder)
        table, scale = Source.open(PrepareTable(self.table_run).output(folder)), self.table_run.scale
        workloads = draw_workloads(table, scale.paper_questions, scale.questions_per_kind)
        for workload, queries in workloads.items():
            save(self.file(folder, workload), queries)
        return {workload: len(queries) for workload, queries in workloads.items()}


@dataclass(frozen=True)
class FitTable(ScoreboardStep):
    """A fit by the command line, with default options but for the budget and the seed."""

    doing = "fitting"

    seed: int

    @property
    def name(self) -> str:
        return f"{self.table_run.label}-fit-{self.seed}-{self.table_run.run_label}"

    @property
    def title(self) -> str:
        return f"{super().title}, seed {self.seed}"

    @property
    def expected_seconds(self) -> float:
        return 1.2 * self.table_run.scale.budget

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "models" / f"{self.table_run.label}-{self.seed}-{self.table_run.run_label}.countless",)

    def run(self, folder: Path, say: Say) -> Result:
        model, table = self.new_output(folder), PrepareTable(self.table_run).output(folder)
        return fit_by_command(table, model, "--budget", f"{self.table_run.scale.budget:g}s", "--seed", str(self.seed))


@dataclass(frozen=True)
class MeasureRate(ScoreboardStep):
    """Training rows a second on a sample of the rows: with the machine to itself, and beside a busy loop per core."""

    doing = "training rate, alone and beside busy processes"

    @property
    def name(self) -> str:
        return f"{self.table_run.label}-rate-{self.table_run.run_label}"

    @property
    def expected_seconds(self) -> float:
        return 3 * self.table_run.scale.rate_seconds + 10

    def to_json(self) -> Result:
        return {**super().to_json(), "seconds": self.table_run.scale.rate_seconds}

    def run(self, folder: Path, say: Say) -> Result:
        from countless_lab.measurement.training_rate import training_rates

        return training_rates(PrepareTable(self.table_run).output(folder), self.table_run.scale.rate_seconds)


@dataclass(frozen=True)
class AskModel(ScoreboardStep):
    """A model's answers to both workloads, each question asked once."""

    one_thread = True
    doing = "asking the model"

    seed: int

    @property
    def name(self) -> str:
        questions = DrawQuestions(self.table_run).questions
        return f"{self.table_run.label}-ask-{self.seed}-{self.table_run.run_label}-{questions}"

    @property
    def needs(self) -> tuple[str, ...]:
        return FitTable(self.table_run, self.seed).name, DrawQuestions(self.table_run).name

    @property
    def title(self) -> str:
        return f"{super().title}, seed {self.seed}"

    @property
    def expected_seconds(self) -> float:
        return 1.2 * self.table_run.scale.seconds

    def to_json(self) -> Result:
        return {**super().to_json(), "seconds": self.table_run.scale.seconds}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "answers" / f"{self.name}.json",)

    def run(self, folder: Path, say: Say) -> Result:
        from countless import load
        from countless.errors import QueryError
        from countless.workload import load as load_queries
        from countless_lab.measurement.timer import timed
        from countless_lab.scoreboard.answers import Answers, write_answers
        from countless_lab.scoreboard.answers import ask as ask_all

        path, model = self.new_output(folder), FitTable(self.table_run, self.seed).output(folder)
        estimator, load_ms = timed(lambda: load(model))
        answers: dict[str, dict[str, Answers]] = {}
        memory = questions = 0

        def answer(where: str) -> Any:
            nonlocal memory, questions
            questions += 1
            if questions == QUESTIONS_BEFORE_MEMORY:
                memory = held_memory(os.getpid())
            return estimator.estimate(where)

        estimator.estimate("1 = 1")  # work that a process does once is not part of a question's time
        for workload in WORKLOADS:
            queries = load_queries(DrawQuestions(self.table_run).file(folder, workload))
            model_answers = ask_all("countless", answer, queries, self.table_run.scale.seconds, QueryError)
            answers[workload] = {"countless": model_answers}
        write_answers(path, answers)
        return {
            "load_ms": round(load_ms, 1),
            "resident_bytes": memory or held_memory(os.getpid()),
            "bytes": model.stat().st_size,
        }


@dataclass(frozen=True)
class AskOpponents(ScoreboardStep):
    """The answers of DuckDB's exact count, of samples, and of a scan of codes.

    One of the samples has as many bytes as the first model, if that is there: this step comes after it.
    """

    one_thread = True
    doing = "asking DuckDB, samples and a scan"

    @property
    def name(self) -> str:
        return f"{self.table_run.label}-oppose-{self.table_run.run_label}-{DrawQuestions(self.table_run).questions}"

    @property
    def needs(self) -> tuple[str, ...]:
        return PrepareTable(self.table_run).name, DrawQuestions(self.table_run).name

    @property
    def expected_seconds(self) -> float:
        return 4 * self.table_run.scale.opponent_seconds

    def to_json(self) -> Result:
        return {**super().to_json(), "seconds": self.table_run.scale.opponent_seconds}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "answers" / f"{self.name}.json",)

    def run(self, folder: Path, say: Say) -> Result:
        from countless.workload import load as load_queries
        from countless_lab.scoreboard.answers import ask as ask_all
        from countless_lab.scoreboard.answers import write_answers
        from countless_lab.scoreboard.opponents import SAMPLE_ROWS, DuckDBTable, scan_answers

        path, model = self.new_output(folder), FitTable(self.table_run, 0).output(folder)
        table = DuckDBTable(PrepareTable(self.table_run).output(folder))
        methods = {"duckdb": table.exact, "sample": table.sample(SAMPLE_ROWS)}
        result: Result = {"sample_rows": min(SAMPLE_ROWS, table.rows)}
        if model.is_file():
            result["same_bytes_rows"] = table.rows_of_bytes(model.stat().st_size)
            methods["same bytes"] = table.sample(result["same_bytes_rows"])
        answers, seconds = {}, self.table_run.scale.opponent_seconds
        for workload in WORKLOADS:
            queries = load_queries(DrawQuestions(self.table_run).file(folder, workload))
            answers[workload] = {name: ask_all(name, method, queries, seconds) for name, method in methods.items()}
            if workload == "paper" and not any("LIKE" in query.where for query in queries):
                scanned = scan_answers(table, queries, seconds)
                if scanned is not None:
                    answers[workload]["scan"], _ = scanned
        write_answers(path, answers)
        return result


def fit_by_command(table: Path, model: Path, *options: str) -> Result:
    """Fit a table by the command line; return its time, memory and stages."""
    from countless import load

    command = [sys.executable, "-P", "-m", "countless.cli.main", "fit", str(table), "-o", str(model), *options]
    started = time.perf_counter()
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, usage = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines() or [f"ended with exit code {run.returncode}"]
        raise CountlessError(lines[-1][-500:])
    report = load(model).report
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "fit_peak_bytes": usage.ru_maxrss * 1024,
        "stages": _grouped(report.get("stages", [])),
        "training": _trained(report),
    }


def steps_of(table_run: TableRun) -> list[ScoreboardStep]:
    """All steps of a table in order. Opponents come last: one of the samples has the size of the first model."""
    steps: list[ScoreboardStep] = [PrepareTable(table_run), DrawQuestions(table_run)]
    for seed in range(table_run.scale.seeds):
        steps += [FitTable(table_run, seed), AskModel(table_run, seed)]
    return [*steps, MeasureRate(table_run), AskOpponents(table_run)]


def _grouped(stages: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Wall and processor seconds of the groups of stages."""
    groups = {name: {"seconds": 0.0, "cpu_seconds": 0.0} for name, _ in STAGES}
    for stage in stages:
        group = next((name for name, starts in STAGES if stage["name"].startswith(starts)), "read")
        for unit in ("seconds", "cpu_seconds"):
            groups[group][unit] = round(groups[group][unit] + stage[unit], 2)
    return groups


def _trained(report: dict[str, Any]) -> dict[str, Any]:
    """Rows a second and passes of each network."""
    networks = {"columns": report} if "rows_per_second" in report else {}
    networks |= {"text": report["text"]} if "text" in report else {}
    return {
        name: {"rows_per_second": round(network["rows_per_second"]), "epochs": round(network["epochs"], 3)}
        for name, network in networks.items()
    }
