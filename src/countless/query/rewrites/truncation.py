"""Rewrites comparisons of truncated timestamps: ``date_trunc('month', ts) < '2024-03-01'`` is a range of ``ts``."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from sqlglot import exp

from countless.query.domains.comparisons import FLIPPED

LATEST = datetime.datetime.max.year  # Python has no moment after this year, where its last units would end
DATES = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ)


class Span(NamedTuple):
    """A unit of time: its first moment, and that of the next one."""

    start: datetime.datetime
    end: datetime.datetime


@dataclass(frozen=True)
class Truncated:
    """A ``column`` of type ``kind``, truncated to a ``unit``; ``months`` has its hidden month and year columns."""

    unit: str
    column: exp.Column
    kind: str
    months: Mapping[str, exp.Column]

    def comparison(self, call: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
        """The comparison around ``call`` and its replacement; ``call`` twice if there is none.

        The comparison must be with literals at which a unit begins.
        """
        node = call.parent
        if isinstance(node, exp.Between) and node.this is call and not node.args.get("symmetric"):
            low, high = (self._span(node.args[side]) for side in ("low", "high"))
            if low is not None and high is not None:
                return node, _all([self._bound(exp.GTE, low), self._bound(exp.LTE, high)])
        elif isinstance(node, exp.In) and node.this is call and not node.args.get("query"):
            spans = [self._span(literal) for literal in node.expressions]
            if spans and None not in spans:
                equal = [self._equal(span) for span in spans if span is not None]
                return node, exp.paren(reduce(lambda left, right: exp.Or(this=left, expression=right), equal))
        elif node is not None and type(node) in FLIPPED:
            flipped = node.expression is call
            span = self._span(node.this if flipped else node.expression)
            if span is not None:
                return node, self._compared(FLIPPED[type(node)] if flipped else type(node), span)
        return call, call

    def _compared(self, operator: type[exp.Expr], span: Span) -> exp.Expr:
        if operator in (exp.EQ, exp.NEQ):
            equal = self._equal(span)
            return equal if operator is exp.EQ else exp.paren(exp.Not(this=equal))
        return self._bound(operator, span)

    def _span(self, literal: exp.Expr) -> Span | None:
        """The unit that begins at ``literal``; None if none does."""
        if isinstance(literal, exp.Cast) and literal.is_type(*DATES):
            literal = literal.this
        if not (isinstance(literal, exp.Literal) and literal.is_string):
            return None
        try:
            moment = datetime.datetime.fromisoformat(literal.this)
        except ValueError:
            return None
        end = UNITS[self.unit](moment) if moment.tzinfo is None and moment.year < LATEST else None
        return None if end is None else Span(moment, end)

    def _bound(self, operator: type[exp.Expr], span: Span) -> exp.Expr:
        """The moments whose unit compares with ``span`` by ``operator``: those on one side of one of its ends."""
        moment = span.end if operator in (exp.GT, exp.LTE) else span.start
        side = exp.GTE if operator in (exp.GT, exp.GTE) else exp.LT
        text = str(moment.date() if self.kind == "DATE" else moment)
        return side(this=self.column.copy(), expression=exp.Literal.string(text))

    def _equal(self, span: Span) -> exp.Expr:
        """The moments of a unit: for a month a filter on the hidden columns, because their counts are known."""
        if self.unit == "month" and len(self.months) == 2:
            return _all(
                [
                    exp.EQ(this=column.copy(), expression=exp.Literal.number(getattr(span.start, part)))
                    for part, column in self.months.items()
                ]
            )
        return _all([self._bound(exp.GTE, span), self._bound(exp.LTE, span)])


def _all(nodes: list[exp.Expr]) -> exp.Expr:
    return exp.paren(reduce(lambda left, right: exp.And(this=left, expression=right), nodes))


def _next_month(moment: datetime.datetime, months: int) -> datetime.datetime | None:
    """The end of the unit of so many months that begins at ``moment``; None if none does."""
    if (moment.month - 1) % months or moment != datetime.datetime(moment.year, moment.month, 1):
        return None
    years, month = divmod(moment.month - 1 + months, 12)
    return datetime.datetime(moment.year + years, month + 1, 1)


def _next(moment: datetime.datetime, length: datetime.timedelta) -> datetime.datetime | None:
    within = moment - datetime.datetime(moment.year, moment.month, moment.day)
    return None if within % length else moment + length


# The units that a timestamp can be truncated to. Each function has the end of the unit that begins at a moment.
UNITS: dict[str, Callable[[datetime.datetime], datetime.datetime | None]] = {
    "hour": lambda moment: _next(moment, datetime.timedelta(hours=1)),
    "day": lambda moment: _next(moment, datetime.timedelta(days=1)),
    "month": lambda moment: _next_month(moment, 1),
    "quarter": lambda moment: _next_month(moment, 3),
    "year": lambda moment: _next_month(moment, 12),
}
