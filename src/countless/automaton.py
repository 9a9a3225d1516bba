"""Sets of strings, as automata over the letters of a text column."""

from __future__ import annotations

from dataclasses import dataclass

from countless.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Letters:
    """The characters that patterns about one column tell apart, and what the model makes of each.

    ``symbols`` has the model's symbol of each letter. Several letters may share one (UNKNOWN): ``shares`` says which
    part of it each is. ``frequencies`` has how often each occurs in the table, and ``stop`` is the probability that a
    string ends after another character beyond the length at which strings are cut.
    """

    characters: str
    symbols: IntArray
    shares: FloatArray
    frequencies: FloatArray
    stop: float


@dataclass(frozen=True, eq=False)
class Automaton:
    """A set of strings: a complete deterministic automaton whose state 0 is the start.

    ``next`` (states, letters) is the state after a letter; ``accepts`` says of each state whether a string may end
    there.
    """

    letters: Letters
    next: IntArray
    accepts: BoolArray


@dataclass(frozen=True, eq=False)
class Language:
    """A set of values of a text column: strings, and perhaps NULL.

    It has the algebra of a boolean array over a column's codes (``&``, ``|``, ``~``, ``any()``, ``all()``), so that
    the logic of clauses need not know which of the two it combines.
    """

    strings: Automaton
    null: bool
    has_null: bool  # whether the column has NULLs at all
