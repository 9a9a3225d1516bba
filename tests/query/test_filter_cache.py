"""Clauses compiled together are the clauses compiled alone."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.errors import QueryError
from countless.query.filter_cache import CachedCompiler, conjuncts
from countless.region import Box, Region
from tests.query.test_meaning import PREDICATES, comparisons, world


def same(one: Region, two: Region) -> bool:
    return same_boxes(one.boxes, two.boxes) and same_boxes(one.cover, two.cover)


def same_boxes(one: tuple[Box, ...], two: tuple[Box, ...]) -> bool:
    if [[f.positions for f in box.filters] for box in one] != [[f.positions for f in box.filters] for box in two]:
        return False
    pairs = [
        (a, b)
        for left, right in zip(one, two, strict=True)
        for f, g in zip(left.filters, right.filters, strict=True)
        for a, b in zip(f.constraint.transitions, g.constraint.transitions, strict=True)
    ]
    return all(np.array_equal(a.weights, b.weights) and np.array_equal(a.next, b.next) for a, b in pairs)


@given(st.lists(st.lists(PREDICATES | comparisons(), min_size=1, max_size=4), min_size=1, max_size=4))
@settings(deadline=None, max_examples=150)
def test_a_batch_means_what_each_clause_means(clauses: list[list[str]]) -> None:
    _, _, compiler = world()
    batch = CachedCompiler.of(compiler)
    for parts in clauses:
        where = " AND ".join(parts)
        together, alone = batch.compile(where), compiler.compile(where)
        assert same(together.region, alone.region)
        assert together.certain == alone.certain
        assert batch.compile(f" {where} ").where == where


@given(st.lists(PREDICATES | comparisons(), min_size=1, max_size=4), st.randoms())
@settings(deadline=None, max_examples=150)
def test_filters_in_the_cache_mean_what_new_ones_do(parts: list[str], random: Random) -> None:
    _, _, compiler = world()
    batch = CachedCompiler.of(compiler)
    for part in parts:
        batch.compile(part)
    for _ in range(3):
        random.shuffle(parts)
        where = " AND ".join(parts)
        assert same(batch.compile(where).region, compiler.compile(where).region)


def test_a_string_with_and_in_it_is_not_cut_in_two() -> None:
    _, _, compiler = world()
    batch = CachedCompiler.of(compiler)
    batch.compile("i = 1")
    batch.compile("s = 'a'")
    for where in ("s = 'a AND i = 1'", "i BETWEEN 1 AND 2", "NOT i = 1 AND s = 'a'", "i = 1 OR i = 1 AND s = 'a'"):
        assert same(batch.compile(where).region, compiler.compile(where).region)


@pytest.mark.parametrize(
    ("clause", "pieces"),
    [
        ("a = 1", ["a = 1"]),
        ("a = 1 and b = 2", ["a = 1", "b = 2"]),
        ("NOT a = 1 AND b IS NOT NULL", ["NOT a = 1", "b IS NOT NULL"]),
        ("a NOT BETWEEN 1 AND 2 AND b = 3", ["a NOT BETWEEN 1 AND 2", "b = 3"]),
        ("a IN ('x AND y', 'it''s') AND \"b AND c\" > 1", ["a IN ('x AND y', 'it''s')", '"b AND c" > 1']),
        ("t >= TIMESTAMP '2020-01-01 12:00:00' AND b = 1", ["t >= TIMESTAMP '2020-01-01 12:00:00'", "b = 1"]),
        ("extract(hour FROM t) = 3 AND b = 1", ["extract(hour FROM t) = 3", "b = 1"]),
        ("f(a, b AND c) AND d", ["f(a, b AND c)", "d"]),
    ],
)
def test_pieces(clause: str, pieces: list[str]) -> None:
    assert conjuncts(clause) == pieces


@pytest.mark.parametrize(
    "clause",
    [
        "",
        "a = 1 OR b = 2 AND c = 3",
        "SELECT * FROM t WHERE a = 1 AND b = 2",
        "WHERE a = 1 AND b = 2",
        "a IN (FROM t) AND b = 2",
        "trim(both FROM a) = 'x' AND b = 2",
        "a = 1 -- AND b = 2",
        "a = 1 /* AND */ AND b = 2",
        "a = 1; b = 2",
        "CASE WHEN a AND b THEN c END AND d",
        "a = e'it\\'s AND b' AND c = 2",
        "a = $$x AND y$$ AND b = 2",
        "a = 1 AND",
        "AND a = 1",
        "(a = 1 AND b = 2",
        "a = 1) AND b = 2",
        "a BETWEEN 1 AND b",
        "a = 'x AND b = 2",
        "list_filter(l, x -> x = 1 AND y = 2) AND b = 2",
    ],
)
def test_what_is_not_plain_is_left_whole(clause: str) -> None:
    assert conjuncts(clause) is None or "BETWEEN" in clause


def test_an_error_shows_the_whole_clause() -> None:
    _, _, compiler = world()
    where = "i = 1 AND nosuch = 2"
    with pytest.raises(QueryError) as batched:
        CachedCompiler.of(compiler).compile(where)
    with pytest.raises(QueryError) as alone:
        compiler.compile(where)
    assert str(batched.value) == str(alone.value)
    assert where in str(alone.value)
