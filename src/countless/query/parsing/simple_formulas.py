"""Simple filters joined by AND, OR, NOT and parentheses, read without a parser and looked up without the compiler.

The result is the formula that the compiler makes of the same clause. A clause with anything else in it, or about a
column whose values are not all listed, is left to the compiler.
"""

from __future__ import annotations

import re

from countless.errors import QueryError
from countless.query.boxes import CodeBox, cover, disjoint, filter_of
from countless.query.domains.domain_search import Search
from countless.query.formula import Formula, Want, all_of, any_of, leaf
from countless.query.parsing.simple_filters import COMPARISON, FLAGS, filter_at
from countless.region import Box, Region

# A filter ends where a connective or a parenthesis may stand.
TOKEN = re.compile(rf"\s*(?: {COMPARISON}(?=\s|\)|\Z) | (?P<word>AND|OR|NOT)\b | (?P<sign>[()]) )", FLAGS)
MOST_TOKENS = 64  # a longer clause is parsed


def simple_region(clause: str, search: Search) -> Region | None:
    """The rows of ``clause``, or None if it must be compiled."""
    tokens = _tokens(clause)
    if tokens is None:
        return None
    reader = _FormulaReader(tokens, search)
    try:
        formula = reader.either(Want.TRUE)
        if formula is None or reader.tokens:
            return None
        boxes = cover(formula)
        parts = disjoint(boxes)
    except QueryError:  # too many boxes: the compiler knows what to do
        return None

    def box(codes: CodeBox) -> Box:
        return Box(tuple(filter_of(search.schema, index, codes[index]) for index in sorted(codes)))

    return Region(tuple(map(box, parts)), tuple(map(box, boxes)) if len(parts) > 1 else ())


def _tokens(clause: str) -> list[re.Match[str]] | None:
    """Filters, connectives and parentheses, the last one first."""
    found: list[re.Match[str]] = []
    place, end = 0, len(clause.rstrip())
    while place < end:
        match = TOKEN.match(clause, place)
        if match is None or len(found) == MOST_TOKENS:
            return None
        found.append(match)
        place = match.end()
    return found[::-1]


class _FormulaReader:
    """Reads tokens from the end of a list; what is no formula of simple filters is None."""

    def __init__(self, tokens: list[re.Match[str]], search: Search) -> None:
        self.tokens = tokens
        self._search = search

    def either(self, want: Want) -> Formula | None:
        """Alternatives between ORs, as far as ``want`` holds of them."""
        return self._joined("OR", want)

    def _all(self, want: Want) -> Formula | None:
        return self._joined("AND", want)

    def _joined(self, word: str, want: Want) -> Formula | None:
        read = self._all if word == "OR" else self._one
        parts = []
        while True:
            part = read(want)
            if part is None:
                return None
            parts.append(part)
            if not self._takes(word):
                break
        if len(parts) == 1:
            return parts[0]
        return all_of(parts) if (word == "AND") == want.joins_as_written else any_of(parts)

    def _one(self, want: Want) -> Formula | None:
        """A filter, a formula in parentheses, or the negation of either."""
        if self._takes("NOT"):
            return self._one(want.negated())
        if self._takes("("):
            found = self.either(want)
            return found if self._takes(")") else None
        return self._filter(self.tokens.pop(), want) if self.tokens else None

    def _filter(self, match: re.Match[str], want: Want) -> Formula | None:
        schema = self._search.schema
        item = None if match["filter"] is None else filter_at(match, schema)
        if item is None:
            return None
        column = schema.columns[item.column]
        if column.is_text or column.grid is not None or column.name in schema.uuids:
            return None
        truth = self._search.truth(item.column, item.comparison)
        if truth is None:
            return None
        return leaf(item.column, (want.negated() if item.negated else want).codes(truth))

    def _takes(self, text: str) -> bool:
        """Take the next token if it is this word or sign."""
        if not self.tokens:
            return False
        match = self.tokens[-1]
        if (match["sign"] or (match["word"] or "").upper()) != text:
            return False
        self.tokens.pop()
        return True
