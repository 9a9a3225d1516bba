"""A text model that is a table: the probability of every string, and MASK as exact marginalisation."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from countless.arrays import FloatArray, IntArray, Weights
from countless.automata.language import Automaton, Language, Letters
from countless.engine.text.runtime import TextRuntime
from countless.query.text.string_sets import Script
from countless.spec import TextSpec

CHARACTERS = "ab"
RARE = "xyz"


def letters_of(characters: str = CHARACTERS, rare: str = RARE, stop: float = 0.0) -> Letters:
    """Letters of which the rare ones share UNKNOWN, the first of them most of it."""
    shares = np.arange(len(rare), 0, -1.0)
    return Letters(
        characters + rare,
        np.minimum(np.arange(len(characters + rare)), len(characters)),
        np.concatenate([np.ones(len(characters)), shares / max(1.0, shares.sum())]),
        np.arange(1.0, len(characters + rare) + 1),
        stop,
    )


def script_of(letters: Letters) -> Script:
    """The letters as they are."""
    return Script(letters, tuple(letters.characters))


class TableRuntime(TextRuntime):
    """A random joint distribution of all strings up to a length: each character depends on all that came before it.

    A row of ``strings`` is one of them in symbols (length + 1): characters, then END or CUT; or NULL. Beyond is END.
    ``masses`` has the probability of each. With ``contexts`` the row has one position of so many symbols, each with a
    distribution of its own (``given``), and MASK is the mean of them.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        characters: str = CHARACTERS,
        rare: str = RARE,
        length: int = 5,
        stop: float = 0.0,
        null: bool = False,
        gaps: bool = False,
        contexts: int = 0,
    ) -> None:
        rng = np.random.default_rng(seed)
        letters = letters_of(characters, rare, stop)
        known = sorted(set(letters.symbols.tolist()))
        self.spec = TextSpec(
            len(characters),
            length,
            width=1,
            heads=1,
            inner=1,
            buckets=1,
            gaps=gaps,
            context=(contexts,) * (contexts > 0),
        )
        self.letters, self.has_null = letters, null
        rows = [
            [*string, *[self.spec.end] * (length + 1 - size)]
            for size in range(length + 1)
            for string in product(known, repeat=size)
        ]
        if stop:
            rows += [[*string, self.spec.cut] for string in product(known, repeat=length)]
        if null:
            rows.append([self.spec.null, *[self.spec.end] * length])
        self.strings: IntArray = np.array(rows)
        masses = rng.gamma(0.3, size=(max(1, contexts), len(rows))) + 1e-4
        masses /= masses.sum(axis=1, keepdims=True)
        self.masses: FloatArray = masses.mean(axis=0)
        self.given: FloatArray = np.concatenate([masses, self.masses[None]]) if contexts else self.masses[None]
        # For each node of any tree: the masses of its strings, and the probabilities of the next symbol.
        self.masses_and_next: list[tuple[FloatArray, Weights]] = []
        self.node_of: dict[tuple[int, int, int], int] = {}
        for masses in self.given:
            for position in range(length + 1):
                self._append(masses, position)

    def tree(self, contexts: ArrayLike | None = None) -> TableTree:
        return TableTree(self, [len(self.given) - 1] if contexts is None else np.asarray(contexts)[:, 0].tolist())

    def node(self, parent: int, before: int, token: int) -> int:
        """The node after ``token`` at the position ``before``, where its parent is."""
        key = parent, before, token
        if key not in self.node_of:
            masses = self.masses_and_next[parent][0] * (self.strings[:, before] == token)
            self.node_of[key] = self._append(masses, before + 1)
        return self.node_of[key]

    def masked(self, parent: int, position: int) -> int:
        """The node at a later position, with all that lies between not known."""
        key = parent, position, self.spec.mask
        if key not in self.node_of:
            self.node_of[key] = self._append(self.masses_and_next[parent][0], position)
        return self.node_of[key]

    def _append(self, masses: FloatArray, position: int) -> int:
        chances = np.bincount(self.strings[:, position], masses, self.spec.symbols)
        self.masses_and_next.append((masses, (chances / max(chances.sum(), 1e-300)).astype(np.float32)))
        return len(self.masses_and_next) - 1

    def chances(self, language: Language) -> FloatArray:
        """Of each string: the probability that it is in ``language``; its rare characters are drawn by their shares."""
        automaton = language.strings
        steps = np.zeros((self.spec.symbols, len(automaton.accepts), len(automaton.accepts)))
        for letter, symbol in enumerate(automaton.letters.symbols.tolist()):
            np.add.at(
                steps[symbol],
                (np.arange(len(automaton.accepts)), automaton.next[:, letter]),
                automaton.letters.shares[letter],
            )
        cut = automaton.cut_weights()
        probs = []
        for string in self.strings.tolist():
            states = np.eye(len(automaton.accepts))[0]
            for symbol in string:
                if symbol > self.spec.unknown:
                    break
                states = states @ steps[symbol]
            last = {self.spec.end: states @ automaton.accepts, self.spec.cut: states @ cut}
            probs.append(float(last.get(symbol, language.null)))
        return np.array(probs)

    def truth(self, language: Language | Automaton, context: int = -1) -> float:
        """The mass of the strings in ``language``, in one of the contexts."""
        if isinstance(language, Automaton):
            language = Language(language, False, False)
        return float(self.given[context] @ self.chances(language))


class TableTree:
    """A tree of strings of a table; ``rows`` is how many were asked for."""

    def __init__(self, runtime: TableRuntime, contexts: list[int]) -> None:
        self._runtime, each = runtime, runtime.spec.length + 1
        self._nodes = [context * each + position for context in contexts for position in range(each)]
        self._positions = list(range(each)) * len(contexts)
        self._contexts = np.repeat(np.arange(len(contexts)), each).tolist()
        self.roots: Weights = np.stack([runtime.masses_and_next[node][1] for node in self._nodes])
        self.roots.setflags(write=False)
        self.starts: Weights = self.roots[::each]

    @property
    def size(self) -> int:
        return len(self._nodes)

    @property
    def rows(self) -> int:
        """How many nodes were appended."""
        return self.size - len(self.roots)

    @property
    def positions(self) -> IntArray:
        return np.array(self._positions)

    @property
    def contexts(self) -> IntArray:
        return np.array(self._contexts)

    def extend(self, parents: ArrayLike, tokens: ArrayLike) -> Weights:
        first = self.size
        for parent, token in zip(np.asarray(parents).tolist(), np.asarray(tokens).tolist(), strict=True):
            before = self._positions[parent]
            assert before < self._runtime.spec.length, "a position is beyond the model's length"
            assert token <= self._runtime.spec.unknown, "a string went on after its end"
            self._nodes.append(self._runtime.node(self._nodes[parent], before, token))
            self._positions.append(before + 1)
            self._contexts.append(self._contexts[parent])
        return self._since(first)

    def masked(self, parents: ArrayLike, positions: ArrayLike) -> Weights:
        first = self.size
        for parent, position in zip(np.asarray(parents).tolist(), np.asarray(positions).tolist(), strict=True):
            self._nodes.append(self._runtime.masked(self._nodes[parent], position))
            self._positions.append(position)
            self._contexts.append(self._contexts[parent])
        return self._since(first)

    def _since(self, first: int) -> Weights:
        probs = [self._runtime.masses_and_next[node][1] for node in self._nodes[first:]]
        return np.array(probs, dtype=np.float32).reshape(len(probs), self._runtime.spec.symbols)
