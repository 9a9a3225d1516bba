"""Short versions of the campaigns of ``countless bench fuzz``, and what they report when a promise is broken."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as save_arrays

from countless import Estimator
from countless.errors import DataError
from countless.query.sandbox.functions import DATES, NUMBERS, STRINGS, disallowed_call
from countless_lab.fuzz import asking, compiled_code, killing, loading, sharing
from countless_lab.fuzz.compiled_code import COLUMNS
from countless_lab.fuzz.expressions import CALLS
from countless_lab.fuzz.mutations import archived, spoiled_arrays
from countless_lab.fuzz.predicates import PredicateMaker
from countless_lab.fuzz.sanitizers import build_sanitized
from countless_lab.fuzz.small_models import KINDS, make_models, questions


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of columns, and one with grids, text and evidence."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        for kind in set(KINDS) - {"columns", "mixed"}:
            patch.delitem(KINDS, kind)
        make_models(folder)
    return folder


class TestPredicates:
    """``fuzz predicates``."""

    def test_every_function_occurs(self) -> None:
        words = set(re.findall(r"\w+", " ".join(" ".join(calls) for calls in CALLS.values()).lower()))
        operators = {"cast", "try_cast", "current_time"}
        assert set(f"{NUMBERS} {STRINGS} {DATES}".split()) - words - operators == set()

    def test_a_seed_draws_the_same_again(self) -> None:
        one, two = (PredicateMaker(COLUMNS, random.Random(3)) for _ in range(2))
        assert [one.draw() for _ in range(50)] == [two.draw() for _ in range(50)]

    def test_most_predicates_may_be_asked(self) -> None:
        maker = PredicateMaker(COLUMNS, random.Random(4))
        assert sum(disallowed_call(maker.draw().clause) is None for _ in range(200)) > 150

    def test_no_defect(self, tmp_path: Path) -> None:
        outcome = asking.ask_table(6, str(tmp_path), questions=60)
        assert (outcome.defects, outcome.checks) == ((), 60)

    def test_a_wrong_answer_is_a_defect(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(asking, "_counted", lambda source, clause: 10**6)
        outcome = asking.ask_table(6, str(tmp_path), questions=60)
        assert "but DuckDB counts 1000000" in outcome.defects[0]


class TestFiles:
    """``fuzz files``."""

    def test_no_defect(self, models: Path, tmp_path: Path) -> None:
        outcome = loading.damage_files(models, 1, str(tmp_path), files=40)
        assert (outcome.defects, outcome.checks) == ((), 40)

    def test_answers_that_are_no_counts(self, models: Path) -> None:
        questions_of_model = dict.fromkeys(questions(), lambda model: (0.0, float("nan"), 1.0))
        result, defects = loading.check_file(models / "columns.countless", questions_of_model, np.random.default_rng(0))
        assert (result, any("nan" in defect for defect in defects)) == ("answered", True)

    def test_an_exception_of_another_kind(self, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(path: Any) -> Estimator:
            raise ZeroDivisionError("by zero")

        monkeypatch.setattr(Estimator, "load", fail)
        _, defects = loading.check_file(models / "columns.countless", questions(), np.random.default_rng(0))
        assert defects[0].startswith("load: ZeroDivisionError: by zero")


def test_an_empty_array_is_spoiled_like_any_other() -> None:
    data = archived({"all.safetensors": save_arrays({"none": np.zeros((0, 3), dtype=np.float32)})})
    for seed in range(60):
        assert spoiled_arrays(data, np.random.default_rng(seed))


def test_a_compiler_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no compiler clang-0: install it, or name another with --compiler"):
        build_sanitized(tmp_path, "clang-0")


def test_compiled_code(models: Path, tmp_path: Path) -> None:
    """Without sanitizers: the answers are those of the slow twins."""
    outcome = compiled_code.run_compiled_code(models, 1, str(tmp_path), rounds=6)
    assert (outcome.defects, outcome.checks) == ((), 36)


class TestKill:
    """``fuzz kill``, of the command that is over soonest."""

    def test_a_killed_command(self, models: Path, tmp_path: Path) -> None:
        model, before = tmp_path / "model.countless", (models / "mixed.countless").read_bytes()
        model.write_bytes(before)
        words = ("strip", "model.countless", "-o", "model.countless")
        assert killing.run_command(words, tmp_path, 0.0) is None
        assert killing._broken(model, before, killed=True) == []
        assert killing.run_command(words, tmp_path, None) == 0
        assert killing._undone(model, before, killing.ACTIONS["strip"]) == []
        assert killing._strays(tmp_path) == []

    def test_defects(self, models: Path, tmp_path: Path) -> None:
        model, before = tmp_path / "model.countless", (models / "mixed.countless").read_bytes()
        assert killing._broken(model, before, killed=True) == ["the model file is lost"]
        model.write_bytes(before[:-100])
        assert "neither the old one nor a whole new one" in killing._broken(model, before, killed=True)[0]
        (tmp_path / "model.countless.x.partial").touch()
        assert killing._strays(tmp_path) == ["these files are left: model.countless.x.partial"]

    def test_without_ray(self, models: Path, tmp_path: Path) -> None:
        """Seeds mean the same commands with and without it."""
        seed = list(killing.ACTIONS).index("fit on Ray")
        outcome = killing.kill_once(models, None, seed, str(tmp_path))
        assert (outcome.result, outcome.checks, outcome.defects) == ("fit on Ray: without Ray", 0, ())


class TestConcurrency:
    """``fuzz concurrency``."""

    def test_threads_and_forks(self, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sharing, "PREDICATES", 5)
        monkeypatch.setattr(sharing, "ROUNDS", 1)
        outcome = sharing.share_estimator(models, 1, str(tmp_path), spawn=False)
        assert (outcome.result, outcome.defects) == ("mixed", ())
        assert outcome.checks == sharing.THREADS * (5 + len(questions()))

    def test_a_difference_is_a_defect(self) -> None:
        (defect,) = sharing._differences("a thread", {"q": "1.0"}, {"q": "1.0000000000000002"})
        assert defect == "a thread, q: 1.0, not 1.0000000000000002"
