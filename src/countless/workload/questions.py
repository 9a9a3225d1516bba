"""Realistic random queries by kind, generated from a table alone.

They have one to five filters. Most literals come from one random row, so that at least one row matches. Thresholds come
from other rows and are often round numbers. Pieces of strings are words, directories and file extensions.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from countless.data.columns.types import quote_identifier, sql_literal
from countless.data.sources.source import Source
from countless.workload.calendar import calendar_filter
from countless.workload.patterns import (
    both_ends,
    either_pattern,
    excluded_pattern,
    ilike_pattern,
    plain_pattern,
    regular_expression,
    text_function,
    two_patterns,
)
from countless.workload.profile import ColumnProfile, draw_rows, profile

FEW_VALUES = 10  # columns with fewer values get equality, and no ranges
ROWS_DRAWN = 2_000
ATTEMPTS = 30  # per question: some rows give no question of the kind, or one that exists already
FILTER_COUNTS = (1, 1, 1, 2, 2, 2, 3, 3, 4, 5)  # people ask short questions more often
PATTERN_LENGTH, PATTERN_VALUES = 4.0, 5  # least mean length and number of values of columns with patterns


@dataclass(frozen=True)
class Draw:
    """A random row for the literals of a query, other rows for thresholds, and the random generator."""

    columns: Sequence[ColumnProfile]
    rows: Sequence[tuple[str | None, ...]]
    row: tuple[str | None, ...]
    rng: np.random.Generator

    def pick(self, fits: Callable[[ColumnProfile], bool], count: int = 1) -> list[int]:
        """Up to ``count`` different random columns that fit and are not NULL in the row, in the table's order."""
        fitting = [index for index, column in enumerate(self.columns) if self.row[index] is not None and fits(column)]
        order = self.rng.permutation(len(fitting))[:count]
        return sorted(fitting[position] for position in order.tolist())

    def other(self, index: int) -> str | None:
        """The value that the column has in another random row."""
        return self.rows[int(self.rng.integers(len(self.rows)))][index]

    def choose(self, *options: str) -> str:
        """One of the options."""
        return options[int(self.rng.integers(len(options)))]

    def name(self, index: int) -> str:
        """The column's name in SQL."""
        return quote_identifier(self.columns[index].name)

    def literal(self, index: int, value: str | None = None) -> str:
        """A value of the column in SQL: ``value``, or else that of the row."""
        value = self.row[index] if value is None else value
        assert value is not None
        column = self.columns[index]
        if column.is_number and math.isfinite(float(value)):
            return value  # as people write it, without a CAST
        return sql_literal(value, column.type)

    def text_column(self) -> int | None:
        """A random column that people would match a pattern on; columns with more values are more likely."""
        fitting = self.pick(_has_patterns, len(self.columns))
        if not fitting:
            return None
        weights = np.log2([self.columns[index].distinct for index in fitting])
        return int(self.rng.choice(fitting, p=weights / weights.sum()))


def questions_by_kind(
    source: Source, count: int, seed: int, names: Iterable[str] | None = None
) -> list[tuple[str, str]]:
    """WHERE clauses with their kinds, up to ``count`` of each; kinds that the table has no columns for are absent.

    The columns are all that can be queried, or those in ``names``.
    """
    columns = profile(source, names)
    types = [(column.name, column.type) for column in columns]
    rows = draw_rows(types, source, np.random.default_rng(seed), ROWS_DRAWN)
    questions: list[tuple[str, str]] = []
    for kind, make in KINDS.items():
        rng = np.random.default_rng([seed, zlib.crc32(kind.encode())])  # so that a new kind does not change the others
        clauses: dict[str, None] = {}
        for _ in range(ATTEMPTS * count):
            if len(clauses) == count:
                break
            clause = make(Draw(columns, rows, rows[int(rng.integers(len(rows)))], rng))
            if clause is not None:
                clauses.setdefault(clause)
        questions += [(clause, kind) for clause in clauses]
    return questions


def _has_patterns(column: ColumnProfile) -> bool:
    return column.is_string and column.length >= PATTERN_LENGTH and column.distinct >= PATTERN_VALUES


def _has_ranges(column: ColumnProfile) -> bool:
    return (column.is_number or column.is_date) and column.distinct >= FEW_VALUES


def _filter_count(draw: Draw) -> int:
    return int(draw.rng.choice(FILTER_COUNTS))


def _joined(filters: Sequence[str]) -> str | None:
    return " AND ".join(filters) or None


def _equal(draw: Draw, index: int) -> str:
    return f"{draw.name(index)} = {draw.literal(index)}"


def _threshold(draw: Draw, index: int) -> str:
    """A value of another row, half the time as a round number or a whole day."""
    column = draw.columns[index]
    value = draw.other(index) or draw.row[index]
    assert value is not None
    if draw.rng.random() < 0.5:
        return value
    return value[:10] if column.is_date else round_number(value, integer=column.is_integer)


def _threshold_sql(draw: Draw, index: int, threshold: str) -> str:
    """A threshold in SQL; a date without a time of day is a DATE."""
    if draw.columns[index].is_date and len(threshold) == len("2000-01-31"):
        return f"DATE '{threshold}'"
    return draw.literal(index, threshold)


def round_number(text: str, integer: bool) -> str:
    """A number rounded to two significant digits; text that has no such form stays as it is.

    >>> round_number("1234", True), round_number("0.04567", False), round_number("nan", False), round_number("7", True)
    ('1200', '0.046', 'nan', '7')
    >>> round_number("1.7976931348623157e+308", False)  # 1.8e+308 is no DOUBLE
    '1.7976931348623157e+308'
    """
    value = float(text)
    if not math.isfinite(value) or value == 0:
        return text
    digits = 1 - math.floor(math.log10(abs(value)))
    if integer:
        return str(round(int(text), min(digits, 0)))
    try:
        return repr(round(value, digits))
    except OverflowError:
        return text


def _range(draw: Draw, index: int) -> str:
    if draw.rng.random() < 0.3:
        ends = [_threshold(draw, index), _threshold(draw, index)]
        ends.sort(key=float if draw.columns[index].is_number else str)
        return f"{draw.name(index)} BETWEEN {' AND '.join(_threshold_sql(draw, index, end) for end in ends)}"
    threshold = _threshold_sql(draw, index, _threshold(draw, index))
    return f"{draw.name(index)} {draw.choose('<', '<=', '>', '>=')} {threshold}"


def _values(draw: Draw, index: int) -> str:
    """Up to six values of the column, including that of the row."""
    other_values = {draw.other(index) for _ in range(int(draw.rng.integers(1, 6)))}
    values = sorted({value for value in other_values | {draw.row[index]} if value is not None})
    return ", ".join(draw.literal(index, value) for value in values)


def _usual_filter(draw: Draw, index: int) -> str:
    """The filter that people would most likely put on the column; the row itself matches."""
    column, operator = draw.columns[index], draw.choose("=", "<=", ">=")
    if not _has_ranges(column):
        operator = "="
    return f"{draw.name(index)} {operator} {draw.literal(index)}"


def with_filters(draw: Draw, clause: str, used: Sequence[int], most: int = 2, least: int = 0) -> str | None:
    """The clause with random filters on other columns that are not text; None if there are too few of them."""
    free_columns = draw.pick(lambda column: not column.is_text, len(draw.columns))
    free_columns = [index for index in free_columns if index not in used]
    filter_count = int(draw.rng.integers(least, most + 1))
    positions = draw.rng.permutation(len(free_columns))[:filter_count].tolist()
    if len(positions) < least:
        return None
    return _joined([clause, *(_usual_filter(draw, free_columns[position]) for position in sorted(positions))])


def _equality(draw: Draw) -> str | None:
    return _joined([_equal(draw, index) for index in draw.pick(lambda c: not c.is_text, _filter_count(draw))])


def _ranges(draw: Draw) -> str | None:
    return _joined([_range(draw, index) for index in draw.pick(_has_ranges, _filter_count(draw))])


def _in_list(draw: Draw) -> str | None:
    columns = draw.pick(lambda column: column.distinct > 2 and not column.is_text)
    if not columns:
        return None
    return with_filters(draw, f"{draw.name(columns[0])} IN ({_values(draw, columns[0])})", columns)


def _or(draw: Draw) -> str | None:
    """Two alternatives on one column or on two, with literals from two rows."""
    columns = draw.pick(lambda column: not column.is_text, 1 + int(draw.rng.integers(2)))
    if not columns:
        return None
    first, last = columns[0], columns[-1]
    other_value = draw.other(last)
    if other_value is None or (first == last and other_value == draw.row[first]):
        return None
    alternative = f"{draw.name(last)} = {draw.literal(last, other_value)}"
    if _has_ranges(draw.columns[last]) and draw.rng.random() < 0.5:
        alternative = _range(draw, last)
    return with_filters(draw, f"({_usual_filter(draw, first)} OR {alternative})", columns)


def _not(draw: Draw) -> str | None:
    """NOT in its forms, and NULL."""
    nullable = [index for index, column in enumerate(draw.columns) if column.has_null]
    if nullable and draw.rng.random() < 0.4:
        index = int(draw.rng.choice(nullable))
        return with_filters(draw, f"{draw.name(index)} IS {draw.choose('', 'NOT ')}NULL", [index])
    columns = draw.pick(lambda column: not column.is_text, 2)
    if not columns:
        return None
    first, last = columns[0], columns[-1]
    clause = {
        "<>": f"{draw.name(first)} <> {draw.literal(first)}",
        "not in": f"{draw.name(first)} NOT IN ({_values(draw, first)})",
        "not": f"NOT ({_usual_filter(draw, first)})",
        "not or": f"NOT ({_equal(draw, first)} OR {_usual_filter(draw, last)})",
    }[draw.choose("<>", "not in", "not", "not or")]
    return with_filters(draw, clause, columns)


def _function(draw: Draw) -> str | None:
    columns = draw.pick(lambda column: column.is_string or (column.is_number and column.distinct >= FEW_VALUES))
    if not columns:
        return None
    (index,) = columns
    name, value, column = draw.name(index), draw.row[index] or "", draw.columns[index]
    if column.is_text:
        clause = f"length({name}) {draw.choose('=', '>', '<')} {len(value)}"
    elif column.is_string:
        clause = {
            "lower": f"lower({name}) = {sql_literal(value.lower(), 'VARCHAR')}",
            "upper": f"upper({name}) = {sql_literal(value.upper(), 'VARCHAR')}",
            "length": f"length({name}) {draw.choose('=', '>', '<')} {len(value)}",
            "start": f"substr({name}, 1, {(cut := min(2, len(value)))}) = {sql_literal(value[:cut], 'VARCHAR')}",
        }[draw.choose("lower", "upper", "length", "start")]
    elif column.is_integer:
        number = int(value)
        clause = {
            "%": f"{name} % 10 = {math.fmod(number, 10):.0f}",
            "abs": f"abs({name}) {draw.choose('<', '>')} {abs(number)}",
            "//": f"{name} // 10 = {number // 10}",
        }[draw.choose("%", "abs", "//")]
    else:
        clause = f"round({name}) {draw.choose('=', '>', '<')} round({draw.literal(index)})"
    return with_filters(draw, clause, columns)


def _calendar(draw: Draw) -> str | None:
    columns = draw.pick(lambda column: column.is_date)
    if not columns:
        return None
    (index,) = columns
    clause = calendar_filter(draw.name(index), draw.row[index] or "", draw.choose, draw.rng)
    return None if clause is None else with_filters(draw, clause, columns)


def _two_columns(draw: Draw) -> str | None:
    """Two columns of one type whose values overlap, compared."""
    columns = draw.pick(lambda column: not column.is_text and column.distinct >= FEW_VALUES, 2)
    if len(columns) < 2:
        return None
    first, last = columns
    if not _comparable(draw, first, last):
        return None
    is_string = draw.columns[first].is_string
    operator = draw.choose("=", "<>") if is_string else draw.choose("<", ">", "<=", ">=", "=")
    return with_filters(draw, f"{draw.name(first)} {operator} {draw.name(last)}", columns, most=1)


def _comparable(draw: Draw, first: int, last: int) -> bool:
    """Whether a good part of the first column's values lies in the range of the last column's."""
    first_column, last_column = draw.columns[first], draw.columns[last]
    if (first_column.is_number, first_column.is_date, first_column.is_string) != (
        last_column.is_number,
        last_column.is_date,
        last_column.is_string,
    ):
        return False
    first_values, last_values = ([row[index] for row in draw.rows if row[index] is not None] for index in (first, last))
    if first_column.is_string:
        shared = set(first_values) & set(last_values)
        return len(shared) >= 0.2 * len(set(first_values))
    if first_column.is_date:
        return True
    numbers = [
        np.array([float(value) for value in values if value is not None]) for values in (first_values, last_values)
    ]
    ends = np.quantile(numbers[1], (0.1, 0.9))
    return bool(np.mean((numbers[0] >= ends[0]) & (numbers[0] <= ends[1])) >= 0.2)


def _on_text(make: Callable[[str, str, str, np.random.Generator], str | None]) -> Callable[[Draw], str | None]:
    """A kind of query on one string column. ``make`` takes its name, the row's string and another row's."""

    def question(draw: Draw) -> str | None:
        index = draw.text_column()
        other_text = None if index is None else draw.other(index)
        if index is None or not draw.row[index] or not other_text:
            return None
        return make(draw.name(index), draw.row[index] or "", other_text, draw.rng)

    return question


def _text_equality(draw: Draw) -> str | None:
    columns = draw.pick(lambda column: column.is_text)
    if not columns:
        return None
    (index,) = columns
    if draw.rng.random() < 0.3:
        return f"{draw.name(index)} IN ({_values(draw, index)})"
    return _equal(draw, index)


def _pattern_and_filters(draw: Draw) -> str | None:
    index = draw.text_column()
    if index is None or not draw.row[index]:
        return None
    position = draw.choose("prefix", "suffix", "contains")
    clause = plain_pattern(position)(draw.name(index), draw.row[index] or "", "", draw.rng)
    return None if clause is None else with_filters(draw, clause, [index], most=3, least=1)


KINDS: dict[str, Callable[[Draw], str | None]] = {
    "equality": _equality,
    "range": _ranges,
    "IN": _in_list,
    "OR": _or,
    "NOT and NULL": _not,
    "function": _function,
    "calendar": _calendar,
    "two columns": _two_columns,
    "LIKE 'x%'": _on_text(plain_pattern("prefix")),
    "LIKE '%x'": _on_text(plain_pattern("suffix")),
    "LIKE '%x%'": _on_text(plain_pattern("contains")),
    "ILIKE": _on_text(ilike_pattern),
    "LIKE OR LIKE": _on_text(either_pattern),
    "LIKE AND LIKE": _on_text(two_patterns),
    "LIKE 'x%' AND LIKE '%y'": _on_text(both_ends),
    "NOT LIKE": _on_text(excluded_pattern),
    "regular expression": _on_text(regular_expression),
    "text function": _on_text(text_function),
    "text equality": _text_equality,
    "LIKE and filters": _pattern_and_filters,
}
