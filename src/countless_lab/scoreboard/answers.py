"""Answers to a workload, question by question, and the figures computed from them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from countless.estimator.answers.estimate import Estimate, q_error
from countless.estimator.calibration.conformal import LEVEL
from countless.evaluation.evaluate import Evaluation
from countless.workload import Query
from countless_lab.measurement.timer import timed

ORDER_SEED = 7  # of the random order of questions: with a limit of time, all kinds are asked equally often
NEARER = 1.01  # the factor by which a q-error must be smaller than another to be nearer to the truth


@dataclass
class Answers:
    """The answers of one method: the number of each question, the answer and its milliseconds.

    It holds no literals of the table, so it may be stored where the table may not.
    """

    method: str
    numbers: list[int] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)
    refused: list[bool] = field(default_factory=list)

    def add(self, number: int, answer: Estimate, ms: float, refused: bool) -> None:
        """Add an answer."""
        self.numbers.append(number)
        self.rows.append(float(answer.rows))
        self.low.append(float(answer.low))
        self.high.append(float(answer.high))
        self.ms.append(ms)
        self.refused.append(refused)

    def evaluation(self, queries: Sequence[Query], kind: str | None = None) -> Evaluation:
        """The answers with the true counts: all of them, or those to questions of one kind."""
        asked, estimates = [], []
        for index, number in enumerate(self.numbers):
            if kind is not None and queries[number].kind != kind:
                continue
            method = "refused" if self.refused[index] else self.method
            asked.append(queries[number])
            estimates.append(
                Estimate(
                    "", self.rows[index], 0.0, self.low[index], self.high[index], LEVEL, method, False, self.ms[index]
                )
            )
        return Evaluation(self.method, tuple(asked), tuple(estimates))

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return vars(self)


def ask(
    method: str,
    method_answer: Callable[[str], Estimate],
    queries: Sequence[Query],
    seconds: float,
    is_refusal: type[Exception] = KeyError,
    numbers: Sequence[int] | None = None,
) -> Answers:
    """Ask every question once, in a random order, until the time is over. A refusal counts as an answer of no rows.

    With ``numbers``, only these questions are asked.
    """
    answers = Answers(method)
    deadline = time.monotonic() + seconds
    for number in np.random.default_rng(ORDER_SEED).permutation(range(len(queries)) if numbers is None else numbers):
        if time.monotonic() > deadline:
            break
        where = queries[int(number)].where
        refused = False

        def attempt(where: str = where) -> Estimate:
            nonlocal refused
            try:
                return method_answer(where)
            except is_refusal:
                refused = True
                return Estimate(where, 0.0, 0.0, 0.0, 0.0, LEVEL, method, False, 0.0)

        estimate, ms = timed(attempt)
        answers.add(int(number), estimate, ms, refused)
    return answers


def figures(answers: Answers, queries: Sequence[Query]) -> dict[str, Any]:
    """q-errors, coverage, width, refusals and latency of all answers, and the same for every kind."""
    kinds = list(dict.fromkeys(query.kind for query in queries if query.kind))
    return {
        **_summary(answers.evaluation(queries)),
        "kinds": {
            kind: _summary(evaluation) for kind in kinds if (evaluation := answers.evaluation(queries, kind)).queries
        },
    }


def _summary(evaluation: Evaluation) -> dict[str, Any]:
    values = evaluation.to_json()
    names = ("queries", "refused", "q_error", "queries_10_rows", "q_error_10_rows", "coverage", "width", "latency_ms")
    return {name: _rounded(values[name]) for name in names}


def nearer(model: Answers, opponent: Answers, queries: Sequence[Query]) -> dict[str, Any]:
    """How often each of two methods is nearer to the truth, over all questions that both answered, and by kind."""
    theirs = {
        number: q_error(rows, queries[number].rows)
        for number, rows in zip(opponent.numbers, opponent.rows, strict=True)
    }
    counts: dict[str, list[int]] = {}
    for number, rows in zip(model.numbers, model.rows, strict=True):
        if number not in theirs:
            continue
        mine = q_error(rows, queries[number].rows)
        for kind in {"", queries[number].kind}:
            won, lost = counts.setdefault(kind, [0, 0])
            counts[kind] = [won + (mine * NEARER < theirs[number]), lost + (theirs[number] * NEARER < mine)]
    return {"all": counts.pop("", [0, 0]), "kinds": counts}


def ratio_of_medians(opponent: Answers, model: Answers) -> float | None:
    """The median time of one method over that of another, on the questions that both answered."""
    mine = dict(zip(model.numbers, model.ms, strict=True))
    both = [(ms, mine[number]) for number, ms in zip(opponent.numbers, opponent.ms, strict=True) if number in mine]
    if not both:
        return None
    theirs, ours = zip(*both, strict=True)
    return float(f"{np.median(theirs) / max(1e-6, np.median(ours)):.4g}")


def write_answers(path: Path, workloads: dict[str, dict[str, Answers]]) -> None:
    """Write answers by workload and method."""
    by_workload = {name: {method: a.to_json() for method, a in methods.items()} for name, methods in workloads.items()}
    path.write_text(json.dumps(by_workload), encoding="utf-8")


def read_answers(path: Path) -> dict[str, dict[str, Answers]]:
    """The answers that :func:`write_answers` wrote."""
    by_workload = json.loads(path.read_text(encoding="utf-8"))
    return {name: {method: Answers(**a) for method, a in methods.items()} for name, methods in by_workload.items()}


def _rounded(value: Any) -> Any:
    """Figures with four significant digits."""
    if isinstance(value, dict):
        return {name: _rounded(element) for name, element in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value
