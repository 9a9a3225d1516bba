"""The counts beside a model, from a table to an answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import countless
from countless import Estimator, Network
from countless.data.sources.source import Source
from countless.errors import ModelFileError
from countless.store import PAIRS, StoredSummary
from countless.workload import mixed_clauses

EXACT = [
    "age = 40",
    "age > 50 AND married",
    "age <= 30 AND NOT married",
    "city IS NULL",
    "city IS NOT NULL AND married IS NOT NULL",
    "city IN ('Rome', 'New York') AND \"since when\" < DATE '2020-01-20'",
    "city NOT IN ('Oslo') AND score >= 1.25",
    "age = 20 OR married",
    "age < 30 OR (city = 'Oslo' AND NOT age = 66)",
    "upper(city) LIKE 'NEW %' OR age % 10 = 0",
    "married AND (age BETWEEN 20 AND 30 OR age > 60)",
    "NOT (age > 40 AND city = 'Rome')",
    "city = 'Paris' AND married AND age > 20",
]


@pytest.mark.parametrize("where", EXACT)
def test_one_and_two_columns_are_counted(estimator: Estimator, people: Path, where: str) -> None:
    (truth,) = Source.open(people).counts([where])
    for answer in (estimator.estimate(where), *estimator.estimate_many([where] * 20)):
        assert (answer.rows, answer.low, answer.high) == (truth, truth, truth)
        assert answer.forward_rows == 0
        assert answer.exact
    assert estimator.estimate(where, summary=False).forward_rows > 0 or truth == 0


def test_what_the_model_answers_in_full_is_still_an_estimate(estimator: Estimator) -> None:
    """Only a count has no error bar: three columns are not counted, though nothing was sampled."""
    answer = estimator.estimate("city = 'Oslo' AND married AND age > 30")
    assert (answer.exact, answer.sampled) == (False, False)
    assert answer.low < answer.high
    counted = estimator.distribution("age", "married", bins=5)
    assert (counted.counted, counted.sampled) == (True, False)


def test_no_answer_leaves_what_is_possible(estimator: Estimator, people: Path) -> None:
    source = Source.open(people)
    clauses = mixed_clauses(estimator.schema, source, 150, seed=5)
    for where, truth in zip(clauses, source.counts(clauses), strict=True):
        answer = estimator.estimate(where)
        explanation = estimator.explain(where)
        assert answer.low <= answer.rows <= answer.high
        if all(box.counted for box in explanation.boxes):
            assert answer.rows == truth


def test_adult() -> None:
    estimator = countless.fit(
        "adult",
        columns=["age", "workclass", "capital_gain", "sex"],
        epochs=1,
        calibrate=False,
        network=Network(16, 1, 8),
        evidence="none",
    )
    clauses = [
        "age BETWEEN 30 AND 40",
        "capital_gain > 5000",
        "workclass = 'Private' AND sex = 'Female'",
        "workclass IS NULL AND age > 60",
        "age > 60 OR sex = 'Male'",
    ]
    for where, truth in zip(clauses, Source.open("adult").counts(clauses), strict=True):
        answer = estimator.estimate(where)
        assert (answer.rows, answer.low, answer.high) == (truth, truth, truth)


def test_only_particles_reads_them(estimator: Estimator) -> None:
    where = "age > 50 AND married"
    for method in ("exact", "skipping", "progressive"):
        assert estimator.estimate(where, method=method) != estimator.estimate(where)
        with_counts, without = (estimator.estimate(where, method=method, summary=use) for use in (True, False))
        assert with_counts.rows == without.rows


def test_explain_tells(estimator: Estimator, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = estimator.explain("age > 50 AND married")
    assert "exact counts in the model file" in str(counted)
    assert counted.visited == ("age", "married")
    monkeypatch.setattr("countless.engine.fusion.pair_bounds.TRUSTED", 0.5)
    explanation = estimator.explain("age > 50 AND married AND city = 'Rome'")
    assert explanation.boxes[0].corrected
    assert f"by a factor of {explanation.boxes[0].factor:.3g} from the counts of " in str(explanation)
    never = estimator.explain("age > 50 AND married AND city = 'Rome'", method="exact")
    assert not never.boxes[0].corrected


def test_the_file_keeps_them(estimator: Estimator, model: Path, people: Path) -> None:
    counts = estimator.info()["counts"]
    assert counts == Estimator.load(model).info()["counts"]
    assert (counts["columns"], counts["pairs"]) == (5, 10)
    assert 0 < counts["bytes"] < 10_000
    where = "age > 50 AND married AND city = 'Rome'"
    assert Estimator.load(model).estimate(where).rows == estimator.estimate(where).rows


def test_a_model_without_them(estimator: Estimator, people: Path) -> None:
    bare = Estimator(estimator.schema, replace(estimator._sections, summaries={}))
    assert bare.info()["counts"] is None
    assert bare.info()["parameters"] == estimator.info()["parameters"]
    for where in EXACT:
        assert bare.estimate(where).rows == estimator.estimate(where, summary=False).rows
    small = Network(hidden=8, blocks=0, embedding=4)
    fitted = countless.fit(
        people, exclude="id", epochs=1, network=small, summary=False, calibrate=False, evidence="none"
    )
    assert fitted.info()["counts"] is None


def test_damaged_counts(estimator: Estimator) -> None:
    arrays = dict(estimator._sections.summaries[PAIRS].arrays)
    for broken in (
        StoredSummary({**arrays, "pairs.cells": arrays["pairs.cells"][:-1]}),
        StoredSummary({**arrays, "pairs.sizes": np.zeros(3, dtype=np.int64)}),
        StoredSummary({}),
    ):
        with pytest.raises(ModelFileError, match="fit"):
            Estimator(estimator.schema, replace(estimator._sections, summaries={PAIRS: broken}))
