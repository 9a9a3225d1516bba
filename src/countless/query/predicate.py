"""Predicates written in Python: ``(col("age") > 35) & col("income").isin([">50K"])``."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable
from typing import Any

from sqlglot import exp

from countless.errors import QueryTypeError
from countless.query.parsing.sql import written


class Predicate:
    """A condition on a row. Combine predicates with ``&``, ``|`` and ``~``; ``str`` gives the SQL.

    Args:
        expression: The condition as sqlglot's syntax tree. Use :func:`countless.col` to write it in Python.

    Raises:
        QueryTypeError: A value cannot be written in SQL, or is compared in a way that is never true.

    >>> print((col("age") > 35) & ~col("city").like("New %"))
    "age" > 35 AND NOT "city" LIKE 'New %'
    """

    def __init__(self, expression: exp.Expr) -> None:
        self.expression = expression

    def __and__(self, other: Predicate | ColumnReference) -> Predicate:
        return Predicate(exp.and_(self.expression, _predicate(other).expression))

    def __or__(self, other: Predicate | ColumnReference) -> Predicate:
        return Predicate(exp.or_(self.expression, _predicate(other).expression))

    def __invert__(self) -> Predicate:
        return Predicate(exp.not_(self.expression))

    def __bool__(self) -> bool:
        raise TypeError(
            "a predicate has no truth value of its own: combine predicates with & | ~, not with and, or, not"
        )

    def __str__(self) -> str:
        return written(self.expression)

    def __repr__(self) -> str:
        return f"Predicate({self})"


class ColumnReference:
    """A column in a predicate; made by :func:`col`."""

    def __init__(self, name: str) -> None:
        self.name = name

    __hash__ = None  # type: ignore[assignment]  # == builds a predicate

    def __eq__(self, value: object) -> Predicate:  # type: ignore[override]
        return self._compare(exp.EQ, value)

    def __ne__(self, value: object) -> Predicate:  # type: ignore[override]
        return self._compare(exp.NEQ, value)

    def __lt__(self, value: object) -> Predicate:
        return self._compare(exp.LT, value)

    def __le__(self, value: object) -> Predicate:
        return self._compare(exp.LTE, value)

    def __gt__(self, value: object) -> Predicate:
        return self._compare(exp.GT, value)

    def __ge__(self, value: object) -> Predicate:
        return self._compare(exp.GTE, value)

    def between(self, low: object, high: object) -> Predicate:
        """At least ``low`` and at most ``high``."""
        return Predicate(exp.Between(this=self._column(), low=literal(low), high=literal(high)))

    def isin(self, values: Iterable[object]) -> Predicate:
        """Equal to one of ``values``."""
        if isinstance(values, str):
            raise QueryTypeError(f"isin takes a list of values: write isin([{values!r}])")
        literals = [literal(value) for value in values]
        return Predicate(exp.In(this=self._column(), expressions=literals) if literals else exp.false())

    def like(self, pattern: str) -> Predicate:
        """SQL's LIKE: ``%`` is any text and ``_`` any character."""
        return self._compare(exp.Like, pattern)

    def ilike(self, pattern: str) -> Predicate:
        """LIKE without regard to case."""
        return self._compare(exp.ILike, pattern)

    def contains(self, text: str) -> Predicate:
        """Has ``text`` somewhere."""
        return self._call(exp.Contains, text)

    def starts_with(self, text: str) -> Predicate:
        """Starts with ``text``."""
        return self._call(exp.StartsWith, text)

    def ends_with(self, text: str) -> Predicate:
        """Ends with ``text``."""
        return self._call(exp.EndsWith, text)

    def matches(self, pattern: str) -> Predicate:
        """DuckDB's regexp_matches: the regular expression ``pattern`` matches somewhere.

        >>> col("url").matches("^https?://")
        Predicate(REGEXP_MATCHES("url", '^https?://'))
        """
        return self._call(exp.RegexpLike, pattern)

    def is_null(self) -> Predicate:
        """NULL."""
        return Predicate(exp.Is(this=self._column(), expression=exp.null()))

    def is_not_null(self) -> Predicate:
        """Not NULL."""
        return ~self.is_null()

    def __repr__(self) -> str:
        return f"col({self.name!r})"

    def as_predicate(self) -> Predicate:
        """The column itself as a condition, if it is a boolean one."""
        return Predicate(self._column())

    def __and__(self, other: Predicate | ColumnReference) -> Predicate:
        return self.as_predicate() & other

    def __or__(self, other: Predicate | ColumnReference) -> Predicate:
        return self.as_predicate() | other

    def __invert__(self) -> Predicate:
        return ~self.as_predicate()

    def _call(self, function: type[exp.Expr], value: str) -> Predicate:
        if not isinstance(value, str):
            raise QueryTypeError(f"a part of a text, or a pattern, is a str, not a {type(value).__name__}")
        return Predicate(function(this=self._column(), expression=literal(value)))

    def _column(self) -> exp.Column:
        return exp.column(exp.to_identifier(self.name, quoted=True))

    def _compare(self, operator: type[exp.Binary], value: object) -> Predicate:
        if isinstance(value, ColumnReference):
            raise QueryTypeError(
                f'cannot compare the columns "{self.name}" and "{value.name}": '
                "a filter compares one column with a value"
            )
        if value is None:
            raise QueryTypeError("a comparison with None is never true: use is_null() or is_not_null()")
        return Predicate(operator(this=self._column(), expression=literal(value)))


def _predicate(condition: Predicate | ColumnReference) -> Predicate:
    return condition.as_predicate() if isinstance(condition, ColumnReference) else condition


Where = str | Predicate | ColumnReference  # how a question may be asked


def col(name: str) -> ColumnReference:
    """A column, to be compared with values in a :class:`Predicate`.

    Compare it with ``==``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``, or use its methods ``between``, ``isin``, ``like``,
    ``ilike``, ``contains``, ``starts_with``, ``ends_with``, ``matches``, ``is_null`` and ``is_not_null``.

    Args:
        name: The name of the column. It is checked when a model is asked.

    Returns:
        The column.

    >>> col("age").between(20, 30)
    Predicate("age" BETWEEN 20 AND 30)
    >>> (col("income") == ">50K") & col("education").isin(["Masters", "Doctorate"])
    Predicate("income" = '>50K' AND "education" IN ('Masters', 'Doctorate'))
    """
    return ColumnReference(name)


def literal(value: Any) -> exp.Expr:
    """``value`` as SQL: numbers, strings, UUIDs, booleans, dates, timestamps, None; NumPy's scalars too.

    >>> import datetime
    >>> literal(datetime.date(2020, 1, 31)).sql("duckdb")
    "CAST('2020-01-31' AS DATE)"
    """
    if hasattr(value, "item"):  # a NumPy scalar, or a pandas one
        value = value.item()
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str | uuid.UUID):
        return exp.Literal.string(str(value))
    if isinstance(value, float):
        return exp.cast(exp.Literal.string(repr(value)), exp.DType.DOUBLE)
    if isinstance(value, int | decimal.Decimal):
        number = exp.Literal.number(format(abs(value), "f" if isinstance(value, decimal.Decimal) else "d"))
        return exp.Neg(this=number) if value < 0 else number
    if isinstance(value, datetime.datetime):
        kind = exp.DType.TIMESTAMPNTZ if value.tzinfo is None else exp.DType.TIMESTAMPTZ
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), kind)
    if isinstance(value, datetime.date):
        return exp.cast(exp.Literal.string(value.isoformat()), exp.DType.DATE)
    if isinstance(value, datetime.time):
        return exp.cast(exp.Literal.string(value.isoformat()), exp.DType.TIME)
    raise QueryTypeError(
        f"cannot use a {type(value).__name__} in a predicate: give a number, string, date, timestamp, bool or None"
    )
