"""The steps of the measurement: jobs that each do one thing with one part of the table, in a process of its own.

A step imports what it needs when it runs, and nothing else: its memory and time are part of what is measured.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from countless_lab.measurement.memory import held_memory
from countless_lab.runner.job import ExperimentJob, Result, Say

if TYPE_CHECKING:
    from countless_lab.scaling.questions import ScaleQuestions, ScaleTruth

SEED = 26
WHOLE = "whole"
SAMPLES = {"sample": "sample of 100,000 rows", "same bytes": "sample of as many bytes"}


@dataclass(frozen=True)
class LargeTable:
    """The table, and how many questions of each kind are asked: by all methods, and by slow ones."""

    file: Path
    file_bytes: int
    per_kind: int = 50
    timed_per_kind: int = 5

    def settings(self) -> Result:
        """All that the questions depend on."""
        return {"table": self.file.name, "bytes": self.file_bytes, "per_kind": self.per_kind, "seed": SEED}


@dataclass(frozen=True)
class TablePart:
    """About ``rows`` random rows of the table, in its order; all if None. ``model`` is one that was fitted before."""

    table: LargeTable
    rows: int | None = None
    model: Path | None = None
    model_version: str = ""  # changes when the model file does
    fit_options: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Its name."""
        return WHOLE if self.rows is None else str(self.rows)

    def file(self, folder: Path) -> Path:
        """Its rows as Parquet."""
        return self.table.file if self.rows is None else folder / "parts" / f"{self.label}.parquet"

    def model_file(self, folder: Path) -> Path:
        """Its model."""
        return self.model or folder / "models" / f"{self.label}.countless"

    def questions(self, folder: Path) -> tuple[ScaleQuestions, ScaleTruth]:
        """Its questions, and their true counts."""
        from countless_lab.scaling.questions import ScaleQuestions, ScaleTruth

        questions = ScaleQuestions.load(DrawScaleQuestions(self).output(folder))
        return questions, ScaleTruth.load(CountTruth(self).output(folder))


@dataclass(frozen=True)
class ScaleStep(ExperimentJob):
    """A job about one part of the table."""

    kind: ClassVar[str]

    part: TablePart

    @property
    def name(self) -> str:
        return f"{self.part.label}-{self.kind}"

    def to_json(self) -> Result:
        return {**self.part.table.settings(), "rows": self.part.rows}


@dataclass(frozen=True)
class TakePart(ScaleStep):
    """Take random rows of the table. The whole table stays where it is."""

    kind = "table"

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (self.part.file(folder),)

    def run(self, folder: Path, say: Say) -> Result:
        import pyarrow.parquet as pq

        from countless.data.atomic_files import write_whole
        from countless.data.sources.file_formats import quote_path
        from countless.data.sources.source import connect

        path, total = self.part.file(folder), pq.read_metadata(self.part.table.file).num_rows
        if self.part.rows is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            limit = int(min(1.0, self.part.rows / total) * (2**64 - 1))
            rows = f"read_parquet({quote_path(str(self.part.table.file))}, file_row_number = true)"
            sampled_rows = f"WHERE hash(file_row_number + {SEED}) <= {limit}::UBIGINT"
            select = f"SELECT * EXCLUDE (file_row_number) FROM {rows} {sampled_rows}"
            options = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 6"

            def write(file: str) -> None:
                connect().execute(f"COPY ({select}) TO {quote_path(file)} ({options})")

            write_whole(path, write)
        return {"rows": pq.read_metadata(path).num_rows, "parquet_bytes": path.stat().st_size}


@dataclass(frozen=True)
class DrawScaleQuestions(ScaleStep):
    """Draw the questions from the whole table, the same for every part."""

    kind = "questions"

    @property
    def name(self) -> str:
        return self.kind

    def to_json(self) -> Result:
        return self.part.table.settings()

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "questions.json",)

    def run(self, folder: Path, say: Say) -> Result:
        from countless.data.sources.source import Source
        from countless_lab.scaling.questions import draw_questions

        questions = draw_questions(Source.open(self.part.table.file), self.part.table.per_kind, SEED)
        questions.save(self.output(folder))
        return {"counts": len(questions.counts), "groups": len(questions.groups), "texts": questions.texts}


@dataclass(frozen=True)
class CountTruth(ScaleStep):
    """Count the true rows of all questions."""

    kind = "truth"

    @property
    def needs(self) -> tuple[str, ...]:
        return TakePart(self.part).name, DrawScaleQuestions(self.part).name

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / f"{self.name}.json",)

    def run(self, folder: Path, say: Say) -> Result:
        from countless.data.sources.source import Source
        from countless_lab.scaling.questions import ScaleQuestions, count_truth

        questions = ScaleQuestions.load(DrawScaleQuestions(self.part).output(folder))
        count_truth(Source.open(self.part.file(folder)), questions, say).save(self.output(folder))
        return {}


@dataclass(frozen=True)
class FitPart(ScaleStep):
    """Fit the part with default options unless there is a model. The result has the stages of the fit."""

    kind = "fit"

    @property
    def needs(self) -> tuple[str, ...]:
        return (TakePart(self.part).name,)

    def to_json(self) -> Result:
        return {**super().to_json(), "model": self.part.model_version, "options": self.part.fit_options}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (self.part.model_file(folder),)

    def run(self, folder: Path, say: Say) -> Result:
        from countless import load
        from countless_lab.scoreboard.steps import fit_by_command

        model, measured = self.part.model_file(folder), {}
        if self.part.model is None:
            measured = fit_by_command(self.part.file(folder), self.new_output(folder), *self.part.fit_options)
        stages = load(model).report.get("stages", [])
        return {
            "seconds": round(sum(stage["seconds"] for stage in stages), 1),
            "cpu_seconds": round(sum(stage["cpu_seconds"] for stage in stages), 1),
            **measured,
            "stages": [{name: stage[name] for name in ("name", "seconds", "cpu_seconds")} for stage in stages],
            "bytes": model.stat().st_size,
        }


@dataclass(frozen=True)
class AskingStep(ScaleStep):
    """A job that asks questions with one thread, and writes a file of answers for each method."""

    one_thread = True
    methods: ClassVar[tuple[str, ...]]

    @property
    def needs(self) -> tuple[str, ...]:
        return TakePart(self.part).name, CountTruth(self.part).name, DrawScaleQuestions(self.part).name

    def answers(self, folder: Path) -> dict[str, Path]:
        """The files of its answers by method."""
        return {name: folder / "answers" / f"{self.part.label}-{name.replace(' ', '-')}.json" for name in self.methods}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return tuple(self.answers(folder).values())


@dataclass(frozen=True)
class AskingStepOfModel(AskingStep):
    """An asking step that needs the model."""

    @property
    def needs(self) -> tuple[str, ...]:
        return *super().needs, FitPart(self.part).name

    def to_json(self) -> Result:
        return FitPart(self.part).to_json()


@dataclass(frozen=True)
class AskPartModel(AskingStepOfModel):
    """The answers of the model, and the memory of the process that gave them."""

    kind = "countless"
    methods = ("countless",)

    def run(self, folder: Path, say: Say) -> Result:
        from countless import load
        from countless.data.columns.types import quote_identifier
        from countless.errors import QueryError
        from countless.estimator.answers.estimate import Estimate
        from countless_lab.measurement.timer import timed
        from countless_lab.scaling.answers import ask_method

        questions, truth = self.part.questions(folder)
        model = self.part.model_file(folder)
        estimator, load_ms = timed(lambda: load(model))
        estimator.estimate("1 = 1")  # work that a process does once is not part of a question's time

        def groups(column: str, where: str) -> dict[str | None, Estimate]:
            name = quote_identifier(column)
            sql = f"SELECT {name} AS k, count(*) AS n FROM t WHERE {where} GROUP BY {name}"
            return {
                row["k"]: Estimate("", row["n"], 0.0, row["n_low"], row["n_high"], 0.9, "", False, 0.0)
                for row in estimator.query(sql, intervals=True).to_dicts()
            }

        answers = ask_method("countless", estimator.estimate, groups, questions, truth, QueryError)
        memory = held_memory(os.getpid())
        answers.save(self.answers(folder)["countless"])
        return {"load_ms": round(load_ms, 1), "resident_bytes": memory, "bytes": model.stat().st_size}


@dataclass(frozen=True)
class AskSamples(AskingStepOfModel):
    """The answers of a sample of 100,000 rows, and of one whose Parquet file has as many bytes as the model."""

    kind = "samples"
    methods = tuple(SAMPLES)

    def run(self, folder: Path, say: Say) -> Result:
        from countless_lab.scaling.samples import ask_sample, draw_sample, draw_sample_of_bytes
        from countless_lab.scoreboard.opponents import SAMPLE_ROWS

        questions, truth = self.part.questions(folder)
        table, result = self.part.file(folder), {}
        samples = {name: folder / "samples" / f"{self.part.label}-{name.replace(' ', '-')}.parquet" for name in SAMPLES}
        samples["sample"].parent.mkdir(exist_ok=True)
        say("drawing a sample of 100,000 rows")
        draw_sample(table, SAMPLE_ROWS, samples["sample"])
        say("drawing a sample of as many bytes as the model")
        draw_sample_of_bytes(
            table, self.part.model_file(folder).stat().st_size, samples["sample"], samples["same bytes"]
        )
        for name, path in self.answers(folder).items():
            say(f"asking the {SAMPLES[name]}")
            answers, rows = ask_sample(name, samples[name], table, questions, truth)
            answers.save(path)
            result[name] = {"rows": rows, "bytes": samples[name].stat().st_size}
        return result


@dataclass(frozen=True)
class TimingStep(AskingStep):
    """An asking step with a few questions of each kind."""

    def to_json(self) -> Result:
        return {**super().to_json(), "timed_per_kind": self.part.table.timed_per_kind}


@dataclass(frozen=True)
class TimeExactCounts(TimingStep):
    """The time of DuckDB's exact count for a few questions of each kind, with the table in memory."""

    kind = "exact"
    methods = ("DuckDB in memory",)
    in_memory: ClassVar[bool] = True

    def run(self, folder: Path, say: Say) -> Result:
        from countless.estimator.answers.estimate import Estimate
        from countless_lab.scaling.answers import ask_method
        from countless_lab.scoreboard.opponents import DuckDBTable, without_interval

        questions, truth = self.part.questions(folder)
        empty, (method,) = held_memory(os.getpid()), self.methods
        table = DuckDBTable(self.part.file(folder), self.in_memory)
        table_bytes = held_memory(os.getpid()) - empty

        def groups(column: str, where: str) -> dict[str | None, Estimate]:
            counts = table.groups(column, where)
            return {value: without_interval(rows, method, exact=True) for value, rows in counts.items()}

        numbers = questions.timed(self.part.table.timed_per_kind)
        answers = ask_method(method, table.exact, groups, questions, truth, numbers_asked=numbers)
        wrong = [
            n for n, rows in zip(answers.counts.numbers, answers.counts.rows, strict=True) if rows != truth.counts[n]
        ]
        if wrong:
            raise AssertionError(f"{method} counts question {wrong[0]} differently than before")
        answers.save(self.answers(folder)[method])
        size = table_bytes if self.in_memory else self.part.file(folder).stat().st_size
        return {"bytes": size, "resident_bytes": held_memory(os.getpid())}


@dataclass(frozen=True)
class TimeParquetCounts(TimeExactCounts):
    """The same with the table in its Parquet file."""

    kind = "parquet"
    methods = ("DuckDB on Parquet",)
    in_memory = False


@dataclass(frozen=True)
class TimeScan(TimingStep):
    """The time of a scan of packed codes in C, for questions about columns."""

    kind = "scan"
    methods = ("scan of codes",)

    def run(self, folder: Path, say: Say) -> Result:
        from countless_lab.scaling.answers import ScaleAnswers
        from countless_lab.scaling.questions import COLUMNS, asked_columns, class_of
        from countless_lab.scoreboard.answers import Answers
        from countless_lab.scoreboard.opponents import DuckDBTable, scan_answers

        questions, truth = self.part.questions(folder)
        numbers, _ = questions.timed(self.part.table.timed_per_kind)
        queries, texts = truth.queries(questions), set(questions.texts)
        numbers = [n for n in numbers if class_of(queries[n].kind) == COLUMNS]
        numbers = [n for n in numbers if not texts & asked_columns(queries[n].where)]
        table = DuckDBTable(self.part.file(folder), in_memory=False)
        scanned = scan_answers(table, [queries[n] for n in numbers], 1e9)
        answers, size = scanned or (Answers("scan"), 0)
        answers.numbers = [numbers[index] for index in answers.numbers]
        ScaleAnswers(answers, Answers("scan"), {}).save(self.answers(folder)["scan of codes"])
        return {"bytes": size}


def asking_steps(part: TablePart) -> list[AskingStep]:
    """The steps that ask the methods."""
    return [AskPartModel(part), AskSamples(part), TimeExactCounts(part), TimeParquetCounts(part), TimeScan(part)]


def part_steps(part: TablePart) -> list[ScaleStep]:
    """All steps of a part but the drawing of questions, in order."""
    return [TakePart(part), CountTruth(part), FitPart(part), *asking_steps(part)]
