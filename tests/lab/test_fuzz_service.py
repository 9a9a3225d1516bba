"""Campaigns against a service, in short: hostile requests, and a soak while the model is replaced."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from countless import Estimator
from countless.cancellation import ComputationCancelledError, cancellable
from countless_lab.contests.soak import MANNERS
from countless_lab.fuzz import service as service_fuzz
from countless_lab.fuzz.hostile_requests import CLAUSES, hostile_request
from countless_lab.fuzz.service import _replies, attack_service
from countless_lab.fuzz.small_models import make_models
from tests.cli.test_cli import Run, run

__all__ = ["run"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    make_models(folder, ["mixed"])
    return folder


def test_a_service_under_hostile_requests(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_fuzz, "check_document", lambda service, seed: [])  # tests/serve/test_openapi.py
    outcome = attack_service(models, 3, str(tmp_path), requests=15)
    assert outcome.defects == ()
    assert outcome.checks == 15


def test_a_service_that_answers_otherwise_is_a_defect(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([(200, 1.0), (200, 2.0), (500, None)])
    monkeypatch.setattr(service_fuzz, "canary", lambda port, number: next(answers))
    monkeypatch.setattr(service_fuzz, "check_document", lambda service, seed: [])
    outcome = attack_service(models, 3, str(tmp_path), requests=2)
    assert [defect.rpartition(": ")[2] for defect in outcome.defects] == [
        "the canary was answered (200, 2.0) and not (200, 1.0)",
        "the canary was answered (500, None) and not (200, 1.0)",
    ]


def test_a_seed_makes_the_same_requests() -> None:
    one, two = ([hostile_request(np.random.default_rng([5, n])) for n in range(60)] for _ in range(2))
    assert one == two
    assert len({request.about for request in one}) > 30


def test_answers_on_one_connection() -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 422 No\r\nContent-Length: 3\r\n\r\n[1]"
    assert list(_replies(answer)) == [(200, b"{}"), (422, b"[1]")]


def test_automata_of_many_patterns_are_given_up(models: Path) -> None:
    estimator = Estimator.load(models / "mixed.countless")
    left = iter([True] * 5)
    with pytest.raises(ComputationCancelledError), cancellable(lambda: next(left, False)):
        estimator.sample(3, where=CLAUSES[4](30), stored=False)


def test_a_short_soak(run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "soak.json"
    result = run("bench", "soak", model, "--minutes", 0.08, "--clients", 6, "--replace-every", "1s", "-o", out)
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["failures"] == {}
    assert "failures  none" in result.out
    assert result.code == int(not record["is_level"])  # so short a time is all warm-up
    assert set(record["manners"]) <= set(MANNERS)
    assert record["files"]["replaced"] >= 2
    assert record["ms_p50"] <= record["ms_p99"]
    assert record["memory_mb_peak"] >= record["memory_mb_last"] > 1
    assert run("bench", "soak", tmp_path / "no.countless").code == 1
