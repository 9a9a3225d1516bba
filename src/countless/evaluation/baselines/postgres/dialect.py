"""Translation of DuckDB types and clauses to PostgreSQL's dialect."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from countless.data.columns.types import DECIMAL, FLOATS, INTEGERS, TIMES
from countless.errors import UnknownColumnError, UnsupportedQueryError
from countless.query.parsing.parse import parse, span_of

NUMERIC = "NUMERIC"
TYPES = {
    **dict.fromkeys(INTEGERS, NUMERIC),  # for types without a counterpart: unsigned 64-bit and 128-bit integers
    "TINYINT": "SMALLINT",
    "UTINYINT": "SMALLINT",
    "SMALLINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "INTEGER": "INTEGER",
    "UINTEGER": "BIGINT",
    "BIGINT": "BIGINT",
    "FLOAT": "REAL",
    "DOUBLE": "DOUBLE PRECISION",
    "BOOLEAN": "BOOLEAN",
    **dict.fromkeys(TIMES, "TIMESTAMP"),
    "DATE": "DATE",
    "TIME": "TIME",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
}
assert set(TYPES) == INTEGERS | FLOATS | TIMES | {"BOOLEAN"}
# DuckDB types that PostgreSQL lacks, as sqlglot names them.
CASTS = {
    **dict.fromkeys((exp.DType.UBIGINT, exp.DType.INT128, exp.DType.UINT128), exp.DType.DECIMAL),
    exp.DType.UTINYINT: exp.DType.SMALLINT,
    exp.DType.USMALLINT: exp.DType.INT,
    exp.DType.UINT: exp.DType.BIGINT,
    exp.DType.TIMESTAMP_S: exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMP_MS: exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMP_NS: exp.DType.TIMESTAMP,
}


def postgres_type(duckdb_type: str) -> str:
    """The PostgreSQL type that stores a column; TEXT if there is no other.

    >>> [postgres_type(kind) for kind in ("UINTEGER", "HUGEINT", "DECIMAL(10,2)", "VARCHAR", "TIMESTAMP_NS")]
    ['BIGINT', 'NUMERIC', 'DECIMAL(10,2)', 'TEXT', 'TIMESTAMP']
    """
    if DECIMAL.fullmatch(duckdb_type):
        return duckdb_type
    return TYPES.get(duckdb_type, "TEXT")


def internal_name(column_index: int) -> str:
    """The name of a column in PostgreSQL, where long names, and names of system columns, are not possible.

    >>> internal_name(3)
    'c3'
    """
    return f"c{column_index}"


def translate(where: str, names: Sequence[str], postgres_names: Sequence[str] | None = None) -> str:
    r"""The clause in PostgreSQL's SQL. Columns get internal names, or the names in ``postgres_names``.

    >>> translate("\"Since When\" > DATE '2020-01-31' AND contains(city, '5%')", ["city", "Since When"])
    "c1 > CAST('2020-01-31' AS DATE) AND c0 LIKE '%5!%%' ESCAPE '!'"
    >>> translate("Since = 3", ["since"], ["since"])
    '"since" = 3'
    """
    index_of = {name.casefold(): column_index for column_index, name in enumerate(names)}
    tree = parse(where).copy()
    for column in list(tree.find_all(exp.Column)):
        column_index = index_of.get(column.name.casefold())
        if column_index is None:
            raise UnknownColumnError(f'the table has no column "{column.name}"', where, span_of(column, where))
        renamed = (
            exp.column(internal_name(column_index))
            if postgres_names is None
            else exp.column(postgres_names[column_index], quoted=True)
        )
        if column is tree:
            tree = renamed
        else:
            column.replace(renamed)
    try:
        return tree.transform(_rewrite).sql("postgres")
    except (ValueError, TypeError) as error:  # sqlglot cannot translate the clause
        raise UnsupportedQueryError(f"PostgreSQL has no such clause: {error}") from None


def _rewrite(node: exp.Expr) -> exp.Expr:
    """One node in PostgreSQL's dialect."""
    match node:
        case exp.DataType() if node.this in CASTS:
            return exp.DataType(this=CASTS[node.this])
        case exp.Contains() | exp.StartsWith() | exp.EndsWith() if isinstance(node.expression, exp.Literal):
            return _like(node)
        case exp.Like() | exp.ILike() if not isinstance(node.parent, exp.Escape) and "\\" in node.expression.name:
            return exp.Escape(
                this=node.copy(), expression=exp.Literal.string("")
            )  # in DuckDB a backslash is an ordinary character
        case _:
            return node


def _like(node: exp.Expr) -> exp.Expr:
    """A search for a piece as LIKE, for which PostgreSQL's planner has statistics."""
    piece = node.expression.name
    for special in "!%_":
        piece = piece.replace(special, "!" + special)
    before = "" if isinstance(node, exp.StartsWith) else "%"
    after = "" if isinstance(node, exp.EndsWith) else "%"
    like = exp.Like(this=node.this.copy(), expression=exp.Literal.string(before + piece + after))
    return exp.Escape(this=like, expression=exp.Literal.string("!"))
