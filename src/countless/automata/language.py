"""Languages: sets of strings as finite automata over the characters of a text column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.automata.dfa import distance, explore, minimal, same_columns
from countless.automata.known_pieces import KnownPieces, LetterPiece
from countless.cached_property import cached_property

MOST_SOLVED = 1_000  # states of a system of equations that is solved at once; a larger one is approached step by step
MOST_STEPS = 300
KNOWN, KNOWN_OF_OTHERS = "known pieces", "known pieces of others"  # of an automaton, and of its complement


@dataclass(frozen=True, eq=False)
class Letters:
    """The characters that patterns about one column distinguish, and what the model makes of each.

    ``symbols`` has the model's symbol of each letter. Several letters may share one (UNKNOWN): ``shares`` says which
    part of it each is. ``frequencies`` has how often each occurs in the table, and ``stop`` is the probability that a
    string ends after another character beyond the length at which strings are cut; 0 if none is cut.
    """

    characters: str
    symbols: IntArray
    shares: FloatArray
    frequencies: FloatArray
    stop: float


class SymbolTransitions(NamedTuple):
    """How an automaton reads symbols: letters of one symbol that lead to the same states are one column."""

    symbols: IntArray  # (columns,)
    shares: FloatArray  # (columns,) the part of its symbol that each column is
    next: IntArray  # (states, columns)


@dataclass(frozen=True, eq=False)
class Automaton:
    """A set of strings: a complete deterministic automaton whose state 0 is the start.

    ``next`` (states, letters) is the state after a letter; ``accepts`` says of each state whether a string may end
    there.
    """

    letters: Letters
    next: IntArray
    accepts: BoolArray

    @classmethod
    def constant(cls, letters: Letters, value: bool) -> Automaton:
        """Every string, or none."""
        return cls(letters, np.zeros((1, len(letters.characters)), dtype=np.int64), np.array([value]))

    @classmethod
    def of_kinds(cls, letters: Letters, following: IntArray, kind: Sequence[int], accepts: BoolArray) -> Automaton:
        """The least automaton that reads only the ``kind`` of each letter: ``following`` is (states, kinds)."""
        table, ends = minimal(following, accepts)
        return cls(letters, table[:, kind], ends)

    def __and__(self, other: Automaton) -> Automaton:
        return self._joined(other, np.logical_and)._knowing(KNOWN, self, other)

    def __or__(self, other: Automaton) -> Automaton:
        return self._joined(other, np.logical_or)._knowing(KNOWN_OF_OTHERS, self, other)

    def __invert__(self) -> Automaton:
        return self._inverted

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What others derived from the automaton and keep with it, by what it is."""
        return {}

    @cached_property
    def _inverted(self) -> Automaton:
        found = Automaton(self.letters, self.next, ~self.accepts)
        for key, of_others in ((KNOWN, KNOWN_OF_OTHERS), (KNOWN_OF_OTHERS, KNOWN)):
            if key in self.derived:
                found.derived[of_others] = self.derived[key]
        return found

    def _knowing(self, key: str, one: Automaton, two: Automaton) -> Automaton:
        """This automaton, with what both others tell under ``key``."""
        known: list[KnownPieces] = [each.derived[key] for each in (one, two) if key in each.derived]
        if len(known) == 2:
            self.derived[key] = known[0] & known[1]
        return self

    def knowing(self, known: KnownPieces | None) -> Automaton:
        """This automaton, with what is ``known`` of its strings from how they were written."""
        if known is not None:
            self.derived[KNOWN] = known
            if known.others is not None:
                self.derived[KNOWN_OF_OTHERS] = known.others
        return self

    def minimal(self) -> Automaton:
        """The same strings in the fewest states."""
        found = Automaton(self.letters, *minimal(self.next, self.accepts))
        found.derived.update((key, self.derived[key]) for key in (KNOWN, KNOWN_OF_OTHERS) if key in self.derived)
        return found

    @cached_property
    def _only_piece(self) -> LetterPiece | None:
        """The piece that a string has if and only if it is one of these strings, if that is known."""
        known: KnownPieces | None = self.derived.get(KNOWN)
        return None if known is None else known.only

    @cached_property
    def _is_without_piece(self) -> bool:
        """Whether these are known to be the strings that lack one piece."""
        known: KnownPieces | None = self.derived.get(KNOWN_OF_OTHERS)
        return known is not None and known.only is not None

    @cached_property
    def _merged(self) -> IntArray:
        return self.next[:, same_columns(self.next)[0]]

    @cached_property
    def dead(self) -> BoolArray:
        """Of each state: whether no string is accepted from there."""
        dead: BoolArray = distance(self._merged, self.accepts) == len(self.accepts)
        return dead

    @cached_property
    def full(self) -> BoolArray:
        """Of each state: whether every string is accepted from there."""
        full: BoolArray = distance(self._merged, ~self.accepts) == len(self.accepts)
        return full

    @cached_property
    def is_finite(self) -> bool:
        """Whether its strings can be listed: no path to an accepted string visits a state twice."""
        if self._only_piece is not None:
            return self._only_piece.begins and self._only_piece.ends
        if self._is_without_piece and self.next.shape[1]:
            return False
        if self.next.shape[1] and (self.full.any() or not self.dead.any()):
            return False
        alive = set(np.flatnonzero(~self.dead).tolist())
        following = {state: set(self._merged[state].tolist()) & alive for state in alive}
        entered = dict.fromkeys(alive, 0)
        for others in following.values():
            for other in others:
                entered[other] += 1
        todo = [state for state, count in entered.items() if not count]
        for state in todo:
            for other in following[state]:
                entered[other] -= 1
                if not entered[other]:
                    todo.append(other)
        return len(todo) == len(alive)

    def any(self) -> bool:
        """Whether it has a string at all."""
        return self._only_piece is not None or not self.dead[0]

    def all(self) -> bool:
        """Whether it has every string."""
        return self._only_piece is None and bool(self.full[0])

    def accepts_string(self, text: str) -> bool:
        """Whether ``text`` is one of the strings; none has a character that is not a letter."""
        state = 0
        for character in text:
            letter = self.letters.characters.find(character)
            if letter < 0:
                return False
            state = int(self.next[state, letter])
        return bool(self.accepts[state])

    def after(self, state: int) -> Automaton:
        """What may follow once ``state`` is reached."""
        order = np.arange(len(self.accepts))
        order[[0, state]] = state, 0
        return Automaton(self.letters, order[self.next[order]], self.accepts[order]).minimal()

    def lengths(self, most: int) -> BoolArray | None:
        """Of each length up to ``most``: whether its strings are accepted; None if not only the length decides."""
        first, _ = same_columns(self.next)
        if len(first) > 1:
            return None
        if not len(first):  # the empty string is the only one
            return np.full(most + 1, self.accepts[0])
        states = [0]
        for _ in range(most):
            states.append(int(self.next[states[-1], 0]))
        return self.accepts[states]

    @cached_property
    def is_left_ideal(self) -> bool:
        """Whether a string that ends in one of these strings is always one of them, as of ``LIKE '%abc%'``."""
        first, _ = same_columns(self.next)
        table = self.next[:, first].tolist()
        pairs = dict.fromkeys((0, after) for after in table[0])
        todo = list(pairs)
        for here, there in todo:
            if here == there or self.dead[here] or self.full[there]:
                continue
            if self.accepts[here] and not self.accepts[there]:
                return False
            for pair in zip(table[here], table[there], strict=True):
                if pair not in pairs:
                    pairs[pair] = None
                    todo.append(pair)
        return True

    def last(self) -> Automaton:
        """Of a left ideal: its strings that are no longer in it without their first character.

        Every string of the ideal ends in exactly one of these, unless the ideal has the empty string, and so all.
        """
        first, kind = same_columns(self.next)
        table = self.next[:, first].tolist()

        def after(pair: tuple[int, int] | None) -> list[tuple[int, int] | None]:
            if pair is None:
                return [(state, 0) for state in table[0]]
            return list(zip(table[pair[0]], table[pair[1]], strict=True))

        pairs, following = explore(None, after)
        accepts = [pair is not None and self.accepts[pair[0]] and not self.accepts[pair[1]] for pair in pairs]
        return Automaton(self.letters, following[:, kind], np.array(accepts, dtype=bool)).minimal()

    def cut_weights(self) -> FloatArray:
        """Of each state: the probability to accept a string that was cut there; 0 if none is."""
        return self.chances(self.letters.stop) if self.letters.stop else np.zeros(len(self.accepts))

    def chances(self, stop: float) -> FloatArray:
        """Of each state: the probability to accept a string that goes on for at least one more character.

        Characters come one by one by their frequencies, and after each the string ends with probability ``stop``.
        """
        letters = self.letters
        counts = letters.frequencies if letters.frequencies.sum() > 0 else np.ones(len(letters.characters))
        first, kind = same_columns(self.next)
        following, chances = self.next[:, first], np.bincount(kind, counts / counts.sum())
        ending = stop * np.asarray(self.accepts[following] @ chances, dtype=np.float64)
        if len(ending) <= MOST_SOLVED:
            steps = np.zeros((len(ending), len(ending)))
            np.add.at(steps, (np.arange(len(ending))[:, None], following), chances)
            weights: FloatArray = np.linalg.solve(np.eye(len(ending)) - (1 - stop) * steps, ending).astype(np.float64)
        else:
            weights = ending / stop
            for _ in range(MOST_STEPS):
                weights = np.add(ending, (1 - stop) * (weights[following] @ chances), dtype=np.float64)
        weights = np.clip(weights, 0.0, 1.0)
        weights[self.dead], weights[self.full] = 0.0, 1.0
        return weights

    def reading(self) -> SymbolTransitions:
        """The tables in terms of the model's symbols."""
        first, kind = same_columns(self.letters.symbols[None], self.next)
        return SymbolTransitions(
            self.letters.symbols[first], np.bincount(kind, self.letters.shares).astype(np.float64), self.next[:, first]
        )

    def _joined(self, other: Automaton, join: Callable[[Any, Any], Any]) -> Automaton:
        first, kind = same_columns(self.next, other.next)
        one, two = self.next[:, first].tolist(), other.next[:, first].tolist()

        def after(pair: tuple[int, int]) -> list[tuple[int, int]]:
            return list(zip(one[pair[0]], two[pair[1]], strict=True))

        pairs, following = explore((0, 0), after)
        places = np.array(pairs)
        accepts = join(self.accepts[places[:, 0]], other.accepts[places[:, 1]])
        return Automaton(self.letters, following[:, kind], accepts)


@dataclass(frozen=True, eq=False)
class Language:
    """A set of values of a text column: strings of a pattern, perhaps only of some lengths, and perhaps NULL.

    It has the algebra of a boolean array over a column's codes (``&``, ``|``, ``~``, ``any()``, ``all()``), so that
    the logic of clauses need not know which of the two it combines. ``lengths`` says of each length whether it is
    wanted, the last of all greater ones too; it is kept apart from the pattern as long as that is possible, because a
    position is known where characters are not.
    """

    pattern: Automaton
    null: bool
    has_null: bool  # whether the column has NULLs at all
    lengths: BoolArray | None = None

    @cached_property
    def strings(self) -> Automaton:
        """All that is asked of a string, as one automaton."""
        if self.lengths is None:
            return self.pattern
        following = np.minimum(np.arange(len(self.lengths)) + 1, len(self.lengths) - 1)
        letters = self.pattern.letters
        table = np.repeat(following[:, None], len(letters.characters), axis=1)
        return (self.pattern & Automaton(letters, table, self.lengths)).minimal()

    def __and__(self, other: Language) -> Language:
        lengths = self.lengths if other.lengths is None else other.lengths
        if self.lengths is not None and other.lengths is not None:
            every = np.arange(max(len(self.lengths), len(other.lengths)))
            one, two = (part[np.minimum(every, len(part) - 1)] for part in (self.lengths, other.lengths))
            lengths = one & two
        pattern = (self.pattern & other.pattern).minimal()
        return Language(pattern, self.null and other.null, self.has_null, lengths)

    def __or__(self, other: Language) -> Language:
        return Language((self.strings | other.strings).minimal(), self.null or other.null, self.has_null)

    def __invert__(self) -> Language:
        null = self.has_null and not self.null
        if self.lengths is not None and self.pattern.all():
            return Language(self.pattern, null, self.has_null, ~self.lengths)
        return Language(~self.strings, null, self.has_null)

    def any(self) -> bool:
        """Whether there can be a value in it; it may be that no string of the pattern has a length that is wanted."""
        return self.null or (self.pattern.any() and (self.lengths is None or bool(self.lengths.any())))

    def all(self) -> bool:
        """Whether it has every string, and NULL too if the column has NULLs."""
        return self.pattern.all() and (self.lengths is None or bool(self.lengths.all())) and self.null >= self.has_null
