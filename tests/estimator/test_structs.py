"""A table with structs, from the fit to every question: fields are columns like others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from countless.data.sources.source import connect
from countless.errors import ColumnLeftOutError, OptionError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.evaluation.evaluate import random_workload
from countless.options import Network
from countless.query.predicate import col
from countless.serve.tables import CheckedTable

ROWS = """
SELECT
    range % 5 AS n,
    CASE WHEN range % 7 > 0 THEN {
        'city': ['Oslo', 'Rome', 'Bonn'][1 + (hash(range) % 3)::INTEGER],
        'zip': CASE WHEN range % 4 > 0 THEN hash(range, 1) % 11 END,
        'geo': {'lat': (hash(range, 2) % 4)::DOUBLE / 2},
        'tags': [range]
    } END AS address
FROM range(600)
"""
FIELDS = ("n", "address.city", "address.zip")
CLAUSES = [
    "address.city = 'Oslo'",
    "\"address.city\" = 'Oslo' AND address.zip > 3",
    "address.city IS NULL",
    "address.zip IS NULL AND n < 3",
    "upper(address.city) LIKE 'R%'",
    "t.address.zip IN (1, 5)",
]
SMALL: dict[str, Any] = {"epochs": 3, "network": Network(hidden=16, blocks=1, embedding=8), "evidence": "none"}


def truth(where: str) -> int:
    """What DuckDB counts in the structs themselves."""
    plain = where.replace('"address.city"', "address.city")
    return len(connect().execute(f"SELECT 1 FROM ({ROWS}) AS t WHERE {plain}").fetchall())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("structs") / "people.parquet"
    connect().execute(f"COPY ({ROWS}) TO '{path}'")
    return path


@pytest.fixture(scope="module")
def fitted(table: Path) -> Estimator:
    return fit(table, **SMALL)


def test_fields_are_columns(fitted: Estimator) -> None:
    assert fitted.schema.names == FIELDS
    assert {column.name for column in fitted.schema.left_out} == {"address.geo", "address.tags"}
    assert fitted.calibration.queries


@pytest.mark.parametrize("where", CLAUSES)
def test_answers_beside_the_truth(fitted: Estimator, where: str) -> None:
    estimate = fitted.estimate(where)
    assert estimate.exact  # one or two columns: the counts that are stored with the model tell
    assert estimate.rows == truth(where)


def test_python_and_aggregates(fitted: Estimator) -> None:
    assert fitted.estimate(col("address.zip") == 5).rows == truth("address.zip = 5")
    result = fitted.query("SELECT address.city, count(*) FROM t WHERE address.city IS NOT NULL GROUP BY 1 ORDER BY 1")
    assert result.names == ("address.city", "count_star()")
    sql = f"SELECT address.city, count(*) FROM ({ROWS}) WHERE address.city IS NOT NULL GROUP BY 1 ORDER BY 1"
    assert [(city, round(rows)) for city, rows in result.rows] == connect().execute(sql).fetchall()


def test_what_takes_the_table_again(fitted: Estimator, table: Path) -> None:
    assert fitted.check(table).drifted == ()
    assert fitted.calibrate(table).calibration.queries
    assert len(fitted.log_prob(table)) == 600
    assert fitted.anomalies(table, top=3)
    queries = random_workload(fitted.schema, table, 20, 0)
    assert [query.rows for query in queries] == [truth(_as_structs(query.where)) for query in queries]
    assert fitted.update(table, epochs=1).estimate(CLAUSES[0]).rows == 2 * truth(CLAUSES[0])


def _as_structs(where: str) -> str:
    return where.replace('"address.city"', "address.city").replace('"address.zip"', "address.zip")


def test_rows_as_dictionaries(fitted: Estimator) -> None:
    nested = fitted.log_prob([{"n": 1, "address": {"city": "Oslo", "zip": 3}}])
    assert nested == fitted.log_prob([{"n": 1, "address.city": "Oslo", "address.zip": 3}])
    assert set(fitted.complete([{"address": {"city": "Oslo"}}]).frame.names) == set(FIELDS)
    assert fitted.sample(5).names == FIELDS


@pytest.mark.parametrize("where", CLAUSES)
def test_the_service_counts_the_same(fitted: Estimator, table: Path, where: str) -> None:
    assert CheckedTable(str(table), fitted.schema).count(where) == truth(where)


def test_in_files_as_in_memory(fitted: Estimator, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countless.data.encoding.memory_limit.CODES_SHARE", 0.0)
    mapped = fit(table, memory="1GB", codes=tmp_path / "codes", **SMALL)
    assert mapped.report["on_disk"]
    assert mapped.schema == fitted.schema
    assert [mapped.estimate(where).rows for where in CLAUSES] == [truth(where) for where in CLAUSES]


def test_more_levels(table: Path) -> None:
    model = fit(table, flatten=2, columns="address", calibrate=False, **SMALL)
    assert model.schema.names == ("address.city", "address.zip", "address.geo.lat")
    assert model.estimate("address.geo.lat >= 1").rows == truth("address.geo.lat >= 1")
    assert model.check(table, queries=0).drifted == ()


def test_no_levels(table: Path) -> None:
    model = fit(table, flatten=0, calibrate=False, **SMALL)
    assert model.schema.names == ("n",)
    with pytest.raises(ColumnLeftOutError, match='"address": it is a struct: --flatten 1 makes columns of its fields'):
        model.estimate("address.city = 'Oslo'")
    assert model.check(table, queries=0).drifted == ()


def test_levels_are_a_number(table: Path) -> None:
    with pytest.raises(OptionError, match="flatten must be a whole number"):
        fit(table, flatten="all", **SMALL)  # type: ignore[arg-type]
