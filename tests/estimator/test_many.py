"""Many clauses at once, and many threads at once, get the answers that each clause gets alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from countless import CountlessError, Estimate, Estimator, UnknownColumnError, col
from countless.data.sources.source import Source
from countless.estimator import batch
from countless.workload import mixed_clauses

ODD = [
    "city = 'Rome' OR age < 20",
    "upper(city) LIKE 'R%' AND married",
    "age BETWEEN 20 AND 30 AND age <> 25",
    "SELECT * FROM people WHERE age > 30 AND score >= 0.5",
    "TRUE",
    "age < 0",
]


@pytest.fixture(scope="module")
def clauses(estimator: Estimator, people: Path) -> list[str]:
    return [*mixed_clauses(estimator.schema, Source.open(people), 150, 5), *ODD]


def timeless(answers: list[Estimate]) -> list[Estimate]:
    return [replace(answer, ms=0.0) for answer in answers]


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_a_batch_answers_as_one_by_one(estimator: Estimator, clauses: list[str], threads: int | None) -> None:
    alone = [estimator.estimate(clause) for clause in clauses]
    assert timeless(estimator.estimate_many(clauses, threads=threads)) == timeless(alone)


def test_batches_follow_each_other(estimator: Estimator, clauses: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = timeless(estimator.estimate_many(clauses))
    monkeypatch.setattr(batch, "MAX_GROUP", 7)
    assert timeless(estimator.estimate_many(iter(clauses))) == expected


@pytest.mark.parametrize("method", ["particles", "skipping", "exact"])
def test_every_method_takes_many(estimator: Estimator, method: str) -> None:
    some = ["age < 30", "age < 30 AND married"]
    alone = [estimator.estimate(clause, method=method, particles=50) for clause in some]
    assert timeless(estimator.estimate_many(some, method=method, particles=50)) == timeless(alone)


def test_predicates_and_text_mix(estimator: Estimator) -> None:
    one, two = estimator.estimate_many([col("age") > 30, "age > 30"])
    assert one.rows == two.rows


def test_none_at_all(estimator: Estimator) -> None:
    assert estimator.estimate_many([]) == []


def test_a_bad_clause_is_an_error_or_an_answer_of_its_own(estimator: Estimator) -> None:
    clauses = ["age > 30", "agee > 30 AND married", "married"]
    with pytest.raises(UnknownColumnError, match="did you mean"):
        estimator.estimate_many(clauses)
    first, bad, last = estimator.answer_many(clauses)
    assert isinstance(bad, CountlessError)
    assert isinstance(first, Estimate)
    assert isinstance(last, Estimate)
    assert last.rows == estimator.estimate("married").rows


def test_an_estimator_is_safe_to_share(model: Path, clauses: list[str]) -> None:
    """A fresh one, so that what is made when first needed is made by several threads at once."""
    expected = timeless([Estimator.load(model).estimate(clause) for clause in clauses])
    shared = Estimator.load(model)
    with ThreadPoolExecutor(6) as pool:
        answers = [pool.submit(lambda: timeless([shared.estimate(clause) for clause in clauses])) for _ in range(6)]
        assert all(answer.result() == expected for answer in answers)


def test_another_seed_is_another_sample(estimator: Estimator, clauses: list[str]) -> None:
    usual = estimator.estimate_many(clauses, particles=4)
    first, again, second = (estimator.estimate_many(clauses, particles=4, seed=seed) for seed in (1, 1, 2))
    assert timeless(first) == timeless(again)
    for one, other, third in zip(usual, first, second, strict=True):
        assert one.sampled == other.sampled
        assert one.sampled or one.rows == other.rows == third.rows
    assert [one.rows for one in first] != [one.rows for one in second]
