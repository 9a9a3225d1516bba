"""The report of the figures of all parts, which is stored as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from countless_lab.runner.store import ResultStore
from countless_lab.scaling.answers import ScaleAnswers, method_figures, time_ratios
from countless_lab.scaling.steps import AskPartModel, FitPart, TablePart, TakePart, asking_steps
from countless_lab.scoreboard.history import origin

MODEL = "countless"
SAMPLE_METHODS = ("sample", "same bytes")
QUANTILES = ("p50", "p95", "p99")
ROUNDING = 1.005  # q-errors that differ by less are equal

Report = dict[str, Any]


def report(parts: Sequence[TablePart], folder: Path) -> Report:
    """Everything that was measured; parts that are not finished are left out."""
    store = ResultStore(folder)
    part_reports = [part_report for part in parts if (part_report := _part_facts(part, store)) is not None]
    table = parts[0].table
    questions = {"per_kind": table.per_kind, "timed_per_kind": table.timed_per_kind}
    return {**origin(), "table": table.file.stem, "questions": questions, "parts": part_reports}


def _part_facts(part: TablePart, store: ResultStore) -> Report | None:
    steps = asking_steps(part)
    results = {step.name: store.result(step) for step in (TakePart(part), FitPart(part), *steps)}
    part_result, fitted, answered = (results[step.name] for step in (TakePart(part), FitPart(part), AskPartModel(part)))
    if part_result is None or fitted is None or answered is None:
        return None
    questions, truth = part.questions(store.folder)
    answers, methods = {}, {}
    for step in steps:
        result = results[step.name]
        if result is None:
            continue
        for method, path in step.answers(store.folder).items():
            answers[method] = ScaleAnswers.load(path)
            result_of_method = result.get(method, result)  # a step of several methods has facts of each
            methods[method] = {**result_of_method, **method_figures(answers[method], questions, truth)}
            if method != MODEL:
                methods[method]["time_ratio"] = time_ratios(answers[method], answers[MODEL], questions)
    return {**part_result, "fit": fitted, "methods": methods, "behind_samples": _behind(methods)}


def _behind(methods: Report) -> list[str]:
    """The kinds and quantiles at which the better of the two samples has a smaller q-error than the model."""
    behind = []
    for kind, model in methods[MODEL]["kinds"].items():
        samples = [methods[name]["kinds"].get(kind) for name in SAMPLE_METHODS if name in methods]
        for quantile in QUANTILES:
            best = min((sample["q_error"][quantile] for sample in samples if sample), default=float("inf"))
            if model["q_error"][quantile] > ROUNDING * best:
                behind.append(f"{kind} {quantile}: {model['q_error'][quantile]:.3g} ({best:.3g})")
    return behind
