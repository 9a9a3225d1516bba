"""An automaton in terms of the model's symbols, as the text walks read it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.automata.language import Automaton, Letters
from countless.cached_property import cached_property
from countless.spec import TextSpec

TYPICAL = 2.0  # times as long as strings are is what a model has room for, or so
MOST_STOP = 0.25  # however short strings are, for a hint must not rule out what the model may say
LEAST_CHANCE = 1e-12


class Spelling(NamedTuple):
    """What must follow a state: these symbols, with this weight in all, up to a state that leaves a choice."""

    symbols: IntArray
    weight: float
    state: int


class SymbolAutomaton:
    """The tables of an automaton. A row per state; a column per symbol, or part of one that is treated alike."""

    def __init__(self, automaton: Automaton, spec: TextSpec, lengths: FloatArray | None = None) -> None:
        reading = automaton.reading()
        self.lengths = lengths  # the weight of each length, the last of strings that were cut; None if all are wanted
        self.spec = spec
        self.symbols: IntArray = reading.symbols
        self.next: IntArray = reading.next
        self.full: BoolArray = automaton.full & (lengths is None)  # the rest does not matter
        self.shares: FloatArray = reading.shares
        self.weights: FloatArray = np.where(automaton.dead[reading.next], 0.0, reading.shares)
        self.accepting: BoolArray = automaton.accepts
        self.ending = np.zeros((len(self.next), spec.symbols))  # the weight of symbols after which there is no other
        self.ending[:, spec.end] = automaton.accepts
        self.ending[:, spec.cut] = automaton.cut_weights()
        self.cuts = automaton.letters.stop > 0  # whether any string was cut
        self._spelled: dict[int, Spelling] = {}
        self._automaton = automaton

    @cached_property
    def hints(self) -> FloatArray:
        """Of each state: how much a prefix there is worth more than its mass, for it may come to match.

        It is the root of its chance to, if characters came by their frequencies alone. Who has read a part of what is
        looked for is light, for that was unlikely, and yet most of what will be found comes from such prefixes.
        """
        stop = min(TYPICAL / self.spec.length, MOST_STOP)
        chances = stop * self.accepting + (1.0 - stop) * self._automaton.chances(stop)
        hints: FloatArray = np.sqrt(np.maximum(chances, LEAST_CHANCE))
        return hints

    @cached_property
    def surviving(self) -> BoolArray:
        """Of each state: whether a string may end there, and most that may follow leads to such states again."""
        on = self.weights * self.accepting[self.next]
        surviving: BoolArray = self.accepting & (on.sum(axis=1) > 0.5 * self.shares.sum())
        return surviving

    @classmethod
    def of_every_string(cls, spec: TextSpec) -> SymbolAutomaton:
        """The machine that accepts whatever the model says, with a letter for each of its characters."""
        count = spec.characters + 1
        letters = Letters("\0" * count, np.arange(count), np.ones(count), np.ones(count), 0.0)
        return cls(Automaton.constant(letters, True), spec)

    @cached_property
    def forced(self) -> BoolArray:
        """Of each state: whether there is only one way on, until the string may be cut."""
        forced: BoolArray = ((self.weights > 0).sum(axis=1) == 1) & ~self.accepting & ~self.full
        return forced

    def ends(self, states: IntArray, chances: FloatArray, positions: IntArray) -> FloatArray:
        """Of prefixes with these chances of every symbol: the mass of strings that end or are cut right here."""
        end, cut = self.spec.end, self.spec.cut
        ended, was_cut = chances[:, end] * self.ending[states, end], chances[:, cut] * self.ending[states, cut]
        if self.lengths is not None:
            ended, was_cut = ended * self.lengths[positions], was_cut * self.lengths[-1]
        mass: FloatArray = ended + was_cut
        return mass

    def spelled(self, state: int) -> Spelling:
        """What must follow a forced ``state``, as far as it is forced and fits a string."""
        if state not in self._spelled:
            symbols: list[int] = []
            weight, here = 1.0, state
            while self.forced[here] and len(symbols) <= self.spec.length:
                column = int(np.argmax(self.weights[here]))
                symbols.append(int(self.symbols[column]))
                weight *= float(self.weights[here, column])
                here = int(self.next[here, column])
            self._spelled[state] = Spelling(np.array(symbols), weight, here)
        return self._spelled[state]
