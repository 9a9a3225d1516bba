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
    found = measure(counter, Counter(people), estimator.schema, people, COUNT, 9)
    return {finding.rule: finding for finding in found}


def test_true_counts_keep_every_rule(estimator: Estimator, people: Path) -> None:
    found = findings(estimator, people)
    assert {name: (item.cases, item.broken) for name, item in found.items()} == {
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
        asked: list[str] = []

        def drift(where: str, rows: float) -> float:
            asked.append(where)
            return rows + len(asked)

        found = findings(estimator, people, drift)[SAME]
        assert found.broken == found.cases
        assert found.worst >= found.median > 0

    def test_a_fresh_estimator_with_another_answer(self, estimator: Estimator, people: Path) -> None:
        other = Counter(people, lambda where, rows: rows + 1)
        found = measure(Counter(people), other, estimator.schema, people, COUNT, 9)
        assert found[0].broken == COUNT
        assert all(finding.broken == 0 for finding in found[1:])

    def test_each_filter_takes_a_little(self, estimator: Estimator, people: Path) -> None:
        found = findings(estimator, people, lambda where, rows: rows * 0.9 ** where.count("AND"))
        assert found[WHOLE].broken > 0
        assert found[MORE].broken == 0

    def test_an_impossible_filter_with_rows(self, estimator: Estimator, people: Path) -> None:
        found = findings(estimator, people, lambda where, rows: rows + 1e-9)
        assert found[EMPTY].broken == COUNT
        assert found[EMPTY].worst == pytest.approx(1e-9)

    def test_more_filters_more_rows(self, estimator: Estimator, people: Path) -> None:
        found = findings(estimator, people, lambda where, rows: (rows + 1) * 9 ** where.count("AND"))
        assert found[MORE].broken > COUNT / 2
        wide, narrow = found[MORE].examples[0].rows
        assert found[MORE].worst == (narrow - wide) / max(wide, 1)
        assert found[MORE].share == found[MORE].broken / COUNT

    def test_tighter_ranges_with_more_rows(self, estimator: Estimator, people: Path) -> None:
        total = estimator.rows
        found = findings(estimator, people, lambda where, rows: 0.0 if "IS NULL AND" in where else total - rows)
        assert found[TIGHTER].broken > COUNT / 2

    def test_parts_that_do_not_add_up(self, estimator: Estimator, people: Path) -> None:
        found = findings(estimator, people, lambda where, rows: rows**0.9)[SPLIT]
        assert found.broken > 0
        whole, left, right = found.examples[0].rows
        assert found.worst == abs(left + right - whole) / max(whole, 1)

    def test_parts_that_add_up_nearly(self, estimator: Estimator, people: Path) -> None:
        assert findings(estimator, people, lambda where, rows: rows + 0.4)[SPLIT].broken == 0
        assert findings(estimator, people, lambda where, rows: rows + 0.6)[SPLIT].broken > 0
        assert findings(estimator, people, lambda where, rows: rows * 1.005)[SPLIT].broken == 0


def test_a_model_keeps_the_rules_that_allow_no_exception(estimator: Estimator, people: Path, model: Path) -> None:
    found = measure(estimator, Estimator.load(model), estimator.schema, people, 100, 5)
    assert [item.broken for item in found[:3]] == [0, 0, 0]


def test_a_table_without_ranges_has_no_cases_of_them(estimator: Estimator, people: Path, tmp_path: Path) -> None:
    source = Source.open(people)
    source.run(f"COPY (SELECT married FROM {source.table}) TO '{tmp_path / 'few.parquet'}'")
    schema = type(estimator.schema)(
        3000, tuple(column for column in estimator.schema.coded if column.name == "married")
    )
    few = tmp_path / "few.parquet"
    found = measure(Counter(few), Counter(few), schema, few, 10, 0)
    assert [item.cases for item in found] == [10, 10, 10, 10, 0, 0]
    assert found[-1].share == 0
