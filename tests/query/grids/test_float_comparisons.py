"""Numbers that are stored as a grid, compared with floats that cannot tell neighbours apart: DuckDB's counts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import pytest

from countless import Estimator, Network, fit
from countless.data.sources.source import Source, connect
from countless.errors import SourceError

LARGE = 2**53
ROWS = f"""
SELECT
    ({LARGE - 500} + range)::BIGINT AS bigint,
    ({2**64 - 1100} + range)::UBIGINT AS ubigint,
    ({2**70} + range * 4096)::HUGEINT AS hugeint,
    ({2**24 - 500} + range)::INTEGER AS integer,
    (90071992547405.00 + range * 0.01)::DECIMAL(17, 2) AS decimal,
    (123456789012345678.900 + range * 0.001)::DECIMAL(30, 3) AS wide,
    (0.1 + range * 0.001)::DECIMAL(20, 12) AS fine,
    (16777000 + range)::FLOAT AS float,
    (1e20 + range * 16384)::DOUBLE AS double
FROM range(1000)
"""
COLUMNS = ("bigint", "ubigint", "hugeint", "integer", "decimal", "wide", "fine", "float", "double")
TYPES = ("DOUBLE", "FLOAT", "HUGEINT", "DECIMAL(38,3)", "DECIMAL(18,12)")
OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM")
QUESTIONS = 50  # of each column


@cache
def world() -> tuple[Source, list[Estimator]]:
    """The table, a model that holds all of its rows, and one that has none of them."""
    connection = connect()
    connection.execute(f"CREATE TABLE t AS {ROWS}")
    network = Network(hidden=8, blocks=1, embedding=2)
    table = connection.table("t")
    models = [
        fit(table, evidence=evidence, max_distinct=20, epochs=1, network=network, calibrate=False)
        for evidence in ("all", "none")
    ]
    assert all(column.grid is not None for model in models for column in model.schema.coded)
    return Source.open(table), models


def clauses(column: str) -> Iterator[str]:
    """Comparisons with values of all columns, in types of more and of fewer digits."""
    rng, (source, _) = random.Random(column), world()
    values = {name: [text for (text,) in source.rows(f"SELECT CAST({name} AS VARCHAR) FROM t")] for name in COLUMNS}

    def constant() -> str:
        other = column if rng.random() < 0.8 else rng.choice(COLUMNS)
        value = rng.choice(values[other])
        return f"CAST({value} AS {rng.choice(TYPES)})" if rng.random() < 0.9 else f"{value}e0"

    for _ in range(QUESTIONS):
        match rng.randrange(4):
            case 0:
                yield f"{column} IN ({constant()}, {constant()})"
            case 1:
                yield f"{column} BETWEEN {constant()} AND {constant()}"
            case _:
                yield f"{column} {rng.choice(OPERATORS)} {constant()}"


@pytest.mark.parametrize("column", COLUMNS)
def test_an_exact_answer_is_what_duckdb_counts(column: str) -> None:
    source, models = world()
    for clause in clauses(column):
        try:
            (truth,) = source.counts([clause])
        except SourceError:  # such as a number that the type cannot hold
            continue
        answers = [model.estimate(clause) for model in models]
        assert answers[0].exact
        assert [answer.rows for answer in answers if answer.exact and answer.rows != truth] == [], clause
