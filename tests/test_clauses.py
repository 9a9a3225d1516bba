"""Workloads as people write them: how they are read, what is wrong with them, and which columns they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless import col, workload
from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.errors import DataError, QueryError, QuerySyntaxError, UnknownColumnError
from countless.options import EncodeOptions
from countless.workload import Query, WorkloadColumns, asked_columns, read_clauses, template_clauses
from countless.workload.clauses import _statements


@pytest.fixture(scope="module")
def table(people: Path) -> Table:
    """Columns age (0), city (1), married (2), since when (3), score (4)."""
    return Table.encode(people, EncodeOptions(exclude=("id",)))


def written(text: str, place: Path) -> Path:
    path = place / "queries.sql"
    path.write_text(text, encoding="utf-8")
    return path


LINES = """-- what the dashboard asks
age > 35   -- the old

  city = 'a;b' AND age < 3 /* twice */
WHERE city = 'Łódź'
SELECT * FROM people WHERE age = 1 ORDER BY 1
"""
STATEMENTS = """-- what; the dashboard asks
SELECT count(*) FROM people
WHERE city = 'a;b' -- a semicolon; here
  AND age > 35;
;; age < 3; age
= 4"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            LINES,
            [
                ("age > 35", 2),
                ("city = 'a;b' AND age < 3", 4),
                ("WHERE city = 'Łódź'", 5),
                ("SELECT * FROM people WHERE age = 1 ORDER BY 1", 6),
            ],
        ),
        (
            STATEMENTS,
            [
                (
                    "SELECT count(*) FROM people\nWHERE city = 'a;b' -- a semicolon; here\n  AND age > 35",
                    2,
                ),
                ("age < 3", 5),
                ("age\n= 4", 5),
            ],
        ),
        ("city = 'two\nlines'\nage > 3", [("city = 'two\nlines'", 1), ("age > 3", 3)]),
        ("age > 35;", [("age > 35", 1)]),
        (
            '\n{"where": "age > 35", "rows": 7}\n\n{"where": "city = \'\\n\'"}\n',
            [("age > 35", 2), ("city = '\n'", 4)],
        ),
    ],
)
def test_files_of_every_form(text: str, expected: list[tuple[str, int]], tmp_path: Path) -> None:
    path = written(text, tmp_path)
    assert [(clause.where, clause.number) for clause in read_clauses(path)] == expected
    assert [(clause.where, clause.number) for clause in read_clauses(str(path))] == expected


CONDITIONS = st.sampled_from(["a > 1", "b = 'x;''y'", '"c;" IS NULL', "d IN (1, 2) -- e;", "f = '-- g'"])


@given(st.lists(st.tuples(st.integers(0, 2), CONDITIONS), min_size=1), st.booleans())
def test_statements_and_their_lines(items: list[tuple[int, str]], semicolons: bool) -> None:
    """With blank lines between them, and comments after some."""
    text, expected, line = "", [], 1
    for blanks, condition in items:
        text += "\n" * blanks + condition + ("\n;\n" if semicolons else "\n")
        expected.append((condition.removesuffix(" -- e;"), line + blanks))
        line += blanks + 1 + semicolons
    assert [(clause.where, clause.number) for clause in _statements(text, Path("q"))] == expected


def test_what_evaluate_saves_is_a_workload(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    workload.save(path, [Query("age > 35", 3), Query("city = 'Łódź'", 4, "cities")])
    assert [clause.where for clause in read_clauses(path)] == ["age > 35", "city = 'Łódź'"]


@pytest.mark.parametrize(
    ("text", "error", "phrase"),
    [
        ("", DataError, "holds no queries: write a WHERE clause"),
        (" \n-- nothing;\n;", DataError, "holds no queries"),
        ("age > 3\ncity = 'Oslo\nage < 4\n", QuerySyntaxError, "queries.sql, line 2: a quote or a comment"),
        ('{"where": "age > 3"}\n{"rows": 3}\n', DataError, "queries.sql, line 2: expected"),
        ('{"where": "age > 3"}\nage > 3\n', DataError, "queries.sql, line 2: expected"),
    ],
)
def test_files_that_cannot_be_read(text: str, error: type[Exception], phrase: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=phrase):
        read_clauses(written(text, tmp_path))


def test_no_such_file_and_not_a_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read the workload age > 3:"):
        read_clauses("age > 3")
    (tmp_path / "w").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot read the workload"):
        read_clauses(tmp_path / "w")
    with pytest.raises(DataError, match="holds no queries"):
        read_clauses([])


@pytest.mark.parametrize(
    ("text", "error", "phrase"),
    [
        (
            "-- a\nage > 3\nagee > 3",
            UnknownColumnError,
            'queries.sql, line 3: unknown column "agee": did you mean "age"',
        ),
        ("age > 3;\nSELECT *\nFROM p\nWHERE agee > 3;", UnknownColumnError, "queries.sql, line 2: unknown column"),
        ("age > 3\nage > AND 3", QuerySyntaxError, "queries.sql, line 2: syntax error"),
        ("age > 3\nid = 3", QueryError, 'queries.sql, line 2: the model does not hold the column "id"'),
        ("age > 3\n\nage > 'old'", QueryError, 'queries.sql, line 3: "age" is INTEGER'),
        ("age > 3\nage > score", QueryError, "queries.sql, line 2: one comparison is about the columns"),
        ('{"where": "age > 3"}\n{"where": "agee > 3"}', UnknownColumnError, "queries.sql, line 2: unknown column"),
    ],
)
def test_a_clause_that_does_not_fit(
    text: str, error: type[Exception], phrase: str, table: Table, tmp_path: Path
) -> None:
    with pytest.raises(error, match=phrase):
        asked_columns(table.schema, read_clauses(written(text, tmp_path)))


def test_a_clause_of_a_list_that_does_not_fit(table: Table) -> None:
    with pytest.raises(UnknownColumnError, match="clause 2 of the workload: unknown column"):
        asked_columns(table.schema, read_clauses(["age > 3", col("agee") > 3]))


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        (["age > 30 AND city = 'Oslo'", "city <> 'Rome' AND age = 20"], {(0, 1): 2.0}),
        ([col("score") > 1, "score > 1 AND score < 1.5"], {(4,): 2.0}),
        (["age > 30 OR city = 'Oslo'"], {(0,): 0.5, (0, 1): 0.5}),  # disjoint: old, or young and in Oslo
        (["age >= 0 AND married"], {(2,): 1.0}),  # what every row satisfies is not asked
    ],
)
def test_which_columns_are_asked(clauses: list[Any], expected: dict[tuple[int, ...], float], table: Table) -> None:
    assert asked_columns(table.schema, read_clauses(clauses)) == WorkloadColumns(len(clauses), 0, expected)


def test_what_filters_no_column_is_passed_over() -> None:
    frame = pd.DataFrame({"url": [f"www.{n:09}.org/{n % 7}" for n in range(2000)], "a": [n % 3 for n in range(2000)]})
    schema = Table.encode(frame, EncodeOptions()).schema
    assert [column.name for column in schema.texts] == ["url"]
    clauses = read_clauses(["url LIKE '%1%'", "url LIKE '%1%' AND a = 1", "TRUE", "a = 1 AND a = 2"])
    assert asked_columns(schema, clauses) == WorkloadColumns(1, 3, {(0,): 1.0})


def test_queries_of_templates_ask_about_their_columns(people: Path, table: Table) -> None:
    source = Source.open(people)
    clauses = template_clauses(table.schema, source, [(0, 3), (1, 2)], 200, seed=2)
    assert clauses == template_clauses(table.schema, Source.open(people), [(0, 3), (1, 2)], 200, seed=2)
    assert set(asked_columns(table.schema, read_clauses(clauses)).sets) <= {(0, 3), (1, 2), (0,), (3,)}
    assert min(source.counts(clauses)) >= 1
