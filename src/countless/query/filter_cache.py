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
from countless.region import EVERY_ROW, Box, Filter, Region, TextFilter

if TYPE_CHECKING:
    from countless.query.compile import Compiler
    from countless.query.known_expressions import KnownExpressions
    from countless.query.parameters import Clause
    from countless.query.predicate import Where

MAX_BYTES = 32 << 20  # of the cache, about
BYTES_OF_CODE = 40  # of a filter, for each code of its column, once it was walked
BYTES_OF_TEXT = 1 << 20  # of the automaton of a text filter, at most about
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

    What of it only evidence rows can answer is ``beyond``, and true ``among`` these rows. A piece that is one simple
    filter has the index of its ``column``.
    """

    region: Region
    certain: bool = True
    beyond: tuple[str, ...] = ()
    among: BoolArray | None = None
    column: int | None = None


MISSING = _Piece(Region(()))  # stands for a piece that is not in the cache


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
        evidence = search.seen
        self._bytes_of_rows = 0 if evidence is None else evidence.schema.rows // 8  # a filter has a bit for each row
        self._bytes = 0
        self._lock = threading.Lock()

    @classmethod
    def of(cls, compiler: Compiler) -> CachedCompiler:
        """A cache before a compiler that is there."""
        return cls(compiler.search, lambda: compiler)

    def compile(self, where: Where | Clause) -> Question:
        """The region of ``where``."""
        question = self.by_pieces(where) if isinstance(where, str) else None
        return self._compiler().compile(where) if question is None else question

    def by_pieces(self, where: str) -> Question | None:
        """The region of ``where`` from its pieces; None if it must be compiled whole."""
        pieces = self._cached_filters(where) or self._pieces_of(where)
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
        is_empty = False
        for region in regions:
            if len(region.boxes) != 1:
                if not region.boxes:
                    is_empty = True
                    continue
                if union is not None:
                    return None
                union = region
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
                is_empty |= both is not text and not both.any()
        if union is None:
            if len(filters) > 1 and not self.search.known.schema.are_apart(filters):
                return None
            return Region(()) if is_empty else Region((_box(filters, texts),))
        boxes = (*union.boxes, *union.cover)
        positions = {item.positions for box in boxes for item in box.filters}
        if not positions.isdisjoint(filters) or any(text.column in texts for box in boxes for text in box.texts):
            return None
        if not self.search.known.schema.are_apart((*filters, *positions)):
            return None
        if is_empty:
            return Region(())
        joined = [_box(filters, texts, box) for box in boxes]
        return Region(tuple(joined[: len(union.boxes)]), tuple(joined[len(union.boxes) :]))

    def _cached_filters(self, where: str) -> list[_Piece] | None:
        """The pieces of simple filters on different columns that are all in the cache, found without reading them.

        A filter ends before an " AND ", and what is cached is a whole filter: no string and no BETWEEN is cut in two.
        """
        pieces, columns = [], set()
        for text in where.split(" AND "):
            piece = self._pieces.get(text)
            if piece is None or piece.column is None:
                return None
            pieces.append(piece)
            columns.add(piece.column)
        return pieces if len(columns) == len(pieces) else None

    def _pieces_of(self, where: str) -> list[_Piece | None]:
        """The pieces of a clause: its simple filters by column, and others that may be about several columns."""
        schema = self.search.known.schema
        filters = simple_filters(where, schema)
        if filters is not None:
            return self._of_columns(filters)
        texts = conjuncts(where)
        if texts is None:
            return [self._cached(where, self._formula)]
        filters, pieces = [], []
        for text in texts:
            simple = simple_filters(text, schema)
            if simple is None:
                pieces.append(self._cached(text, self._piece))
            else:
                filters += simple
        return pieces + self._of_columns(filters)

    def _of_columns(self, filters: list[SimpleFilter]) -> list[_Piece | None]:
        """The pieces of a conjunction of simple filters: those about one column are one piece."""
        columns: dict[int, list[SimpleFilter]] = {}
        for item in filters:
            column_filters = columns.get(item.column)
            if column_filters is None:
                columns[item.column] = [item]
            else:
                column_filters.append(item)
        pieces: list[_Piece | None] = []
        new: list[tuple[str, _Piece | None]] = []
        for column_filters in columns.values():
            text = " AND ".join([item.text for item in column_filters])
            piece = self._pieces.get(text, MISSING)
            if piece is MISSING:
                piece = self._of_column(text, column_filters)
                new.append((text, piece))
            pieces.append(piece)
        if new:
            self._store(new)
        return pieces

    def _of_column(self, text: str, filters: list[SimpleFilter]) -> _Piece | None:
        """The piece that simple filters on one column are."""
        piece = self._searched(filters)
        if piece is None:
            with one_time_work():
                from countless.query.parsing.simple_expressions import clause_of

            piece = self._compiled(clause_of(text, filters))
        if piece is not None and len(filters) == 1:
            return piece._replace(column=filters[0].column)
        return piece

    def _searched(self, filters: list[SimpleFilter]) -> _Piece | None:
        """The same by search in the column's domain; None if the compiler reads filters on it in another way."""
        index = filters[0].column
        column = self._columns.get(index)
        if column is None:
            column = self._columns[index] = _SearchedColumn.of(self.search.known.schema, index)
        if not column.searched:
            return None
        if column.has_grid:
            satisfied = self.search.grids.satisfied(index, [(item.comparison, item.negated) for item in filters])
            if satisfied is None:
                return None
            is_possible, grid_filter = satisfied
            return _Piece(Region((Box(() if grid_filter is None else (grid_filter,)),) if is_possible else ()))
        allowed: BoolArray | None = None
        for item in filters:
            codes = self.search.known.satisfied(index, item.comparison, item.negated)
            if codes is None:
                return None
            allowed = codes if allowed is None else allowed & codes
        assert allowed is not None
        count = int(np.count_nonzero(allowed))
        if count == len(allowed):
            return _Piece(Region((Box(),)))
        return _Piece(Region((Box((column.filter(allowed, count),)),) if count else ()))

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

    def _cached(self, text: str, make: Callable[[str], _Piece | None]) -> _Piece | None:
        """The piece of ``text`` from the cache, or else the one that ``make`` makes of it."""
        piece = self._pieces.get(text, MISSING)
        if piece is MISSING:
            piece = make(text)
            self._store([(text, piece)])
        elif piece is not None and piece.among is not None:  # it took DuckDB long to find: it is the last to go
            with self._lock:
                self._pieces[text] = self._pieces.pop(text, piece)
        return piece

    def _store(self, new: list[tuple[str, _Piece | None]]) -> None:
        with self._lock:
            for text, piece in new:
                if text not in self._pieces:
                    self._bytes += self._bytes_of(text, piece)
                    self._pieces[text] = piece
            while self._bytes > MAX_BYTES:
                oldest = next(iter(self._pieces))
                self._bytes -= self._bytes_of(oldest, self._pieces.pop(oldest))

    def _bytes_of(self, text: str, piece: _Piece | None) -> int:
        """How much memory a piece may take, about."""
        size = BYTES_OF_ENTRY + len(text)
        if piece is None:
            return size
        if piece.among is not None:
            size += len(piece.among)
        for box in (*piece.region.boxes, *piece.region.cover):
            size += BYTES_OF_TEXT * len(box.texts)
            for item in box.filters:
                size += BYTES_OF_CODE * len(item.constraint.weights) + self._bytes_of_rows
        return size

    def _compiled(self, clause: str | Clause) -> _Piece | None:
        """A piece that is compiled; None if there is an error in it."""
        try:
            question = self._compiler().compile(clause)
        except QueryError as error:
            if is_final(error):
                raise
            return None  # the whole clause has the same error, and shows where
        return _Piece(question.region, question.certain, question.beyond, question.among)


def _box(
    filters: Mapping[tuple[int, ...], Filter], texts: Mapping[int, TextFilter], other: Box = EVERY_ROW.boxes[0]
) -> Box:
    """A box of ``filters`` and ``texts`` and those of an ``other`` box, in the table's order."""
    if not (texts or other.filters or other.texts):
        return Box(tuple([filters[positions] for positions in sorted(filters)]))
    filters = {**filters, **{item.positions: item for item in other.filters}}
    texts = {**texts, **{text.column: text for text in other.texts}}
    return Box(
        tuple([filters[positions] for positions in sorted(filters)]), tuple([texts[column] for column in sorted(texts)])
    )
