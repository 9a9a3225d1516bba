"""Rules of counts: the cases mean what they say, a table that counts keeps every rule, and breaking one is noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from countless.data.sources.source import Source
from countless.estimator.answers.estimate import Estimate
from countless.estimator.estimator import Estimator
from countless.evaluation.rules import RuleViolations, measure
from countless.evaluation.rules.cases import Drawing
from countless.evaluation.rules.measure import RULES

COUNT = 60
SAME, WHOLE, EMPTY, MORE, TIGHTER, SPLIT = (name for name, _, _ in RULES)

Change = Callable[[str, float], float]


class Counter:
    """Answers with the table's own counts, as ``change`` changes them."""

    def __init__(self, people: Path, change: Change = lambda where, rows: rows) -> None:
        self._source, self._change = Source.open(people), change

    def estimate(self, where: str) -> Estimate:
        return self.estimate_many([where])[0]

    def estimate_many(self, clauses: Iterable[str]) -> list[Estimate]:
        asked = list(clauses)
        counts = self._source.counts(asked)
        return [
            Estimate(where, rows := self._change(where, float(count)), 0.0, rows, rows, 0.9, "scan", True, 0.0)
            for where, count in zip(asked, counts, strict=True)
        ]


def findings(
    estimator: Estimator, people: Path, change: Change = lambda where, rows: rows
) -> dict[str, RuleViolations]:
    counter = Counter(people, change)
    measurements = measure(counter, Counter(people), estimator.schema, people, COUNT, 9)
    return {finding.rule: finding for finding in measurements}


def test_true_counts_keep_every_rule(estimator: Estimator, people: Path) -> None:
    results = findings(estimator, people)
    assert {name: (item.cases, item.broken) for name, item in results.items()} == {
        name: (COUNT, 0) for name, _, _ in RULES
    }


def test_most_cases_say_something(estimator: Estimator, people: Path) -> None:
    source = Source.open(people)
    drawing = Drawing(estimator.schema, source, COUNT, 3)
    wide, narrow = zip(*drawing.more(), strict=True)
    assert sum(a != b for a, b in zip(source.counts(wide), source.counts(narrow), strict=True)) > COUNT / 2
    for whole, left, right in drawing.split():
        counts = source.counts([f"({whole})", f"({left}) AND ({right})", f"({left}) OR ({right})"])
        assert counts[1] == 0
        assert counts[0] == counts[2]


class TestBreakingIsNoticed:
    def test_another_answer_when_asked_again(self, estimator: Estimator, people: Path) -> None:
        seen: list[str] = []

        def drift(where: str, rows: float) -> float:
            seen.append(where)
            return rows + len(seen)

        results = findings(estimator, people, drift)[SAME]
        assert results.broken == results.cases
        assert results.worst >= results.median > 0

    def test_a_fresh_estimator_with_another_answer(self, estimator: Estimator, people: Path) -> None:
        other = Counter(people, lambda where, rows: rows + 1)
        measurements = measure(Counter(people), other, estimator.schema, people, COUNT, 9)
        assert measurements[0].broken == COUNT
        assert all(finding.broken == 0 for finding in measurements[1:])

    def test_each_filter_takes_a_little(self, estimator: Estimator, people: Path) -> None:
        results = findings(estimator, people, lambda where, rows: rows * 0.9 ** where.count("AND"))
        assert results[WHOLE].broken > 0
        assert results[MORE].broken == 0

    def test_an_impossible_filter_with_rows(self, estimator: Estimator, people: Path) -> None:
        results = findings(estimator, people, lambda where, rows: rows + 1e-9)
        assert results[EMPTY].broken == COUNT
        assert results[EMPTY].worst == pytest.approx(1e-9)

    def test_more_filters_more_rows(self, estimator: Estimator, people: Path) -> None:
        results = findings(estimator, people, lambda where, rows: (rows + 1) * 9 ** where.count("AND"))
        assert results[MORE].broken > COUNT / 2
        wide, narrow = results[MORE].examples[0].rows
        assert results[MORE].worst == (narrow - wide) / max(wide, 1)
        assert results[MORE].share == results[MORE].broken / COUNT

    def test_tighter_ranges_with_more_rows(self, estimator: Estimator, people: Path) -> None:
        total = estimator.rows
        results = findings(estimator, people, lambda where, rows: 0.0 if "IS NULL AND" in where else total - rows)
        assert results[TIGHTER].broken > COUNT / 2

    def test_parts_that_do_not_add_up(self, estimator: Estimator, people: Path) -> None:
        results = findings(estimator, people, lambda where, rows: rows**0.9)[SPLIT]
        assert results.broken > 0
        whole, left, right = results.examples[0].rows
        assert results.worst == abs(left + right - whole) / max(whole, 1)

    def test_parts_that_add_up_nearly(self, estimator: Estimator, people: Path) -> None:
        assert findings(estimator, people, lambda where, rows: rows + 0.4)[SPLIT].broken == 0
        assert findings(estimator, people, lambda where, rows: rows + 0.6)[SPLIT].broken > 0
        assert findings(estimator, people, lambda where, rows: rows * 1.005)[SPLIT].broken == 0


def test_a_model_keeps_the_rules_that_allow_no_exception(estimator: Estimator, people: Path, model: Path) -> None:
    measurements = measure(estimator, Estimator.load(model), estimator.schema, people, 100, 5)
    assert [item.broken for item in measurements[:3]] == [0, 0, 0]


def test_a_table_without_ranges_has_no_cases_of_them(estimator: Estimator, people: Path, tmp_path: Path) -> None:
    source = Source.open(people)
    source.run(f"COPY (SELECT married FROM {source.table}) TO '{tmp_path / 'few.parquet'}'")
    schema = type(estimator.schema)(
        3000, tuple(column for column in estimator.schema.coded if column.name == "married")
    )
    few = tmp_path / "few.parquet"
    measurements = measure(Counter(few), Counter(few), schema, few, 10, 0)
    assert [item.cases for item in measurements] == [10, 10, 10, 10, 0, 0]
    assert measurements[-1].share == 0
