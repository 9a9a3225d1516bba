"""Random queries on a text column, with pieces of real strings."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from countless.data.columns.strings.text import TextColumn
from countless.data.columns.types import TEXT, quote_identifier, sql_literal
from countless.data.sources.source import Source
from countless.errors import DataError
from countless.workload.profile import ColumnProfile, draw_rows

PIECE = (3, 5)  # characters of the paper's pieces
MAX_TEXT_LENGTH = 1_000  # characters of a string in a query: an automaton has a state for each
MAX_COMPARED_LENGTH = 9_000  # largest number that a length is compared with
KINDS = (
    "contains",
    "prefix",
    "suffix",
    "two pieces",
    "one unknown",
    "not like",
    "equality",
    "range",
    "regex",
    "length",
    "absent",
)
CALIBRATION_KINDS = tuple(
    kind for kind in KINDS if kind not in ("equality", "absent")
)  # without kinds that match few rows or none


class Wildcard(str):
    """A wildcard of a LIKE pattern, in contrast to the same character of a string."""


ANY, ONE = Wildcard("%"), Wildcard("_")


def contains_clauses(
    column: TextColumn | ColumnProfile, source: Source, count: int, seed: int
) -> list[tuple[str, str]]:
    """The paper's queries: does a string contain this piece? Pieces have 3 to 5 characters and are drawn from the rows.

    Each query comes with its class: the length of the piece.
    """
    rng = np.random.default_rng(seed)
    clauses: list[tuple[str, str]] = []
    name = quote_identifier(column.name)
    if not source.counts([f"length(CAST({name} AS VARCHAR)) >= {PIECE[0]}"])[0]:
        raise DataError(f'the text column "{column.name}" has no string of {PIECE[0]} characters or more')
    while len(clauses) < count:
        for text in _texts(column, source, rng, 2 * count):
            length = int(rng.integers(PIECE[0], PIECE[1] + 1))
            if text is not None and len(text) >= length and len(clauses) < count:
                clause = f"{name} LIKE {like_literal(ANY, _piece(text, length, rng), ANY)}"
                clauses.append((clause, f"{length} characters"))
    return clauses


def pattern_clauses(
    column: TextColumn, source: Source, count: int, seed: int, kinds: tuple[str, ...] = KINDS
) -> list[tuple[str, str]]:
    """Queries of these kinds in turn, each with its kind."""
    rng = np.random.default_rng(seed)
    texts = _drawable(column, [text for text in _texts(column, source, rng, 4 * count) if text])
    clauses = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        text, other = (texts[int(index)] for index in rng.integers(len(texts), size=2))
        clauses.append((pattern_clause(column, kind, text, other, rng), kind))
    return clauses


def every_pattern(column: TextColumn, texts: Sequence[str]) -> list[str]:
    """A query of each kind on a column, with pieces of some of its strings."""
    rng, texts, name = np.random.default_rng(0), _drawable(column, texts), quote_identifier(column.name)
    return [
        f"{name} IS NULL",
        *(
            pattern_clause(column, kind, texts[number % len(texts)], texts[-1 - number % len(texts)], rng)
            for number, kind in enumerate(KINDS)
        ),
    ]


def _drawable(column: TextColumn, texts: Sequence[str]) -> Sequence[str]:
    if not texts:
        raise DataError(f'the text column "{column.name}" has no string to draw patterns from')
    return texts


def pattern_clause(column: TextColumn, kind: str, text: str, other: str, rng: np.random.Generator) -> str:
    """A query of this kind on a column, with pieces of ``text``, and of ``other`` if it takes two strings."""
    name = quote_identifier(column.name)
    lengths = sorted(min(len(string), MAX_COMPARED_LENGTH) for string in (text, other))
    text, other = text[:MAX_TEXT_LENGTH], other[:MAX_TEXT_LENGTH]
    length = int(rng.integers(2, 7))
    piece = _piece(text, length, rng)
    match kind:
        case "contains":
            return f"{name} LIKE {like_literal(ANY, piece, ANY)}"
        case "prefix":
            return f"{name} LIKE {like_literal(text[: int(rng.integers(1, len(text) + 1))], ANY)}"
        case "suffix":
            return f"{name} LIKE {like_literal(ANY, text[-length:])}"
        case "two pieces":
            cut = int(rng.integers(1, len(text) + 1))
            first, second = _piece(text[:cut], 3, rng), _piece(text[cut:] or text, 3, rng)
            return f"{name} LIKE {like_literal(ANY, first, ANY, second, ANY)}"
        case "one unknown":
            middle = len(piece) // 2
            return f"{name} LIKE {like_literal(ANY, piece[:middle], ONE, piece[middle + 1 :], ANY)}"
        case "not like":
            return f"{name} NOT LIKE {like_literal(ANY, piece[:3], ANY)}"
        case "equality":
            return f"{name} = {sql_literal(text, 'VARCHAR')}"
        case "range":
            low, high = sorted(string[: int(rng.integers(1, len(string) + 1))] for string in (text, other))
            return f"{name} BETWEEN {sql_literal(low, 'VARCHAR')} AND {sql_literal(high, 'VARCHAR')}"
        case "regex":
            return f"regexp_matches({name}, {sql_literal(_regex(piece, rng), 'VARCHAR')})"
        case "length":
            return f"length({name}) BETWEEN {lengths[0]} AND {lengths[1]}"
        case _:  # absent: characters of the alphabet in an order of their own
            letters = rng.choice(list(column.characters or text), size=6)
            return f"{name} LIKE {like_literal(ANY, ''.join(letters), ANY)}"


def _regex(piece: str, rng: np.random.Generator) -> str:
    """A regular expression of the piece: one character becomes a class, perhaps optional or repeated."""
    position = int(rng.integers(len(piece)))
    is_digit = piece[position].isdigit()
    character_class = "[0-9]" if is_digit else "[a-z]" if piece[position].isalpha() else "[^a-z0-9]"
    return (
        re.escape(piece[:position])
        + character_class
        + str(rng.choice(["", "+", "?"]))
        + re.escape(piece[position + 1 :])
    )


def _piece(text: str, length: int, rng: np.random.Generator) -> str:
    first = int(rng.integers(max(1, len(text) - length + 1)))
    return text[first : first + length]


def like_literal(*parts: str) -> str:
    """A LIKE pattern as SQL. Among the parts, ANY and ONE are wildcards."""
    if not any(set(part) & set("%_\\") for part in parts if not isinstance(part, Wildcard)):
        return sql_literal("".join(parts), "VARCHAR")
    escaped = "".join(part if isinstance(part, Wildcard) else re.sub(r"([%_\\])", r"\\\1", part) for part in parts)
    return f"{sql_literal(escaped, 'VARCHAR')} ESCAPE '\\'"


def _texts(
    column: TextColumn | ColumnProfile, source: Source, rng: np.random.Generator, count: int
) -> list[str | None]:
    """The strings of ``count`` random rows."""
    return [text for (text,) in draw_rows([(column.name, TEXT)], source, rng, count)]
