"""One interface: every registered baseline tells what it is, what it keeps, and answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from countless.data.columns.schema import Schema
from countless.data.sources.source import Source
from countless.errors import CountlessError, ServerError, UnsupportedQueryError
from countless.estimator.answers.estimate import Estimate
from countless.estimator.estimator import Estimator
from countless.evaluation.baselines.base import Baseline, answered
from countless.evaluation.baselines.compare import SLOW_QUERIES, compare
from countless.evaluation.baselines.registry import BASELINES, Material, check, make
from countless.evaluation.baselines.row_sample import RowSample
from countless.evaluation.baselines.scan import Scan
from countless.workload import Query
from tests.evaluation.baselines.servers import need_postgres


@pytest.fixture(scope="module")
def material(people: Path, estimator: Estimator) -> Iterator[Material]:
    with Material(people, estimator.schema) as material:
        yield material


@pytest.mark.parametrize("name", BASELINES)
def test_the_interface(name: str, material: Material) -> None:
    if name.startswith("postgres"):
        need_postgres()
    baseline = make(name, material)
    assert isinstance(baseline, Baseline)
    assert (baseline.method, baseline.rows) == (name, 3000)
    assert 100 < baseline.bytes < 200_000
    assert baseline.estimate("TRUE").rows == pytest.approx(3000)
    answer = baseline.estimate("age > 40 AND \"since when\" >= DATE '2020-01-10'")
    assert 0 <= answer.low <= answer.rows <= answer.high <= 3000
    assert answer.method == name
    assert answer.ms > 0
    baseline.close()


def test_a_name_may_tell_the_share(material: Material) -> None:
    small, large = make("row-sample-0.1%", material), make("row-sample-50%", material)
    assert isinstance(small, RowSample)
    assert small.estimate("TRUE").rows == 3000
    assert large.bytes / small.bytes == pytest.approx(500, rel=0.3)  # strings are not all of one length


@pytest.mark.parametrize("name", ["magic", "row-sample-0%", "row-sample-101%", "row-sample-x%", ""])
def test_unknown_names(name: str) -> None:
    with pytest.raises(CountlessError, match=r"unknown baseline .*independence, row-sample"):
        check(["scan", name])


def test_the_scan_is_the_truth(people: Path) -> None:
    clauses = ["age > 40", "city IS NULL"]
    scan = Scan(str(people))
    assert [scan.estimate(where).rows for where in clauses] == Source.open(people).counts(clauses)
    assert scan.bytes == people.stat().st_size
    assert Scan(str(people.parent / "*.parquet")).bytes == people.stat().st_size
    assert Scan(pd.DataFrame({"n": [1, 2], "t": ["a", "bcd"]})).bytes == 2 * 8 + 4


class Half(Baseline):
    """Half of the rows, and no opinion of cities."""

    method = "half"
    slow = True

    def __init__(self) -> None:
        self.rows, self.bytes, self.closed = 3000, 1, False

    def estimate(self, where: str) -> Estimate:
        if "city" in where:
            raise UnsupportedQueryError("knows no cities", where, (0, 4))
        return answered(self.method, where, self.rows, (0.5, 0.0, 1.0), 0.0)

    def close(self) -> None:
        self.closed = True


class TestCompare:
    def test_what_is_registered_is_compared(self, material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
        half = Half()
        monkeypatch.setitem(BASELINES, "half", lambda material: half)
        queries = [Query("age > 40", 1500), Query("city = 'Oslo'", 3), Query("TRUE", 3000)]
        (comparison,) = compare(check(["half"]), material, queries)
        assert (comparison.asked, comparison.answered, comparison.problem, comparison.bytes) == (
            3,
            2,
            "knows no cities",
            1,
        )
        assert comparison.evaluation is not None
        assert comparison.evaluation.q_errors == [1, 2]
        assert half.closed
        (comparison,) = compare(["half"], material, queries * SLOW_QUERIES)
        assert comparison.asked == SLOW_QUERIES

    def test_one_that_cannot_be_had_is_a_problem_and_no_error(
        self, material: Material, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def none(material: Material) -> Baseline:
            raise ServerError("no server: install one")

        monkeypatch.setitem(BASELINES, "none", none)
        missing, scan = compare(["none", "scan"], material, [Query("TRUE", 3000)])
        data = missing.to_json()
        assert (data["method"], data["problem"], data["answered"]) == ("none", "no server: install one", 0)
        assert (data["q_error"], data["bytes"]) == (None, None)
        assert scan.to_json()["q_error"]["max"] == 1
        assert set(data) == set(scan.to_json())

    def test_a_table_of_text_only(self, material: Material) -> None:
        schema = replace(material.schema, columns=())
        assert isinstance(schema, Schema)
        (comparison,) = compare(["independence"], Material(material.table, schema), [Query("TRUE", 3000)])
        assert comparison.problem is not None
        assert "is not for text columns" in comparison.problem
