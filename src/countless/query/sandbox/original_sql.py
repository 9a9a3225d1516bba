"""The original text of a clause, for DuckDB to parse.

sqlglot reads more than DuckDB does, such as ``BETWEEN SYMMETRIC``, and rewrites it as SQL that DuckDB takes. So DuckDB
is shown the author's own words too, and what it objects to is not answered.
"""

from __future__ import annotations

import re

from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.data.columns.types import TEXT
from countless.query.parameters import Clause
from countless.query.parsing.names import resolve
from countless.query.parsing.sql import tokens_of
from countless.query.select.pieces import Pieces

# What sqlglot and DuckDB read alike, so that DuckDB need not be asked: most clauses have nothing else.
PLAIN: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.And, exp.Or, exp.Not, exp.Paren, exp.Column, exp.Identifier, exp.Literal, exp.Neg, exp.Boolean, exp.Null),
        *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Is, exp.Like, exp.ILike, exp.Placeholder),
    }
)
PLAIN_TYPES = frozenset(
    {exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.TIMESTAMPTZ, exp.DType.DOUBLE}
)

# After a comparison, and with nothing behind it that it could be a part of. So short, it is an INTEGER.
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
# Literals that may be any of their type: a text to look for, a number of characters, what a part is compared with.
FREE_LITERALS = (
    (re.compile(rf"\b({SEARCHES})\(({COLUMN}, ?){STRING}(?=\)|, ?\d{{1,9}}\))", re.ASCII | re.IGNORECASE), r"\1(\2''"),
    (re.compile(rf"\b((?:left|right)\({COLUMN}, ?)\d{{1,9}}(?=\))", re.ASCII | re.IGNORECASE), r"\g<1>0"),
    (re.compile(rf"\b(split_part\({COLUMN}, ?'', ?)\d{{1,9}}(?=\))", re.ASCII | re.IGNORECASE), r"\g<1>0"),
    (re.compile(rf"\b({PARTS}) (=|<>|!=) {STRING}{END}", re.ASCII | re.IGNORECASE), r"\1 \2 ''"),
)

# What DuckDB surely reads in the shape of a condition on columns of text.
SURE = re.compile(
    rf"\b(?:starts_with|ends_with|prefix|suffix|contains|regexp_matches|regexp_full_match)\({COLUMN}, ?''\)"
    rf"|\b(?:strpos|instr)\({COLUMN}, ?''\) (?:=|<>|!=|<|<=|>|>=) 0"
    rf"|\blength\({COLUMN}\) (?:(?:=|<>|!=|<|<=|>|>=) 0|BETWEEN 0 AND 0)"
    rf"|\b(?:{PARTS}) (?:=|<>|!=) ''",
    re.ASCII | re.IGNORECASE,
)
SURE_CONDITION = re.compile(r"[\s()]*(?:(?:SURE|AND|OR|NOT)[\s()]+)*(?:SURE)?[\s()]*")


def is_plain(condition: exp.Expr) -> bool:
    """Whether DuckDB surely reads ``condition`` as sqlglot does."""
    return all(type(node) in PLAIN or _is_plain(node) for node in condition.walk())


def surely_read(schema: Schema, clause: Clause) -> bool:
    """Whether DuckDB need not be asked about ``clause``, or cannot be.

    It cannot if a derived column was asked for by its expression, and the model does not hold a column in that.
    """
    original = clause.original or clause.condition
    if clause.checked or is_plain(original):
        return True
    return clause.original is not None and any(schema.find(own.name) is None for own in original.find_all(exp.Column))


def _is_plain(node: exp.Expr) -> bool:
    if isinstance(node, exp.Between):
        return not node.args.get("symmetric")
    if isinstance(node, exp.Escape):
        pattern, mark = node.this, node.expression
        return isinstance(pattern, exp.Like | exp.ILike) and isinstance(mark, exp.Literal) and mark.is_string
    if isinstance(node, exp.DataType):
        return node.this in PLAIN_TYPES and not node.expressions
    return type(node) is exp.Cast and isinstance(node.this, exp.Literal)


def original_condition(schema: Schema, clause: Clause) -> str:
    """The condition in the words of ``clause``, with the names that :func:`columns_of` gives to the columns.

    Parameters become values of no consequence. It has the tokens that sqlglot found and nothing between them, so that
    DuckDB finds no other ones in comments.
    """
    text = source = clause.source or ""
    condition = clause.original or clause.condition
    if isinstance(condition.parent, exp.Where):  # of a whole SELECT
        text = Pieces(source).where
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
    words, end = [], 0
    for number, token in enumerate(tokens_of(text)):
        word = text[token.start : token.end + 1]
        if token.start in dropped or word == ";" or (number == 0 and word.upper() == "WHERE"):
            continue
        gap = text[end : token.start]
        # Strings on two lines are one string, in SQL, and two on one line are an error.
        words.append("\n" if "\n" in gap else " " if gap else "")
        words.append(f" {names[token.start]} " if token.start in names else word)
        end = token.end + 1
    return "".join(words)


def shape_of(condition: str) -> str:
    """A condition but for the whole numbers that it compares with, and for texts that it searches columns for.

    DuckDB reads all conditions of one shape, or none; whether a regular expression is one is found out elsewhere.

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


def is_sure(schema: Schema, shape: str) -> bool:
    """Whether DuckDB surely reads conditions of a ``shape`` that sqlglot has read: they are about columns of text.

    >>> from countless.data.columns.schema import Column
    >>> schema = Schema(9, (Column("s", "VARCHAR", ("a",), False), Column("n", "BIGINT", ("1",), False)))
    >>> shapes = ("contains( __column_0 , '') AND length( __column_0 ) > 0", "contains( __column_1 , '')", "f(0) > 0")
    >>> [is_sure(schema, shape) for shape in shapes]
    [True, False, False]
    """
    types = {schema.columns[int(index)].type for index in re.findall(r"__column_(\d+)", shape)}
    return types == {TEXT} and SURE_CONDITION.fullmatch(SURE.sub("SURE", shape)) is not None


def columns_of(schema: Schema) -> str:
    """Every column of the table and its type, as in CREATE TABLE."""
    return ", ".join(f"{_name(index)} {column.type}" for index, column in enumerate(schema.columns))


def _name(index: int) -> str:
    return f"__column_{index}"
