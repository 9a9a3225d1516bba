"""Text columns: their alphabet, and the symbols of every row's string."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from countless.automata.language import Letters
from countless.cached_property import cached_property
from countless.data.columns.strings.characters import Characters
from countless.errors import ModelFileError
from countless.json_forms import fields_in, plain

MOST_RARE = 1_000  # rare characters that a pattern can distinguish; the others are one letter
OTHER_RARE = "\uffff"  # that letter: not a character
AFTER_CHARACTERS = 4  # UNKNOWN, END, CUT and NULL, in this order (countless.spec.TextSpec)


@dataclass(frozen=True)
class TextColumn:
    """A column of strings that are modelled character by character.

    ``characters`` is the alphabet, in the order of code points; ``frequencies`` says how often each character occurs.
    ``rare`` has the other characters with their frequencies; to the model they are all UNKNOWN. Strings of more than
    ``length`` characters are cut there: that happens to ``cut`` strings, which are ``beyond`` characters longer on
    average. If ``estimated``, the number of ``distinct`` strings is an estimate.
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
    estimated: bool = False
    is_text: ClassVar[Literal[True]] = True

    @cached_property
    def letters(self) -> Letters:
        """The characters that patterns on this column can distinguish."""
        ranked = sorted(self.rare, key=lambda item: (-item[1], item[0]))
        rare, others = ranked[:MOST_RARE], ranked[MOST_RARE:]
        if others:
            rare = [*rare, (OTHER_RARE, sum(count for _, count in others))]
        unknown = sum(count for _, count in self.rare)
        counts = np.array([*self.frequencies, *(count for _, count in rare)], dtype=np.float64)
        symbols = np.array([*range(len(self.characters)), *[len(self.characters)] * len(rare)], dtype=np.int64)
        shares = np.ones(len(symbols))
        shares[len(self.characters) :] = [count / unknown for _, count in rare]
        stop = 1.0 / max(1.0, self.beyond) if self.cut else 0.0
        return Letters(self.characters + "".join(character for character, _ in rare), symbols, shares, counts, stop)

    def to_json(self) -> dict[str, Any]:
        """Plain data for the model file."""
        data: dict[str, Any] = plain(self)
        return data

    @classmethod
    def from_json(cls, data: Any) -> TextColumn:
        """The column that :meth:`to_json` wrote."""
        column = cls(**fields_in(cls, data))
        all_characters = column.characters + "".join(character for character, _ in column.rare)
        is_consistent = (
            len(column.frequencies) == len(column.characters)
            and all(len(character) == 1 for character, _ in column.rare)
            and len(set(all_characters)) == len(all_characters)
        )
        if not is_consistent:
            raise ModelFileError(f'the schema is damaged (the text column "{column.name}"): fit the model again')
        return column


@dataclass(frozen=True, eq=False)
class Strings:
    """Rows of a text column as symbols (rows, length + 1): characters, then END or CUT; or NULL. The rest is END."""

    symbols: NDArray[Any]
    lengths: NDArray[np.int32]  # symbols of each row, the last one included


class Alphabet:
    """Turns the strings of a text column into symbols.

    >>> column = TextColumn("t", "VARCHAR", "ab", 3, True, 9, (("é", 1),), (5, 5))
    >>> Alphabet(column).encode(Characters.of_texts(["ab", "abab", "é", "", None])).symbols.tolist()
    [[0, 1, 3, 3], [0, 1, 0, 4], [2, 3, 3, 3], [3, 3, 3, 3], [5, 3, 3, 3]]
    """

    def __init__(self, column: TextColumn) -> None:
        self.length = column.length
        count = len(column.characters)
        self.unknown, self.end, self.cut, self.null = range(count, count + AFTER_CHARACTERS)
        self.dtype = symbol_type(column)
        points = np.array([ord(character) for character in column.characters], dtype=np.int64)
        self._symbols = np.full(max(256, int(points.max(initial=0)) + 1), self.unknown, dtype=self.dtype)
        self._symbols[points] = np.arange(count)

    def encode(self, strings: Characters) -> Strings:
        """The symbols of every string."""
        symbols = np.full((len(strings.lengths), self.length + 1), self.end, dtype=self.dtype)
        lengths = np.minimum(strings.lengths, self.length).astype(np.int32)
        symbols[np.arange(self.length + 1) < lengths[:, None]] = self._symbols_of(strings.cut(self.length))
        symbols[strings.lengths > self.length, self.length] = self.cut
        symbols[~strings.present, 0] = self.null
        return Strings(symbols, lengths + 1)

    def _symbols_of(self, points: NDArray[Any]) -> NDArray[Any]:
        """The symbol of each code point."""
        if points.dtype == np.uint8 or points.max(initial=0) < len(self._symbols):
            return self._symbols.take(points)
        symbols: NDArray[Any] = self._symbols[np.minimum(points, len(self._symbols) - 1)]
        symbols[points >= len(self._symbols)] = self.unknown
        return symbols


def symbol_type(column: TextColumn) -> np.dtype[Any]:
    """The smallest type that holds every symbol of the column."""
    return np.dtype(np.uint8 if len(column.characters) + AFTER_CHARACTERS <= 2**8 else np.uint16)


def encode(column: TextColumn, texts: list[str | None]) -> Strings:
    """The symbols of ``texts``.

    >>> encode(TextColumn("t", "VARCHAR", "ab", 3, True, 9, (), (5, 5)), ["ab", "é"]).lengths.tolist()
    [3, 2]
    """
    return Alphabet(column).encode(Characters.of_texts(texts))
