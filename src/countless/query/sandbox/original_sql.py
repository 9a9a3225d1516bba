"""The original text of a clause, for DuckDB to parse.

sqlglot parses more than DuckDB does, such as ``BETWEEN SYMMETRIC``, and rewrites it as SQL that DuckDB accepts. So
DuckDB also parses the original text, and a clause that it refuses is an error.
"""

from __future__ import annotations

import re

from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.data.columns.types import TEXT
from countless.query.parameters import Clause
from countless.query.parsing.names import resolve
from countless.query.parsing.sql import tokens_of
from countless.query.select.statement_text import StatementText

# Nodes that sqlglot and DuckDB parse alike. Most clauses have no others, and then DuckDB need not check them.
PLAIN_NODES: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.And, exp.Or, exp.Not, exp.Paren, exp.Column, exp.Identifier, exp.Literal, exp.Neg, exp.Boolean, exp.Null),
        *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Is, exp.Like, exp.ILike, exp.Placeholder),
    }
)
PLAIN_TYPES = frozenset(
    {exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.TIMESTAMPTZ, exp.DType.DOUBLE}
)

# Numbers that are compared and are no part of a longer expression. They are so short that they are INTEGERs.
END = r"(?=\s*(?:\)|AND\b|OR\b|\Z))"
COMPARED_NUMBERS = (
    (re.compile(rf"(?<=[=<>] )\d{{1,9}}{END}", re.ASCII | re.IGNORECASE), "0"),
    (re.compile(rf"\bBETWEEN \d{{1,9}} AND \d{{1,9}}{END}", re.ASCII | re.IGNORECASE), "BETWEEN 0 AND 0"),
    (re.compile(rf"\bIN \(\d{{1,9}}(?:, ?\d{{1,9}})*\){END}", re.ASCII | re.IGNORECASE), "IN (0)"),
)
STRING = r"'(?:[^'\n]|'')*'"
COLUMN = r" ?__column_\d+ ?"
SEARCHES = "starts_with|ends_with|prefix|suffix|contains|strpos|instr|regexp_matches|regexp_full_match|split_part"
PARTS = rf"(?:left|right)\({COLUMN}, ?0\)|split_part\({COLUMN}, ?'', ?0\)"
# Literals whose value does not matter to the parser: texts to search for, numbers of characters, compared parts.
FREE_LITERALS = (
    (re.compile(rf"\b({SEARCHES})\(({COLUMN}, ?){STRING}(?=\)|, ?\d{{1,9}}\))", re.ASCII | re.IGNORECASE), r"\1(\2''"),
    (re.compile(rf"\b((?:left|right)\({COLUMN}, ?)\d{{1,9}}(?=\))", re.ASCII | re.IGNORECASE), r"\g<1>0"),
    (re.compile(rf"\b(split_part\({COLUMN}, ?'', ?)\d{{1,9}}(?=\))", re.ASCII | re.IGNORECASE), r"\g<1>0"),
    (re.compile(rf"\b({PARTS}) (=|<>|!=) {STRING}{END}", re.ASCII | re.IGNORECASE), r"\1 \2 ''"),
)

# Calls in the shape of a condition that DuckDB surely accepts on columns of text.
ACCEPTED = re.compile(
    rf"\b(?:starts_with|ends_with|prefix|suffix|contains|regexp_matches|regexp_full_match)\({COLUMN}, ?''\)"
    rf"|\b(?:strpos|instr)\({COLUMN}, ?''\) (?:=|<>|!=|<|<=|>|>=) 0"
    rf"|\blength\({COLUMN}\) (?:(?:=|<>|!=|<|<=|>|>=) 0|BETWEEN 0 AND 0)"
    rf"|\b(?:{PARTS}) (?:=|<>|!=) ''",
    re.ASCII | re.IGNORECASE,
)
ACCEPTED_CONDITION = re.compile(r"[\s()]*(?:(?:ACCEPTED|AND|OR|NOT)[\s()]+)*(?:ACCEPTED)?[\s()]*")


def is_plain(condition: exp.Expr) -> bool:
    """Whether DuckDB surely parses ``condition`` as sqlglot does."""
    return all(type(node) in PLAIN_NODES or _is_plain_node(node) for node in condition.walk())


def is_known_to_be_accepted(schema: Schema, clause: Clause) -> bool:
    """Whether DuckDB need not check ``clause``, or cannot.

    It cannot if an expression was replaced by a derived column, and the model does not have a column of the expression.
    """
    original = clause.original or clause.condition
    if clause.checked or is_plain(original):
        return True
    return clause.original is not None and any(
        schema.find(column.name) is None for column in original.find_all(exp.Column)
    )


def _is_plain_node(node: exp.Expr) -> bool:
    if isinstance(node, exp.Between):
        return not node.args.get("symmetric")
    if isinstance(node, exp.Escape):
        pattern, mark = node.this, node.expression
        return isinstance(pattern, exp.Like | exp.ILike) and isinstance(mark, exp.Literal) and mark.is_string
    if isinstance(node, exp.DataType):
        return node.this in PLAIN_TYPES and not node.expressions
    return type(node) is exp.Cast and isinstance(node.this, exp.Literal)


def original_condition(schema: Schema, clause: Clause) -> str:
    """The condition as ``clause`` spells it, with the column names of :func:`columns_of`.

    Parameters become sample values. The text has the tokens that sqlglot found and no comments between them, in which
    DuckDB might find other tokens.
    """
    text = source = clause.source or ""
    condition = clause.original or clause.condition
    if isinstance(condition.parent, exp.Where):  # of a whole SELECT
        text = StatementText(source).where
    names: dict[int, str] = {}
    dropped: set[int] = set()
    for parameter in clause.parameters:
        start, end = parameter.span
        names[start] = parameter.sample
        dropped.update(range(start + 1, end))
    for column in condition.find_all(exp.Column):
        first, last = column.parts[0].meta["start"], column.parts[-1].meta["end"]
        names[first] = _name(resolve(schema, column, source))
        dropped.update(range(first + 1, last + 1))
    tokens, end = [], 0
    for number, token in enumerate(tokens_of(text)):
        token_text = text[token.start : token.end + 1]
        if token.start in dropped or token_text == ";" or (number == 0 and token_text.upper() == "WHERE"):
            continue
        gap = text[end : token.start]
        # In SQL, two strings on two lines are one string, and two on one line are an error.
        tokens.append("\n" if "\n" in gap else " " if gap else "")
        tokens.append(f" {names[token.start]} " if token.start in names else token_text)
        end = token.end + 1
    return "".join(tokens)


def shape_of(condition: str) -> str:
    """A condition without the values of the integers that it compares with and of the texts that it searches for.

    DuckDB accepts all conditions of one shape, or none. Regular expressions are checked elsewhere.

    >>> shape_of("hour(moment) = 17 AND small + 3 >= 50"), shape_of("small = 17 + 4")
    ('hour(moment) = 0 AND small + 3 >= 0', 'small = 17 + 4')
    >>> shape_of("day(moment) BETWEEN 3 AND 17 OR month(moment) IN (2, 3, 11)")
    'day(moment) BETWEEN 0 AND 0 OR month(moment) IN (0)'
    >>> shape_of("strpos(__column_3, 'it''s') > 0 AND split_part(__column_3, '/', 2) = 'etc'")
    "strpos(__column_3, '') > 0 AND split_part(__column_3, '', 0) = ''"
    """
    for literals, plain in (*FREE_LITERALS, *COMPARED_NUMBERS):
        condition = literals.sub(plain, condition)
    return condition


def is_surely_accepted(schema: Schema, shape: str) -> bool:
    """Whether DuckDB surely accepts conditions of a ``shape`` that sqlglot has parsed: they are on columns of text.

    >>> from countless.data.columns.schema import Column
    >>> schema = Schema(9, (Column("s", "VARCHAR", ("a",), False), Column("n", "BIGINT", ("1",), False)))
    >>> shapes = ("contains( __column_0 , '') AND length( __column_0 ) > 0", "contains( __column_1 , '')", "f(0) > 0")
    >>> [is_surely_accepted(schema, shape) for shape in shapes]
    [True, False, False]
    """
    types = {schema.columns[int(index)].type for index in re.findall(r"__column_(\d+)", shape)}
    return types == {TEXT} and ACCEPTED_CONDITION.fullmatch(ACCEPTED.sub("ACCEPTED", shape)) is not None


def columns_of(schema: Schema) -> str:
    """Every column of the table and its type, as in CREATE TABLE."""
    return ", ".join(f"{_name(index)} {column.type}" for index, column in enumerate(schema.columns))


def _name(index: int) -> str:
    return f"__column_{index}"
