"""Compilation of clauses filter by filter: a filter that was compiled before is not compiled again.

The same filters come again and again: a query optimizer asks about every part of a conjunction, and people change one
filter at a time. A clause is cut at its outer ANDs where that is plain to see. What it says of one column is compiled
once, as a clause of its own, and pieces about different columns make boxes together. Simple filters are read without a
parser, and looked up in the column's domain without the compiler. Whatever is not that plain is compiled whole: that is
the definition.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from countless.arrays import BoolArray
from countless.data.columns.schema import Schema
from countless.errors import QueryError, is_final
from countless.query.answer_clock import one_time_work
from countless.query.boxes import set_of
from countless.query.domains.searches import Searches
from countless.query.parsing.simple_filters import SimpleFilter, simple_filters
from countless.query.parsing.simple_formulas import simple_region
from countless.query.question import Question
from countless.region import Box, Filter, Region, TextFilter

if TYPE_CHECKING:
    from countless.query.compile import Compiler
    from countless.query.known_expressions import KnownExpressions
    from countless.query.parameters import Clause
    from countless.query.predicate import Where

MOST_BYTES = 16 << 20  # of compiled filters that are kept, about
BYTES_OF_CODE = 40  # that a filter takes for each code of its column, once it was walked
BYTES_OF_TEXT = 1 << 20  # that the automaton of a text filter may take
BYTES_OF_ENTRY = 1 << 10

TOKENS = re.compile(r"""(?P<prefix>\w+)?'(?:[^']|'')*' | "(?:[^"]|"")*" | --|/\*|-> | \w+ | [^\w\s]""", re.VERBOSE)
# Where one of these stands an outer AND may mean something else, or nothing: comments, other quotes, several
# statements, lambdas, lists, structs and casts, and words that reach past it.
UNPLAIN = frozenset(["--", "/*", "->", *"$;\\[]{}:`'\""]) | frozenset(
    ["case", "select", "from", "with", "where", "values", "lambda", "order", "limit", "group", "having"]
)


def conjuncts(clause: str) -> list[str] | None:
    """The pieces between the outer ANDs of ``clause``, or None if it is not plain where they are.

    >>> conjuncts("a BETWEEN 1 AND 2 AND (b = 3 AND c = 4) AND d = 'x AND y'")
    ['a BETWEEN 1 AND 2', '(b = 3 AND c = 4)', "d = 'x AND y'"]
    >>> conjuncts("a = 1 OR b = 2") is None
    True
    """
    pieces, start, depth, betweens = [], 0, 0, 0
    before = ("", "", "")  # the last tokens
    for token in TOKENS.finditer(clause):
        text = token.group().lower()
        is_part = text == "from" and before[:2] == ("extract", "(")
        if (text in UNPLAIN and not is_part) or token["prefix"]:  # a string with a prefix has escapes of its own
            return None
        before = (*before[1:], text)
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0:
            if text in ("or", "xor"):
                return None
            if text == "between":
                betweens += 1
            elif text == "and" and betweens:
                betweens -= 1
            elif text == "and":
                pieces.append(clause[start : token.start()].strip())
                start = token.end()
    pieces.append(clause[start:].strip())
    return pieces if depth == 0 and betweens == 0 and all(pieces) else None


class _Piece(NamedTuple):
    """What a piece of a clause asks.

    What of it only evidence rows can answer is ``beyond``, and true ``among`` these rows.
    """

    region: Region
    certain: bool = True
    beyond: tuple[str, ...] = ()
    among: BoolArray | None = None


UNKNOWN = _Piece(Region(()))  # what was not kept


class _SearchedColumn(NamedTuple):
    """What a search needs of a column: whether it is ``searched`` at all, and what its filters read."""

    searched: bool
    has_grid: bool
    positions: tuple[int, ...]
    radices: tuple[int, ...]

    @classmethod
    def of(cls, schema: Schema, index: int) -> _SearchedColumn:
        column = schema.columns[index]
        if column.is_text or column.name in schema.uuids:
            return cls(False, False, (), ())
        return cls(True, column.grid is not None, schema.positions(index), schema.coded_column(index).radices)

    def filter(self, allowed: BoolArray, count: int) -> Filter:
        """The filter that allows this number of codes, which is not all."""
        return Filter(self.positions, set_of(allowed, self.radices, count))


class CachedCompiler:
    """Compiles clauses as a :class:`Compiler` does, and keeps their pieces. Safe to share by threads."""

    def __init__(self, search: Searches, compiler: Callable[[], Compiler]) -> None:
        """``compiler`` gives the compiler, once it is needed."""
        self.search = search
        self._compiler = compiler
        self._pieces: dict[str, _Piece | None] = {}
        self._expressions: KnownExpressions | None = None
        self._columns: dict[int, _SearchedColumn] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    @classmethod
    def of(cls, compiler: Compiler) -> CachedCompiler:
        """A cache before a compiler that is there."""
        return cls(compiler.search, lambda: compiler)

    def compile(self, where: Where | Clause) -> Question:
        """The region of ``where``."""
        found = self.by_pieces(where) if isinstance(where, str) else None
        return self._compiler().compile(where) if found is None else found

    def by_pieces(self, where: str) -> Question | None:
        """The region of ``where`` from its pieces; None if it must be compiled whole."""
        simple = simple_filters(where, self.search.known.schema)
        pieces = self._others(where) if simple is None else self._of_columns(simple)
        if pieces is None:
            return None
        certain = True
        beyond: tuple[str, ...] = ()
        among: BoolArray | None = None
        for piece in pieces:
            if piece is None:
                return None
            certain &= piece.certain
            if piece.among is not None:
                beyond += piece.beyond
                among = piece.among if among is None else among & piece.among
        region = self._joined([piece.region for piece in pieces if piece is not None])
        if region is None:
            return None
        return Question(
            where.strip(), region, certain, beyond=beyond, among=among, whole=lambda: self._compiler().compile(where)
        )

    def _joined(self, regions: list[Region]) -> Region | None:
        """The rows in all of ``regions``; None if they are not about different columns, or more than one is a union."""
        filters: dict[tuple[int, ...], Filter] = {}
        texts: dict[int, TextFilter] = {}
        union: Region | None = None
        empty = False
        for region in regions:
            if len(region.boxes) > 1:
                if union is not None:
                    return None
                union = region
                continue
            if not region.boxes:
                empty = True
                continue
            (box,) = region.boxes
            for item in box.filters:
                if item.positions in filters:  # two pieces about one column: only together do they say what is asked
                    return None
                filters[item.positions] = item
            for text in box.texts:
                try:
                    both = texts[text.column] & text if text.column in texts else text
                except QueryError:
                    return None  # the whole clause has the same error, or is answered in part
                texts[text.column] = both
                empty |= both is not text and not both.any()
        others: set[tuple[int, ...]] = set()
        if union is not None:
            unions = (*union.boxes, *union.cover)
            others = {item.positions for box in unions for item in box.filters}
            if not others.isdisjoint(filters) or any(text.column in texts for box in unions for text in box.texts):
                return None
        if len(filters) + len(others) > 1 and not self.search.known.schema.are_apart((*filters, *others)):
            return None
        if empty:
            return Region(())
        if union is None:
            return Region((_box(filters, texts, Box()),))
        return Region(*(tuple(_box(filters, texts, own) for own in boxes) for boxes in (union.boxes, union.cover)))

    def _of_columns(self, found: list[SimpleFilter]) -> list[_Piece | None]:
        """The pieces of a conjunction of simple filters: those about one column are one piece."""
        columns: dict[int, list[SimpleFilter]] = {}
        for item in found:
            own = columns.get(item.column)
            if own is None:
                columns[item.column] = [item]
            else:
                own.append(item)
        pieces: list[_Piece | None] = []
        made: list[tuple[str, _Piece | None]] = []
        for items in columns.values():
            text = " AND ".join([item.text for item in items]) if len(items) > 1 else items[0].text
            piece = self._pieces.get(text, UNKNOWN)
            if piece is UNKNOWN:
                piece = self._of_column(text, items)
                made.append((text, piece))
            pieces.append(piece)
        if made:
            self._keep(made)
        return pieces

    def _of_column(self, text: str, items: list[SimpleFilter]) -> _Piece | None:
        """The piece that simple filters on one column are."""
        found = self._searched(items)
        if found is None:
            with one_time_work():
                from countless.query.parsing.simple_expressions import clause_of

            return self._compiled(clause_of(text, items))
        return found

    def _searched(self, items: list[SimpleFilter]) -> _Piece | None:
        """The same by search in the column's domain; None if the compiler reads filters on it in another way."""
        index = items[0].column
        column = self._columns.get(index)
        if column is None:
            column = self._columns[index] = _SearchedColumn.of(self.search.known.schema, index)
        if not column.searched:
            return None
        if column.has_grid:
            found = self.search.grids.satisfied(index, [(item.comparison, item.negated) for item in items])
            if found is None:
                return None
            some, item = found
            return _Piece(Region((Box(() if item is None else (item,)),) if some else ()))
        allowed: BoolArray | None = None
        for each in items:
            own = self.search.known.satisfied(index, each.comparison, each.negated)
            if own is None:
                return None
            allowed = own if allowed is None else allowed & own
        assert allowed is not None
        count = int(np.count_nonzero(allowed))
        if count == len(allowed):
            return _Piece(Region((Box(),)))
        return _Piece(Region((Box((column.filter(allowed, count),)),) if count else ()))

    def _others(self, where: str) -> list[_Piece | None] | None:
        """The pieces of any other clause: its simple filters, and others that may be about several columns."""
        found = conjuncts(where)
        if found is None:
            return [self._kept(where, partial(self._formula, where))]
        simple: list[SimpleFilter] = []
        pieces: list[_Piece | None] = []
        for text in found:
            if (items := simple_filters(text, self.search.known.schema)) is not None:
                simple += items
            else:
                pieces.append(self._kept(text, partial(self._piece, text)))
        return pieces + self._of_columns(simple)

    def _piece(self, text: str) -> _Piece | None:
        return self._formula(text) or self._of_expression(text)

    def _of_expression(self, text: str) -> _Piece | None:
        """A comparison of an expression that is known, or whatever must be compiled."""
        known = None if self._expressions is None else self._expressions.region(text)
        if known is not None:
            return _Piece(*known)
        piece = self._compiled(text)
        if piece is not None and not piece.beyond:
            if self._expressions is None:
                from countless.query.known_expressions import KnownExpressions

                self._expressions = KnownExpressions(self._compiler())
            self._expressions.learn(text)
        return piece

    def _formula(self, text: str) -> _Piece | None:
        """A formula of simple filters; None if it must be compiled."""
        region = simple_region(text, self.search)
        return None if region is None else _Piece(region)

    def _kept(self, text: str, made: Callable[[], _Piece | None]) -> _Piece | None:
        try:
            piece = self._pieces[text]
        except KeyError:
            piece = made()
        else:
            if piece is not None and piece.among is not None:  # it took DuckDB long to find: it is the last to go
                with self._lock:
                    self._pieces[text] = self._pieces.pop(text, piece)
            return piece
        self._keep([(text, piece)])
        return piece

    def _keep(self, made: list[tuple[str, _Piece | None]]) -> None:
        with self._lock:
            for text, piece in made:
                if text not in self._pieces:
                    self._bytes += _bytes_of(text, piece)
                    self._pieces[text] = piece
            while self._bytes > MOST_BYTES:
                oldest = next(iter(self._pieces))
                self._bytes -= _bytes_of(oldest, self._pieces.pop(oldest))

    def _compiled(self, clause: str | Clause) -> _Piece | None:
        """A piece that is compiled; None if there is an error in it."""
        try:
            question = self._compiler().compile(clause)
        except QueryError as error:
            if is_final(error):
                raise
            return None  # the whole clause has the same error, and shows where
        return _Piece(question.region, question.certain, question.beyond, question.among)


def _box(filters: Mapping[tuple[int, ...], Filter], texts: Mapping[int, TextFilter], other: Box) -> Box:
    """A box of ``filters`` and those of an ``other`` box, in the table's order."""
    if not (texts or other.filters or other.texts):
        return Box(tuple([filters[key] for key in sorted(filters)]))
    both = {**filters, **{item.positions: item for item in other.filters}}
    languages = {**texts, **{text.column: text for text in other.texts}}
    return Box(tuple(both[key] for key in sorted(both)), tuple(languages[key] for key in sorted(languages)))


def _bytes_of(text: str, piece: _Piece | None) -> int:
    """How much room a piece may take, about."""
    known = BYTES_OF_ENTRY + len(text)
    if piece is None:
        return known
    if piece.among is not None:
        known += len(piece.among)
    for boxes in (piece.region.boxes, piece.region.cover):
        for box in boxes:
            if box.texts:
                known += BYTES_OF_TEXT * len(box.texts)
            for item in box.filters:
                known += BYTES_OF_CODE * len(item.constraint.weights)
    return known
