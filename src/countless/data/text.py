"""A text column: the alphabet its strings are written in, and the symbols of every row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from countless.automaton import Letters

MOST_RARE = 1_000  # rare characters that are told apart in a pattern; any others are as one


@dataclass(frozen=True)
class TextColumn:
    """A column of strings that are modelled character by character.

    ``characters`` is the alphabet, in the order of code points. ``rare`` has the other characters, which the model
    knows only as UNKNOWN, with how often each occurs. Strings of more than ``length`` characters are cut there: ``cut``
    of them, which go on for ``beyond`` characters in the mean.
    """

    name: str
    type: str
    characters: str
    length: int
    has_null: bool
    distinct: int
    rare: tuple[tuple[str, int], ...] = ()
    frequencies: tuple[int, ...] = ()  # how often each of ``characters`` occurs
    cut: int = 0
    beyond: float = 0.0

    @cached_property
    def letters(self) -> Letters:
        """What patterns about this column tell apart."""
        told = sorted(self.rare, key=lambda item: (-item[1], item[0]))[:MOST_RARE]
        unknown = sum(count for _, count in self.rare)
        counts = np.array([*self.frequencies, *(count for _, count in told)], dtype=np.float64)
        symbols = np.array([*range(len(self.characters)), *[len(self.characters)] * len(told)], dtype=np.int64)
        shares = np.ones(len(symbols))
        shares[len(self.characters) :] = [count / unknown for _, count in told]
        stop = 1.0 / max(1.0, self.beyond)
        return Letters(self.characters + "".join(character for character, _ in told), symbols, shares, counts, stop)
