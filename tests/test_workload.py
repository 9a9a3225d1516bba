"""Random queries: the paper's, those for calibration, and the file that keeps them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sqlglot import exp

from countless import workload
from countless.data.columns.schema import Column, Schema
from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.errors import DataError
from countless.options import EncodeOptions
from countless.query.compile import Compiler
from countless.query.parsing.parse import parse
from countless.region import Box, Filter, Region
from countless.workload import (
    Query,
    contains_clauses,
    count_codes,
    mixed_clauses,
    paper_clauses,
    pattern_clauses,
)
from countless.workload.text import KINDS
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
    operators: dict[str, Counter[type]] = {column.name: Counter() for column in table.schema.coded}
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
    with pytest.raises(DataError, match=r"cannot write .*choose another place"):
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


ODD = ("50% of_all", r"C:\dir\file_1", "it's %", "a_b%c\\", "plain text", "日本 100%", "(x|y)* [z]", "-- ; '' \"q\"")
TEXTS: list[str | None] = [*ODD, "", "ab", None] * 6


@pytest.fixture(scope="module")
def written() -> tuple[Source, Table]:
    """Strings full of what patterns must escape, and NULLs."""
    source = Source.open(pd.DataFrame({"the text": pd.Series(TEXTS, dtype=object)}))
    return source, Table.encode(source, EncodeOptions(text=("the text",)))


def test_pieces_that_occur(written: tuple[Source, Table]) -> None:
    source, table = written
    (column,) = table.schema.texts
    clauses = contains_clauses(column, source, 120, seed=1)
    assert clauses == contains_clauses(column, source, 120, seed=1) != contains_clauses(column, source, 120, seed=2)
    assert Counter(kind for _, kind in clauses).keys() == {"3 characters", "4 characters", "5 characters"}
    pieces = [piece_of(where) for where, _ in clauses]
    for (where, kind), piece, truth in zip(clauses, pieces, source.counts([c for c, _ in clauses]), strict=True):
        assert kind == f"{len(piece)} characters"
        assert truth == sum(text is not None and piece in text for text in TEXTS) > 0, where
    assert any(set(piece) & set("%_\\") for piece in pieces)


def piece_of(where: str) -> str:
    """The piece that a clause of ``contains_clauses`` looks for."""
    pattern = parse(where)
    escaped = isinstance(pattern, exp.Escape)
    text = str((pattern.this if escaped else pattern).expression.this)
    assert text.startswith("%")
    assert text.endswith("%")
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if escaped else text[1:-1]


def test_no_string_is_long_enough_for_a_piece() -> None:
    source = Source.open(pd.DataFrame({"t": ["ab", "", "c"]}))
    (column,) = Table.encode(source, EncodeOptions(text=("t",))).schema.texts
    with pytest.raises(DataError, match='the text column "t" has no string of 3 characters or more'):
        contains_clauses(column, source, 5, seed=0)


def test_few_strings_are_long_enough_for_a_piece() -> None:
    source = Source.open(pd.DataFrame({"t": ["ab"] * 60 + ["abc"]}))
    (column,) = Table.encode(source, EncodeOptions(text=("t",))).schema.texts
    assert contains_clauses(column, source, 2, seed=0) == [("\"t\" LIKE '%abc%'", "3 characters")] * 2


def test_patterns_of_every_kind_are_understood_alike(written: tuple[Source, Table]) -> None:
    source, table = written
    (column,) = table.schema.texts
    clauses = pattern_clauses(column, source, 30 * len(KINDS), seed=1)
    assert clauses == pattern_clauses(column, source, 30 * len(KINDS), seed=1)
    assert Counter(kind for _, kind in clauses) == dict.fromkeys(KINDS, 30)
    compiler = Compiler(table.schema)
    truths = source.counts([where for where, _ in clauses])
    for (where, kind), truth in zip(clauses, truths, strict=True):
        assert accepted_rows(compiler.compile(where).region) == truth, where
        if kind in ("contains", "prefix", "suffix", "one unknown", "equality", "length"):
            assert truth > 0, where  # the row that it was made of matches


def accepted_rows(region: Region) -> int:
    """The rows of TEXTS that are in the region: its boxes ask about nothing else."""
    total = 0
    for box in region.boxes:
        languages = [item.language for item in box.texts]
        total += sum(
            all(language.null if text is None else language.strings.accepts_string(text) for language in languages)
            for text in TEXTS
        )
    return total


def test_strings_that_are_spelt_like_wildcards() -> None:
    texts = ["%", "_", "\\", "ab", "a%"]
    source = Source.open(pd.DataFrame({"t": texts}))
    (column,) = Table.encode(source, EncodeOptions(text=("t",))).schema.texts
    clauses = [where for where, kind in pattern_clauses(column, source, 20 * len(KINDS), seed=1) if kind == "contains"]
    for where, truth in zip(clauses, source.counts(clauses), strict=True):
        assert truth == sum(piece_of(where) in text for text in texts), where
    assert {piece_of(where) for where in clauses} == set(texts)


def test_an_alphabet_of_nothing() -> None:
    source = Source.open(pd.DataFrame({"t": ["abc"]}))  # each character occurs but once
    (column,) = Table.encode(source, EncodeOptions(text=("t",))).schema.texts
    assert column.characters == ""
    clauses = pattern_clauses(column, source, 2 * len(KINDS), seed=0)
    assert len(source.counts([where for where, _ in clauses])) == 2 * len(KINDS)


def test_no_string_to_draw_from() -> None:
    source = Source.open(pd.DataFrame({"t": ["", ""]}))
    (column,) = Table.encode(source, EncodeOptions(text=("t",))).schema.texts
    with pytest.raises(DataError, match='the text column "t" has no string to draw patterns from'):
        pattern_clauses(column, source, 5, seed=0)


def test_calibration_asks_about_columns_and_text() -> None:
    frame = pd.DataFrame({"n": range(66), "t": pd.Series(TEXTS, dtype=object)})
    source = Source.open(frame)
    schema = Table.encode(source, EncodeOptions(text=("t",))).schema
    clauses = mixed_clauses(schema, source, 90, seed=1)
    column_sets = [frozenset(column.name for column in parse(where).find_all(exp.Column)) for where in clauses]
    assert Counter(column_sets) == {frozenset({"n"}): 30, frozenset({"t"}): 30, frozenset({"n", "t"}): 30}
    source.counts(clauses)
    only = Table.encode(source, EncodeOptions(columns=("t",), text=("t",))).schema
    assert all('"t"' in where for where in mixed_clauses(only, source, 30, seed=1))


def test_a_saved_workload_keeps_its_classes(tmp_path: Path) -> None:
    queries = [Query("t LIKE '%\\_%' ESCAPE '\\'", 3, "contains"), Query("TRUE", 4)]
    workload.save(tmp_path / "w.jsonl", queries)
    assert workload.load(tmp_path / "w.jsonl") == queries
    first, second = (tmp_path / "w.jsonl").read_text(encoding="utf-8").splitlines()
    assert '"kind": "contains"' in first
    assert "kind" not in second
