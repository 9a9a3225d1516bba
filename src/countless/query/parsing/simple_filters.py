"""Conjunctions of simple filters, read without a parser: a column compared with literals, and AND between them.

Most clauses are that plain, and to parse SQL takes longer than to answer them; to load the parser takes longer still.
Each filter becomes the very comparison that the parser makes of it. A clause with anything else in it, or with a doubt,
is left to the parser.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from countless.data.columns.schema import Schema
from countless.query.domains.plain_comparison import (
    BETWEEN,
    BOOLEAN,
    IN,
    IS_NULL,
    NUMBER,
    STRING,
    Constant,
    PlainComparison,
)
from countless.query.parsing.keywords import KEYWORDS

_STRING = r"'(?:[^'\\]|'')*'"
_NUMBER = r"\d+(?:\.\d+)?"
_TYPE = r"(?:DOUBLE|DATE|TIMESTAMP(?:[ ]WITH[ ]TIME[ ]ZONE)?)"
_PLAIN = rf"{_STRING}|{_NUMBER}|TRUE|FALSE|CAST\({_STRING}[ ]AS[ ]{_TYPE}\)|(?:DATE|TIMESTAMP)[ ]{_STRING}"
_VALUE = rf"(?:{_PLAIN}|(?<=[\s(,])-{_NUMBER})"  # an operator right before a minus may be another operator
COMPARISON = rf"""(?P<filter>
        (?: "(?P<quoted>[^".]+)" | (?P<name>[A-Z_][A-Z0-9_]*) )
        (?: \s*(?P<operator><>|!=|<=|>=|=|<|>)\s*(?P<value>{_VALUE})
          | \s+BETWEEN\s+(?P<low>{_VALUE})\s+AND\s+(?P<high>{_VALUE})
          | \s+(?P<no>NOT\s+)?IN\s*\(\s*(?P<list>{_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)
          | \s+IS\s+(?P<not>NOT\s+)?NULL ) )"""
FLAGS = re.VERBOSE | re.IGNORECASE | re.ASCII
FILTER = re.compile(COMPARISON + r"(?: \s+(?P<more>AND)\s+ | \s*\Z )", FLAGS)
LISTED = re.compile(rf"{_PLAIN}|-{_NUMBER}", re.IGNORECASE | re.ASCII)


class SimpleFilter(NamedTuple):
    """A filter: its text, the index of its column, and how it was matched."""

    text: str
    column: int
    match: re.Match[str]

    @property
    def comparison(self) -> PlainComparison:
        """What it says, or denies if it is :attr:`negated`."""
        operator, value, low, high, values = self.match.group("operator", "value", "low", "high", "list")
        if operator:
            return PlainComparison("<>" if operator == "!=" else operator, (_constant(value),))
        if low:
            return PlainComparison(BETWEEN, (_constant(low), _constant(high)))
        if values:
            return PlainComparison(IN, tuple([_constant(literal) for literal in LISTED.findall(values)]))
        return PlainComparison(IS_NULL)

    @property
    def negated(self) -> bool:
        """Whether it is NOT IN or IS NOT NULL."""
        return bool(self.match["no"] or self.match["not"])


def simple_filters(clause: str, schema: Schema) -> list[SimpleFilter] | None:
    """The filters of ``clause``, or None if it is no conjunction of simple ones about columns of the table."""
    clause = clause.strip()
    filters, position, is_last = [], 0, False
    while not is_last:
        match = FILTER.match(clause, position)
        if match is None:
            return None
        item = filter_at(match, schema)
        if item is None:
            return None
        filters.append(item)
        position, is_last = match.end(), match["more"] is None
    return filters


def filter_at(match: re.Match[str], schema: Schema) -> SimpleFilter | None:
    """The filter that was matched, or None if it is not about a column of the table."""
    name = match["quoted"]
    if name is None:
        name = match["name"]
        if name.upper() in KEYWORDS:
            return None
    column = schema.find(name)
    return None if column is None else SimpleFilter(match["filter"], column, match)


def _constant(text: str) -> Constant:
    first = text[0]
    if first == "'":
        return Constant(STRING, text[1:-1].replace("''", "'"))
    if first == "-" or first.isdigit():
        return Constant(NUMBER, text)
    if text[-1] not in "')":
        return Constant(BOOLEAN, text.lower())
    prefix, string = text.split("'", 1)  # DATE '2020-01-31', or CAST('2020-01-31' AS DATE)
    value, suffix = string.rsplit("'", 1)
    return Constant((suffix[4:-1] if suffix else prefix).strip().upper(), value.replace("''", "'"))
