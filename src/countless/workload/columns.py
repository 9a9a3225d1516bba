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
from countless.workload.text import TELLING, pattern_clause, pattern_clauses

FEW_VALUES = 10  # the paper's generator asks only for equality on columns with fewer values
FILTERS = (5, 12)
BOTH_KINDS = ("contains", "prefix", "contains", "suffix")  # of text, beside filters on columns, in turn


@dataclass(frozen=True)
class Operators:
    """What a kind of questions asks of a column with few values, and of one with many."""

    few: tuple[str, ...]
    many: tuple[str, ...]

    def of(self, column: Column) -> tuple[str, ...]:
        """What it asks of this column."""
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
IN_TURN = ("mixed", "equality", "range", "mixed", "in", "equality", "mixed", "or", "range", "equality")


def paper_clauses(schema: Schema, source: Source, count: int, seed: int) -> list[str]:
    """The paper's random queries: 5 to 12 filters on distinct columns, with the literals of a random row.

    A NULL becomes IS NULL; a column with fewer than ten values gets ``=``, any other one of ``=``, ``<=``, ``>=``.
    """
    return [" AND ".join(filters) for filters in paper_filters(schema, source, count, seed)]


def paper_filters(
    schema: Schema, source: Source, count: int, seed: int, filters: tuple[int, int] = FILTERS
) -> list[list[str]]:
    """The filters of such queries one by one; there are at least and at most this many in each."""
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
    found = []
    for row in rows:
        chosen = rng.choice(len(columns), size=rng.integers(least, most + 1), replace=False)
        found.append(_paper_filters(columns, sorted(chosen.tolist()), row, rng))
    return found


def template_clauses(
    schema: Schema, source: Source, templates: Sequence[Sequence[int]], count: int, seed: int
) -> list[str]:
    """Queries such as :func:`paper_clauses` makes, each about the columns of a random one of ``templates``."""
    rng = np.random.default_rng(seed)
    rows = random_rows(schema, source, rng, count)
    chosen = rng.integers(len(templates), size=count)
    return [
        " AND ".join(_paper_filters(schema.coded, templates[place], row, rng))
        for place, row in zip(chosen.tolist(), rows, strict=True)
    ]


def both_clauses(
    schema: Schema, source: Source, count: int, seed: int, filters: tuple[int, int] = (1, 3)
) -> list[tuple[str, str]]:
    """Queries about columns and text together, all that they ask from one random row, each with its kind of pattern.

    They have 1 to 3 filters, such as people write them (equality of strings and of columns with few values, equality or
    a range of others), and a pattern that the row's own text matches.
    """
    rng = np.random.default_rng(seed)
    least, most = (min(bound, len(schema.coded)) for bound in filters)
    found: list[tuple[str, str]] = []
    while len(found) < count:
        for row in random_rows(schema, source, rng, count - len(found)):
            place, kind = int(rng.integers(len(schema.texts))), BOTH_KINDS[len(found) % len(BOTH_KINDS)]
            text = row[schema.index_of_text(place)]
            chosen = sorted(rng.choice(len(schema.coded), size=rng.integers(least, most + 1), replace=False).tolist())
            asked = [_usual_filter(schema.coded[index], row[index], rng) for index in chosen]
            if text:
                pattern = pattern_clause(schema.texts[place], kind, text, text, rng)
                found.append((" AND ".join([*asked, pattern]), kind))
    return found


def mixed_clauses(
    schema: Schema, source: Source, count: int, seed: int, filters: tuple[int, int] = (1, 16)
) -> list[str]:
    """Queries of all operators with literals from random rows, for calibration.

    They are of the :data:`KINDS` in turn. Of a table with text columns, every clause but for one in three asks about
    text, or about text too, mostly with a piece of the same row's.
    """
    rng = np.random.default_rng(seed)
    columns = schema.coded
    texts_asked = [pattern_clauses(column, source, count, seed, TELLING) for column in schema.texts]
    if not columns:
        return [texts_asked[row % len(texts_asked)][row][0] for row in range(count)]
    texts = list(zip(*random_rows(schema, source, rng, count), strict=True))  # by column, then by row
    clauses = []
    for row in range(count):
        most = min(filters[1], len(columns))
        chosen = rng.choice(len(columns), size=rng.integers(filters[0], most + 1), replace=False)
        kind = IN_TURN[row % len(IN_TURN)]
        parts = [_filter_of(KINDS[kind], columns[i], texts[i], row, rng) for i in sorted(chosen.tolist())]
        if kind == "or" and len(parts) > 1:
            halves = parts[: len(parts) // 2], parts[len(parts) // 2 :]
            parts = [" OR ".join(f"({' AND '.join(half)})" for half in halves)]
        if texts_asked and row % 3:
            which = row % len(texts_asked)
            pattern = texts_asked[which][row][0]
            if row % 3 == 2:
                parts = [pattern]
            else:
                own = texts[schema.index_of_text(which)][row]
                if own and row % 4:
                    pattern = pattern_clause(schema.texts[which], TELLING[row % len(TELLING)], own, own, rng)
                parts = [f"({parts[0]})" if kind == "or" else parts[0], *parts[1:], pattern]
        clauses.append(" AND ".join(parts))
    return clauses


def count_codes(table: Table, region: Region) -> float:
    """How many rows of the encoded table lie in ``region``: exactly, but for rows that a code tells only in part."""
    inside = np.zeros(table.rows)
    for box in region.boxes:
        inside += _in_box(table, box)
    return float(np.minimum(inside, 1.0).sum())


def random_rows(schema: Schema, source: Source, rng: np.random.Generator, count: int) -> list[tuple[str | None, ...]]:
    """``count`` random rows of the source, text last, their values as DuckDB prints them in the schema's types."""
    return draw_rows([(column.name, column.type) for column in schema.columns], source, rng, count)


def _paper_filters(
    columns: Sequence[Column] | Sequence[ColumnProfile],
    chosen: Sequence[int],
    row: Sequence[str | None],
    rng: np.random.Generator,
) -> list[str]:
    """A filter on each of the chosen columns, with the value that it has in ``row``."""
    filters = []
    for index in chosen:
        column = columns[index]
        operator = "=" if column.distinct < FEW_VALUES else str(rng.choice(["=", "<=", ">="]))
        filters.append(_filter(column, operator, row[index]))
    return filters


def _usual_filter(column: Column, text: str | None, rng: np.random.Generator) -> str:
    plain = column.type == TEXT or column.distinct < FEW_VALUES
    return _filter(column, "=" if plain else str(rng.choice(["=", "<=", ">="])), text)


def _filter(column: Column | ColumnProfile, operator: str, text: str | None) -> str:
    name = quote_identifier(column.name)
    return f"{name} IS NULL" if text is None else f"{name} {operator} {sql_literal(text, column.type)}"


def _filter_of(kind: Operators, column: Column, texts: Sequence[str | None], row: int, rng: np.random.Generator) -> str:
    """A filter with the value that the column has in ``row`` and, where it takes several, in other random rows."""
    text = texts[row]
    if text is None:
        return f"{quote_identifier(column.name)} IS NULL"
    operator = str(rng.choice(kind.of(column)))
    return _filter_by(operator, column, text, texts, rng)


def _filter_by(operator: str, column: Column, text: str, texts: Sequence[str | None], rng: np.random.Generator) -> str:
    """A filter of this operator with the value ``text``, and with random ones of ``texts`` where it takes several."""
    name = quote_identifier(column.name)

    def literal(value: str) -> str:
        return sql_literal(value, column.type)

    if operator == "IS NOT NULL":
        return f"{name} IS NOT NULL"
    if operator in ("IN", "NOT IN"):
        others = [texts[place] for place in rng.integers(len(texts), size=rng.integers(1, 6)).tolist()]
        values = {text, *(other for other in others if other is not None)}
        return f"{name} {operator} ({', '.join(map(literal, sorted(values)))})"
    if operator == "BETWEEN":
        other = texts[int(rng.integers(len(texts)))]
        scale = scale_of(column.type)
        low, high = sorted((text, text if other is None else other), key=lambda value: scale.read(column.type, value))
        return f"{name} BETWEEN {literal(low)} AND {literal(high)}"
    return f"{name} {operator} {literal(text)}"


def every_filter(column: Column) -> list[str]:
    """A filter of each operator that random questions about the column have, with some of its values."""
    filters = [f"{quote_identifier(column.name)} IS NULL"]
    if not column.values:
        return filters
    values = [column.values[len(column.values) * part // 4] for part in range(4)]
    operators = dict.fromkeys(operator for kind in KINDS.values() for operator in kind.of(column))
    rng = np.random.default_rng(0)
    return filters + [_filter_by(operator, column, values[0], values, rng) for operator in operators]


def _in_box(table: Table, box: Box) -> FloatArray:
    inside = np.ones(table.rows)
    for item in box.filters:
        inside *= accepted([table.codes[position] for position in item.positions], item.constraint)
    return inside


def accepted(digits: Sequence[NDArray[Any]], constraint: Constraint) -> FloatArray:
    """The weight that the automaton gives each row, given the rows' symbols at its positions."""
    weights = np.ones(len(digits[0]))
    states = np.full(len(digits[0]), constraint.start)
    for symbols, transitions in zip(digits, constraint.transitions, strict=True):
        mask = transitions.weights.shape[1] - 1
        reading = np.where(states == FREE, mask, symbols)
        weights *= transitions.weights[states, reading]
        states = transitions.next[states, reading]
    return weights
