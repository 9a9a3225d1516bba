"""Random queries: the paper's, those for calibration, and the file that keeps them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sqlglot import exp

from countless import workload
from countless.data.schema import Column, Schema
from countless.data.source import Source
from countless.data.table import EncodeOptions, Table
from countless.errors import DataError
from countless.query.compile import Compiler
from countless.query.parse import parse
from countless.region import Box, Filter, Region
from countless.workload import Query, count_codes, mixed_clauses, paper_clauses
from tests.mocks import digit_range


@pytest.fixture(scope="module")
def table(people: Path) -> Table:
    return Table.encode(people, EncodeOptions(exclude=("id",)))


def filters_of(where: str) -> list[exp.Expr]:
    condition = parse(where)
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def test_the_papers_queries(people: Path, table: Table) -> None:
    source = Source.open(people)
    clauses = paper_clauses(table.schema, source, 300, seed=3)
    assert clauses == paper_clauses(table.schema, Source.open(people), 300, seed=3)
    assert clauses != paper_clauses(table.schema, source, 300, seed=4)
    operators: dict[str, Counter[type]] = {column.name: Counter() for column in table.schema.columns}
    for where in clauses:
        filters = filters_of(where)
        columns = [item.find(exp.Column).name for item in filters]  # type: ignore[union-attr]
        assert len(columns) == len(set(columns)) == 5  # the table has no more
        for name, item in zip(columns, filters, strict=True):
            operators[name][type(item)] += 1
    assert set(operators["city"]) == {exp.EQ, exp.Is}  # few values; a NULL becomes IS NULL
    assert set(operators["married"]) == {exp.EQ}
    assert set(operators["age"]) == {exp.EQ, exp.LTE, exp.GTE}
    assert min(source.counts(clauses)) >= 1  # the literals are a row's, so that row matches


def test_queries_for_calibration_use_all_operators(table: Table, people: Path) -> None:
    source = Source.open(people)
    clauses = mixed_clauses(table.schema, source, 400, seed=1)
    assert clauses == mixed_clauses(table.schema, Source.open(people), 400, seed=1)
    kinds = {type(item) for where in clauses for item in filters_of(where)}
    assert {exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Is, exp.Not} <= kinds
    assert {len(filters_of(where)) for where in clauses} == {1, 2, 3, 4, 5}
    compiler = Compiler(table.schema)
    counted = [count_codes(table, compiler.compile(where).region) for where in clauses]
    assert counted == source.counts(clauses)


def test_a_saved_workload_comes_back(tmp_path: Path) -> None:
    queries = [Query("city = 'Łódź'\n AND age > 3", 17), Query("TRUE", 0)]
    workload.save(tmp_path / "w.jsonl", queries)
    assert len((tmp_path / "w.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert workload.load(tmp_path / "w.jsonl") == queries


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("", "holds no queries"),
        ("hello", "line 1: expected"),
        ('{"where": "a"}', "line 1: expected"),
        ('{"where": "a", "rows": 1}\n[]', "line 2"),
    ],
)
def test_a_bad_workload(tmp_path: Path, text: str, phrase: str) -> None:
    (tmp_path / "w.jsonl").write_text(text)
    with pytest.raises(DataError, match=phrase):
        workload.load(tmp_path / "w.jsonl")


def test_a_missing_workload(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read the workload"):
        workload.load(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="cannot write the workload"):
        workload.save(tmp_path / "none" / "w.jsonl", [])


def test_counting_follows_an_automaton_over_several_positions() -> None:
    """A range over two digits, counted row by row."""
    rng = np.random.default_rng(0)
    digits = (rng.integers(4, size=500).astype(np.uint8), rng.integers(5, size=500).astype(np.uint8))
    columns = tuple(Column(name, "INTEGER", tuple(map(str, range(size))), False) for name, size in (("a", 4), ("b", 5)))
    table = Table(Schema(500, columns), digits)
    values = digits[0].astype(int) * 5 + digits[1]
    for low, high in [(3, 12), (0, 19), (7, 7), (5, 9)]:
        region = Region((Box((Filter((0, 1), digit_range(low, high, (4, 5))),)),))
        assert count_codes(table, region) == np.count_nonzero((values >= low) & (values <= high))
