"""Rewrites calendar functions: ``hour(ts) = 3`` becomes a filter on a hidden column of the model.

A timestamp that is stored as a grid has too many values to evaluate a function on each. Its hour, weekday, month and
year are hidden columns (:mod:`countless.data.columns.calendar`). A comparison of a truncated timestamp, such as its day
or month, becomes a range of the timestamp (:mod:`.truncation`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from sqlglot import exp

from countless.data.columns.calendar import HOUR, MONTH, WEEKDAY, YEAR
from countless.data.columns.schema import Schema
from countless.query.parsing.conjuncts import leaves_of
from countless.query.parsing.names import HIDDEN
from countless.query.parsing.sql import read_condition, written
from countless.query.rewrites.truncation import UNITS, Truncated

# For each of DuckDB's functions, the hidden column and SQL in which "part" stands for it.
SPELLINGS: dict[str, tuple[str, str]] = {
    "hour": (HOUR, "part"),
    "dow": (WEEKDAY, "part"),
    "dayofweek": (WEEKDAY, "part"),
    "weekday": (WEEKDAY, "part"),
    "isodow": (WEEKDAY, "(part + 6) % 7 + 1"),
    "month": (MONTH, "part"),
    "quarter": (MONTH, "(part + 2) // 3"),
    "year": (YEAR, "part"),
}
NAMES = {
    "dayname": (WEEKDAY, ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"), 0),
    "monthname": (
        MONTH,
        (
            *("January", "February", "March", "April", "May", "June", "July"),
            *("August", "September", "October", "November", "December"),
        ),
        1,
    ),
}


def with_calendar(condition: exp.Expr, schema: Schema) -> exp.Expr:
    """``condition`` with hidden columns in place of calendar functions; the same object if none is replaced.

    If a column has a code for each value, its codes say more than several of its parts do. Then nothing is replaced.
    """
    owners = {part.of for part in schema.calendar}
    if not any(True for _ in _calls(condition, schema, owners)):
        return condition
    usable = {of for of in owners if schema.coded[of].grid is not None or _uses_one_part(condition, schema, of)}
    rewritten = condition.copy()
    for leaf in list(leaves_of(rewritten)):
        replacement = _rewritten(leaf, schema, usable)
        if leaf is rewritten:
            return replacement
        leaf.replace(replacement)
    return rewritten


def without_hidden(condition: exp.Expr, schema: Schema) -> exp.Expr:
    """``condition`` with calendar functions in place of hidden columns."""

    def spelled(node: exp.Expr) -> exp.Expr:
        if HIDDEN not in node.meta:
            return node
        part = schema.calendar_part(node.meta[HIDDEN])
        assert part is not None
        sql = part.sql
        return read_condition(sql, sql)

    has_hidden = schema.calendar and any(HIDDEN in column.meta for column in condition.find_all(exp.Column))
    return condition.transform(spelled) if has_hidden else condition


def hidden_part(node: exp.Expr, schema: Schema) -> int | None:
    """The index of the hidden column that ``node`` is, such as ``hour(ts)``; None if it is anything else."""
    columns = list(node.find_all(exp.Column)) if schema.calendar and isinstance(node, exp.Func) else ()
    of = schema.find(columns[0].name) if len(columns) == 1 else None
    spelling = None if of is None else _spellings().get(_shape(node))
    if of is None or spelling is None or not isinstance(spelling[1], exp.Column):
        return None
    return schema.calendar_of(of).get(spelling[0])


def _calls(condition: exp.Expr, schema: Schema, owners: set[int]) -> Iterator[tuple[exp.Expr, int]]:
    """The functions and casts of columns that have calendar parts, each with the index of its column."""
    for column in condition.find_all(exp.Column):
        call = column.parent
        if isinstance(call, exp.Func) and not isinstance(call, exp.Connector) and HIDDEN not in column.meta:
            index = schema.find(column.name)
            if index in owners and index is not None:
                yield call, index


def _uses_one_part(condition: exp.Expr, schema: Schema, of: int) -> bool:
    """Whether a condition uses a single calendar part of a column, and nothing else of the column."""
    mentions = [column for column in condition.find_all(exp.Column) if schema.find(column.name) == of]
    parts = [_spellings().get(_shape(call)) for call, _ in _calls(condition, schema, {of})]
    return len(parts) == len(mentions) and None not in parts and len({part[0] for part in parts if part}) == 1


def _rewritten(leaf: exp.Expr, schema: Schema, usable: set[int]) -> exp.Expr:
    """``leaf`` with hidden columns for calendar functions of ``usable`` columns, if each leaf is then on one column."""
    if not any(True for _ in _calls(leaf, schema, usable)):
        return leaf
    rewritten = leaf.copy()
    for call, of in list(_calls(rewritten, schema, usable)):
        node, replacement = _replacement(call, of, schema)
        if node is rewritten:
            rewritten = replacement
        elif replacement is not node:
            node.replace(replacement)
    columns_of_leaves = (
        {column.meta.get(HIDDEN, column.name) for column in child.find_all(exp.Column)}
        for child in leaves_of(rewritten)
    )
    return rewritten if all(len(columns) <= 1 for columns in columns_of_leaves) else leaf


def _replacement(call: exp.Expr, of: int, schema: Schema) -> tuple[exp.Expr, exp.Expr]:
    """The node to replace, a call or the comparison around it, and its replacement."""
    (column, *other_columns), parts = list(call.find_all(exp.Column)), schema.calendar_of(of)
    shape = _shape(call)
    if not other_columns and (spelling := _spellings().get(shape)) is not None and spelling[0] in parts:
        return call, _filled(spelling[1], column, parts[spelling[0]], schema)
    if not other_columns and (unit := _truncations().get(shape)) is not None:
        months = {part: _hidden(index, column, schema) for part, index in parts.items() if part in (MONTH, YEAR)}
        return Truncated(unit, column, schema.coded[of].type, months).comparison(call)
    return call, call


def _filled(template: exp.Expr, column: exp.Column, index: int, schema: Schema) -> exp.Expr:
    """A template with the hidden column at ``index`` as its part; errors point at ``column``."""

    def fill(node: exp.Expr) -> exp.Expr:
        return _hidden(index, column, schema) if isinstance(node, exp.Column) else node

    return template.transform(fill)  # a copy


def _hidden(index: int, column: exp.Column, schema: Schema) -> exp.Column:
    hidden = exp.column(schema.coded_column(index).name)
    hidden.meta[HIDDEN] = index
    hidden.this.meta.update(column.this.meta)
    return hidden


def _shape(node: exp.Expr) -> str:
    """The SQL of a call without its column's name: the same however the call is written."""
    unnamed = node.transform(lambda child: exp.column("x") if isinstance(child, exp.Column) else child)
    return written(unnamed).lower()


@cache
def _spellings() -> dict[str, tuple[str, exp.Expr]]:
    """Every call that computes a calendar part: the part, and the expression that replaces the call."""
    spellings: dict[str, tuple[str, exp.Expr]] = {}
    for name, (part, sql) in SPELLINGS.items():
        calls = [f"extract({name} FROM x)", f"extract('{name}' FROM x)", f"date_part('{name}', x)"]
        calls += [f"datepart('{name}', x)", *([f"{name}(x)"] if name != "dow" else [])]
        for call in calls:
            spellings[_read(call)] = part, read_condition(f"({sql})" if sql != "part" else sql, sql)
    for name, (part, names, first) in NAMES.items():
        cases = " ".join(f"WHEN {first + index} THEN '{text}'" for index, text in enumerate(names))
        spellings[_read(f"{name}(x)")] = part, read_condition(f"CASE part {cases} END", name)
    return spellings


@cache
def _truncations() -> dict[str, str]:
    """Every call that truncates a timestamp to a unit."""
    truncations = {_read(f"date_trunc('{unit}', x)"): unit for unit in UNITS}
    return truncations | {_read("CAST(x AS DATE)"): "day", _read("date(x)"): "day"}


def _read(call: str) -> str:
    return _shape(read_condition(call, call))
