"""Prepared clauses: parsed once, with parameters (``?``, ``$1``, ``$name``) that are bound to values later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from sqlglot import TokenType, exp

from countless.cached_property import cached_property
from countless.data.columns.schema import Schema
from countless.errors import QueryTypeError, UnsupportedQueryError
from countless.query.parsing.parse import BOUND, NO_VALUE, parse
from countless.query.parsing.sql import tokens_of, written
from countless.query.predicate import ColumnReference, Predicate, Where, literal
from countless.query.rewrites.derived import with_derived

Span = tuple[int, int]
SIGNS = "?$:"  # one of these stands in every clause that has parameters

TEXT_PARENTS = (exp.Like, exp.ILike, exp.RegexpLike, exp.StartsWith, exp.EndsWith, exp.Contains)
# Where a value may stand. In these the parameters come in the order of the text.
PARENTS = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In),
    *(exp.Neg, exp.Paren, exp.Add, exp.Sub, exp.Mul, *TEXT_PARENTS),
)
# Types of values that are cast, as DuckDB spells them.
CASTS = {exp.DType.DOUBLE: "DOUBLE", exp.DType.DATE: "DATE", exp.DType.TIMESTAMPNTZ: "TIMESTAMP"}


@dataclass(frozen=True)
class Parameter:
    """A parameter in a clause: its name, or its number; where it stands, and whether it is compared as text."""

    name: str
    span: Span
    text: bool = False

    @property
    def sample(self) -> str:
        """A value of no consequence, as SQL."""
        return "''" if self.text else "NULL"


@dataclass(frozen=True, eq=False)
class Clause:
    """A condition that has been parsed: its text, its expression, and the SQL that errors point into, if there is any.

    That of a clause with bound values is made when it is first asked for: simple filters do without.
    ``checked`` says that DuckDB need not be asked whether it reads the SQL too. ``given`` is the expression as it was
    parsed, before derived columns took the place of what they hold, if some did.
    """

    text: str
    expression: exp.Expr | Callable[[], exp.Expr]
    source: str | None
    parameters: tuple[Parameter, ...] = ()
    checked: bool = False
    given: exp.Expr | None = None

    @cached_property
    def condition(self) -> exp.Expr:
        """The expression."""
        return self.expression if isinstance(self.expression, exp.Expr) else self.expression()

    @classmethod
    def read(cls, where: Where, schema: Schema | None = None) -> Clause:
        """The clause that ``where`` is; with a ``schema``, fields of structs are its columns.

        >>> Clause.read("age > ? AND city = 'Oslo'").parameters
        (Parameter(name='1', span=(6, 7), text=False),)
        """
        if isinstance(where, ColumnReference):
            where = where.as_predicate()
        if isinstance(where, Predicate):
            return cls(str(where), where.expression, None, checked=True)
        if not isinstance(where, str):
            raise QueryTypeError(f"a question is SQL text or a predicate made with col(), not a {type(where).__name__}")
        condition = parse(where, schema, parameters=True)
        found = _parameters(where, condition) if any(sign in where for sign in SIGNS) else ()
        if schema is None or not schema.derived:
            return cls(where.strip(), condition, where, found)
        rewritten = with_derived(condition, schema, where)
        return cls(where.strip(), rewritten, where, found, given=None if rewritten is condition else condition)

    def unbound(self) -> UnsupportedQueryError:
        """The error of a question that is asked before its parameters have values."""
        return UnsupportedQueryError(NO_VALUE, self.source, self.parameters[0].span)

    def bound(self, values: Sequence[Any], named: Mapping[str, Any]) -> Clause:
        """The clause with values instead of parameters. No SQL is parsed.

        >>> clause = Clause.read("age BETWEEN $low AND $high").bound((), {"low": 30, "high": 40})
        >>> clause.text, clause.condition.sql("duckdb")
        ('age BETWEEN 30 AND 40', 'age BETWEEN 30 AND 40')
        """
        assert self.source is not None
        assigned = self._assigned(values, named)
        text, end = "", 0
        for parameter, value in assigned:
            text += self.source[end : parameter.span[0]]
            sql = _plain_sql(value) or _sql(self._literal(parameter, value))
            text += f" {sql}" if sql.startswith("-") and text.endswith("-") else sql  # else a comment would begin
            end = parameter.span[1]
        return Clause((text + self.source[end:]).strip(), partial(self._filled, assigned), self.source, checked=True)

    def _filled(self, assigned: Sequence[tuple[Parameter, Any]]) -> exp.Expr:
        """The expression with values in the places of its parameters."""
        condition = self.condition.copy()
        for node, (parameter, value) in zip(_placeholders(condition), assigned, strict=True):
            node.replace(self._literal(parameter, value))
        return condition

    def _assigned(self, values: Sequence[Any], named: Mapping[str, Any]) -> list[tuple[Parameter, Any]]:
        """Every parameter with its value."""
        given = {str(index): value for index, value in enumerate(values, 1)} | dict(named)
        names = {parameter.name for parameter in self.parameters}
        count = f"the clause has {len(names)} parameter{'' if len(names) == 1 else 's'}"
        for parameter in self.parameters:
            if parameter.name not in given:
                raise QueryTypeError(
                    f"{count}, and this one ({parameter.name}) has no value", self.source, parameter.span
                )
        unknown = [name for name in given if name not in names]
        if unknown:
            what = f"${unknown[0]} is none of them" if unknown[0] in named else f"{len(values)} values were given"
            raise QueryTypeError(f"{count}, and {what}", self.source, self.parameters[-1].span)
        return [(parameter, given[parameter.name]) for parameter in self.parameters]

    def _literal(self, parameter: Parameter, value: Any) -> exp.Expr:
        try:
            found = literal(value)
        except QueryTypeError as error:
            error.clause, error.span = self.source, parameter.span
            raise
        for node in found.walk():
            node.meta.update({BOUND: True, "start": parameter.span[0], "end": parameter.span[1] - 1})
        return found


def _parameters(source: str, condition: exp.Expr) -> tuple[Parameter, ...]:
    """The parameters of ``condition`` in the order of the text."""
    nodes, places = _placeholders(condition), _places(source)
    names = [name for name, _ in places]
    if [node.text("this") for node in nodes] != names:  # some are not in the condition
        raise _misplaced(source, places[0][1] if places else None)
    if "" in names and any(names):
        raise UnsupportedQueryError("the clause has parameters of two kinds: use ? or $name for all", source, None)
    found = []
    for number, (node, (name, span)) in enumerate(zip(nodes, places, strict=True), 1):
        if not isinstance(node.parent, PARENTS) or node.arg_key == "field":
            raise _misplaced(source, span)
        found.append(Parameter(name or str(number), span, isinstance(node.parent, TEXT_PARENTS)))
    return tuple(found)


def _misplaced(source: str, span: Span | None) -> UnsupportedQueryError:
    return UnsupportedQueryError(
        "a parameter cannot stand here: it is ? or $name, for one value that a column is compared with", source, span
    )


def _plain_sql(value: Any) -> str | None:
    """A string or a whole number as SQL, as :func:`_sql` writes it, without an expression; None of anything else."""
    if type(value) is str:
        return "'" + value.replace("'", "''") + "'"
    return str(value) if type(value) is int else None


def _sql(value: exp.Expr) -> str:
    """A value as SQL; of the most common kinds without sqlglot, which takes as long as all else together."""
    if isinstance(value, exp.Literal):
        return "'" + value.this.replace("'", "''") + "'" if value.is_string else str(value.this)
    if isinstance(value, exp.Neg):
        return f"-{_sql(value.this)}"
    kind = CASTS.get(value.to.this) if isinstance(value, exp.Cast) else None
    return written(value) if kind is None else f"CAST({_sql(value.this)} AS {kind})"


def _placeholders(condition: exp.Expr) -> list[exp.Placeholder]:
    return [node for node in condition.walk(bfs=False) if isinstance(node, exp.Placeholder)]


def _places(source: str) -> list[tuple[str, Span]]:
    """The name ("" of ``?``) and the place of every parameter in the text."""
    tokens = tokens_of(source)
    found = [("", (token.start, token.end + 1)) for token in tokens if token.token_type == TokenType.PLACEHOLDER]
    for sign, name in pairwise(tokens):
        if sign.token_type == TokenType.PARAMETER and sign.text == "$" and name.start == sign.end + 1:
            found.append((name.text, (sign.start, name.end + 1)))
    return sorted(found, key=lambda place: place[1])
