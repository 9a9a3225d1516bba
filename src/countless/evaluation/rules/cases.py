"""Test cases of consistency rules: a few clauses whose counts must agree in one way.

A case starts from a random query with literals of real rows: alternately of the paper's kind and with all operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import quote_identifier, sql_literal
from countless.data.sources.source import Source
from countless.evaluation.diagnosis.questions import filters_of
from countless.evaluation.rules.literals import everything, in_order, nothing
from countless.query.parsing.conjuncts import Conjunct, together
from countless.workload import mixed_clauses, paper_filters
from countless.workload.columns import random_rows

Case = tuple[str, ...]  # clauses
Range = tuple[str, str, str]  # a range as SQL, and the two parts that it consists of

FILTERS = (1, 12)
TRIES = 50  # attempts to draw a column and rows with three distinct values


class Drawing:
    """Draws the cases of every rule for one table. The same seed gives the same cases."""

    def __init__(self, schema: Schema, source: Source, count: int, seed: int) -> None:
        self._schema = schema
        self._columns = schema.columns
        self._rng = np.random.default_rng([seed, 1])
        self._queries = _queries(schema, source, count, seed)
        self._rows = random_rows(schema, source, self._rng, 3 * count) if schema.coded else []

    def alone(self) -> Iterator[Case]:
        """Each query by itself."""
        for query in self._queries:
            yield (together(query),)

    def whole(self) -> Iterator[Case]:
        """Each query without and with a filter that keeps everything."""
        for query in self._queries:
            yield together(query), self._with(query, everything)

    def empty(self) -> Iterator[Case]:
        """Each query with a filter that keeps nothing."""
        for query in self._queries:
            yield (self._with(query, nothing),)

    def more(self) -> Iterator[Case]:
        """Each query without and with one of its filters."""
        for query in self._queries:
            left_out = int(self._rng.integers(len(query)))
            yield together(query[:left_out] + query[left_out + 1 :]), together(query)

    def tighter(self) -> Iterator[Case]:
        """Each query with a range, and with one part of it."""
        for whole, *parts in self.split():
            yield whole, parts[int(self._rng.integers(2))]

    def split(self) -> Iterator[Case]:
        """Each query with a range, and with each of the two parts into which a random value splits it."""
        for query in self._queries:
            column_range = self._range()
            if column_range is not None:
                column, ranges = column_range
                other_filters = [conjunct.sql for conjunct in query if column.name not in conjunct.columns]
                whole, left, right = (" AND ".join([*other_filters, range_sql]) for range_sql in ranges)
                yield whole, left, right

    def _with(self, query: Sequence[Conjunct], filter_of: Callable[..., str]) -> str:
        column = self._columns[int(self._rng.integers(len(self._columns)))]
        return " AND ".join([*(conjunct.sql for conjunct in query), filter_of(column, self._rng)])

    def _range(self) -> tuple[Column, Range] | None:
        """A range between values of a random column in random rows."""
        candidates = [index for index, column in enumerate(self._schema.coded) if column.distinct >= 3]
        for _ in range(TRIES if candidates else 0):
            index = int(self._rng.choice(candidates))
            rows = self._rng.integers(len(self._rows), size=3)
            column = self._schema.coded[index]
            values = in_order(column, [self._rows[row][index] for row in rows])
            if len(values) == 3:
                return column, self._cut(column, values)
        return None

    def _cut(self, column: Column, values: Sequence[str]) -> Range:
        """The range between the outer two of three values, or below or above one of them, split at the middle value."""
        name = quote_identifier(column.name)
        low, middle, high = (sql_literal(value, column.type) for value in values)
        ranges: list[Range] = [
            (
                f"{name} BETWEEN {low} AND {high}",
                f"{name} BETWEEN {low} AND {middle}",
                f"{name} > {middle} AND {name} <= {high}",
            ),
            (f"{name} <= {high}", f"{name} < {middle}", f"{name} BETWEEN {middle} AND {high}"),
            (f"{name} >= {low}", f"{name} >= {low} AND {name} < {middle}", f"{name} >= {middle}"),
        ]
        return ranges[int(self._rng.integers(len(ranges)))]


def _queries(schema: Schema, source: Source, count: int, seed: int) -> list[tuple[Conjunct, ...]]:
    """Random queries of 1 to 12 filters: alternately of the paper's kind and with all operators."""
    mixed = mixed_clauses(schema, source, count, seed, FILTERS)
    if schema.coded:
        paper = paper_filters(schema, source, count, seed, FILTERS)
        mixed[::2] = [" AND ".join(filters) for filters in paper[::2]]
    return [filters_of(schema, where) for where in mixed]
