"""A model's CSV table: read as the fit read it, and refused if its types are others than the model's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from countless import CsvFile, Estimator, fit
from countless.data.columns.schema import Schema
from countless.errors import DataError, ModelFileError
from countless.evaluation.evaluate import random_workload
from countless.options import Network

OPTIONS = {"delim": ";", "decimal_separator": ",", "nullstr": ["-", "?"], "types": {"id": "VARCHAR"}}
NETWORK = Network(hidden=8, blocks=1, embedding=4)


def written(path: Path, rows: int = 300) -> Path:
    lines = [f"{n % 9};{n % 40},25;{'-' if n % 11 == 0 else n % 5}" for n in range(rows)]
    path.write_text("\n".join(["id;total;items", *lines, ""]))
    return path


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("orders") / "orders.csv")


@pytest.fixture(scope="module")
def model(orders: Path, tmp_path_factory: pytest.TempPathFactory) -> Estimator:
    fitted = fit(CsvFile(orders, OPTIONS), epochs=1, network=NETWORK)
    return Estimator.load(fitted.save(tmp_path_factory.mktemp("model") / "orders.countless"))


def test_methods_read_the_file_as_the_fit_did(model: Estimator, orders: Path) -> None:
    assert model.schema.csv == OPTIONS
    assert [column.type for column in model.schema.columns] == ["VARCHAR", "DOUBLE", "BIGINT"]
    assert model.check(orders, queries=20).ok
    assert len(model.log_prob(orders)) == 300
    assert model.calibrate(str(orders)).schema.csv == OPTIONS
    assert model.train(orders, epochs=1).report["table"] == model.report["table"]
    updated = model.update(orders, replay=orders, epochs=1)
    assert (updated.rows, updated.schema.csv) == (600, OPTIONS)
    for query in random_workload(model.schema, orders, 40, 0):
        assert query.rows >= 1  # the literals are those of a row


def test_given_options_go_first(model: Estimator, orders: Path) -> None:
    with pytest.raises(DataError, match="lacks the model's columns"):
        model.check(CsvFile(orders, {"delim": ","}))


def test_other_sources_are_read_as_they_are(model: Estimator, orders: Path, tmp_path: Path) -> None:
    scan = (
        f"read_csv('{orders}', delim = ';', decimal_separator = ',', nullstr = ['-', '?'], types = {{'id': 'VARCHAR'}})"
    )
    parquet = tmp_path / "orders.parquet"
    duckdb.sql(f"COPY (FROM {scan}) TO '{parquet}'")
    for table in (parquet, f"SELECT * FROM {scan}", duckdb.sql(f"FROM {scan}")):
        assert model.check(table, queries=0).ok


@pytest.mark.parametrize(
    "select", ["* REPLACE (total::VARCHAR || 'x' AS total)", "* REPLACE (DATE '2020-01-01' AS total)"]
)
@pytest.mark.parametrize("csv", [True, False])
def test_another_type_is_refused(model: Estimator, orders: Path, tmp_path: Path, select: str, csv: bool) -> None:
    path = tmp_path / ("other.csv" if csv else "other.parquet")
    duckdb.sql(
        f"COPY (SELECT {select} FROM (SELECT 'a' AS id, 1.5::DOUBLE AS total, 2 AS items)) TO '{path}'"
        + (" (DELIMITER ';')" if csv else "")
    )
    kind = "VARCHAR" if "x" in select else "DATE"
    remedy = "say how to read the CSV file, by --csv or a countless.CsvFile" if csv else "give the table that the model"
    message = f'^the column "total" is {kind} in the table and DOUBLE in the model: {remedy}'
    calls: list[Any] = [model.check, model.calibrate, model.update, model.train]
    for call in [*calls, lambda table: random_workload(model.schema, table, 5, 0)]:
        with pytest.raises(DataError, match=message):
            call(path)


def test_a_column_of_nulls_has_no_type(model: Estimator, tmp_path: Path) -> None:
    path = tmp_path / "nulls.csv"
    path.write_text("id;total;items\n1;0,25;-\n2;1,25;-\n")  # DuckDB reads the last column as strings
    assert model.check(path, queries=0).table_rows == 2
    assert model.update(path, epochs=1).rows == 302


@pytest.mark.parametrize(
    "stored",
    [
        {"filename": True},
        {"delim": 3},
        {"header": "yes"},
        {"skip": -1},
        {"encoding": "cp1252"},
        {"types": ["INTEGER"]},
        {"nullstr": "-"},
        {"sep": ";"},
        [["delim", ";"]],
    ],
)
def test_a_file_with_other_options_is_damaged(model: Estimator, stored: Any) -> None:
    data = replace(model.schema, csv={}).to_json()
    assert "csv" not in data
    assert Schema.from_json({**data, "csv": OPTIONS}) == model.schema
    with pytest.raises(ModelFileError, match="damaged"):
        Schema.from_json({**data, "csv": stored})
