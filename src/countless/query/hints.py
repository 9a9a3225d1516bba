"""Hints on filters that likely mean something else than what they say: misspelled values, dates that mean midnight."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from sqlglot import exp

from countless.data.columns.calendar import HOUR
from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import TEXT, quote_identifier
from countless.query.parsing.sql import read_condition
from countless.query.question import Comparison

BARE_DATE = re.compile(r"'(\d{4}-\d\d-\d\d)'", re.ASCII)
MOST_VALUES, MOST_COMPARED = 50_000, 5_000  # values of a column that are read, and compared letter by letter
LONGEST = 60  # letters of a string that is compared letter by letter
CLOSE = 0.75  # the least similarity of a suggestion


def unseen_literals(comparisons: Sequence[Comparison], schema: Schema) -> tuple[str, ...]:
    """A sentence for each literal that its column does not hold, with what to write instead, if that is known."""
    sentences = []
    for item in comparisons:
        for text in item.unseen:
            hint = _instead(item, text, schema)
            sentences.append(f"{text} does not occur in {item.column}" + (f": {hint}" if hint else ""))
    return tuple(sentences)


def midnights(comparisons: Sequence[Comparison], schema: Schema) -> tuple[str, ...]:
    """A note on each comparison of a timestamp with a date alone, if the column has times other than midnight."""
    return tuple(dict.fromkeys(_midnights(comparisons, schema)))


def nearest(value: str, values: Sequence[str]) -> str | None:
    """The one of ``values`` that ``value`` is likely meant to be: without case and accents first, then by letters.

    >>> nearest("zurich", ["Basel", "Zürich"]), nearest("Bsael", ["Basel", "Zürich"]), nearest("Rome", ["Basel"])
    ('Zürich', 'Basel', None)
    """
    if len(values) > MOST_VALUES:
        return None
    folded = _folded(value)
    by_folded = {_folded(text): text for text in reversed(values)}
    if folded in by_folded:
        return by_folded[folded]
    if len(values) > MOST_COMPARED or len(folded) > LONGEST:
        return None
    candidates = [text for text in by_folded if len(text) <= 2 * len(folded)]
    close = difflib.get_close_matches(folded, candidates, 1, CLOSE)
    return by_folded[close[0]] if close else None


def _folded(text: str) -> str:
    """``text`` without case, accents and outer spaces."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).strip()


def _instead(item: Comparison, text: str, schema: Schema) -> str | None:
    """What to write instead of a string that the column of a comparison does not hold."""
    index = schema.find(item.column)
    if index is None or not text.startswith("'") or not any(True for _ in _literals(item, exp.EQ, exp.NEQ)):
        return None
    column = schema.columns[index]
    if column.type != TEXT:
        return None
    if text == "''":
        return f"empty fields are NULL; use {quote_identifier(column.name)} IS NULL" if column.has_null else None
    if not isinstance(column, Column) or column.grid is not None:
        return None  # the model does not list the values
    close = nearest(text[1:-1].replace("''", "'"), column.values)
    return None if close is None else f"did you mean {exp.Literal.string(close).sql('duckdb')}?"


def _midnights(comparisons: Sequence[Comparison], schema: Schema) -> Iterator[str]:
    for item in comparisons:
        index = schema.find(item.column)
        if index is None or not BARE_DATE.search(item.sql) or not _has_times(schema, index):
            continue
        for literal in _literals(item, exp.EQ):
            if not BARE_DATE.fullmatch(f"'{literal}'"):
                continue
            try:
                after = date.fromisoformat(literal) + timedelta(days=1)
            except (ValueError, OverflowError):
                continue
            name = quote_identifier(schema.columns[index].name)
            yield (f"'{literal}' means midnight: for the whole day write {name} >= '{literal}' AND {name} < '{after}'")
            break


def _has_times(schema: Schema, index: int) -> bool:
    """Whether a column is a timestamp that is not known to be always at midnight."""
    column = schema.columns[index]
    if not column.type.startswith("TIMESTAMP"):
        return False
    if isinstance(column, Column) and column.grid is None and len(column.values) <= MOST_VALUES:
        return any(" 00:00:00" not in value for value in column.values if " " in value)
    return HOUR in schema.calendar_of(index)


def _literals(item: Comparison, *comparing: type[exp.Expr]) -> Iterator[str]:
    """The strings that IN or a comparison of these types looks for in a column itself, not in an expression of it."""
    node = read_condition(item.sql, item.sql)
    if isinstance(node, exp.In):
        sides, constants = [node.this], node.expressions
    elif isinstance(node, comparing):
        sides = constants = [node.this, node.expression]
    else:
        return
    if any(isinstance(side, exp.Column) for side in sides):
        for constant in constants:
            literal = constant.this if isinstance(constant, exp.Cast) else constant
            if isinstance(literal, exp.Literal) and literal.is_string:
                yield literal.this
