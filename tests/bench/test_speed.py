"""The speed benchmark on a small model: what it measures is checked, not how fast it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from countless.baselines.scan import Scan
from countless.bench.methods import MANY, PARTICLES, contenders
from countless.bench.speed import (
    Measured,
    Options,
    measure,
    measure_many,
    one_thread,
    ratios,
    sub_predicates,
    throughput,
)
from countless.errors import MissingExtraError
from countless.estimator.estimator import Estimator
from countless.estimator.evaluate import random_workload
from tests.cli.test_cli import Run, run

__all__ = ["run"]

ONCE = Options(repeats=1, slow_queries=2, ten_filter_queries=1)


def test_every_contender_answers_the_same_queries(estimator: Estimator, people: Path) -> None:
    queries = random_workload(estimator.schema, people, 3, 0)
    asked = []
    for contender in contenders(estimator, people):
        found = measure(contender, queries, 2, lambda: asked.append(1))
        facts = found.to_json()
        assert facts["queries"] == 3
        assert facts["q_p50"] >= 1.0
        assert facts["ms_p50"] > 0
        if contender.name == "duckdb":
            assert facts["q_max"] == 1.0
        assert ("forward_rows" in facts) == (contender.name not in ("duckdb", "row-sample-1%"))
    assert len(asked) == 3 * len(contenders(estimator, people))


def test_the_scan_counts(people: Path) -> None:
    answer, rest = Scan(people).estimate("age < 30"), Scan(people).estimate("age >= 30")
    assert answer.rows + rest.rows == 3000
    assert answer.selectivity == answer.rows / 3000 > 0


def test_many_at_once_gives_the_same_answers(estimator: Estimator, people: Path) -> None:
    queries = random_workload(estimator.schema, people, 20, 1)
    own = contenders(estimator, people)[0]
    assert measure_many(estimator, queries, ONCE).q_errors == measure(own, queries, 1, lambda: None).q_errors


def test_throughput_takes_both_sides(estimator: Estimator) -> None:
    found = throughput(estimator, ["age < 30", "age < 30 AND married"], ONCE)
    assert found["clauses"] == 2
    assert found["ratio"] == pytest.approx(found["many_per_second"] / found["loop_per_second"])


def test_sub_predicates_of_ten_filters() -> None:
    parts = sub_predicates([f"c{n} = {n}" for n in range(10)])
    assert len(parts) == len(set(parts)) == 10 + 45 + 120 + 1
    assert parts[-1].count(" AND ") == 9


def test_ratios_compare_on_the_queries_that_both_answered() -> None:
    own = Measured(PARTICLES, [1.0, 1.0, 9.0, 9.0, 9.0], [1.0] * 5, [1] * 5)
    slow = Measured("slow", [50.0, 50.0], [3.0] * 2, [1] * 2)
    found = ratios({PARTICLES: own, "slow": slow, MANY: own})
    assert found["slow/particles"] == 50.0
    assert found["slow/particles q_p99"] == 3.0
    assert found["particles p99/p50"] == pytest.approx(1.0)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "threadpoolctl", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'countless\[bench\]'"):
        one_thread()


def test_the_command(run: Run, people: Path, model: Path) -> None:
    done = run("bench", "speed", people, model, "--queries", 4, "--slow-queries", 1, "--repeats", 1, "--json")
    assert done.code == 0
    facts = json.loads(done.out.splitlines()[-1])
    names = {PARTICLES, "skipping-100", "skipping-1000", "progressive-1000", "duckdb", "row-sample-1%", MANY}
    assert names <= set(facts["methods"])
    for found in facts["methods"].values():
        assert {"ms_p50", "ms_p99", "q_p50", "q_p99", "q_max"} <= set(found)
        assert all(np.isfinite(value) for value in found.values())
    assert facts["ratios"]["skipping-1000/particles"] > 0
    assert facts["process"]["torch_loaded"] is False
    assert "particles" in done.out.splitlines()[1]


def test_without_a_model_it_fits_one(run: Run, people: Path) -> None:
    done = run(
        "bench", "speed", people, "--exclude", "id", "--epochs", 1, "--queries", 2, "--slow-queries", 1, "--repeats", 1
    )
    assert done.code == 0
    assert "estimate_many" in done.out


def test_methods_can_be_chosen(run: Run, people: Path, model: Path) -> None:
    options = ("--queries", 2, "--repeats", 1, "--methods", "duckdb", "--json")
    facts = json.loads(run("bench", "speed", people, model, *options).out.splitlines()[-1])
    assert set(facts["methods"]) == {PARTICLES, "duckdb", MANY}
    done = run("bench", "speed", people, model, "--methods", "magic")
    assert done.code == 1
    assert "unknown method 'magic': choose from particles" in done.err


def test_a_missing_table_is_one_line(run: Run, model: Path) -> None:
    done = run("bench", "speed", "nosuch.parquet", model)
    assert done.code == 1
    assert "no such file: nosuch.parquet" in done.err
