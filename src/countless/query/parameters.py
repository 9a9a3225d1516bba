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
    """A parameter in a clause: its name or number, its position in the text, and whether it is compared as text."""

    name: str
    span: Span
    text: bool = False

    @property
    def sample(self) -> str:
        """A value of its type, as SQL."""
        return "''" if self.text else "NULL"


@dataclass(frozen=True, eq=False)
class Clause:
    """A parsed condition: its text, its expression, and the SQL that errors point into, if there is any.

    The expression of a clause with bound values is built on first access, because simple filters do not need it.
    ``checked`` says that DuckDB is known to accept the SQL. ``original`` is the expression before derived columns were
    put in place of their expressions; None if none were.
    """

    text: str
    expression: exp.Expr | Callable[[], exp.Expr]
    source: str | None
    parameters: tuple[Parameter, ...] = ()
    checked: bool = False
    original: exp.Expr | None = None

    @cached_property
    def condition(self) -> exp.Expr:
        """The expression."""
        return self.expression if isinstance(self.expression, exp.Expr) else self.expression()

    @classmethod
    def read(cls, where: Where, schema: Schema | None = None) -> Clause:
        """Parse ``where``; with a ``schema``, fields of structs are resolved to its columns.

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
        parameters = _parameters(where, condition) if any(sign in where for sign in SIGNS) else ()
        if schema is None or not schema.derived:
            return cls(where.strip(), condition, where, parameters)
        rewritten = with_derived(condition, schema, where)
        return cls(where.strip(), rewritten, where, parameters, original=None if rewritten is condition else condition)

    def unbound(self) -> UnsupportedQueryError:
        """The error for a clause that is asked before its parameters have values."""
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
            text += (
                f" {sql}" if sql.startswith("-") and text.endswith("-") else sql
            )  # a second minus would start a comment
            end = parameter.span[1]
        return Clause(
            (text + self.source[end:]).strip(), partial(self._with_values, assigned), self.source, checked=True
        )

    def _with_values(self, assigned: Sequence[tuple[Parameter, Any]]) -> exp.Expr:
        """The expression with values in place of its parameters."""
        condition = self.condition.copy()
        for node, (parameter, value) in zip(_placeholders(condition), assigned, strict=True):
            node.replace(self._literal(parameter, value))
        return condition

    def _assigned(self, values: Sequence[Any], named: Mapping[str, Any]) -> list[tuple[Parameter, Any]]:
        """Every parameter with its value."""
        values_by_name = {str(index): value for index, value in enumerate(values, 1)} | dict(named)
        names = {parameter.name for parameter in self.parameters}
        count = f"the clause has {len(names)} parameter{'' if len(names) == 1 else 's'}"
        for parameter in self.parameters:
            if parameter.name not in values_by_name:
                raise QueryTypeError(
                    f"{count}, and this one ({parameter.name}) has no value", self.source, parameter.span
                )
        unknown = [name for name in values_by_name if name not in names]
        if unknown:
            problem = f"${unknown[0]} is none of them" if unknown[0] in named else f"{len(values)} values were given"
            raise QueryTypeError(f"{count}, and {problem}", self.source, self.parameters[-1].span)
        return [(parameter, values_by_name[parameter.name]) for parameter in self.parameters]

    def _literal(self, parameter: Parameter, value: Any) -> exp.Expr:
        try:
            expression = literal(value)
        except QueryTypeError as error:
            error.clause, error.span = self.source, parameter.span
            raise
        for node in expression.walk():
            node.meta.update({BOUND: True, "start": parameter.span[0], "end": parameter.span[1] - 1})
        return expression


def _parameters(source: str, condition: exp.Expr) -> tuple[Parameter, ...]:
    """The parameters of ``condition`` in the order of the text."""
    nodes, spans = _placeholders(condition), _parameter_spans(source)
    names = [name for name, _ in spans]
    if [node.text("this") for node in nodes] != names:  # some parameters are outside the condition
        raise _misplaced(source, spans[0][1] if spans else None)
    if "" in names and any(names):
        raise UnsupportedQueryError("the clause has parameters of two kinds: use ? or $name for all", source, None)
    parameters = []
    for number, (node, (name, span)) in enumerate(zip(nodes, spans, strict=True), 1):
        if not isinstance(node.parent, PARENTS) or node.arg_key == "field":
            raise _misplaced(source, span)
        parameters.append(Parameter(name or str(number), span, isinstance(node.parent, TEXT_PARENTS)))
    return tuple(parameters)


def _misplaced(source: str, span: Span | None) -> UnsupportedQueryError:
    return UnsupportedQueryError(
        "a parameter cannot stand here: it is ? or $name, for one value that a column is compared with", source, span
    )


def _plain_sql(value: Any) -> str | None:
    """A string or an integer as SQL, as :func:`_sql` writes it, without an expression; None for other values."""
    if type(value) is str:
        return "'" + value.replace("'", "''") + "'"
    return str(value) if type(value) is int else None


def _sql(value: exp.Expr) -> str:
    """A value as SQL; the most common kinds without sqlglot, which would take as long as all other steps together."""
    if isinstance(value, exp.Literal):
        return "'" + value.this.replace("'", "''") + "'" if value.is_string else str(value.this)
    if isinstance(value, exp.Neg):
        return f"-{_sql(value.this)}"
    kind = CASTS.get(value.to.this) if isinstance(value, exp.Cast) else None
    return written(value) if kind is None else f"CAST({_sql(value.this)} AS {kind})"


def _placeholders(condition: exp.Expr) -> list[exp.Placeholder]:
    return [node for node in condition.walk(bfs=False) if isinstance(node, exp.Placeholder)]


def _parameter_spans(source: str) -> list[tuple[str, Span]]:
    """The name ("" for ``?``) and the span of every parameter in the text."""
    tokens = tokens_of(source)
    spans = [("", (token.start, token.end + 1)) for token in tokens if token.token_type == TokenType.PLACEHOLDER]
    for sign, name in pairwise(tokens):
        if sign.token_type == TokenType.PARAMETER and sign.text == "$" and name.start == sign.end + 1:
            spans.append((name.text, (sign.start, name.end + 1)))
    return sorted(spans, key=lambda named_span: named_span[1])
