"""Simple filters joined by AND, OR, NOT and parentheses, read without a parser and looked up without the compiler.

The result is the formula that the compiler makes of the same clause. A clause with anything else in it, or about text,
is left to the compiler.
"""

from __future__ import annotations

import re

from countless.errors import QueryError
from countless.query.boxes import CodeBox, cover, disjoint, filter_of
from countless.query.domains.domain_search import Search
from countless.query.domains.plain_comparison import IS_NULL, PlainComparison
from countless.query.domains.searches import Searches
from countless.query.domains.truth import Codes, Observed, parts_of
from countless.query.formula import Formula, Want, all_of, any_of, leaf
from countless.query.grids.line import Atoms
from countless.query.grids.plain import ranges_of
from countless.query.grids.ranges import Cut, Ranges
from countless.query.parsing.simple_filters import COMPARISON, FLAGS, filter_at
from countless.region import Box, Filter, Region

# A filter ends where a connective or a parenthesis may stand.
TOKEN = re.compile(rf"\s*(?: {COMPARISON}(?=\s|\)|\Z) | (?P<word>AND|OR|NOT)\b | (?P<sign>[()]) )", FLAGS)
MAX_TOKENS = 64  # a longer clause is parsed


def simple_region(clause: str, search: Searches) -> Region | None:
    """The rows of ``clause``, or None if it must be compiled."""
    tokens = _tokens(clause)
    grids = None if tokens is None else _Grids.of(tokens, search)
    if tokens is None or grids is None:
        return None
    reader = _FormulaReader(tokens, search.known, grids)
    try:
        formula = reader.either(Want.TRUE)
        if formula is None or reader.tokens:
            return None
        boxes = cover(formula)
        parts = disjoint(boxes)
    except QueryError:  # too many boxes: the compiler knows what to do
        return None

    def box(codes: CodeBox) -> Box:
        return Box(tuple([grids.filter(index, codes[index]) for index in sorted(codes)]))

    return Region(tuple(map(box, parts)), tuple(map(box, boxes)) if len(parts) > 1 else ())


def _tokens(clause: str) -> list[re.Match[str]] | None:
    """Filters, connectives and parentheses, the last one first."""
    tokens: list[re.Match[str]] = []
    position, end = 0, len(clause.rstrip())
    while position < end:
        match = TOKEN.match(clause, position)
        if match is None or len(tokens) == MAX_TOKENS:
            return None
        tokens.append(match)
        position = match.end()
    return tokens[::-1]


class _Grids:
    """The lines of columns with a grid, cut where the comparisons of a clause cut them."""

    def __init__(self, search: Searches) -> None:
        self._search = search
        self._ranges: dict[tuple[int, PlainComparison], Ranges] = {}
        self._atoms: dict[int, Atoms] = {}

    @classmethod
    def of(cls, tokens: list[re.Match[str]], search: Searches) -> _Grids | None:
        """Those of a clause; None if one of its literals must be read by DuckDB."""
        grids, schema = cls(search), search.known.schema
        cuts: dict[int, set[Cut]] = {}
        for match in tokens:
            item = None if match["filter"] is None else filter_at(match, schema)
            line = None if item is None or schema.columns[item.column].is_text else search.grids.line(item.column)
            if item is None or line is None:
                continue
            column_cuts = cuts.setdefault(item.column, set())
            if item.comparison.operator != IS_NULL:
                ranges = ranges_of(item.comparison, line)
                if ranges is None:
                    return None
                grids._ranges[item.column, item.comparison] = ranges
                column_cuts.update(ranges.cuts())
        for index, column_cuts in cuts.items():
            line = search.grids.line(index)
            assert line is not None
            grids._atoms[index] = Atoms(line, column_cuts, with_knots=False)
        return grids

    def codes(self, index: int, comparison: PlainComparison, want: Want) -> Codes | None:
        """The atoms for which ``want`` holds of a comparison, and such values of evidence rows, if there are any."""
        atoms, ranges = self._atoms[index], self._ranges.get((index, comparison))
        satisfied = want.codes(atoms.null() if ranges is None else atoms.within(ranges))
        if self._search.seen is None:
            return satisfied
        seen = self._search.seen.truth(index, comparison)
        return None if seen is None else Observed(satisfied, want.codes(seen))

    def filter(self, index: int, codes: Codes) -> Filter:
        """A set of codes, or of atoms, as a filter."""
        schema, atoms = self._search.known.schema, self._atoms.get(index)
        if atoms is None:
            return filter_of(schema, index, codes)
        atom_codes, seen = parts_of(codes)
        most = atoms.most_rows(atom_codes) if atoms.line.grid.unique else None
        return filter_of(schema, index, atoms.weights(atom_codes), seen, most)


class _FormulaReader:
    """Reads tokens from the end of a list; what is no formula of simple filters is None."""

    def __init__(self, tokens: list[re.Match[str]], search: Search, grids: _Grids) -> None:
        self.tokens = tokens
        self._search, self._grids = search, grids

    def either(self, want: Want) -> Formula | None:
        """Alternatives between ORs, as far as ``want`` holds of them."""
        return self._joined("OR", want)

    def _all(self, want: Want) -> Formula | None:
        return self._joined("AND", want)

    def _joined(self, word: str, want: Want) -> Formula | None:
        read = self._all if word == "OR" else self._operand
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

    def _operand(self, want: Want) -> Formula | None:
        """A filter, a formula in parentheses, or the negation of either."""
        if self._takes("NOT"):
            return self._operand(want.negated())
        if self._takes("("):
            formula = self.either(want)
            return formula if self._takes(")") else None
        return self._filter(self.tokens.pop(), want) if self.tokens else None

    def _filter(self, match: re.Match[str], want: Want) -> Formula | None:
        schema = self._search.schema
        item = None if match["filter"] is None else filter_at(match, schema)
        if item is None:
            return None
        column = schema.columns[item.column]
        if column.is_text or column.name in schema.uuids:
            return None
        want = want.negated() if item.negated else want
        if column.grid is not None:
            codes = self._grids.codes(item.column, item.comparison, want)
            return None if codes is None else leaf(item.column, codes)
        truth = self._search.truth(item.column, item.comparison)
        return None if truth is None else leaf(item.column, want.codes(truth))

    def _takes(self, text: str) -> bool:
        """Take the next token if it is this word or sign."""
        if not self.tokens:
            return False
        match = self.tokens[-1]
        if (match["sign"] or (match["word"] or "").upper()) != text:
            return False
        self.tokens.pop()
        return True
