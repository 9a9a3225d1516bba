"""Conjunctions of simple filters, read without a parser: a column compared with literals, and AND between them.

Most clauses are that plain, and to parse SQL takes longer than to answer them. Each filter becomes the very expression
that the parser makes of it. A clause with anything else in it, or with a doubt, is left to the parser.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.query.sql import DIALECT, read_condition

_STRING = r"'(?:[^'\\]|'')*'"
_NUMBER = r"\d+(?:\.\d+)?"
_TYPE = r"(?:DOUBLE|DATE|TIMESTAMP(?:[ ]WITH[ ]TIME[ ]ZONE)?)"
_PLAIN = rf"{_STRING}|{_NUMBER}|TRUE|FALSE|CAST\({_STRING}[ ]AS[ ]{_TYPE}\)|(?:DATE|TIMESTAMP)[ ]{_STRING}"
_VALUE = rf"(?:{_PLAIN}|(?<=[\s(,])-{_NUMBER})"  # an operator right before a minus may be another operator
FILTER = re.compile(
    rf"""(?P<filter>
        (?: "(?P<quoted>[^".]+)" | (?P<name>[A-Z_][A-Z0-9_]*) )
        (?: \s*(?P<operator><>|!=|<=|>=|=|<|>)\s*(?P<value>{_VALUE})
          | \s+BETWEEN\s+(?P<low>{_VALUE})\s+AND\s+(?P<high>{_VALUE})
          | \s+(?P<no>NOT\s+)?IN\s*\(\s*(?P<list>{_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)
          | \s+IS\s+(?P<not>NOT\s+)?NULL ) )
        (?:\s+(?P<more>AND)\s+ | \s*\Z )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
LISTED = re.compile(rf"{_PLAIN}|-{_NUMBER}", re.IGNORECASE | re.ASCII)
OPERATORS: dict[str, type[exp.Expr]] = {
    "=": exp.EQ,
    "<>": exp.NEQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}
KEYWORDS = frozenset(word.upper() for word in DIALECT.tokenizer_class.KEYWORDS)


class SimpleFilter(NamedTuple):
    """A filter as it was found: its text, and the column's place in the table."""

    text: str
    column: int
    match: re.Match[str]

    @property
    def expression(self) -> exp.Expr:
        """What the parser makes of it."""
        found = self.match
        name = found["quoted"] or found["name"]
        column = exp.Column(this=exp.Identifier(this=name, quoted=found["quoted"] is not None))
        if found["operator"]:
            return OPERATORS[found["operator"]](this=column, expression=_value(found["value"]))
        if found["low"]:
            return exp.Between(this=column, low=_value(found["low"]), high=_value(found["high"]))
        if found["list"]:
            values = [_value(each.group()) for each in LISTED.finditer(found["list"])]
            chosen = exp.In(this=column, expressions=values)
            return exp.Not(this=chosen) if found["no"] else chosen
        null = exp.Is(this=column, expression=exp.Null())
        return exp.Not(this=null) if found["not"] else null


def simple_filters(clause: str, schema: Schema) -> list[SimpleFilter] | None:
    """The filters of ``clause``, or None if it is no conjunction of simple ones about columns of the table."""
    clause = clause.strip()
    found, place, more = [], 0, True
    while more:
        match = FILTER.match(clause, place)
        if match is None:
            return None
        name = match["quoted"]
        if name is None:
            name = match["name"]
            if name.upper() in KEYWORDS:
                return None
        column = schema.find(name)
        if column is None:
            return None
        found.append(SimpleFilter(match["filter"], column, match))
        place, more = match.end(), match["more"] is not None
    return found


def _value(text: str) -> exp.Expr:
    first = text[0]
    if first == "'":
        return _string(text)
    if first == "-":
        return exp.Neg(this=exp.Literal(this=text[1:], is_string=False))
    if first.isdigit():
        return exp.Literal(this=text, is_string=False)
    if first in "tTfF" and text[-1] != "'":
        return exp.Boolean(this=text.upper() == "TRUE")
    before, string = text.split("'", 1)
    inside, after = string.rsplit("'", 1)
    kind = (after[4:-1] if after else before).strip().upper()
    cast = _cast(kind).copy()
    cast.set("this", _string(f"'{inside}'"))
    return cast


def _string(quoted: str) -> exp.Literal:
    return exp.Literal(this=quoted[1:-1].replace("''", "'"), is_string=True)


@lru_cache(maxsize=16)
def _cast(kind: str) -> exp.Expr:
    text = f"CAST('' AS {kind})"
    return read_condition(text, text)
