"""Answers stay as they are: those of ``answers.json`` were found by the NumPy twin of every walk.

``python -m tests.pinned.test_pinned`` writes the file anew, if answers are meant to change.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from countless.engine.columns.kernel import SWITCH_OFF
from countless.estimator.estimator import Estimator
from tests.pinned.models import MODELS
from tests.pinned.questions import Question, ask, questions

ANSWERS = Path(__file__).with_name("answers.json")
TOLERANCES = {
    "columns": 1e-9,
    "orders": 1e-9,
    "text": 1e-4,
    "mixed": 1e-4,
    "evidence": 1e-9,
}  # a text's network sums in float32
MOST_LISTED = 24  # numbers of a list; of a longer one there are sums


@pytest.fixture(scope="module", params=MODELS)
def asked(request: Any) -> tuple[str, Estimator]:
    """The name of a model and its estimator, on NumPy alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH_OFF, "1")
        return request.param, MODELS[request.param]()


def test_answers_are_as_they_were(asked: tuple[str, Estimator]) -> None:
    name, estimator = asked
    known = json.loads(ANSWERS.read_text(encoding="utf-8"))[name]
    answers = {label(question): short(ask(estimator, question)) for question in pinned(name)}
    assert list(answers) == list(known)
    different = {question: (known[question], answers[question]) for question in known}
    assert {
        question: pair for question, pair in different.items() if not same(pair[0], pair[1], TOLERANCES[name])
    } == {}


def pinned(name: str) -> list[Question]:
    """The questions whose answers are kept: rows that are drawn of text would differ from machine to machine."""
    return [question for question in questions(name) if question[0] != "sample" or name not in ("text", "mixed")]


def label(question: Question) -> str:
    """A question as one line."""
    method, arguments = question
    return f"{method}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def short(answer: Any) -> Any:
    """Of an error its type, of a long list its sums."""
    if isinstance(answer, dict):
        return {name: short(each) for name, each in answer.items()}
    if isinstance(answer, list):
        flat = [number for each in answer for number in (each if isinstance(each, list) else [each])]
        if len(flat) > MOST_LISTED and all(isinstance(number, int | float) for number in flat):
            weighted = math.fsum(number * (1 + index % 7) for index, number in enumerate(flat))
            return {"length": len(flat), "sum": math.fsum(flat), "weighted": weighted}
        return [short(each) for each in answer]
    if isinstance(answer, str) and "Error: " in answer:
        return answer.partition(":")[0]
    return answer


def same(one: Any, two: Any, tolerance: float) -> bool:
    """Whether two answers are equal but for rounding."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[name], two[name], tolerance) for name in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(same(*pair, tolerance) for pair in zip(one, two, strict=True))
    if isinstance(one, float) and isinstance(two, int | float):
        return math.isclose(one, two, rel_tol=tolerance, abs_tol=1e-12)
    return bool(one == two)


def write() -> None:
    """Keep the answers of now."""
    os.environ[SWITCH_OFF] = "1"
    answers = {}
    for name, made in MODELS.items():
        estimator = made()
        answers[name] = {label(question): short(ask(estimator, question)) for question in pinned(name)}
    ANSWERS.write_text(_written(answers), encoding="utf-8")


def _written(found: dict[str, dict[str, Any]]) -> str:
    """JSON with a line for each question."""
    parts = []
    for name, answers in found.items():
        lines = [f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(each)}" for key, each in answers.items()]
        parts.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    write()
