"""Certain answers are those of DuckDB, and what DuckDB objects to has no answer: random clauses and tables."""

from __future__ import annotations

import pytest

from countless.errors import QueryError
from tests.query.agreement import Clauses, World

CLAUSES = 250


@pytest.mark.parametrize("seed", [11, 12])
def test_certain_answers_are_those_of_duckdb(seed: int) -> None:
    world, clauses = World.random(seed), Clauses(seed)
    agreed = 0
    for _ in range(CLAUSES):
        clause = clauses.clause()
        try:
            question = world.compiler.compile(clause)
        except QueryError:
            continue  # DuckDB may answer more than a model of one table's columns can
        truth = world.truth(clause)
        assert truth is not None, f"DuckDB objects to {clause}"
        rows = world.found(question)
        if question.certain and rows is not None:
            assert rows == truth, clause
            agreed += 1
    assert agreed > CLAUSES / 2
