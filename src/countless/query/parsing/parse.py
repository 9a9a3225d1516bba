"""Parsing of SQL in DuckDB's dialect, with errors that point at the position."""

from __future__ import annotations

import re
from itertools import islice, pairwise

from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.errors import QuerySyntaxError, UnsupportedQueryError
from countless.query.parsing.sql import read_condition, read_statement, tokens_of, written
from countless.query.parsing.struct_fields import merge_struct_fields
from countless.query.sandbox.functions import check_functions

MOST_UNDERLINED = 100  # literals of a list that are searched in the text
STATEMENT = re.compile(r"\s*(select|from|with)\b", re.IGNORECASE)
WHERE = re.compile(r"\s*where\b", re.IGNORECASE)

# Parts of a SELECT that would change the answer. ORDER BY, LIMIT and the selected columns would not: the question is
# how many rows the WHERE keeps.
UNSUPPORTED_PARTS = {
    "joins": "a join: Countless models one table",
    "group": "GROUP BY: Countless counts the rows that the WHERE keeps",
    "having": "HAVING: Countless counts the rows that the WHERE keeps",
    "qualify": "QUALIFY: Countless counts the rows that the WHERE keeps",
    "distinct": "DISTINCT: Countless counts the rows that the WHERE keeps",
    "with_": "WITH: Countless models one table",
    "sample": "a sample: Countless counts rows of the whole table",
    "pivots": "a pivot: Countless counts rows of the table as it is",
}
NO_VALUE = "a parameter has no value: write the literal instead, or call prepare(...) and then its result with values"
BOUND = "bound"  # in a node's meta: it is the value of a parameter
RANDOM = "a random function has no fixed set of rows"
UNSUPPORTED_NODES: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Query, "a subquery cannot be answered from a model of one table: put its result into the clause"),
    (exp.Window, "a window function has no value for a single row"),
    (exp.AggFunc, "an aggregate has no value for a single row: only filters on rows can be counted"),
    (exp.Placeholder, NO_VALUE),
    (exp.Parameter, NO_VALUE),
    (exp.PositionalColumn, "a column cannot be named by its position: name the column to filter on"),
    (exp.Columns, "COLUMNS is not a column: name the column to filter on"),
    (exp.Star, "* is not a column: name the column to filter on"),
    (exp.Rand, RANDOM),
    (exp.Uuid, RANDOM),
)
UNSUPPORTED_KINDS = tuple(kind for kind, _ in UNSUPPORTED_NODES)
SESSION = "a function of the session, or of how a table is stored, says nothing of its rows: write the value instead"
FUNCTIONS = {
    **dict.fromkeys(("random", "setseed", "uuid", "uuidv4", "uuidv7", "gen_random_uuid"), RANDOM),
    **dict.fromkeys(("nextval", "currval", "setval", "stats", "vector_type", "write_log", "sleep_ms"), SESSION),
    **dict.fromkeys(("current_query", "current_query_id", "current_transaction_id", "txid_current"), SESSION),
    **dict.fromkeys(("current_connection_id", "current_database", "current_schema", "current_schemas"), SESSION),
    **dict.fromkeys(("current_catalog", "current_setting", "in_search_path", "getvariable"), SESSION),
}


def parse(clause: str, schema: Schema | None = None, *, parameters: bool = False) -> exp.Expr:
    """The condition of ``clause``: a WHERE clause with or without its keyword, or a whole SELECT.

    With a ``schema``, a field of a struct is the column that the model knows it by, ``address.city`` in one name.
    Without ``parameters``, a clause that has some is an error.

    >>> parse("WHERE age > 35").sql("duckdb")
    'age > 35'
    >>> parse("SELECT * FROM people p WHERE p.age > 35 ORDER BY 1").sql("duckdb")
    'p.age > 35'
    """
    if not clause.strip():
        raise QuerySyntaxError("the clause is empty: write a condition such as age > 35, or TRUE for the whole table")
    if STATEMENT.match(clause):
        condition = _where_of(read_statement(clause), clause)
    else:
        keyword = WHERE.match(clause)
        skipped = keyword.end() if keyword else 0
        # Blanks keep every character of the condition at its position, so that spans fit the original text.
        condition = read_condition(" " * skipped + clause[skipped:], clause)
    if schema is not None and "." in clause:
        condition = merge_struct_fields(condition, schema)
    _refuse_torn_shifts(condition, clause)
    refuse_unsupported(condition, clause, parameters)
    check_functions(clause)
    return condition


def span_of(node: exp.Expr, clause: str | None) -> tuple[int, int] | None:
    """The span of ``node`` in the clause, from its first name to its last name or literal.

    sqlglot keeps the positions of names only. A node without a name has the span of its parent, or None.
    """
    if clause is None:
        return None
    metas = [
        child.meta
        for child in node.walk()
        if (isinstance(child, exp.Identifier | exp.Func) or BOUND in child.meta) and "start" in child.meta
    ]
    if not metas:
        return span_of(node.parent, clause) if node.parent is not None else None
    start, end = min(meta["start"] for meta in metas), max(meta["end"] for meta in metas) + 1
    literals = (child for child in node.find_all(exp.Literal) if BOUND not in child.meta)
    for child in islice(literals, MOST_UNDERLINED):
        text = written(child)
        position = clause.find(text, start)
        if position >= 0:
            end = max(end, position + len(text))
    return start, end


def _where_of(statement: exp.Expr, clause: str) -> exp.Expr:
    if not isinstance(statement, exp.Select):
        raise UnsupportedQueryError("only a plain SELECT ... FROM table WHERE ... can be answered", clause, None)
    source = statement.args.get("from_")
    if source is not None and not isinstance(source.this, exp.Table):
        raise UnsupportedQueryError("the statement selects from a subquery: Countless models one table", clause, None)
    for node in (
        (statement, source.this) if source is not None else (statement,)
    ):  # a sample or a pivot may be on either
        for part, reason in UNSUPPORTED_PARTS.items():
            if node.args.get(part):
                raise UnsupportedQueryError(f"the statement has {reason}", clause, None)
    where = statement.args.get("where")
    return where.this if where is not None else exp.true()


def _refuse_torn_shifts(condition: exp.Expr, clause: str) -> None:
    """Refuse ``a > > 3``, which sqlglot parses as a shift and DuckDB does not."""
    if condition.find(exp.BitwiseLeftShift, exp.BitwiseRightShift) is None:
        return
    for token, following in pairwise(tokens_of(clause)):
        if token.text == following.text and token.text in ("<", ">") and following.start > token.end + 1:
            raise QuerySyntaxError(
                f"syntax error: did not expect {following.text!r} here", clause, (following.start, following.end + 1)
            )


def refuse_unsupported(condition: exp.Expr, clause: str, parameters: bool) -> None:
    """Refuse expressions that have no value for a single row of one table."""
    for node in condition.walk():
        if parameters and isinstance(node, exp.Placeholder):
            continue
        if isinstance(node, UNSUPPORTED_KINDS):
            reason = next(reason for kind, reason in UNSUPPORTED_NODES if isinstance(node, kind))
            raise UnsupportedQueryError(reason, clause, span_of(node, clause))
        if isinstance(node, exp.Func):
            name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
            if name.lower() in FUNCTIONS:
                raise UnsupportedQueryError(FUNCTIONS[name.lower()], clause, span_of(node, clause))
    tables = {column.table.casefold() for column in condition.find_all(exp.Column) if column.table}
    if len(tables) > 1:
        raise UnsupportedQueryError(
            f"the clause names several tables ({', '.join(sorted(tables))}): Countless models one", clause, None
        )
