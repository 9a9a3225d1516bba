"""The answers of one method: counts and groups of GROUP BY, with their times."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from countless.data.atomic_files import json_bytes, write_bytes
from countless.estimator.answers.estimate import Estimate
from countless.workload import Query
from countless_lab.measurement.timer import timed
from countless_lab.scaling.questions import ScaleQuestions, ScaleTruth, class_of
from countless_lab.scoreboard.answers import Answers, ask, figures

NO_LIMIT = 1e9  # seconds: the number of questions is the limit
NO_ANSWER = Estimate("", 0.0, 0.0, 0.0, 0.0, 0.9, "none", False, 0.0)

Count = Callable[[str], Estimate]
Groups = Callable[[str, str], dict[str | None, Estimate]]


@dataclass(frozen=True)
class ScaleAnswers:
    """Answers to conditions; to GROUP BY, one for each group; and the milliseconds of each GROUP BY by its number."""

    counts: Answers
    groups: Answers
    group_ms: dict[int, float]

    def save(self, path: Path) -> None:
        """Write them to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"counts": self.counts.to_json(), "groups": self.groups.to_json(), "group_ms": [*self.group_ms.items()]}
        write_bytes(path, json_bytes(data))

    @classmethod
    def load(cls, path: Path) -> ScaleAnswers:
        """Read what :meth:`save` wrote."""
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(Answers(**data["counts"]), Answers(**data["groups"]), dict(data["group_ms"]))


def ask_method(
    method: str,
    count: Count,
    groups: Groups,
    questions: ScaleQuestions,
    truth: ScaleTruth,
    is_refusal: type[Exception] = KeyError,
    numbers_asked: tuple[Sequence[int], Sequence[int]] | None = None,
) -> ScaleAnswers:
    """Ask one method all questions, or those with these numbers (of counts, and of GROUP BY)."""
    numbers, group_numbers = numbers_asked or (range(len(questions.counts)), range(len(questions.groups)))
    counted = ask(method, count, truth.queries(questions), NO_LIMIT, is_refusal, numbers)
    first_indices = np.cumsum([0, *(len(groups_found) for groups_found in truth.groups)]).tolist()
    grouped, group_ms = Answers(method), {}
    for number in group_numbers:
        question = questions.groups[number]
        groups_found, ms = timed(partial(_attempt, groups, question.column, question.where, is_refusal))
        group_ms[int(number)] = ms
        for index, (value, _) in enumerate(truth.groups[number], first_indices[number]):
            answer = NO_ANSWER if groups_found is None else groups_found.get(value, NO_ANSWER)
            grouped.add(index, answer, ms, refused=groups_found is None)
    return ScaleAnswers(counted, grouped, group_ms)


def _attempt(groups: Groups, column: str, where: str, is_refusal: type[Exception]) -> dict[str | None, Estimate] | None:
    try:
        return groups(column, where)
    except is_refusal:
        return None


def method_figures(answers: ScaleAnswers, questions: ScaleQuestions, truth: ScaleTruth) -> dict[str, Any]:
    """q-errors, coverage and latency by class of question, and by kind."""
    by_group: dict[str, Any] = {}
    kinds = [group.kind for group in questions.groups]
    for name, rename in (("classes", class_of), ("kinds", str)):
        counted = _with_kinds(truth.queries(questions), rename)
        grouped = _with_kinds(truth.group_queries(questions), rename)
        by_group[name] = figures(answers.counts, counted)["kinds"] if answers.counts.numbers else {}
        if answers.groups.numbers:
            by_group[name] |= figures(answers.groups, grouped)["kinds"]
        for kind in dict.fromkeys(map(rename, kinds)):
            times = [ms for number, ms in answers.group_ms.items() if rename(kinds[number]) == kind]
            if kind in by_group[name] and times:  # of questions, not of groups
                by_group[name][kind]["latency_ms"] = {
                    f"p{p}": round(float(np.percentile(times, p)), 3) for p in (50, 99)
                }
    return by_group


def time_ratios(opponent: ScaleAnswers, model: ScaleAnswers, questions: ScaleQuestions) -> dict[str, float]:
    """The median time of one method over that of another by class, on the questions that both answered."""
    times = [_times(answers, questions) for answers in (opponent, model)]
    ratios = {}
    for name in times[0]:
        both = times[0][name].keys() & times[1].get(name, {}).keys()
        if both:
            theirs, ours = (float(np.median([by_class[name][number] for number in both])) for by_class in times)
            ratios[name] = float(f"{theirs / max(1e-6, ours):.4g}")
    return ratios


def _times(answers: ScaleAnswers, questions: ScaleQuestions) -> dict[str, dict[int, float]]:
    """Milliseconds by class and number of the question."""
    by_class: dict[str, dict[int, float]] = {}
    for number, ms in zip(answers.counts.numbers, answers.counts.ms, strict=True):
        by_class.setdefault(class_of(questions.counts[number][1]), {})[number] = ms
    for number, ms in answers.group_ms.items():
        by_class.setdefault(class_of(questions.groups[number].kind), {})[number] = ms
    return by_class


def _with_kinds(queries: Sequence[Query], rename: Callable[[str], str]) -> list[Query]:
    return [Query(query.where, query.rows, rename(query.kind)) for query in queries]
