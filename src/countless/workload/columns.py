"""Random queries on columns, with literals from real rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import FloatArray
from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import TEXT, quote_identifier, sql_literal
from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.query.grids.scale import scale_of
from countless.region import FREE, Box, Constraint, Region
from countless.workload.profile import ColumnProfile, draw_rows
from countless.workload.text import CALIBRATION_KINDS, pattern_clause, pattern_clauses

FEW_VALUES = 10  # on columns with fewer values, the paper's generator has only equality
FILTERS = (5, 12)
PATTERN_CYCLE = ("contains", "prefix", "contains", "suffix")  # kinds of patterns beside filters on columns, in turn


@dataclass(frozen=True)
class Operators:
    """The operators that a kind of queries uses on columns with few values, and on columns with many."""

    few: tuple[str, ...]
    many: tuple[str, ...]

    def of(self, column: Column) -> tuple[str, ...]:
        """The operators for this column."""
        return self.few if column.distinct < FEW_VALUES else self.many


_RANGES = ("<=", ">=", "<", ">")
KINDS = {
    "mixed": Operators(
        ("=", "=", "=", "<>", "IN", "NOT IN", "IS NOT NULL"),
        ("=", "<=", ">=", "<", ">", "<>", "BETWEEN", "IN", "NOT IN", "IS NOT NULL"),
    ),
    "equality": Operators(("=",), ("=",)),
    "range": Operators(_RANGES, (*_RANGES, "BETWEEN")),
    "in": Operators(("IN",), ("IN",)),
    "or": Operators(("=", "IN"), ("=", "<=", ">=", "BETWEEN", "IN")),  # two conjunctions
}
KIND_CYCLE = ("mixed", "equality", "range", "mixed", "in", "equality", "mixed", "or", "range", "equality")


def paper_clauses(schema: Schema, source: Source, count: int, seed: int) -> list[str]:
    """The paper's random queries: 5 to 12 filters on distinct columns, with the literals of a random row.

    A NULL becomes IS NULL; a column with fewer than ten values gets ``=``, any other one of ``=``, ``<=``, ``>=``.
    """
    return [" AND ".join(filters) for filters in paper_filters(schema, source, count, seed)]


def paper_filters(
    schema: Schema, source: Source, count: int, seed: int, filters: tuple[int, int] = FILTERS
) -> list[list[str]]:
    """The filters of such queries one by one; ``filters`` is their least and greatest number in a query."""
    return conjunctions(schema.coded, source, count, seed, filters)


def conjunctions(
    columns: Sequence[Column] | Sequence[ColumnProfile],
    source: Source,
    count: int,
    seed: int,
    filters: tuple[int, int] = FILTERS,
) -> list[list[str]]:
    """The same for columns of a table without a fitted model."""
    rng = np.random.default_rng(seed)
    rows = draw_rows([(column.name, column.type) for column in columns], source, rng, count)
    least, most = (min(bound, len(columns)) for bound in filters)
    filter_lists = []
    for row in rows:
        column_indexes = rng.choice(len(columns), size=rng.integers(least, most + 1), replace=False)
        filter_lists.append(_paper_filters(columns, sorted(column_indexes.tolist()), row, rng))
    return filter_lists


def template_clauses(
    schema: Schema, source: Source, templates: Sequence[Sequence[int]], count: int, seed: int
) -> list[str]:
    """Queries as of :func:`paper_clauses`, each on the columns of a random one of ``templates``."""
    rng = np.random.default_rng(seed)
    rows = random_rows(schema, source, rng, count)
    template_numbers = rng.integers(len(templates), size=count)
    return [
        " AND ".join(_paper_filters(schema.coded, templates[template_number], row, rng))
        for template_number, row in zip(template_numbers.tolist(), rows, strict=True)
    ]


def both_clauses(
    schema: Schema, source: Source, count: int, seed: int, filters: tuple[int, int] = (1, 3)
) -> list[tuple[str, str]]:
    """Queries on columns and text together, with literals from one random row, each with its kind of pattern.

    They have 1 to 3 filters as people write them (equality for strings and for columns with few values, equality or a
    range for others), and a pattern that the text of the row matches.
    """
    rng = np.random.default_rng(seed)
    least, most = (min(bound, len(schema.coded)) for bound in filters)
    clauses: list[tuple[str, str]] = []
    while len(clauses) < count:
        for row in random_rows(schema, source, rng, count - len(clauses)):
            text_index, kind = int(rng.integers(len(schema.texts))), PATTERN_CYCLE[len(clauses) % len(PATTERN_CYCLE)]
            text = row[schema.index_of_text(text_index)]
            column_indexes = sorted(
                rng.choice(len(schema.coded), size=rng.integers(least, most + 1), replace=False).tolist()
            )
            column_filters = [_usual_filter(schema.coded[index], row[index], rng) for index in column_indexes]
            if text:
                pattern = pattern_clause(schema.texts[text_index], kind, text, text, rng)
                clauses.append((" AND ".join([*column_filters, pattern]), kind))
    return clauses


def mixed_clauses(
    schema: Schema, source: Source, count: int, seed: int, filters: tuple[int, int] = (1, 16)
) -> list[str]:
    """Queries of all operators with literals from random rows, for calibration.

    The :data:`KINDS` come in turn. If the table has text columns, two of three clauses have a pattern on text, one of
    them with filters on columns as well. Most patterns are pieces of the same row's text.
    """
    rng = np.random.default_rng(seed)
    columns = schema.coded
    text_clauses = [pattern_clauses(column, source, count, seed, CALIBRATION_KINDS) for column in schema.texts]
    if not columns:
        return [text_clauses[row % len(text_clauses)][row][0] for row in range(count)]
    texts = list(zip(*random_rows(schema, source, rng, count), strict=True))  # by column, then by row
    clauses = []
    for row in range(count):
        max_filters = min(filters[1], len(columns))
        column_indexes = rng.choice(len(columns), size=rng.integers(filters[0], max_filters + 1), replace=False)
        kind = KIND_CYCLE[row % len(KIND_CYCLE)]
        conditions = [
            _random_filter(KINDS[kind], columns[index], texts[index], row, rng)
            for index in sorted(column_indexes.tolist())
        ]
        if kind == "or" and len(conditions) > 1:
            halves = conditions[: len(conditions) // 2], conditions[len(conditions) // 2 :]
            conditions = [" OR ".join(f"({' AND '.join(half)})" for half in halves)]
        if text_clauses and row % 3:
            text_index = row % len(text_clauses)
            pattern = text_clauses[text_index][row][0]
            if row % 3 == 2:
                conditions = [pattern]
            else:
                text = texts[schema.index_of_text(text_index)][row]
                if text and row % 4:
                    pattern = pattern_clause(
                        schema.texts[text_index], CALIBRATION_KINDS[row % len(CALIBRATION_KINDS)], text, text, rng
                    )
                conditions = [
                    f"({conditions[0]})" if kind == "or" else conditions[0],
                    *conditions[1:],
                    pattern,
                ]
        clauses.append(" AND ".join(conditions))
    return clauses


def count_codes(table: Table, region: Region) -> float:
    """The number of rows of the encoded table in ``region``; approximate only for partly allowed codes."""
    weights = np.zeros(table.rows)
    for box in region.boxes:
        weights += _box_weights(table, box)
    return float(np.minimum(weights, 1.0).sum())


def random_rows(schema: Schema, source: Source, rng: np.random.Generator, count: int) -> list[tuple[str | None, ...]]:
    """``count`` random rows of the source, text last, their values as DuckDB prints them in the schema's types."""
    return draw_rows([(column.name, column.type) for column in schema.columns], source, rng, count)


def _paper_filters(
    columns: Sequence[Column] | Sequence[ColumnProfile],
    column_indexes: Sequence[int],
    row: Sequence[str | None],
    rng: np.random.Generator,
) -> list[str]:
    """A filter on each of the chosen columns, with the value that it has in ``row``."""
    filters = []
    for index in column_indexes:
        column = columns[index]
        operator = "=" if column.distinct < FEW_VALUES else str(rng.choice(["=", "<=", ">="]))
        filters.append(_filter(column, operator, row[index]))
    return filters


def _usual_filter(column: Column, text: str | None, rng: np.random.Generator) -> str:
    is_equality = column.type == TEXT or column.distinct < FEW_VALUES
    return _filter(column, "=" if is_equality else str(rng.choice(["=", "<=", ">="])), text)


def _filter(column: Column | ColumnProfile, operator: str, text: str | None) -> str:
    name = quote_identifier(column.name)
    return f"{name} IS NULL" if text is None else f"{name} {operator} {sql_literal(text, column.type)}"


def _random_filter(
    kind: Operators, column: Column, texts: Sequence[str | None], row: int, rng: np.random.Generator
) -> str:
    """A filter with the column's value in ``row``, and in random rows if the operator takes several values."""
    text = texts[row]
    if text is None:
        return f"{quote_identifier(column.name)} IS NULL"
    operator = str(rng.choice(kind.of(column)))
    return _filter_with_operator(operator, column, text, texts, rng)


def _filter_with_operator(
    operator: str, column: Column, text: str, texts: Sequence[str | None], rng: np.random.Generator
) -> str:
    """A filter of this operator with the value ``text``, and random ones of ``texts`` if it takes several values."""
    name = quote_identifier(column.name)

    def literal(value: str) -> str:
        return sql_literal(value, column.type)

    if operator == "IS NOT NULL":
        return f"{name} IS NOT NULL"
    if operator in ("IN", "NOT IN"):
        other_texts = [texts[index] for index in rng.integers(len(texts), size=rng.integers(1, 6)).tolist()]
        values = {text, *(other_text for other_text in other_texts if other_text is not None)}
        return f"{name} {operator} ({', '.join(map(literal, sorted(values)))})"
    if operator == "BETWEEN":
        other_text = texts[int(rng.integers(len(texts)))]
        scale = scale_of(column.type)
        low, high = sorted(
            (text, text if other_text is None else other_text), key=lambda value: scale.read(column.type, value)
        )
        return f"{name} BETWEEN {literal(low)} AND {literal(high)}"
    return f"{name} {operator} {literal(text)}"


def every_filter(column: Column) -> list[str]:
    """A filter for each operator that random queries use on the column, with some of its values."""
    filters = [f"{quote_identifier(column.name)} IS NULL"]
    if not column.values:
        return filters
    values = [column.values[len(column.values) * part // 4] for part in range(4)]
    operators = dict.fromkeys(operator for kind in KINDS.values() for operator in kind.of(column))
    rng = np.random.default_rng(0)
    return filters + [_filter_with_operator(operator, column, values[0], values, rng) for operator in operators]


def _box_weights(table: Table, box: Box) -> FloatArray:
    weights = np.ones(table.rows)
    for box_filter in box.filters:
        weights *= accepted([table.codes[position] for position in box_filter.positions], box_filter.constraint)
    return weights


def accepted(digits: Sequence[NDArray[Any]], constraint: Constraint) -> FloatArray:
    """The weight of each row by a constraint, from the rows' symbols at its positions."""
    weights = np.ones(len(digits[0]))
    states = np.full(len(digits[0]), constraint.start)
    for symbols, transitions in zip(digits, constraint.transitions, strict=True):
        mask = transitions.weights.shape[1] - 1
        reading = np.where(states == FREE, mask, symbols)
        weights *= transitions.weights[states, reading]
        states = transitions.next[states, reading]
    return weights
