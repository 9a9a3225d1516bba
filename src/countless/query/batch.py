"""Compilation of many clauses at once, which share the compiled filters that they have in common.

A query optimizer asks about every part of a conjunction, so the same few filters come again and again. A clause is
cut at its outer ANDs where that is plain to see; each piece is compiled once, as a clause of its own; and pieces about
different columns make a box together. Whatever is not that plain is compiled whole: that is the definition.
"""

from __future__ import annotations

import re
from dataclasses import replace

from countless.errors import QueryError
from countless.query.compile import Compiler, Question
from countless.query.predicate import Where
from countless.region import Box, Filter, Region, TextFilter

TOKENS = re.compile(r"""(?P<prefix>\w+)?'(?:[^']|'')*' | "(?:[^"]|"")*" | --|/\*|-> | \w+ | [^\w\s]""", re.VERBOSE)
# Where one of these stands an outer AND may mean something else, or nothing: comments, other quotes, several
# statements, lambdas, lists, structs and casts, and words that are weaker than AND or reach past it.
UNPLAIN = frozenset(["--", "/*", "->", *"$;\\[]{}:`'\""]) | frozenset(
    ["or", "xor", "case", "select", "from", "with", "where", "values", "lambda", "order", "limit", "group", "having"]
)


def conjuncts(clause: str) -> list[str] | None:
    """The pieces between the outer ANDs of ``clause``, or None if it is not plain where they are.

    >>> conjuncts("a BETWEEN 1 AND 2 AND (b = 3 AND c = 4) AND d = 'x AND y'")
    ['a BETWEEN 1 AND 2', '(b = 3 AND c = 4)', "d = 'x AND y'"]
    >>> conjuncts("a = 1 OR b = 2") is None
    True
    """
    pieces, start, depth, betweens = [], 0, 0, 0
    for token in TOKENS.finditer(clause):
        text = token.group().lower()
        if text in UNPLAIN or token["prefix"]:  # a string with a prefix has escapes of its own
            return None
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0:
            if text == "between":
                betweens += 1
            elif text == "and" and betweens:
                betweens -= 1
            elif text == "and":
                pieces.append(clause[start : token.start()].strip())
                start = token.end()
    pieces.append(clause[start:].strip())
    return pieces if depth == 0 and betweens == 0 and all(pieces) else None


class BatchCompiler:
    """Compiles clauses as a :class:`Compiler` does, and remembers their pieces. For one thread."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._pieces: dict[str, Box | None] = {}

    def compile(self, where: Where) -> Question:
        """The region of ``where``."""
        box = self._box(where) if isinstance(where, str) else None
        if box is not None:
            return Question(str(where).strip(), Region((box,)))
        found = self._compiler.compile(where)
        return replace(found, condition=None, details=())  # what it was made from would fill the memory

    def _box(self, where: str) -> Box | None:
        pieces = conjuncts(where)
        if pieces is None:
            return None
        found: dict[tuple[int, ...], Filter] = {}
        texts: dict[int, TextFilter] = {}
        for piece in pieces:
            if piece not in self._pieces:
                self._pieces[piece] = self._piece(piece)
            box = self._pieces[piece]
            if box is None:
                return None
            for item in box.filters:
                if item.positions in found:  # two pieces about one column: only together do they say what is asked
                    return None
                found[item.positions] = item
            for text in box.texts:
                if text.column in texts:
                    return None
                texts[text.column] = text
        return Box(
            tuple(found[positions] for positions in sorted(found)), tuple(texts[column] for column in sorted(texts))
        )

    def _piece(self, piece: str) -> Box | None:
        """The box of a piece that is one; None for any other, and for one with an error or a doubt in it."""
        try:
            question = self._compiler.compile(piece)
        except QueryError:
            return None  # the whole clause has the same error, and shows where
        boxes = question.region.boxes
        return boxes[0] if len(boxes) == 1 and question.certain else None
