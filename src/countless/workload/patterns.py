"""Random search patterns for strings, made of pieces of real strings."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from countless.data.columns.types import sql_literal
from countless.workload.text import ANY, like_literal

WORD = re.compile(r"[^\W_]{3,}")
SEPARATOR = re.compile(r"[\W_]")
RANDOM_PIECE = 1 / 3  # share of the pieces that are cut anywhere; all others are cut at words

Maker = Callable[[str, str, str, np.random.Generator], str | None]


def plain_pattern(position: str) -> Maker:
    """LIKE with the piece in front (``prefix``), at the end (``suffix``) or anywhere (``contains``)."""

    def make(name: str, text: str, other: str, rng: np.random.Generator) -> str | None:
        piece = _piece(text, position, rng)
        return f"{name} LIKE {_like_pattern(piece, position)}" if piece else None

    return make


def ilike_pattern(name: str, text: str, other: str, rng: np.random.Generator) -> str | None:
    """ILIKE with a piece in lower, upper or title case."""
    position = _choose(rng, "contains", "contains", "prefix", "suffix")
    piece = _piece(text, position, rng)
    recased = _choose(rng, piece.lower(), piece.upper(), piece.title())
    return f"{name} ILIKE {_like_pattern(recased, position)}" if piece else None


def either_pattern(name: str, text: str, other: str, rng: np.random.Generator) -> str | None:
    """Two patterns, at least one of which must match."""
    return _two_likes(name, text, other, rng, " OR ")


def two_patterns(name: str, text: str, other: str, rng: np.random.Generator) -> str | None:
    """Two patterns that must both match. At least one string matches both."""
    return _two_likes(name, text, text, rng, " AND ")


def both_ends(name: str, text: str, other: str, rng: np.random.Generator) -> str | None:
    """A prefix and a suffix, such as a directory and a file extension. At least one string has both."""
    prefix, suffix = _piece(text, "prefix", rng), _piece(text, "suffix", rng)
    if not prefix or not suffix:
        return None
    return f"{name} LIKE {_like_pattern(prefix, 'prefix')} AND {name} LIKE {_like_pattern(suffix, 'suffix')}"


def text_function(name: str, text: str, other: str, rng: np.random.Generator) -> str | None:
    """A function of the string: a part of it, its length, or a search for a substring."""
    word, prefix, suffix = (_piece(text, position, rng) for position in ("contains", "prefix", "suffix"))
    if not (word and prefix and suffix):
        return None
    separator = next(iter(SEPARATOR.findall(text.lstrip("/"))), "/")
    number = int(rng.integers(1, 4))
    parts = text.split(separator)
    part = parts[number - 1] if number <= len(parts) else ""
    word, suffix, separator, part, start = (
        sql_literal(constant, "VARCHAR") for constant in (word, suffix, separator, part, prefix)
    )
    return {
        "left": f"left({name}, {len(prefix)}) = {start}",
        "contains": f"contains({name}, {word})",
        "strpos": f"strpos({name}, {word}) > 0",
        "ends_with": f"ends_with({name}, {suffix})",
        "split_part": f"split_part({name}, {separator}, {number}) = {part}",
        "length": f"length({name}) {_choose(rng, '>', '<')} {len(text)}",
        "extract": f"regexp_extract({name}, '[^.]*$') = {sql_literal(text.rsplit('.', 1)[-1], 'VARCHAR')}",
    }[_choose(rng, "left", "contains", "strpos", "ends_with", "split_part", "length", "extract")]


def excluded_pattern(name: str, text: str, other: str, rng: np.random.Generator) -> str | None:
    """A pattern that must not match, sometimes with another one that must."""
    position = _choose(rng, "contains", "prefix", "suffix")
    piece = _piece(other, position, rng)
    if not piece:
        return None
    clause = f"{name} NOT LIKE {_like_pattern(piece, position)}"
    required = _piece(text, "contains", rng)
    return (
        f"{name} LIKE {_like_pattern(required, 'contains')} AND {clause}" if required and rng.random() < 0.4 else clause
    )


def regular_expression(name: str, text: str, other: str, rng: np.random.Generator) -> str | None:
    """A regular expression: a word with its digits left open, one of two words, or a beginning and an end."""
    word, alternative = _piece(text, "contains", rng), _piece(other, "contains", rng)
    prefix, suffix = _piece(text, "prefix", rng), _piece(text, "suffix", rng)
    if not (word and alternative and prefix and suffix):
        return None
    suffix = suffix[max(0, len(prefix) + len(suffix) - len(text)) :]  # prefix and suffix must not overlap in the string
    pattern = {
        "digits": re.sub(r"[0-9]+", "[0-9]+", re.escape(text[-12:])) + "$",
        "either": f"({re.escape(word)}|{re.escape(alternative)})",
        "ends": f"^{re.escape(prefix)}.*{re.escape(suffix)}$",
        "word": f"{re.escape(word)}[0-9]*",
    }[_choose(rng, "digits", "either", "ends", "word")]
    return f"regexp_matches({name}, {sql_literal(pattern, 'VARCHAR')})"


def _two_likes(name: str, text: str, other: str, rng: np.random.Generator, operator: str) -> str | None:
    first, second = (_choose(rng, "contains", "contains", "prefix", "suffix") for _ in range(2))
    pieces = _piece(text, first, rng), _piece(other, second, rng)
    if not all(pieces) or pieces[0] == pieces[1]:
        return None
    likes = (
        f"{name} LIKE {_like_pattern(piece, position)}" for piece, position in zip(pieces, (first, second), strict=True)
    )
    return f"({operator.join(likes)})"


def _like_pattern(piece: str, position: str) -> str:
    front, end = position != "prefix", position != "suffix"
    return like_literal(*([ANY] if front else []), piece, *([ANY] if end else []))


def _piece(text: str, position: str, rng: np.random.Generator) -> str:
    """A piece of the string: a word, the text before or after a separator, or random characters. May be empty."""
    cuts = [match.start() for match in SEPARATOR.finditer(text)]
    is_random = rng.random() < RANDOM_PIECE
    length = int(rng.integers(2, 9))
    if position == "prefix":
        ends = [cut + 1 for cut in cuts if cut >= 1]
        return text[:length] if is_random or not ends else text[: int(rng.choice(ends))]
    if position == "suffix":
        starts = [cut for cut in cuts if cut + 1 < len(text)][-2:]
        return text[-length:] if is_random or not starts else text[int(rng.choice(starts)) :]
    words = WORD.findall(text)
    if is_random or not words:
        first = int(rng.integers(max(1, len(text) - length + 1)))
        return text[first : first + max(3, length)]
    return str(words[int(rng.integers(len(words)))])


def _choose(rng: np.random.Generator, *options: str) -> str:
    return options[int(rng.integers(len(options)))]
