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

MOST_SOLVED = 1_000  # states of a system of equations that is solved directly; a larger one is solved by iteration
MOST_STEPS = 300
KNOWN, KNOWN_OF_OTHERS = (
    "known pieces",
    "known pieces of others",
)  # keys of `derived`: of an automaton, and of its complement


@dataclass(frozen=True, eq=False)
class Letters:
    """The characters that patterns on one column distinguish, and the model's symbol of each.

    Several letters may share a symbol (UNKNOWN): ``shares`` is the share of each letter in its symbol. ``frequencies``
    is how often each letter occurs in the table. ``stop`` is the probability that a string ends after each character
    beyond the length at which strings are cut; 0 if none is cut.
    """

    characters: str
    symbols: IntArray
    shares: FloatArray
    frequencies: FloatArray
    stop: float


class SymbolTransitions(NamedTuple):
    """An automaton's transitions by symbol: letters of one symbol that lead to the same states are one column."""

    symbols: IntArray  # (columns,)
    shares: FloatArray  # (columns,) the part of its symbol that each column is
    next: IntArray  # (states, columns)


@dataclass(frozen=True, eq=False)
class Automaton:
    """A set of strings: a complete deterministic automaton whose state 0 is the start.

    ``next`` (states, letters) is the state after a letter; ``accepts`` marks the states in which a string may end.
    """

    letters: Letters
    next: IntArray
    accepts: BoolArray

    @classmethod
    def constant(cls, letters: Letters, value: bool) -> Automaton:
        """The automaton of all strings, or of none."""
        return cls(letters, np.zeros((1, len(letters.characters)), dtype=np.int64), np.array([value]))

    @classmethod
    def of_kinds(cls, letters: Letters, next_states: IntArray, kind: Sequence[int], accepts: BoolArray) -> Automaton:
        """The minimal automaton that reads only the ``kind`` of each letter; ``next_states`` is (states, kinds)."""
        table, ends = minimal(next_states, accepts)
        return cls(letters, table[:, kind], ends)

    def __and__(self, other: Automaton) -> Automaton:
        return self._product(other, np.logical_and)._with_joined_pieces(KNOWN, self, other)

    def __or__(self, other: Automaton) -> Automaton:
        return self._product(other, np.logical_or)._with_joined_pieces(KNOWN_OF_OTHERS, self, other)

    def __invert__(self) -> Automaton:
        return self._inverted

    @cached_property
    def derived(self) -> dict[str, Any]:
        """A cache of what callers compute from the automaton, by their own keys."""
        return {}

    @cached_property
    def _inverted(self) -> Automaton:
        complement = Automaton(self.letters, self.next, ~self.accepts)
        for key, complement_key in ((KNOWN, KNOWN_OF_OTHERS), (KNOWN_OF_OTHERS, KNOWN)):
            if key in self.derived:
                complement.derived[complement_key] = self.derived[key]
        return complement

    def _with_joined_pieces(self, key: str, left: Automaton, right: Automaton) -> Automaton:
        """This automaton with the intersection of the pieces that ``left`` and ``right`` have under ``key``."""
        pieces: list[KnownPieces] = [automaton.derived[key] for automaton in (left, right) if key in automaton.derived]
        if len(pieces) == 2:
            self.derived[key] = pieces[0] & pieces[1]
        return self

    def with_known_pieces(self, known: KnownPieces | None) -> Automaton:
        """This automaton with the pieces that are ``known`` from the pattern it was made of."""
        if known is not None:
            self.derived[KNOWN] = known
            if known.complement is not None:
                self.derived[KNOWN_OF_OTHERS] = known.complement
        return self

    def minimal(self) -> Automaton:
        """The automaton of the same strings with the fewest states."""
        smallest = Automaton(self.letters, *minimal(self.next, self.accepts))
        smallest.derived.update((key, self.derived[key]) for key in (KNOWN, KNOWN_OF_OTHERS) if key in self.derived)
        return smallest

    @cached_property
    def _only_piece(self) -> LetterPiece | None:
        """The piece that a string must have to be in the set, if nothing else decides."""
        known: KnownPieces | None = self.derived.get(KNOWN)
        return None if known is None else known.deciding_piece

    @cached_property
    def _is_without_piece(self) -> bool:
        """Whether the set is known to be all strings that lack one piece."""
        known: KnownPieces | None = self.derived.get(KNOWN_OF_OTHERS)
        return known is not None and known.deciding_piece is not None

    @cached_property
    def _merged(self) -> IntArray:
        return self.next[:, same_columns(self.next)[0]]

    @cached_property
    def dead(self) -> BoolArray:
        """For each state, whether no string is accepted from there."""
        dead: BoolArray = distance(self._merged, self.accepts) == len(self.accepts)
        return dead

    @cached_property
    def full(self) -> BoolArray:
        """For each state, whether every string is accepted from there."""
        full: BoolArray = distance(self._merged, ~self.accepts) == len(self.accepts)
        return full

    @cached_property
    def is_finite(self) -> bool:
        """Whether it has finitely many strings: no path to an accepted string visits a state twice."""
        if self._only_piece is not None:
            return self._only_piece.begins and self._only_piece.ends
        if self._is_without_piece and self.next.shape[1]:
            return False
        if self.next.shape[1] and (self.full.any() or not self.dead.any()):
            return False
        live = set(np.flatnonzero(~self.dead).tolist())
        successors = {state: set(self._merged[state].tolist()) & live for state in live}
        predecessor_counts = dict.fromkeys(live, 0)
        for next_states in successors.values():
            for next_state in next_states:
                predecessor_counts[next_state] += 1
        queue = [state for state, count in predecessor_counts.items() if not count]
        for state in queue:
            for next_state in successors[state]:
                predecessor_counts[next_state] -= 1
                if not predecessor_counts[next_state]:
                    queue.append(next_state)
        return len(queue) == len(live)

    def any(self) -> bool:
        """Whether it has any string."""
        return self._only_piece is not None or not self.dead[0]

    def all(self) -> bool:
        """Whether it has every string."""
        return self._only_piece is None and bool(self.full[0])

    def accepts_string(self, text: str) -> bool:
        """Whether ``text`` is one of the strings. Strings have no characters except the letters."""
        state = 0
        for character in text:
            letter = self.letters.characters.find(character)
            if letter < 0:
                return False
            state = int(self.next[state, letter])
        return bool(self.accepts[state])

    def after(self, state: int) -> Automaton:
        """The automaton of the rest of a string once ``state`` is reached."""
        order = np.arange(len(self.accepts))
        order[[0, state]] = state, 0
        return Automaton(self.letters, order[self.next[order]], self.accepts[order]).minimal()

    def lengths(self, most: int) -> BoolArray | None:
        """For each length up to ``most``, whether strings of it are accepted; None if not only the length decides."""
        first, _ = same_columns(self.next)
        if len(first) > 1:
            return None
        if not len(first):  # there are no letters: the empty string is the only one
            return np.full(most + 1, self.accepts[0])
        states = [0]
        for _ in range(most):
            states.append(int(self.next[states[-1], 0]))
        return self.accepts[states]

    @cached_property
    def is_left_ideal(self) -> bool:
        """Whether every string that ends with one of these strings is one of them, as with ``LIKE '%abc%'``."""
        first, _ = same_columns(self.next)
        table = self.next[:, first].tolist()
        pairs = dict.fromkeys((0, next_state) for next_state in table[0])
        queue = list(pairs)
        for state, shifted_state in queue:
            if state == shifted_state or self.dead[state] or self.full[shifted_state]:
                continue
            if self.accepts[state] and not self.accepts[shifted_state]:
                return False
            for pair in zip(table[state], table[shifted_state], strict=True):
                if pair not in pairs:
                    pairs[pair] = None
                    queue.append(pair)
        return True

    def last(self) -> Automaton:
        """The strings of a left ideal that leave it when their first character is removed.

        Every string of the ideal ends with exactly one of these, unless the ideal has the empty string, and so all.
        """
        first, kind = same_columns(self.next)
        table = self.next[:, first].tolist()

        def next_pairs(pair: tuple[int, int] | None) -> list[tuple[int, int] | None]:
            if pair is None:
                return [(state, 0) for state in table[0]]
            return list(zip(table[pair[0]], table[pair[1]], strict=True))

        pairs, next_states = explore(None, next_pairs)
        accepts = [pair is not None and self.accepts[pair[0]] and not self.accepts[pair[1]] for pair in pairs]
        return Automaton(self.letters, next_states[:, kind], np.array(accepts, dtype=bool)).minimal()

    def cut_weights(self) -> FloatArray:
        """For each state, the probability to accept a string that was cut there; 0 if no string is cut."""
        return self.chances(self.letters.stop) if self.letters.stop else np.zeros(len(self.accepts))

    def chances(self, stop: float) -> FloatArray:
        """For each state, the probability to accept a string that has at least one more character.

        Characters are drawn independently by their frequencies. After each the string ends with probability ``stop``.
        """
        letters = self.letters
        counts = letters.frequencies if letters.frequencies.sum() > 0 else np.ones(len(letters.characters))
        first, kind = same_columns(self.next)
        next_states, chances = self.next[:, first], np.bincount(kind, counts / counts.sum())
        ending = stop * np.asarray(self.accepts[next_states] @ chances, dtype=np.float64)
        if len(ending) <= MOST_SOLVED:
            steps = np.zeros((len(ending), len(ending)))
            np.add.at(steps, (np.arange(len(ending))[:, None], next_states), chances)
            weights: FloatArray = np.linalg.solve(np.eye(len(ending)) - (1 - stop) * steps, ending).astype(np.float64)
        else:
            weights = ending / stop
            for _ in range(MOST_STEPS):
                weights = np.add(ending, (1 - stop) * (weights[next_states] @ chances), dtype=np.float64)
        weights = np.clip(weights, 0.0, 1.0)
        weights[self.dead], weights[self.full] = 0.0, 1.0
        return weights

    def reading(self) -> SymbolTransitions:
        """The transitions by the model's symbols."""
        first, kind = same_columns(self.letters.symbols[None], self.next)
        return SymbolTransitions(
            self.letters.symbols[first], np.bincount(kind, self.letters.shares).astype(np.float64), self.next[:, first]
        )

    def _product(self, other: Automaton, join: Callable[[Any, Any], Any]) -> Automaton:
        first, kind = same_columns(self.next, other.next)
        left_table, right_table = self.next[:, first].tolist(), other.next[:, first].tolist()

        def next_pairs(pair: tuple[int, int]) -> list[tuple[int, int]]:
            return list(zip(left_table[pair[0]], right_table[pair[1]], strict=True))

        pairs, next_states = explore((0, 0), next_pairs)
        states = np.array(pairs)
        accepts = join(self.accepts[states[:, 0]], other.accepts[states[:, 1]])
        return Automaton(self.letters, next_states[:, kind], accepts)


@dataclass(frozen=True, eq=False)
class Language:
    """A set of values of a text column: strings of a pattern, perhaps only of some lengths, and perhaps NULL.

    It has the operators of a boolean array over a column's codes (``&``, ``|``, ``~``, ``any()``, ``all()``), so that
    formulas combine either. ``lengths`` marks the lengths that are allowed; its last element stands for all greater
    lengths. It is separate from the pattern as long as possible, because the engine always knows the position of a
    character, and not always the character.
    """

    pattern: Automaton
    null: bool
    has_null: bool  # whether the column has NULLs at all
    lengths: BoolArray | None = None

    @cached_property
    def strings(self) -> Automaton:
        """The strings of the set, with its lengths, as one automaton."""
        if self.lengths is None:
            return self.pattern
        next_lengths = np.minimum(np.arange(len(self.lengths)) + 1, len(self.lengths) - 1)
        letters = self.pattern.letters
        table = np.repeat(next_lengths[:, None], len(letters.characters), axis=1)
        return (self.pattern & Automaton(letters, table, self.lengths)).minimal()

    def __and__(self, other: Language) -> Language:
        lengths = self.lengths if other.lengths is None else other.lengths
        if self.lengths is not None and other.lengths is not None:
            all_lengths = np.arange(max(len(self.lengths), len(other.lengths)))
            own_lengths, other_lengths = (
                mask[np.minimum(all_lengths, len(mask) - 1)] for mask in (self.lengths, other.lengths)
            )
            lengths = own_lengths & other_lengths
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
        """Whether the set can have a value. It may still be that no string of the pattern has an allowed length."""
        return self.null or (self.pattern.any() and (self.lengths is None or bool(self.lengths.any())))

    def all(self) -> bool:
        """Whether the set has every string, and NULL if the column has NULLs."""
        return self.pattern.all() and (self.lengths is None or bool(self.lengths.all())) and self.null >= self.has_null
