"""Derived columns, from the fit to every question: the table does not have them, and the model does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from countless.cluster.rows import _has_columns
from countless.data.columns.derived import Derived
from countless.data.columns.schema import Schema
from countless.data.sources.source import Source, connect
from countless.errors import (
    ColumnLeftOutError,
    DataError,
    ModelFileError,
    OptionError,
    QueryTooLargeError,
    UnknownColumnError,
)
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.estimator.loading import schema_of
from countless.evaluation.baselines.registry import Material, make
from countless.evaluation.diagnosis.diagnosis import diagnose
from countless.evaluation.evaluate import random_workload
from countless.options import Network
from countless.query.rewrites.derivation import read_derived
from countless.serve.tables import CheckedTable

ROWS = """
SELECT
    ['Oslo', 'OSLO', 'Rome', 'Bonn', NULL][1 + (hash(range) % 5)::INTEGER] AS city,
    (hash(range, 1) % 40)::INTEGER AS age,
    {'zip': hash(range, 2) % 7} AS address
FROM range(500)
"""
DERIVE = ["lower(city) AS city_lower", "age // 10 AS decade", "address.zip % 2 = 0 AS even_zip"]
SMALL: dict[str, Any] = {"epochs": 2, "network": Network(hidden=16, blocks=1, embedding=8), "evidence": "none"}
CLAUSES = [
    "city_lower = 'oslo'",
    "lower(city) = 'oslo'",
    "LOWER( \"City\" ) = 'oslo' AND decade = 2",
    "decade >= 2",
    "t.age//10 IN (1, 3)",
    "(age // 10) * 2 = 4",
    "even_zip AND city_lower IS NULL",
    "lower(city) LIKE 'o%'",
]


def truth(where: str) -> int:
    """What DuckDB counts in the table with the columns."""
    derived = f"SELECT *, {', '.join(DERIVE)} FROM ({ROWS})"
    return len(connect().execute(f"SELECT 1 FROM ({derived}) AS t WHERE {where}").fetchall())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("derived") / "people.parquet"
    connect().execute(f"COPY ({ROWS}) TO '{path}'")
    return path


@pytest.fixture(scope="module")
def fitted(table: Path) -> Estimator:
    return fit(table, derive=DERIVE, **SMALL)


@pytest.mark.parametrize("where", CLAUSES)
def test_answers_beside_the_truth(fitted: Estimator, where: str) -> None:
    estimate = fitted.estimate(where)
    assert estimate.exact
    assert estimate.rows == truth(where)


def test_the_column_answers_for_its_expression(table: Path, fitted: Estimator) -> None:
    explained = fitted.explain("lower(city) = 'oslo'")
    assert [item.column for item in explained.comparisons] == ["city_lower"]
    for where in ("lower(city) = 'oslo' AND city <> 'Oslo'", "lower(city) = 'oslo' OR city LIKE 'R%'"):
        assert {item.column for item in fitted.explain(where).comparisons} == {"city"}  # one column tells all
        assert fitted.estimate(where).rows == truth(where)
    assert fitted.prepare("lower(city) = ?")("rome").estimate().rows == truth("city_lower = 'rome'")
    without = fit(table, derive="lower(city) AS city_lower", exclude=["city"], calibrate=False, **SMALL)
    assert without.schema.names == ("age", "address.zip", "city_lower")
    assert without.estimate("lower(city) = 'oslo' AND age >= 20").rows == truth("city_lower = 'oslo' AND age >= 20")
    with pytest.raises(ColumnLeftOutError, match='does not hold the column "city"'):
        without.estimate("upper(city) = 'OSLO'")


def test_every_command_takes_the_table_as_it_is(table: Path, fitted: Estimator, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.countless")
    estimator = Estimator.load(tmp_path / "m.countless")
    assert estimator.schema == fitted.schema
    assert [item["name"] for item in estimator.info()["derived"]] == ["city_lower", "decade", "even_zip"]
    assert estimator.check(table, queries=20).table_rows == 500
    assert estimator.train(table, epochs=1).schema == fitted.schema
    assert estimator.calibrate(table).calibration.queries
    assert len(random_workload(estimator.schema, table, 5, 0)) == 5
    assert diagnose(estimator, table, queries=3).answers
    assert CheckedTable(str(table), estimator.schema).count("decade = 2 AND lower(city) = 'oslo'") == truth(
        "decade = 2 AND city_lower = 'oslo'"
    )
    with Material(table, estimator.schema) as material:
        assert make("scan", material).estimate("decade = 2").rows == truth("decade = 2")


def test_new_rows_need_no_derived_columns(table: Path, fitted: Estimator) -> None:
    row = {"city": "KYIV", "age": 71, "address": {"zip": 3}}
    for new in (row, connect().sql("SELECT 'KYIV' AS city, 71 AS age, {'zip': 3} AS address")):
        updated = fitted.update(new, replay=table, epochs=1)
        assert updated.estimate("city_lower = 'kyiv'").rows == updated.estimate("decade = 7").rows == 1
        assert updated.estimate("city_lower = 'oslo'").rows == truth("city_lower = 'oslo'")
    known = {"city": "Oslo", "age": 20, "address": {"zip": 3}}
    filled = known | {"city_lower": "oslo", "decade": 2, "even_zip": False}
    assert fitted.log_prob(known).tolist() == fitted.log_prob(filled).tolist()
    with pytest.raises(DataError, match="lacks the model's columns age, decade"):
        fitted.check(connect().sql("SELECT 'Oslo' AS city, {'zip': 3} AS address"))


@pytest.mark.parametrize(
    ("derive", "told"),
    [
        ("lower(city)", r"derive lower\(city\): it has no name: write an expression and its name"),
        ("lower(city) AS Age", 'there is a column "age" already: give another name'),
        (["city || 'x' AS a", "city || 'y' AS A"], 'there is a column "a" already'),
        ("lower(ctiy) AS low", 'unknown column "ctiy": did you mean "city"'),
        ("qqq + 1 AS low", 'unknown column "qqq": the columns are city, age, address.zip'),
        ("avg(age) AS a", "an aggregate has no value for a single row"),
        ("row_number() OVER () AS a", "a window function has no value for a single row"),
        ("(SELECT 1) + age AS a", "a subquery cannot be answered"),
        ("repeat(city, 1000) AS a", r"repeat\(\) is not among the functions"),
        ("random() + age AS a", "a random function has no fixed set of rows"),
        ("age + year(current_date) AS a", "the time of day is not a value of the row"),
        ("1 + 1 AS a", "it names no column"),
        ("age + 1 AS a, age + 2 AS b", "this is not a single expression"),
        ("age AS a FROM other", "this is not a single expression"),
        ("lower(city AS a", "derive lower"),
        ("* AS a", r"\* is not a column"),
        ("city + age + date '2020-01-01' AS a", "derive city.*Binder Error"),
        (7, "derive must be a string, not 7"),
    ],
)
def test_errors_before_a_row_is_read(table: Path, derive: Any, told: str) -> None:
    with pytest.raises(OptionError, match=told) as caught:
        fit(table, derive=derive, **SMALL)
    assert "\n" not in str(caught.value)
    assert "--derive" in caught.value.shown(lambda name: f"--{name}")


def test_a_relation_and_its_evidence_rows(table: Path) -> None:
    options = SMALL | {"evidence": "all"}
    uuid = "CAST(md5(city) AS UUID) AS id"
    fitted = fit(connect().sql(f"FROM '{table}'"), derive=[*DERIVE, uuid], calibrate=False, **options)
    assert fitted.schema.uuids == ("id",)
    for where in ("decade = 2 AND age % 3 = 1 AND lower(city) = 'oslo'", "city_lower <> city AND even_zip"):
        assert fitted.estimate(where).rows == truth(where)
    known = connect().execute("SELECT CAST(md5('Rome') AS UUID)::VARCHAR").fetchall()[0][0]
    assert fitted.estimate(f"id = '{known.upper()}'").rows == truth("city = 'Rome'")
    assert set(fitted.sample(20, where="age // 10 = 2").to_arrow()["decade"].to_pylist()) == {2}


def test_out_of_core(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countless.data.encoding.memory_limit.CODES_SHARE", 0.0)
    fitted = fit(table, derive=DERIVE, memory="1GB", calibrate=False, **SMALL)
    assert fitted.report["on_disk"]["bytes"] > 0
    assert fitted.estimate("decade = 2 AND even_zip").rows == truth("decade = 2 AND even_zip")


def test_workers_of_a_cluster_read_a_copy(table: Path) -> None:
    pytest.importorskip("pyarrow")
    source = Source.open(table)
    assert _has_columns(str(table), source)
    assert not _has_columns(str(table), source.with_derived(read_derived(DERIVE)))


def test_a_model_file_brings_no_sql_of_its_own(fitted: Estimator) -> None:
    assert schema_of(fitted.schema.to_json()) == fitted.schema
    for sql, columns in (("(SELECT age)", ("age",)), ("getenv(city)", ("city",)), ("lower(city)", ("age",))):
        hostile: Schema = replace(fitted.schema, derived=(Derived("decade", sql, columns),))
        with pytest.raises(ModelFileError, match='the derived column "decade"'):
            schema_of(hostile.to_json())


def test_other_expressions_are_left_alone(fitted: Estimator) -> None:
    assert fitted.estimate("upper(city) = 'OSLO'").rows == truth("upper(city) = 'OSLO'")
    with pytest.raises(UnknownColumnError):
        fitted.estimate("lower(town) = 'oslo'")


def test_groups_and_distributions(fitted: Estimator) -> None:
    shown = dict(fitted.query("SELECT city_lower, count(*) FROM t GROUP BY 1").rows)
    expected = {name: truth(f"city_lower = '{name}'") for name in ("oslo", "rome", "bonn")}
    assert shown == pytest.approx(expected | {None: truth("city IS NULL")})
    rows = {row["decade"]: row["rows"] for row in fitted.distribution("decade", "city_lower = 'oslo'").to_dicts()}
    assert rows == pytest.approx({decade: truth(f"decade = {decade} AND city_lower = 'oslo'") for decade in range(4)})


def test_drawn_rows_agree_with_themselves(fitted: Estimator) -> None:
    for where in (None, "decade = 2", "city_lower = 'oslo' AND age > 10", "even_zip OR decade > 2"):
        rows = fitted.sample(40, where=where, seed=1).to_dicts()
        assert rows
        for row in rows:
            assert row["city_lower"] == (None if row["city"] is None else row["city"].lower())
            assert row["decade"] == row["age"] // 10
            assert row["even_zip"] == (row["address.zip"] % 2 == 0)
        assert where != "decade = 2" or {row["age"] // 10 for row in rows} == {2}


def test_derived_columns_are_not_completed(fitted: Estimator) -> None:
    completed = fitted.complete([{"age": 25}])
    assert set(completed.cells.columns[1]) == {"city", "address.zip"}
    with pytest.raises(DataError, match='"decade" follows from age: fill these in'):
        fitted.complete([{"city": "Oslo"}], columns=["decade"])


def test_sql_of_a_model_file_meets_the_limits_of_the_sandbox(table: Path, fitted: Estimator) -> None:
    """Functions that read files or make lists are refused with the file; what nests allowed ones is tried first."""
    for sql in ("len(range(age * 1000000000000))", "(SELECT content FROM read_text('/etc/passwd')) || city"):
        hostile = replace(fitted.schema, derived=(Derived("decade", sql, ("age",)),))
        with pytest.raises(ModelFileError, match='the derived column "decade"'):
            schema_of(hostile.to_json())
    sql = "city"
    for _ in range(9):
        sql = f"REPLACE({sql}, 'o', '{'o' * 60}')"
    nested = replace(
        fitted.schema, derived=(Derived("city_lower", f"LENGTH({sql})", ("city",)), *fitted.schema.derived[1:])
    )
    hostile_model = Estimator(schema_of(nested.to_json()), fitted._sections)
    for use in (lambda: hostile_model.check(table, queries=20), lambda: hostile_model.update(table, epochs=1)):
        with pytest.raises(QueryTooLargeError, match='the derived column "city_lower" takes too much time or memory'):
            use()
