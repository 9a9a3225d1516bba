"""A run of the scoreboard: one sweep for the steps of each table, and the figures computed from their results."""

from __future__ import annotations

import hashlib
import inspect
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from countless import workload
from countless.errors import CountlessError
from countless.workload import calendar, patterns, profile, questions, text
from countless.workload import load as load_queries
from countless_lab.runner.process import LocalProcesses
from countless_lab.runner.store import ResultStore
from countless_lab.runner.sweep import SweepListener, SweepOutcome, sweep, unfinished
from countless_lab.scoreboard import workloads
from countless_lab.scoreboard.answers import Answers, figures, nearer, ratio_of_medians, read_answers
from countless_lab.scoreboard.history import Run, add_run, code_fingerprint, origin
from countless_lab.scoreboard.steps import (
    AskModel,
    AskOpponents,
    DrawQuestions,
    FitTable,
    MeasureRate,
    PrepareTable,
    ScoreboardStep,
    TableRun,
    steps_of,
)
from countless_lab.scoreboard.tables import BenchmarkTable, ScoreboardScale

GENERATORS = (workloads, questions, patterns, calendar, profile, text, workload.columns)  # of the questions
MODEL = "countless"
NO_MODEL = "there is no model"


class StepListener:
    """Receives the progress of a run; override what you want to show."""

    def begins(self, step: ScoreboardStep, done: int, total: int, seconds_left: float) -> None:
        """A step begins, or an earlier run has done it."""

    def ends(self, seconds: float | None, failure: str | None = None) -> None:
        """A step ended after ``seconds``; None if an earlier run has done it."""


def measure_tables(
    tables: Sequence[BenchmarkTable],
    data: Path,
    scale: ScoreboardScale,
    work: Path,
    results: Path,
    listener: StepListener,
) -> None:
    """Run all steps that have no result in ``work``, one at a time; add the figures of each table to ``results``."""
    plans = [steps_of(_table_run(table, data, scale)) for table in tables]
    progress = _Progress([step for steps in plans for step in steps], listener)
    store = ResultStore(work)
    for table, steps in zip(tables, plans, strict=True):
        pending = unfinished({step.name: step for step in steps}, store)
        for step in steps:
            if step.name not in pending:
                progress.kept(step.name)
        outcome = sweep(steps, work, watch=progress, backend=LocalProcesses(1, None))
        add_run(results, table.name, scale.name, summarize(steps[0].table_run, store, outcome))


def _table_run(table: BenchmarkTable, data: Path, scale: ScoreboardScale) -> TableRun:
    source = table.path(data)
    assert source is not None
    sources = "".join(inspect.getsource(module) for module in GENERATORS)
    generators = hashlib.blake2b(sources.encode(), digest_size=4).hexdigest()
    return TableRun(table, source.absolute(), source.stat().st_size, scale, code_fingerprint(), generators)


class _Progress(SweepListener):
    """Tells a listener of every step of all tables."""

    def __init__(self, steps: Sequence[ScoreboardStep], listener: StepListener) -> None:
        self._steps = steps
        self._places = {step.name: index for index, step in enumerate(steps)}
        self._listener = listener
        self._began = time.monotonic()

    def kept(self, name: str) -> None:
        """Report a step that an earlier run has done."""
        self.started(name)
        self._listener.ends(None)

    def started(self, name: str) -> None:
        index = self._places[name]
        seconds_left = sum(step.expected_seconds for step in self._steps[index:])
        self._began = time.monotonic()
        self._listener.begins(self._steps[index], index, len(self._steps), seconds_left)

    def finished(self, name: str, seconds: float) -> None:
        self._listener.ends(seconds)

    def failed(self, name: str, message: str) -> None:
        self._listener.ends(time.monotonic() - self._began, message)


def summarize(table_run: TableRun, store: ResultStore, outcome: SweepOutcome) -> Run:
    """Every figure of a table."""

    def result(step: ScoreboardStep) -> dict[str, Any]:
        stored = store.result(step)
        if stored is None:
            return {"failed": outcome.failed.get(step.name, NO_MODEL)}
        return stored

    def needed(step: ScoreboardStep) -> dict[str, Any]:
        stored = result(step)
        if "failed" in stored:
            raise CountlessError(f"{step.title} failed: {stored['failed']}")
        return stored

    table, drawn = needed(PrepareTable(table_run)), DrawQuestions(table_run)
    needed(drawn)
    opposed = needed(AskOpponents(table_run))
    queries = {name: load_queries(drawn.file(store.folder, name)) for name in (workloads.PAPER, workloads.PEOPLE)}
    fits: list[dict[str, Any]] = []
    first: dict[str, Answers] = {}
    for seed in range(table_run.scale.seeds):
        fit, answered = result(FitTable(table_run, seed)), result(AskModel(table_run, seed))
        fits.append({"seed": seed, **fit, **({"ask_failed": answered["failed"]} if "failed" in answered else answered)})
        if "failed" not in fit and "failed" not in answered:
            answers = _answers(AskModel(table_run, seed), store)
            model_answers = {name: methods[MODEL] for name, methods in answers.items()}
            first = first or model_answers
            fits[-1] |= {name: figures(methods, queries[name]) for name, methods in model_answers.items()}
    opponents = {
        name: {method: _figures(answers, first.get(name), queries[name]) for method, answers in methods.items()}
        for name, methods in _answers(AskOpponents(table_run), store).items()
    }
    return {
        **origin(),
        "scale": asdict(table_run.scale),
        "table": table,
        "fits": fits,
        "rate": result(MeasureRate(table_run)),
        "opponents": {**opposed, **opponents},
    }


def _answers(step: AskModel | AskOpponents, store: ResultStore) -> dict[str, dict[str, Answers]]:
    (path,) = step.outputs(store.folder)
    return read_answers(path)


def _figures(opponent: Answers, model: Answers | None, queries: Sequence[workload.Query]) -> dict[str, Any]:
    """The figures of an opponent, and how it compares with the model."""
    own_figures = figures(opponent, queries)
    if model is None:
        return own_figures
    return {**own_figures, "time_ratio": ratio_of_medians(opponent, model), "nearer": nearer(model, opponent, queries)}
