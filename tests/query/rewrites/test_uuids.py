"""UUID columns: however a UUID is written, it means the same value, as in DuckDB."""

from __future__ import annotations

import uuid
from functools import cache

import pytest

from countless import Estimator, col, fit
from countless.data.sources.connection import connect
from countless.options import Network, TextNetwork

FIRST = "abcdef00-0000-0000-0000-000000000001"
ROWS = "SELECT printf('abcdef00-0000-0000-0000-%012d', range % 20)::UUID AS u, range % 3 AS n FROM range(600)"


@cache
def model(text: bool) -> Estimator:
    small = TextNetwork(width=8, blocks=1, heads=1, inner=8, buckets=16)
    options = {"text": ["u"], "text_network": small} if text else {}
    quick = {"epochs": 1, "network": Network(hidden=8, blocks=0), "calibrate": False, "evidence": "none"}
    return fit(connect().sql(ROWS), **quick, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    "where",
    [
        f"u = '{FIRST}'",
        f"u = '{FIRST.upper()}'",
        f"'{FIRST.replace('-', '')}' = u",
        f"u = '{{{FIRST.upper()}}}'",
        f"u = '{FIRST.upper()}'::UUID",
        f"u <> '{FIRST.upper()}'",
        f"u IN ('{FIRST.upper()}', '{FIRST.replace('1', '2')}')",
        f"u NOT IN ('{FIRST.upper()}')",
        "u > 'ABCDEF00-0000-0000-0000-000000000005'",
        f"u BETWEEN '{FIRST.upper()}' AND 'ABCDEF00000000000000000000000007'",
        f"NOT (u <= '{FIRST.upper()}' OR u IS NULL)",
    ],
)
def test_it_means_what_it_means_in_duckdb(where: str, text: bool) -> None:
    row = connect().execute(f"SELECT count(*) FROM ({ROWS}) WHERE {where}").fetchall()[0]
    answer = model(text).estimate(where)
    assert answer.rows == row[0] if not text else answer.rows == pytest.approx(row[0], abs=600)
    if answer.exact:
        assert answer.rows == row[0]


def test_a_uuid_object_is_a_value() -> None:
    value = uuid.UUID(FIRST)
    assert model(False).estimate(col("u") == value).rows == model(False).prepare("u = ?")(value).estimate().rows == 30


def test_parts_of_a_uuid_are_text() -> None:
    assert model(False).estimate("u LIKE '%0001'").rows == 30
    assert model(False).estimate("left(u, 3) = 'abc'").rows == 600


def test_what_is_no_uuid_is_a_string() -> None:
    assert model(False).estimate("u = 'x'").rows == 0
    assert model(False).estimate("u < 'b'").rows == 600
