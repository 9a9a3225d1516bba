"""Evaluation of a predicate on the distinct values of one column, by DuckDB.

For a column with a grid these are only its knots.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from countless.arrays import BoolArray, IntArray
from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import INTEGERS, TEXT, quote_identifier, sql_literal
from countless.data.sources.source import first_line
from countless.errors import (
    QueryError,
    QuerySyntaxError,
    QueryTooLargeError,
    QueryTypeError,
    UnsupportedQueryError,
    is_final,
)
from countless.query.domains.comparisons import FUNCTIONS, OPERATORS, plain_comparison
from countless.query.domains.plain_comparison import BETWEEN, IN, NUMBER
from countless.query.domains.truth import Truth
from countless.query.parsing.sql import written
from countless.query.sandbox.original_sql import columns_of
from countless.query.sandbox.process import TOO_DEEP, Sandbox, borrowed, new_owner

ZERO = "0.0"
SIGNED_VALUES = (ZERO, "nan")  # 0.0 = -0.0, but 1 / 0.0 > 0 and 1 / -0.0 < 0
TRUE, FALSE, NULL = "tfn"  # how the truth of a predicate is written, a letter for each value

MOST_EXPRESSIONS = 32  # whose values are cached
SMALL_INTEGERS = INTEGERS - {"HUGEINT", "UHUGEINT", "UBIGINT"}
NO_FUNCTION = re.compile(r"No function matches the given name and argument types '(.*?)\((.*?)\)'\.")
NO_SUCH = "there is no"
PATTERNS = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE", "~~~": "GLOB"}
WHOLE_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)


class WholeNumbers(NamedTuple):
    """The value of an expression for each code of a column, and where it is not NULL."""

    values: IntArray
    known: BoolArray

    def truth(self, operator: str, numbers: Sequence[int]) -> Truth:
        """Where the comparison of the values with ``numbers`` is true and where false."""
        if operator == BETWEEN:
            true = (self.values >= numbers[0]) & (self.values <= numbers[1]) & self.known
        elif operator == IN:
            true = np.isin(self.values, numbers) & self.known
        else:
            true = FUNCTIONS[OPERATORS[operator]](self.values, numbers[0]) & self.known
        return Truth(true, ~true & self.known)


class DomainTables:
    """The domains of a schema as tables in sandboxes, created when first needed. Safe to share by threads."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._owner = new_owner()
        self._values: dict[tuple[int, str], WholeNumbers | None] = {}  # of expressions

    def truth(self, index: int | None, predicate: exp.Expr, probes: Collection[str] | None = None) -> Truth:
        """Where ``predicate``, which names no column but the column at ``index``, is true and where it is false.

        Without a column (``index`` None) the predicate is a constant and the arrays have one element. With ``probes``
        it is evaluated at these values of a grid's column instead of at its knots.
        """
        if index is not None and probes is None:
            truth = self._by_whole_numbers(index, predicate)
            if truth is not None:
                return truth
        renamed = _renamed(predicate)
        try:
            with borrowed() as sandbox:
                source = "(SELECT 0 AS code)" if index is None else self._table(sandbox, index, probes)
                letters = truth_letters(sandbox, renamed, source, "code")
        except duckdb.Error as error:
            raise explain_error(error) from None
        size = 1 if index is None else len(values_of(self.schema.coded_column(index), probes))
        signs = 0 if index is None else 2 * len(self._signed(index))
        if len(letters) != size + signs:
            raise UnsupportedQueryError("a function that returns several rows cannot be part of a filter")
        if not np.array_equal(letters[size::2], letters[size + 1 :: 2]):
            assert index is not None
            raise sign_error([self.schema.names[index]])
        return Truth(letters[:size] == ord(TRUE), letters[:size] == ord(FALSE))

    def _by_whole_numbers(self, index: int, predicate: exp.Expr) -> Truth | None:
        """The truth of a comparison with integers. The values of the compared expression are cached."""
        compared = compared_expression(predicate)
        if compared is None:
            return None
        expression, operator, numbers = compared
        values = self.whole_numbers(index, expression)
        return None if values is None else values.truth(operator, numbers)

    def whole_numbers(self, index: int, expression: exp.Expr) -> WholeNumbers | None:
        """The values of an ``expression`` of a column, for each of its codes; None if they are not integers."""
        if self.schema.coded_column(index).name in self.schema.signed:
            return None
        key = (index, written(expression))
        if key not in self._values:
            while len(self._values) >= MOST_EXPRESSIONS:
                self._values.pop(next(iter(self._values)), None)
            self._values[key] = self._integers(index, expression)
        return self._values.get(key)

    def _integers(self, index: int, expression: exp.Expr) -> WholeNumbers | None:
        sql = f"({written(_renamed(expression))})"
        try:
            with borrowed() as sandbox:
                table = self._table(sandbox, index, None)
                value_list = f"list({sql} ORDER BY code)"
                ((kind, values),) = sandbox.run_user_sql(f"SELECT typeof(first({sql})), {value_list} FROM {table}", sql)
        except (duckdb.Error, QueryError) as error:  # the predicate has the same error
            if isinstance(error, QueryError) and is_final(error):
                raise
            return None
        if kind not in SMALL_INTEGERS or len(values) != len(values_of(self.schema.coded_column(index))):
            return None
        not_null = np.array([value is not None for value in values], dtype=np.bool_)
        return WholeNumbers(np.array([value or 0 for value in values], dtype=np.int64), not_null)

    def constants(self, kind: str, nodes: Sequence[exp.Expr]) -> list[tuple[str, str | None]] | None:
        """Type and text of each constant when compared with a column of type ``kind``; None if DuckDB refuses one.

        A string literal takes on the column's type; anything else keeps its own.
        """
        expressions = []
        for node in nodes:
            sql = written(node)
            expressions.append(
                f"CAST({sql} AS {kind})" if isinstance(node, exp.Literal) and node.is_string else f"({sql})"
            )
        selected = ", ".join(f"typeof({sql}), CAST({sql} AS VARCHAR)" for sql in expressions)
        try:
            with borrowed() as sandbox:
                rows = sandbox.run_user_sql(f"SELECT {selected}", ", ".join(expressions))
        except duckdb.Error:
            return None
        return list(zip(rows[0][::2], rows[0][1::2], strict=True)) if len(rows) == 1 else None

    def check(self, condition: str) -> None:
        """Raise DuckDB's error if it does not accept ``condition``, whose columns have the names of :func:`columns_of`.

        An expression that is too deep for DuckDB as a whole is no error: its parts may be evaluated one by one.
        """
        try:
            with borrowed() as sandbox:
                name = f"rows_{self._owner}"
                if not sandbox.has(name, self._owner):
                    sandbox.table(name, self._owner, f"CREATE TEMP TABLE {name} ({columns_of(self.schema)})")
                sandbox.run_user_sql(f"SELECT 1 FROM {name} WHERE ({condition}\n)", condition)
        except duckdb.Error as error:
            raise explain_error(error) from None
        except QueryTooLargeError as error:
            if error.message != TOO_DEEP:
                raise

    def folded(self, function: str, characters: Sequence[str]) -> list[str]:
        """The result of ``function`` (lower or upper) for each character."""
        with borrowed() as sandbox:
            rows = sandbox.run(f"SELECT {function}(unnest($1::VARCHAR[]))", [list(characters)])
        return [row[0] for row in rows]

    def members(self, regexes: Sequence[str], characters: Sequence[str]) -> list[list[bool]]:
        """For each of ``regexes``, which are about one character, which of ``characters`` match."""
        quoted = (sql_literal(regex, TEXT) for regex in regexes)  # as constants, so that each is compiled once
        selected = ", ".join(
            f"list(regexp_full_match(character, {regex}) ORDER BY character_index)" for regex in quoted
        )
        numbered = "SELECT unnest($1::VARCHAR[]) AS character, unnest(range(len($1::VARCHAR[]))) AS character_index"
        with borrowed() as sandbox:
            rows = sandbox.run(f"SELECT {selected} FROM ({numbered})", [list(characters)])
        return [list(matches or ()) for matches in rows[0]]

    def _table(self, sandbox: Sandbox, index: int, probes: Collection[str] | None) -> str:
        column = self.schema.coded_column(index)
        name = f"{'domain' if probes is None else 'probes'}_{self._owner}_{index}"
        if not sandbox.has(name, self._owner):
            texts = values_of(column, probes)
            texts += [sign + text for text in self._signed(index) for sign in ("", "-")]
            sandbox.table(
                name,
                self._owner,
                f"CREATE TEMP TABLE {name} AS SELECT code, CAST(text AS {column.type}) AS value "
                "FROM (SELECT unnest($texts::VARCHAR[]) AS text, unnest(range($size::BIGINT)) AS code)",
                {"texts": texts, "size": len(texts)},
            )
        return name

    def _signed(self, index: int) -> list[str]:
        """The values of a column, 0.0 or NaN, that the table has with both signs.

        A zero may lie between the knots of a grid; NaN has a cell of its own.
        """
        column = self.schema.coded_column(index)
        if column.name not in self.schema.signed:
            return []
        return [text for text in SIGNED_VALUES if text in column.values or (text == ZERO and column.grid is not None)]


def _renamed(node: exp.Expr) -> exp.Expr:
    return node.transform(lambda child: exp.column("value") if isinstance(child, exp.Column) else child)


def compared_expression(predicate: exp.Expr) -> tuple[exp.Expr, str, list[int]] | None:
    """The expression of a column, the operator and the integers of a comparison; None if ``predicate`` is not one."""
    with_value = predicate.copy()
    expression = next(
        (side for side in (with_value.this, with_value.args.get("expression")) if _is_of_column(side)), None
    )
    if expression is None or isinstance(expression, exp.Column):
        return None
    expression.replace(exp.column("value"))
    comparison = plain_comparison(with_value)
    if comparison is None or not comparison.constants:
        return None
    if not all(constant.kind == NUMBER and WHOLE_NUMBER.fullmatch(constant.text) for constant in comparison.constants):
        return None
    return expression, comparison.operator, [int(constant.text) for constant in comparison.constants]


def _is_of_column(side: object) -> bool:
    return isinstance(side, exp.Expr) and side.find(exp.Column) is not None


def sign_error(names: Sequence[str]) -> UnsupportedQueryError:
    """The error for an answer that depends on the sign of a zero or NaN in the columns called ``names``."""
    columns = list(map(quote_identifier, names))
    remedies = (f"(nullif({column}, 'nan') + 0.0) for {column}" for column in columns)
    return UnsupportedQueryError(
        f"the table has -0.0 or -NaN in {' and '.join(columns)}, and a model does not know which rows have it: "
        f"write {' and '.join(remedies)}, which turns -0.0 into 0.0 and NaN into NULL"
    )


def truth_letters(sandbox: Sandbox, predicate: exp.Expr, table: str, order: str) -> NDArray[np.uint8]:
    """Whether ``predicate`` is true of each row of a ``table``, by the column ``order``: TRUE, FALSE or NULL."""
    condition = f"({written(predicate)}) AND TRUE"
    ((truth,),) = sandbox.run_user_sql(
        f"SELECT string_agg(CASE WHEN truth THEN '{TRUE}' WHEN NOT truth THEN '{FALSE}' ELSE '{NULL}' END, "
        f"'' ORDER BY {order}) FROM (SELECT {order}, {condition} AS truth FROM {table})",
        condition,
    )
    return np.frombuffer((truth or "").encode(), dtype=np.uint8)


def values_of(column: Column, probes: Collection[str] | None = None) -> list[str | None]:
    """The values of a column by code, or the ``probes`` instead; NULL included if it occurs."""
    values = column.values if probes is None else probes
    return [*values, None] if column.has_null else list(values)


def explain_error(error: duckdb.Error) -> QueryError:
    """DuckDB's error as one of ours."""
    message = first_line(error).split("Error: ", 1)[-1]
    if isinstance(error, duckdb.ParserException):
        return QuerySyntaxError(f"DuckDB cannot read this: {message}")
    if "GROUP BY" in message or "aggregate" in message.lower():
        return UnsupportedQueryError("an aggregate has no value for a single row: only filters on rows can be counted")
    if isinstance(error, duckdb.CatalogException):
        return UnsupportedQueryError(f"DuckDB does not know this: {message}")
    if (called := NO_FUNCTION.match(message)) is not None:
        name, arguments = called.groups()
        return QueryTypeError(f"the types do not fit: {NO_SUCH} {PATTERNS.get(name, name)}({arguments})")
    return QueryTypeError(f"the types do not fit: {message}")
