"""Calendar functions in a clause: ``hour(ts) = 3`` becomes a filter on a hidden column of the model.

A timestamp that is stored as a grid has too many values to look at each. Its hour, weekday, month and year are hidden
columns (:mod:`countless.data.columns.calendar`). A comparison of the day, the month or another unit of time that a
timestamp lies in becomes a range of the timestamp (:mod:`.truncation`).
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

# How DuckDB spells each part, and what it is made of: SQL in which "part" is the hidden column.
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
    """``condition`` with hidden columns in place of calendar functions, where the schema has such; else as it is.

    If a column has a code for each value, these tell more than several of its parts: then nothing is replaced.
    """
    owners = {part.of for part in schema.calendar}
    if not any(True for _ in _calls(condition, schema, owners)):
        return condition
    usable = {of for of in owners if schema.coded[of].grid is not None or _asks_one_part(condition, schema, of)}
    found = condition.copy()
    for leaf in list(leaves_of(found)):
        made = _rewritten(leaf, schema, usable)
        if leaf is found:
            return made
        leaf.replace(made)
    return found


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
    """The index of the hidden column that ``node`` asks for, such as ``hour(ts)``, if it is nothing more."""
    columns = list(node.find_all(exp.Column)) if schema.calendar and isinstance(node, exp.Func) else ()
    of = schema.find(columns[0].name) if len(columns) == 1 else None
    spelled = None if of is None else _spellings().get(_shape(node))
    if of is None or spelled is None or not isinstance(spelled[1], exp.Column):
        return None
    return schema.calendar_of(of).get(spelled[0])


def _calls(condition: exp.Expr, schema: Schema, owners: set[int]) -> Iterator[tuple[exp.Expr, int]]:
    """The functions and casts of a column that has calendar parts, and the column."""
    for column in condition.find_all(exp.Column):
        call = column.parent
        if isinstance(call, exp.Func) and not isinstance(call, exp.Connector) and HIDDEN not in column.meta:
            index = schema.find(column.name)
            if index in owners and index is not None:
                yield call, index


def _asks_one_part(condition: exp.Expr, schema: Schema, of: int) -> bool:
    """Whether a condition names a column only to ask for one of its parts."""
    named = [column for column in condition.find_all(exp.Column) if schema.find(column.name) == of]
    asked = [_spellings().get(_shape(call)) for call, _ in _calls(condition, schema, {of})]
    return len(asked) == len(named) and None not in asked and len({spelled[0] for spelled in asked if spelled}) == 1


def _rewritten(leaf: exp.Expr, schema: Schema, usable: set[int]) -> exp.Expr:
    """A comparison without calendar functions of ``usable`` columns, if each part of it is about one column then."""
    if not any(True for _ in _calls(leaf, schema, usable)):
        return leaf
    found = leaf.copy()
    for call, of in list(_calls(found, schema, usable)):
        node, made = _replacement(call, of, schema)
        if node is found:
            found = made
        elif made is not node:
            node.replace(made)
    asked = (
        {column.meta.get(HIDDEN, column.name) for column in part.find_all(exp.Column)} for part in leaves_of(found)
    )
    return found if all(len(columns) <= 1 for columns in asked) else leaf


def _replacement(call: exp.Expr, of: int, schema: Schema) -> tuple[exp.Expr, exp.Expr]:
    """A call, or the comparison that it stands in, and what to put in its place."""
    (column, *others), parts = list(call.find_all(exp.Column)), schema.calendar_of(of)
    shape = _shape(call)
    if not others and (spelled := _spellings().get(shape)) is not None and spelled[0] in parts:
        return call, _filled(spelled[1], column, parts[spelled[0]], schema)
    if not others and (unit := _truncations().get(shape)) is not None:
        months = {part: _hidden(index, column, schema) for part, index in parts.items() if part in (MONTH, YEAR)}
        return Truncated(unit, column, schema.coded[of].type, months).comparison(call)
    return call, call


def _filled(template: exp.Expr, column: exp.Column, index: int, schema: Schema) -> exp.Expr:
    """A template in which the hidden column at ``index`` is the part; errors point at ``column``."""

    def fill(node: exp.Expr) -> exp.Expr:
        return _hidden(index, column, schema) if isinstance(node, exp.Column) else node

    return template.transform(fill)  # which copies it


def _hidden(index: int, column: exp.Column, schema: Schema) -> exp.Column:
    found = exp.column(schema.coded_column(index).name)
    found.meta[HIDDEN] = index
    found.this.meta.update(column.this.meta)
    return found


def _shape(node: exp.Expr) -> str:
    """What a call is but for its column: the same for all ways to write it."""
    named = node.transform(lambda item: exp.column("x") if isinstance(item, exp.Column) else item)
    return written(named).lower()


@cache
def _spellings() -> dict[str, tuple[str, exp.Expr]]:
    """Every call that asks for a part: the part, and what is made of it."""
    found: dict[str, tuple[str, exp.Expr]] = {}
    for name, (part, sql) in SPELLINGS.items():
        calls = [f"extract({name} FROM x)", f"extract('{name}' FROM x)", f"date_part('{name}', x)"]
        calls += [f"datepart('{name}', x)", *([f"{name}(x)"] if name != "dow" else [])]
        for call in calls:
            found[_read(call)] = part, read_condition(f"({sql})" if sql != "part" else sql, sql)
    for name, (part, names, first) in NAMES.items():
        cases = " ".join(f"WHEN {first + index} THEN '{text}'" for index, text in enumerate(names))
        found[_read(f"{name}(x)")] = part, read_condition(f"CASE part {cases} END", name)
    return found


@cache
def _truncations() -> dict[str, str]:
    """Every call that cuts a timestamp to a unit."""
    found = {_read(f"date_trunc('{unit}', x)"): unit for unit in UNITS}
    return found | {_read("CAST(x AS DATE)"): "day", _read("date(x)"): "day"}


def _read(call: str) -> str:
    return _shape(read_condition(call, call))
