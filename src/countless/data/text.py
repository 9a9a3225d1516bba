"""Text columns: the alphabet their strings are written in, and the symbols of every row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.automaton import Letters
from countless.errors import ModelFileError

MOST_RARE = 1_000  # rare characters that are told apart in a pattern; the others are one nameless letter
NAMELESS = "\uffff"  # no character
AFTER_CHARACTERS = 4  # UNKNOWN, END, CUT and NULL, in this order (countless.spec.TextSpec)


@dataclass(frozen=True)
class TextColumn:
    """A column of strings that are modelled character by character.

    ``characters`` is the alphabet, in the order of code points, with how often each occurs in ``frequencies``. ``rare``
    has the other characters, which the model knows only as UNKNOWN, with the same. Strings of more than ``length``
    characters are cut there: ``cut`` of them, which go on for ``beyond`` characters in the mean.
    """

    name: str
    type: str
    characters: str
    length: int
    has_null: bool
    distinct: int
    rare: tuple[tuple[str, int], ...] = ()
    frequencies: tuple[int, ...] = ()
    cut: int = 0
    beyond: float = 0.0

    @cached_property
    def letters(self) -> Letters:
        """What patterns about this column tell apart."""
        ranked = sorted(self.rare, key=lambda item: (-item[1], item[0]))
        told, others = ranked[:MOST_RARE], ranked[MOST_RARE:]
        if others:
            told = [*told, (NAMELESS, sum(count for _, count in others))]
        unknown = sum(count for _, count in self.rare)
        counts = np.array([*self.frequencies, *(count for _, count in told)], dtype=np.float64)
        symbols = np.array([*range(len(self.characters)), *[len(self.characters)] * len(told)], dtype=np.int64)
        shares = np.ones(len(symbols))
        shares[len(self.characters) :] = [count / unknown for _, count in told]
        stop = 1.0 / max(1.0, self.beyond) if self.cut else 0.0
        return Letters(self.characters + "".join(character for character, _ in told), symbols, shares, counts, stop)

    def to_json(self) -> dict[str, Any]:
        """Plain data for the model file."""
        return {
            "name": self.name,
            "type": self.type,
            "characters": self.characters,
            "frequencies": list(self.frequencies),
            "rare": [list(item) for item in self.rare],
            "length": self.length,
            "has_null": self.has_null,
            "distinct": self.distinct,
            "cut": self.cut,
            "beyond": self.beyond,
        }

    @classmethod
    def from_json(cls, data: Any) -> TextColumn:
        """The column that :meth:`to_json` wrote."""
        column = cls(
            name=str(data["name"]),
            type=str(data["type"]),
            characters=str(data["characters"]),
            length=int(data["length"]),
            has_null=bool(data["has_null"]),
            distinct=int(data["distinct"]),
            rare=tuple((str(character), int(count)) for character, count in data["rare"]),
            frequencies=tuple(map(int, data["frequencies"])),
            cut=int(data["cut"]),
            beyond=float(data["beyond"]),
        )
        every = column.characters + "".join(character for character, _ in column.rare)
        whole = (
            len(column.frequencies) == len(column.characters)
            and all(len(character) == 1 for character, _ in column.rare)
            and len(set(every)) == len(every)
            and min([1, *column.frequencies, *(count for _, count in column.rare)]) > 0
            and column.length >= 1
            and 0 <= column.beyond < float("inf")
        )
        if not whole:
            raise ModelFileError(f'the schema is damaged (the text column "{column.name}"): fit the model again')
        return column


@dataclass(frozen=True, eq=False)
class Strings:
    """Rows of a text column as symbols (rows, length + 1): characters, then END or CUT; or NULL. Beyond is END."""

    symbols: NDArray[Any]
    lengths: NDArray[np.int32]  # symbols of each row, the last one included


def encode(column: TextColumn, texts: list[str | None]) -> Strings:
    """The symbols of ``texts``.

    >>> column = TextColumn("t", "VARCHAR", "ab", 3, True, 9, (("é", 1),), (5, 5))
    >>> encode(column, ["ab", "abab", "é", "", None]).symbols.tolist()
    [[0, 1, 3, 3], [0, 1, 0, 4], [2, 3, 3, 3], [3, 3, 3, 3], [5, 3, 3, 3]]
    """
    count, length = len(column.characters), column.length
    unknown, end, cut, null = range(count, count + AFTER_CHARACTERS)
    symbols = np.full((len(texts), length + 1), end, dtype=np.uint8 if null < 2**8 else np.uint16)
    lengths = np.array([min(length, len(text)) if text is not None else 0 for text in texts], dtype=np.int32)
    points = np.frombuffer("".join(text[:length] for text in texts if text).encode("utf-32-le"), dtype=np.uint32)
    alphabet = np.array([ord(character) for character in column.characters], dtype=np.uint32)
    places = np.searchsorted(alphabet, points)
    known = places < count
    known[known] = alphabet[places[known]] == points[known]
    symbols[np.arange(length + 1) < lengths[:, None]] = np.where(known, places, unknown)
    symbols[[text is not None and len(text) > length for text in texts], length] = cut
    symbols[[text is None for text in texts], 0] = null
    return Strings(symbols, lengths + 1)
