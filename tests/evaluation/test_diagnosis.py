"""Faults that were planted are found, and named; figures made by hand come out as they were made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pytest

from countless import DataError, Estimate, Estimator, Network
from countless.data.sources.source import Source, connect
from countless.estimator.fitting.fit import fit
from countless.evaluation.diagnosis.answered import AnsweredQuery, DiagnosedQuery, Settled
from countless.evaluation.diagnosis.convergence import SEEDS, ConvergenceLimits, settle
from countless.evaluation.diagnosis.diagnosis import Diagnosis, diagnose
from countless.evaluation.diagnosis.groups import by_direction, by_filters, by_truth
from countless.evaluation.diagnosis.questions import filters_of, usual_filters
from countless.evaluation.diagnosis.suspects import suspect_columns, suspect_pairs
from countless.query.parsing.conjuncts import Conjunct
from countless.workload import Query
from tests.texts import URL, random_estimator


def changed(people: Path, folder: Path, column: str, value: str) -> Path:
    """The people with another value in one column."""
    path = folder / f"{column}.parquet"
    connect().execute(f"COPY (SELECT * REPLACE ({value} AS {column}) FROM '{people}') TO '{path}'")
    return path


@pytest.fixture(scope="module")
def paired_anew(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Now the young are married, not the old: each column alone is nearly as before, and every other pair."""
    married = "CASE WHEN age <= 40 THEN hash(id, 3) % 4 > 0 ELSE hash(id, 3) % 8 = 0 END"
    return changed(people, tmp_path_factory.mktemp("anew"), "married", married)


@pytest.fixture(scope="module")
def of_a_pair(estimator: Estimator, paired_anew: Path) -> Diagnosis:
    return diagnose(estimator, paired_anew, queries=300)


class TestAPlantedPair:
    def test_is_the_one_that_stands_out(self, of_a_pair: Diagnosis) -> None:
        assert [item.columns for item in of_a_pair.pairs if item.stands_out] == [("age", "married")]
        assert of_a_pair.pairs[0].factor > 1.5
        assert {item.columns for item in of_a_pair.columns if item.stands_out} == {("age",), ("married",)}

    def test_is_to_blame_for_the_worst(self, of_a_pair: Diagnosis) -> None:
        assert len(of_a_pair.worst) == 20
        assert of_a_pair.blamed_columns[0][0] == ("age", "married")
        assert of_a_pair.blamed_columns[0][1] >= 18
        first = of_a_pair.worst[0]
        assert first.answered.q_error == max(item.q_error for item in of_a_pair.answers)
        assert first.blame is not None
        assert all(any(name in text for text in first.blame.filters) for name in ("age", "married"))
        assert first.blame.share >= 0.5

    def test_the_blame_is_the_tables_own_count(self, of_a_pair: Diagnosis, paired_anew: Path) -> None:
        blames = [item.blame for item in of_a_pair.worst if item.blame is not None]
        counts = Source.open(paired_anew).counts([" AND ".join(blame.filters) for blame in blames])
        assert [blame.truth for blame in blames] == counts

    def test_without_it_nothing_of_the_kind_is_found(
        self, estimator: Estimator, people: Path, of_a_pair: Diagnosis
    ) -> None:
        sound = diagnose(estimator, people, queries=300)
        assert ("age", "married") not in [item.columns for item in sound.pairs if item.stands_out]
        assert ("age", "married") not in [columns for columns, times in sound.blamed_columns if times > 2]
        assert sound.q_error["p95"] < of_a_pair.q_error["p95"] / 1.5

    def test_again_it_is_the_same(self, estimator: Estimator, paired_anew: Path, of_a_pair: Diagnosis) -> None:
        assert diagnose(estimator, paired_anew, queries=300).to_json(answers=True) == of_a_pair.to_json(answers=True)


def test_a_planted_column_is_to_blame_alone(estimator: Estimator, people: Path, tmp_path: Path) -> None:
    score = "CASE WHEN hash(id, 5) % 20 = 0 THEN score ELSE 0.25 END::DECIMAL(4, 2)"
    diagnosis = diagnose(estimator, changed(people, tmp_path, "score", score), queries=200)
    assert diagnosis.columns[0].columns == ("score",)
    assert diagnosis.blamed_columns[0][0] == ("score",)
    assert not any(item.stands_out for item in diagnosis.pairs if item.certain > 0.2)


def test_what_only_three_columns_show() -> None:
    """Any two of x, y, z are as independent as ever; the third follows from them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(2, size=2000) for name in "vwxyz"})
    estimator = fit(table, epochs=8, batch=100, network=Network(hidden=16, blocks=1, embedding=4), evidence="none")
    diagnosis = diagnose(estimator, table.assign(z=table.x ^ table.y), queries=100, filters=(4, 5))
    assert {len(item.question.filters) for item in diagnosis.answers} == {4, 5}
    assert {columns for columns, _ in diagnosis.blamed_columns} == {("x", "y", "z")}


class TestWhoseErrorItIs:
    def test_exact_answers_have_no_sampler_error(self, estimator: Estimator, people: Path) -> None:
        diagnosis = diagnose(estimator, people, queries=50, filters=(1, 2))
        assert diagnosis.model_answer_counts == {"exact": 50, "settled": 0, "moving": 0}
        assert diagnosis.sampler_error["max"] == 1.0
        assert diagnosis.model_error == diagnosis.q_error
        assert diagnosis.samplers == 0

    @pytest.mark.parametrize("particles", [1, 2])
    def test_too_few_particles_are_found_out(self, estimator: Estimator, people: Path, particles: int) -> None:
        usual = diagnose(estimator, people, queries=300, filters=(5, 5))
        diagnosis = diagnose(estimator, people, queries=300, filters=(5, 5), particles=particles)
        assert diagnosis.sampler_error["p99"] > 1.8 > 1.1 > usual.sampler_error["p99"]
        assert diagnosis.samplers > 10 > usual.samplers
        assert [item.model_answer.rows for item in diagnosis.answers] == pytest.approx(
            [item.model_answer.rows for item in usual.answers], rel=0.05
        )
        by_sampler = [item.answered.sampler_error > item.answered.model_error for item in diagnosis.worst]
        assert [item.blame is None for item in diagnosis.worst] == by_sampler
        assert sum(by_sampler) >= 5

    def test_the_parts_make_the_whole(self, estimator: Estimator, people: Path) -> None:
        for item in diagnose(estimator, people, queries=30, particles=2).answers:
            parts = math.log(item.sampler_error), math.log(item.model_error)
            whole = math.log(item.q_error)
            assert min(abs(sum(parts) - whole), abs(abs(parts[0] - parts[1]) - whole)) < 1e-9


class Scripted:
    """Answers that depend on nothing but the particles and the seed."""

    def __init__(self, answers: dict[int, tuple[float, float]], exact_from: int = 10**9, orders: int = 1) -> None:
        self._answers, self._exact_from, self.orders = answers, exact_from, orders
        self.asked: list[int] = []

    def estimate_many(self, clauses: Sequence[str], *, method: str, particles: int, seed: int) -> list[Estimate]:
        self.asked.append(particles)
        rows = self._answers[particles][SEEDS.index(seed)]
        return [answer(rows, exact=particles >= self._exact_from) for _ in clauses]


def answer(rows: float, exact: bool = False) -> Estimate:
    return Estimate("a = 1", rows, rows / 1000, rows, rows, 0.9, "particles", False, 1.0, sampled=not exact)


class TestSettling:
    @pytest.mark.parametrize(
        ("walks", "how", "rows", "particles"),
        [
            ({1024: (100, 101)}, "settled", 100.5, 1024),
            ({1024: (90, 110), 4096: (99, 100)}, "settled", 99.5, 4096),
            ({1024: (0, 0), 4096: (400, 401), 16384: (404, 404)}, "settled", 404, 16384),  # both missed it at first
            ({1024: (50, 100), 4096: (50, 100), 16384: (60, 100)}, "moving", 80, 16384),
            ({1024: (90, 110), 4096: (105, 105)}, "exact", 105, 4096),
        ],
    )
    def test_until_it_stops_moving(
        self, walks: dict[int, tuple[float, float]], how: str, rows: float, particles: int
    ) -> None:
        scripted = Scripted(walks, 4096 if how == "exact" else 10**9)
        (settled_box,) = self.settled(scripted, answer(100))
        assert (settled_box.how, settled_box.rows, settled_box.particles) == (how, rows, particles)
        assert scripted.asked == [level for level in walks for _ in SEEDS]

    def test_less_than_a_row_is_nothing(self) -> None:
        (settled_box,) = self.settled(Scripted({1024: (0.01, 0.9)}), answer(0.3))
        assert settled_box.how == "settled"

    def test_orders_share_the_particles(self) -> None:
        scripted = Scripted({3072: (100, 100)}, orders=3)
        (settled_box,) = self.settled(scripted, answer(100))
        assert (settled_box.particles, scripted.asked) == (1024, [3072, 3072])

    def test_what_is_exact_is_not_asked_again(self) -> None:
        scripted = Scripted({})
        assert self.settled(scripted, answer(7, exact=True)) == [Settled(7, "exact")]
        assert scripted.asked == []

    @staticmethod
    def settled(scripted: Scripted, first: Estimate) -> list[Settled]:
        question = DiagnosedQuery("a = 1", (), 100)
        estimator = cast(Estimator, scripted)
        return settle(estimator, [question], [first], ConvergenceLimits(), None, lambda stage, done, total: None)


def answered(truth: int, estimate: float, *columns: str) -> AnsweredQuery:
    filters = tuple(Conjunct(f"{name} = 1", (name,)) for name in columns)
    return AnsweredQuery(DiagnosedQuery("", filters, truth), estimate, Settled(estimate, "exact"))


class TestGroups:
    def test_by_filters(self) -> None:
        groups = by_filters([answered(10, 20, "a", "b"), answered(10, 10, "a"), answered(10, 40, "b", "c")])
        assert [(group.label, group.queries) for group in groups] == [("1", 1), ("2", 2)]
        assert groups[1].q_error == {"p50": 3.0, "p95": 3.9, "p99": 3.98, "max": 4.0}
        assert groups[1].share == 2 / 3

    def test_by_truth(self) -> None:
        groups = by_truth([answered(truth, 1) for truth in (0, 1, 9, 10, 99, 100, 12_345)])
        assert [(group.label, group.queries) for group in groups] == [
            ("0", 1),
            ("1-9", 2),
            ("10-99", 2),
            ("100-999", 1),
            ("10,000-99,999", 1),
        ]
        assert groups[1].q_error["max"] == 9

    def test_by_direction(self) -> None:
        groups = by_direction([answered(10, 20), answered(10, 5), answered(10, 1), answered(0, 0.9), answered(3, 3)])
        assert [(group.label, group.queries, group.q_error["max"]) for group in groups] == [
            ("over", 1, 2.0),
            ("even", 2, 1.0),
            ("under", 2, 10.0),
        ]


class TestSuspects:
    def test_a_column_that_doubles_the_error(self) -> None:
        answers = [answered(10, 20, "a", "b"), answered(10, 10, "b", "c")] * 30
        (first, last) = suspect_columns(answers, "abc")  # every query has b
        assert (first.columns, last.columns, first.queries) == (("a",), ("c",), 30)
        assert [first.factor, last.factor] == pytest.approx([2.0, 0.5])
        assert first.standard_error == pytest.approx(0, abs=1e-9)
        assert first.stands_out
        assert not last.stands_out

    def test_the_standard_error_is_that_of_two_means(self) -> None:
        rng = np.random.default_rng(0)
        errors = {"a": np.exp(rng.normal(2, 0.5, 400)), "b": np.exp(rng.normal(1, 0.1, 100))}
        answers = [answered(1, float(error), name) for name in "ab" for error in errors[name]]
        (suspect,) = (item for item in suspect_columns(answers, "ab") if item.columns == ("a",))
        logs = [np.log(np.maximum(errors[name], 1)) for name in "ab"]
        assert suspect.excess == pytest.approx(logs[0].mean() - logs[1].mean())
        welch = math.sqrt(sum(values.var() / len(values) for values in logs))
        assert suspect.standard_error == pytest.approx(welch, rel=0.01)

    def test_more_filters_are_no_columns_fault(self) -> None:
        more = [answered(10, 40, "a", "b", "c"), answered(10, 40, "a", "c", "d"), answered(10, 40, "b", "c", "d")]
        fewer = [answered(10, 10, "b"), answered(10, 10, "d"), answered(10, 10, "a")]
        for item in suspect_columns(more * 30 + fewer * 30, "abcd"):
            assert item.excess == pytest.approx(0, abs=1e-9)

    def test_a_pair_counts_beyond_its_columns(self) -> None:
        """Errors of 2 with a, 3 with b, and of five times that with both: c only happens to be there."""
        errors = {"axy": 20, "bxy": 30, "abx": 300, "aby": 300, "acx": 20, "bcx": 30, "cxy": 10, "abc": 300, "acy": 20}
        answers = [answered(10, rows, *columns) for columns, rows in errors.items() for _ in range(30)]
        factors = {item.columns: item.factor for item in suspect_pairs(answers, "ab")}
        assert factors == {("a", "b"): pytest.approx(5.0)}

    def test_too_few_tell_nothing(self) -> None:
        answers = [answered(10, 20, "a", "b")] * 19 + [answered(10, 10, "b", "c")] * 100
        assert suspect_columns(answers, "abc") == ()
        assert suspect_pairs(answers, "abc") == ()


class TestWorkloads:
    CLAUSES = ("SELECT * FROM people WHERE age > 50 AND MARRIED", "city = 'Rome' OR age < 20", "TRUE")

    def test_text_is_taken_apart(self, estimator: Estimator, people: Path) -> None:
        truths = Source.open(people).counts(["age > 50 AND married", *self.CLAUSES[1:]])
        queries = [Query(where, rows) for where, rows in zip(self.CLAUSES, truths, strict=True)]
        diagnosis = diagnose(estimator, people, workload=queries)
        assert [item.question.columns for item in diagnosis.answers] == [("age", "married"), ("city", "age"), ()]
        assert [group.label for group in diagnosis.by_filters] == ["0", "1", "2"]
        assert (diagnosis.columns, diagnosis.pairs) == ((), ())

    def test_counts_of_another_table(self, estimator: Estimator, people: Path) -> None:
        with pytest.raises(
            DataError, match="the workload has 1 rows and the table 3,000 where age > 0: give the table"
        ):
            diagnose(estimator, people, workload=[Query("age > 0", 1)])

    def test_an_empty_one(self, estimator: Estimator, people: Path) -> None:
        with pytest.raises(DataError, match="the workload holds no queries: make one with"):
            diagnose(estimator, people, workload=[])

    def test_names_are_the_models(self, estimator: Estimator) -> None:
        (part,) = filters_of(estimator.schema, '"SINCE WHEN" IS NULL')
        assert part.columns == ("since when",)

    def test_what_no_row_satisfies(self, estimator: Estimator, people: Path) -> None:
        diagnosis = diagnose(estimator, people, workload=[Query("age > 0 AND FALSE", 0), Query("TRUE", 3000)])
        assert [item.q_error for item in diagnosis.answers] == [1, 1]


class TestTables:
    def test_of_text_alone(self, people: Path) -> None:
        with pytest.raises(DataError, match="only columns are diagnosed: use countless evaluate --patterns"):
            diagnose(random_estimator(URL), people)

    def test_of_text_and_columns(self, estimator: Estimator, people: Path) -> None:
        """Its columns are diagnosed; a workload's queries about text are ignored."""
        both = text_beside(estimator)
        with_urls = connect().sql(f"SELECT *, 'www.a/' || age AS url FROM '{people}'")
        drawn = diagnose(both, with_urls, queries=30)
        assert {name for item in drawn.answers for name in item.question.columns} <= set(estimator.columns)
        queries = [Query("url LIKE 'www%' AND age > 0", 3000), Query("age > 0", 3000)]
        diagnosis = diagnose(both, with_urls, workload=queries)
        assert (len(diagnosis.answers), diagnosis.passed_over) == (1, 1)
        with pytest.raises(DataError, match="every query of the workload asks about text"):
            diagnose(both, with_urls, workload=queries[:1])

    def test_without_the_models_columns(self, estimator: Estimator) -> None:
        with pytest.raises(DataError, match="the table lacks the model's columns age, city"):
            diagnose(estimator, pd.DataFrame({"a": [1]}))

    def test_filters_of_small_and_large_tables(self, estimator: Estimator) -> None:
        wide = replace(estimator.schema, columns=estimator.schema.coded * 2)
        assert (usual_filters(estimator.schema), usual_filters(wide)) == ((1, 5), (5, 12))


def text_beside(estimator: Estimator) -> Estimator:
    """The estimator with a text column that nobody trained."""
    texts = random_estimator(URL)
    networks = {**estimator._sections.networks, **texts._sections.networks}
    schema = replace(estimator.schema, columns=(*estimator.schema.columns, URL))
    return Estimator(schema, replace(estimator._sections, networks=networks))
