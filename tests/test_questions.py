"""Questions as people ask them: they are SQL, of their kind, and the same for the same seed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from sqlglot import exp

from countless.data.sources.source import Source
from countless.errors import DataError
from countless.query.parsing.parse import parse
from countless.workload.profile import profile
from countless.workload.questions import KINDS, questions_by_kind

EVENTS = """
SELECT
    TIMESTAMP '2020-01-01' + INTERVAL (range * 37) MINUTE AS at,
    (range * 7) % 101 AS delay,
    (range * 11) % 97 AS wait,
    CASE WHEN range % 5 > 0 THEN ['north', 'south', 'upper-east', 'a_b%c', 'it''s'][1 + range % 5] END AS place,
    '/usr/share/doc/' || ['alpha', 'beta'][1 + range % 2] || '-' || range || '/readme.' || ['txt', 'gz'][1 + range % 2]
        AS path
FROM range(2000)
"""


@pytest.fixture(scope="module")
def source() -> Source:
    connection = duckdb.connect()
    return Source.open(connection.sql(EVENTS))


def test_every_kind_is_asked_and_runs(source: Source) -> None:
    questions = questions_by_kind(source, 15, seed=1)
    counts = Counter(kind for _, kind in questions)
    assert list(counts) == list(KINDS)
    assert min(counts.values()) >= 4
    assert max(counts.values()) == 15
    assert len({where for where, _ in questions}) == len(questions)
    assert len(source.counts([where for where, _ in questions])) == len(questions)


def test_the_same_seed_asks_the_same(source: Source) -> None:
    questions = questions_by_kind(source, 5, seed=1)
    assert questions == questions_by_kind(source, 5, seed=1)
    assert questions != questions_by_kind(source, 5, seed=2)


def test_kinds_keep_to_their_operators(source: Source) -> None:
    allowed = {
        "equality": (exp.EQ, exp.And),
        "range": (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.And),
        "LIKE 'x%'": (exp.Like, exp.Escape),
        "ILIKE": (exp.ILike, exp.Escape),
        "text equality": (exp.EQ, exp.In),
    }
    for where, kind in questions_by_kind(source, 20, seed=3):
        operators = list(parse(where).find_all(exp.Predicate, exp.Connector))
        assert 1 <= len(set(parse(where).find_all(exp.Column))) <= 5
        if kind in allowed:
            assert all(isinstance(item, allowed[kind]) for item in operators), where
    text = [where for where, kind in questions_by_kind(source, 20, seed=3) if kind == "text equality"]
    assert all('"path"' in where for where in text)


def test_what_comes_from_a_row_matches_a_row(source: Source) -> None:
    sure = ("equality", "IN", "calendar", "LIKE 'x%'", "LIKE '%x'", "LIKE '%x%'", "ILIKE", "text equality")
    questions = [
        (where, kind) for where, kind in questions_by_kind(source, 20, seed=4) if kind in (*sure, "LIKE AND LIKE")
    ]
    for (where, kind), rows in zip(questions, source.counts([where for where, _ in questions]), strict=True):
        assert rows >= 1, (kind, where)


def test_only_the_named_columns_are_asked(source: Source) -> None:
    questions = questions_by_kind(source, 5, seed=1, names=["delay", "PLACE"])
    columns = {column.name for where, _ in questions for column in parse(where).find_all(exp.Column)}
    assert columns == {"delay", "place"}
    assert "calendar" not in {kind for _, kind in questions}


def test_the_profile_tells_text_from_names(source: Source) -> None:
    columns = {column.name: column for column in profile(source)}
    assert [name for name, column in columns.items() if column.is_text] == ["path"]
    assert columns["place"].has_null
    assert columns["at"].is_date
    assert columns["delay"].is_integer


def test_a_table_with_nothing_to_ask_about(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows"):
        questions_by_kind(Source.open(pd.DataFrame({"a": pd.Series([], dtype="int64")})), 1, 0)
    with pytest.raises(DataError, match="no column that can be queried"):
        questions_by_kind(Source.open(duckdb.connect().sql("SELECT [1] AS l")), 1, 0)


def test_odd_values_make_sql_all_the_same() -> None:
    frame = pd.DataFrame(
        {
            "x": [float("nan"), float("inf"), -0.0, 1e300, 1e-300, None] * 20,
            "s": ["'", "%", "_", "\\", "", "é\u0301"] * 20,
            "t": [f"a string of some length, number {n} %_\\'" for n in range(120)],
        }
    )
    source = Source.open(frame)
    questions = questions_by_kind(source, 10, seed=0)
    assert len(source.counts([where for where, _ in questions])) == len(questions)
