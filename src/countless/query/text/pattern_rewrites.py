"""Rewrites functions of strings as patterns: ``left(s, 2) = 'ab'`` becomes a test for a prefix.

All other functions stay as they are, and are answered from evidence rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.data.columns.types import TEXT
from countless.query.domains.comparisons import FLIPPED

ESCAPE = "\ue000"  # in the LIKE patterns that are made here
MOST_COUNTED = 200  # characters or parts that a pattern skips
FUNCTIONS = (exp.Left, exp.Right, exp.Substring, exp.SplitPart)
CONTAINED = {(exp.GT, 0), (exp.GTE, 1), (exp.NEQ, 0)}  # comparisons of strpos() that are true if the text occurs
MISSING = {(exp.EQ, 0), (exp.LTE, 0), (exp.LT, 1)}
WORD = re.compile(r"\w", re.ASCII)


def with_patterns(condition: exp.Expr, schema: Schema) -> exp.Expr:
    """``condition`` with every function that tests for a pattern as that pattern.

    >>> from countless.data.columns.schema import Column
    >>> from countless.query.parsing.parse import parse
    >>> schema = Schema(9, (Column("s", "VARCHAR", ("a",), False),))
    >>> with_patterns(parse("left(s, 2) = 'ab' AND NOT strpos(s, 'x') > 0"), schema).sql("duckdb")
    "STARTS_WITH(s, 'ab') AND NOT CONTAINS(s, 'x')"
    """
    if condition.find(exp.Bracket, exp.Glob, exp.StrPosition, *FUNCTIONS) is None:
        return condition

    def rewrite(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Bracket):
            return _subscript(node, schema) or node
        if isinstance(node, exp.Glob):
            return _glob(node, schema) or node
        if type(node) in FLIPPED:
            left, right, kind = node.this, node.expression, type(node)
            if isinstance(left, exp.Literal | exp.Neg):
                left, right, kind = right, left, FLIPPED[kind]
            return _compared(kind, left, right, schema) or node
        if isinstance(node, exp.In) and isinstance(node.this, FUNCTIONS) and node.expressions:
            rewritten = [_compared(exp.EQ, node.this, constant, schema) for constant in node.expressions]
            patterns = [pattern for pattern in rewritten if pattern is not None]
            return exp.paren(exp.or_(*patterns)) if len(patterns) == len(rewritten) else node
        return node

    # Subscripts first: comparisons above them see functions.
    with_functions = condition.copy().transform(lambda node: rewrite(node) if isinstance(node, exp.Bracket) else node)
    return with_functions.transform(lambda node: node if isinstance(node, exp.Bracket) else rewrite(node))


def _compared(kind: type[exp.Expr], function: exp.Expr, constant: exp.Expr, schema: Schema) -> exp.Expr | None:
    if isinstance(function, exp.Paren):
        return _compared(kind, function.this, constant, schema)
    if isinstance(function, exp.StrPosition):
        return _strpos_comparison(kind, function, _number(constant), schema)
    if type(function) not in PATTERNS or kind not in (exp.EQ, exp.NEQ) or not _is_subject(function.this, schema):
        return None
    text = _text(constant)
    pattern = None if text is None else PATTERNS[type(function)](function, text)
    return exp.not_(pattern) if pattern is not None and kind is exp.NEQ else pattern


def _strpos_comparison(
    kind: type[exp.Expr], function: exp.StrPosition, number: int | None, schema: Schema
) -> exp.Expr | None:
    """``strpos(s, 'x')`` compared with a number."""
    text = _text(function.args["substr"])
    if not text or function.args.get("position") or not _is_subject(function.this, schema):
        return None
    contains = exp.Contains(this=function.this, expression=exp.Literal.string(text))
    if (kind, number) in CONTAINED:
        return contains
    if (kind, number) in MISSING:
        return exp.not_(contains)
    return _starts(function.this, text) if (kind, number) == (exp.EQ, 1) else None


def _starts(subject: exp.Expr, text: str) -> exp.Expr:
    return exp.StartsWith(this=subject, expression=exp.Literal.string(text))


def _left(function: exp.Expr, text: str) -> exp.Expr | None:
    return _prefix_or_suffix(function, text, exp.StartsWith)


def _right(function: exp.Expr, text: str) -> exp.Expr | None:
    return _prefix_or_suffix(function, text, exp.EndsWith)


def _prefix_or_suffix(
    function: exp.Expr, text: str, kind: type[exp.StartsWith] | type[exp.EndsWith]
) -> exp.Expr | None:
    count = _number(function.expression)
    if count is None or count < 1:
        return None
    if len(text) == count:
        return kind(this=function.this, expression=exp.Literal.string(text))
    return _equals(function.this, text) if len(text) < count else _never(function.this)


def _substring(function: exp.Expr, text: str) -> exp.Expr | None:
    start, count = _number(function.args["start"]), function.args.get("length")
    length = len(text) + 1 if count is None else _number(count)
    if start is None or length is None or not 1 <= start <= MOST_COUNTED or length < 1 or not text:
        return None
    if len(text) > length:
        return _never(function.this)
    if start == 1:
        return _starts(function.this, text) if len(text) == length else _equals(function.this, text)
    escaped = "".join(ESCAPE + character if character in ("%", "_", ESCAPE) else character for character in text)
    return _like(function.this, "_" * (start - 1) + escaped + "%" * (len(text) == length))


def _split_part(function: exp.Expr, text: str) -> exp.Expr | None:
    """A part that is not empty: a part that the string does not have is empty, too."""
    part_number, delimiter = _number(function.args["part_index"]), _text(function.args["delimiter"])
    if (
        part_number is None
        or not 1 <= part_number <= MOST_COUNTED
        or delimiter is None
        or len(delimiter) != 1
        or not text
    ):
        return None
    if delimiter in text:
        return _never(function.this)
    mark = _quoted(delimiter)
    pattern = f"(?s)(?:[^{mark}]*{mark}){{{part_number - 1}}}{_quoted(text)}(?:{mark}.*)?"
    return exp.RegexpFullMatch(this=function.this, expression=exp.Literal.string(pattern))


PATTERNS: dict[type[exp.Expr], Callable[[exp.Expr, str], exp.Expr | None]] = {
    exp.Left: _left,
    exp.Right: _right,
    exp.Substring: _substring,
    exp.SplitPart: _split_part,
}


def _subscript(node: exp.Bracket, schema: Schema) -> exp.Expr | None:
    """A subscript of a string, ``s[2:5]``, as a function."""
    if len(node.expressions) != 1 or not _is_subject(node.this, schema):
        return None
    index = node.expressions[0]
    if not isinstance(index, exp.Slice):
        position = _number(index) if isinstance(node.this, exp.Column) else None  # of these, sqlglot counts from 0
        return None if position is None or position < 0 else _substring_call(node.this, position + 1, 1)
    if index.args.get("step"):
        return None
    low, high = (None if end is None else _number(end) for end in (index.this, index.expression))
    first = 1 if index.this is None else low
    if first is None or first < 1 or (index.expression is not None and (high is None or high < first)):
        return None
    return _substring_call(node.this, first, None if high is None else high - first + 1)


def _substring_call(subject: exp.Expr, start: int, length: int | None) -> exp.Expr:
    count = None if length is None else exp.Literal.number(length)
    return exp.Substring(this=subject, start=exp.Literal.number(start), length=count)


def _glob(node: exp.Glob, schema: Schema) -> exp.Expr | None:
    """A GLOB without classes. In one, ? is a byte: only where every character is one, it is ``_``."""
    pattern = _text(node.expression)
    if pattern is None or "[" in pattern or not _is_subject(node.this, schema):
        return None
    if "?" in pattern and not _is_ascii(node.this, schema):
        return None
    like_pattern, characters = "", iter(pattern)
    for character in characters:
        if character == "\\":
            character = next(characters, "")
            if not character:
                return None
            like_pattern += ESCAPE + character
        elif character in "*?":
            like_pattern += "%" if character == "*" else "_"
        else:
            like_pattern += ESCAPE + character if character in ("%", "_", ESCAPE) else character
    return _like(node.this, like_pattern)


def _like(subject: exp.Expr, pattern: str) -> exp.Expr:
    like = exp.Like(this=subject, expression=exp.Literal.string(pattern))
    return exp.Escape(this=like, expression=exp.Literal.string(ESCAPE)) if ESCAPE in pattern else like


def _equals(subject: exp.Expr, text: str) -> exp.Expr:
    return exp.EQ(this=subject, expression=exp.Literal.string(text))


def _never(subject: exp.Expr) -> exp.Expr:
    """False of every string, and NULL of NULL."""
    return exp.LT(this=exp.Length(this=subject), expression=exp.Literal.number(0))


def _is_subject(node: exp.Expr, schema: Schema) -> bool:
    """Whether ``node`` is a column of strings, or its lower() or upper()."""
    while isinstance(node, exp.Paren | exp.Lower | exp.Upper):
        node = node.this
    index = schema.find(node.name) if isinstance(node, exp.Column) else None
    return index is not None and schema.columns[index].type == TEXT and schema.columns[index].name not in schema.uuids


def _is_ascii(node: exp.Expr, schema: Schema) -> bool:
    reference = node.find(exp.Column)
    index = schema.find(reference.name) if reference is not None else None
    if index is None:
        return False
    column = schema.columns[index]
    return column.is_text and column.letters.characters.isascii()


def _text(node: exp.Expr) -> str | None:
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def _number(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    return int(node.this) if isinstance(node, exp.Literal) and node.is_int else None


def _quoted(text: str) -> str:
    """``text`` in a regular expression."""
    return "".join(character if WORD.match(character) else rf"\x{{{ord(character):x}}}" for character in text)
