"""An automaton over the model's symbols, as text walks read it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.automata.language import Automaton, Letters
from countless.cached_property import cached_property
from countless.spec import TextSpec

TYPICAL = 2.0  # times the typical length of strings: about the length of a model
MOST_STOP = 0.25  # limit of the chance that a string ends, so that a hint rules out nothing
LEAST_CHANCE = 1e-12


class Spelling(NamedTuple):
    """The symbols that must follow a state, their total weight, and the state after them, which has a choice."""

    symbols: IntArray
    weight: float
    state: int


class SymbolAutomaton:
    """The tables of an automaton: a row for each state, a column for each symbol or part of a symbol."""

    def __init__(self, automaton: Automaton, spec: TextSpec, lengths: FloatArray | None = None) -> None:
        reading = automaton.reading()
        self.lengths = lengths  # the weight of each length, last that of cut strings; None if lengths do not matter
        self.spec = spec
        self.symbols: IntArray = reading.symbols
        self.next: IntArray = reading.next
        self.full: BoolArray = automaton.full & (lengths is None)  # whether every string is accepted
        self.shares: FloatArray = reading.shares
        self.weights: FloatArray = np.where(automaton.dead[reading.next], 0.0, reading.shares)
        self.accepting: BoolArray = automaton.accepts
        self.ending = np.zeros((len(self.next), spec.symbols))  # the weight of symbols that end a string
        self.ending[:, spec.end] = automaton.accepts
        self.ending[:, spec.cut] = automaton.cut_weights()
        self.cuts = automaton.letters.stop > 0  # whether any string was cut
        self._spelled: dict[int, Spelling] = {}
        self._automaton = automaton

    @cached_property
    def hints(self) -> FloatArray:
        """The factor by which prefixes in each state are worth more than their mass: they may come to match.

        It is the square root of the chance to match, if characters came by their frequencies alone. A prefix that has
        read a part of the pattern is light because that was unlikely, but most matches come from such prefixes.
        """
        stop = min(TYPICAL / self.spec.length, MOST_STOP)
        chances = stop * self.accepting + (1.0 - stop) * self._automaton.chances(stop)
        hints: FloatArray = np.sqrt(np.maximum(chances, LEAST_CHANCE))
        return hints

    @cached_property
    def surviving(self) -> BoolArray:
        """Whether a string may end in each state, and most next symbols lead to such states again."""
        to_accepting = self.weights * self.accepting[self.next]
        surviving: BoolArray = self.accepting & (to_accepting.sum(axis=1) > 0.5 * self.shares.sum())
        return surviving

    @classmethod
    def of_every_string(cls, spec: TextSpec) -> SymbolAutomaton:
        """The automaton that accepts every string, with a letter for each of the model's characters."""
        count = spec.characters + 1
        letters = Letters("\0" * count, np.arange(count), np.ones(count), np.ones(count), 0.0)
        return cls(Automaton.constant(letters, True), spec)

    @cached_property
    def forced(self) -> BoolArray:
        """Whether each state has only one allowed next symbol and cannot end."""
        forced: BoolArray = ((self.weights > 0).sum(axis=1) == 1) & ~self.accepting & ~self.full
        return forced

    def ends(self, states: IntArray, chances: FloatArray, positions: IntArray) -> FloatArray:
        """The chance that strings in these states end or are cut right here; ``chances`` are those of every symbol."""
        end, cut = self.spec.end, self.spec.cut
        ended, was_cut = chances[:, end] * self.ending[states, end], chances[:, cut] * self.ending[states, cut]
        if self.lengths is not None:
            ended, was_cut = ended * self.lengths[positions], was_cut * self.lengths[-1]
        mass: FloatArray = ended + was_cut
        return mass

    def spelled(self, state: int) -> Spelling:
        """The symbols that must follow a forced ``state``, as far as they fit into a string."""
        if state not in self._spelled:
            symbols: list[int] = []
            weight, current = 1.0, state
            while self.forced[current] and len(symbols) <= self.spec.length:
                column = int(np.argmax(self.weights[current]))
                symbols.append(int(self.symbols[column]))
                weight *= float(self.weights[current, column])
                current = int(self.next[current, column])
            self._spelled[state] = Spelling(np.array(symbols), weight, current)
        return self._spelled[state]
