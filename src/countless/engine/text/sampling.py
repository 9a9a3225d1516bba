"""Samples of strings from a text model, restricted to a language.

Prefixes branch into all their characters from the start. Above a budget they are thinned without bias, so that each
survivor stands for others too. Prefixes are thinned separately by their distance from a match, so that some prefixes
near a match survive, however rare it is. Each possible end of a prefix is a whole string with a mass, and strings are
drawn by mass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.automata.dfa import distance, same_columns
from countless.automata.language import Automaton, Language, Letters
from countless.cancellation import check_cancelled
from countless.engine.columns.thinning import thin
from countless.engine.paper.text import draw
from countless.engine.text.automaton_steps import SymbolAutomaton
from countless.engine.text.density import text_density
from countless.engine.text.methods import PARTICLES
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.walk import Prefixes, PrefixExtensions, Walk, start_of
from countless.errors import NoRowsError

BATCH_STRINGS = 256  # strings that are drawn from one walk
LEAST, MOST = 128, 2048  # prefixes of a walk; the number is multiplied by 4 from the one up to the other
MOST_NODES = 200_000  # of a walk's tree, about
PER_STRING = 4  # least number of prefixes for each requested string
PER_LEVEL = 8  # least number of prefixes at each distance from a match
NO_NODE = -1  # instead of a node, for NULL


@dataclass(frozen=True)
class Drawn:
    """A value and its log-probability. None is NULL. If ``cut``, only the beginning of a longer text is known."""

    text: str | None
    log_probability: float
    cut: bool = False


def sample(
    runtime: TextRuntime, language: Language, count: int, rng: np.random.Generator, context: IntArray | None = None
) -> list[Drawn]:
    """``count`` values of ``language``, drawn by the model's probability, in random order.

    If the language is so rare that even a large walk finds few of its strings, some values will have equal prefixes.
    ``context`` (positions) has the known symbols of the row, as in :mod:`countless.engine.text.conditional`.
    """
    if not language.any():
        raise NoRowsError("no string can match: there is nothing to draw")
    drawn: list[Drawn] = []
    while len(drawn) < count:
        drawn += _drawn(runtime, language, min(BATCH_STRINGS, count - len(drawn)), rng, context)
    return drawn


def sample_each(runtime: TextRuntime, letters: Letters, contexts: IntArray, rng: np.random.Generator) -> list[Drawn]:
    """One value for each of the ``contexts`` (rows, positions), drawn by the model's probability, in their order.

    A model that was trained without contexts draws as many values.
    """
    drawn: list[Drawn] = []
    for first in range(0, len(contexts), BATCH_STRINGS):
        drawn += _Ancestral(runtime, letters, contexts[first : first + BATCH_STRINGS]).draw(rng)
    return drawn


class _Ancestral:
    """Draws many strings symbol by symbol, all at once. Equal prefixes in the same context are computed once."""

    def __init__(self, runtime: TextRuntime, letters: Letters, contexts: IntArray) -> None:
        self.spec, self.letters = runtime.spec, letters
        if self.spec.context:
            distinct, index_of = np.unique(contexts, axis=0, return_inverse=True)
            self.tree, index_of = runtime.tree(distinct), index_of.reshape(-1)
        else:
            self.tree, index_of = runtime.tree(), np.zeros(len(contexts), dtype=np.int64)
        self.nodes, self.following = index_of * (self.spec.length + 1), self.tree.starts[index_of]
        self.symbols = np.full((len(contexts), self.spec.length + 1), self.spec.end)
        self.logs = np.zeros(len(contexts))

    def draw(self, rng: np.random.Generator) -> list[Drawn]:
        """A value for each context."""
        spec, unfinished = self.spec, np.arange(len(self.symbols))  # strings that have not ended
        following, nodes = self.following, self.nodes
        for position in range(spec.length + 1):
            check_cancelled()
            chances = following * self._possible(position)
            symbols = draw(chances, rng)
            self.symbols[unfinished, position] = symbols
            self.logs[unfinished] += np.log(following[np.arange(len(unfinished)), symbols].astype(np.float64))
            goes_on = symbols <= spec.unknown
            unfinished = unfinished[goes_on]
            if not len(unfinished):
                break
            distinct, index_of = np.unique(nodes[goes_on] * spec.symbols + symbols[goes_on], return_inverse=True)
            nodes = self.tree.size + index_of
            following = self.tree.extend(distinct // spec.symbols, distinct % spec.symbols)[index_of]
        return [self._value(row, rng) for row in range(len(self.symbols))]

    def _possible(self, position: int) -> BoolArray:
        """Which symbols are possible at a position."""
        spec = self.spec
        possible = np.zeros(spec.symbols, dtype=bool)
        possible[spec.end], possible[spec.null] = True, position == 0
        possible[spec.cut] = position == spec.length and self.letters.stop > 0
        possible[self.letters.symbols] = position < spec.length
        return possible

    def _value(self, row: int, rng: np.random.Generator) -> Drawn:
        symbols = self.symbols[row]
        if symbols[0] == self.spec.null:
            return Drawn(None, float(self.logs[row]))
        written = symbols[: int(np.argmax(symbols > self.spec.unknown))]
        letters = [self._letter(int(symbol), rng) for symbol in written]
        log = float(self.logs[row] + np.log(self.letters.shares[letters]).sum())
        text = "".join(self.letters.characters[letter] for letter in letters)
        return Drawn(text, log, bool(symbols[len(written)] == self.spec.cut))

    def _letter(self, symbol: int, rng: np.random.Generator) -> int:
        """A letter of the symbol, drawn by its share."""
        letters = np.flatnonzero(self.letters.symbols == symbol)
        shares = self.letters.shares[letters]
        return int(letters[0] if len(letters) == 1 else rng.choice(letters, p=shares / shares.sum()))


def _drawn(
    runtime: TextRuntime, language: Language, count: int, rng: np.random.Generator, context: IntArray | None
) -> list[Drawn]:
    most = max(LEAST, min(MOST, MOST_NODES // runtime.spec.length))
    budget = min(most, max(LEAST, PER_STRING * count))
    while True:
        strings = _WeightedStrings(runtime, language, context)
        strings.find(budget, rng)
        if budget == most or strings.suffice(count):
            break
        budget = min(most, 4 * budget)
    if not strings.total:
        density = text_density(runtime, language, PARTICLES, None, 0, context=context).density
        raise NoRowsError(
            f"no string that matches was found: the model gives the pattern a probability of about {density:.1g}"
        )
    return strings.draw(count, rng)


@dataclass(frozen=True, eq=False)
class _StringEnds:
    """Whole strings: the last node, the symbol that ends the string, the mass, and the log-probability."""

    nodes: IntArray
    symbols: IntArray
    masses: FloatArray
    logs: FloatArray


@dataclass
class _WeightedStrings:
    """Weighted strings of a language, from one walk."""

    runtime: TextRuntime
    language: Language
    context: IntArray | None = None
    ends: list[_StringEnds] = field(default_factory=list)
    parents: list[IntArray] = field(default_factory=list)  # of every node after the roots
    columns: list[IntArray] = field(default_factory=list)  # and how it was reached
    thinned: list[BoolArray] = field(default_factory=list)  # whether the node stands for others too

    @property
    def automaton(self) -> Automaton:
        return self.language.strings

    @property
    def total(self) -> float:
        """The mass of all strings."""
        return float(sum(ends.masses.sum() for ends in self.ends))

    def find(self, budget: int, rng: np.random.Generator) -> None:
        """Walk with about ``budget`` prefixes."""
        spec, levels = self.runtime.spec, distance(self.automaton.next, self.automaton.accepts)
        machine = SymbolAutomaton(self.automaton, spec)
        machine.full = np.zeros_like(machine.full)  # every string is read to its end
        walk = Walk(self.runtime.tree(None if self.context is None else self.context[None]), machine)
        null = walk.tree.starts[:1, spec.null].astype(np.float64)
        if self.language.null and null[0] > 0:
            self._end(np.array([NO_NODE]), np.array([spec.null]), null, np.log(null))
        prefixes, logs = walk.begin(start_of(walk.tree, spec)), np.zeros(1)
        for position in range(spec.length + 1):
            check_cancelled()
            for symbol in (spec.end, spec.cut) if position == spec.length else (spec.end,):
                chances = prefixes.following[:, symbol].astype(np.float64)
                masses = prefixes.masses * chances * machine.ending[prefixes.states, symbol]
                ending = np.flatnonzero(masses)
                end_logs = logs[ending] + np.log(chances[ending])
                self._end(prefixes.nodes[ending], np.full(len(ending), symbol), masses[ending], end_logs)
            children, _ = walk.branch(prefixes)
            indices, masses = _thinned_by_level(
                levels[_states(machine, prefixes, children)], children.masses, budget, rng
            )
            parents, columns = children.parents[indices], children.columns[indices]
            chances = prefixes.following[parents, machine.symbols[columns]].astype(np.float64)
            logs = logs[parents] + np.log(chances)
            self.parents.append(prefixes.nodes[parents])
            self.columns.append(columns)
            self.thinned.append(masses > children.masses[indices])
            if not len(indices):
                break
            prefixes = walk.grow(prefixes, children, indices, masses)

    def suffice(self, count: int) -> bool:
        """Whether no thinned prefix is so heavy that it would be drawn twice among ``count`` strings."""
        roots = self.runtime.spec.length + 1
        below = np.zeros(roots + sum(map(len, self.parents)))  # the mass of the strings that begin with each node
        for ends in self.ends:
            below[ends.nodes[ends.nodes != NO_NODE]] += ends.masses[ends.nodes != NO_NODE]
        stop, heaviest = len(below), 0.0
        for parents, thinned in zip(reversed(self.parents), reversed(self.thinned), strict=True):
            node_masses = below[stop - len(parents) : stop]
            heaviest = max(heaviest, float(node_masses[thinned].max(initial=0.0)))
            np.add.at(below, parents, node_masses)
            stop -= len(parents)
        return self.total > 0 and heaviest * count <= self.total

    def draw(self, count: int, rng: np.random.Generator) -> list[Drawn]:
        """``count`` strings, drawn systematically by mass and then shuffled."""
        nodes, symbols, masses, logs = (
            np.concatenate([getattr(ends, name) for ends in self.ends])
            for name in ("nodes", "symbols", "masses", "logs")
        )
        edges = np.cumsum(masses) / masses.sum() * count
        points = np.arange(count) + rng.random()
        indices = rng.permutation(np.minimum(np.searchsorted(edges, points, side="right"), len(masses) - 1))
        reader = _Reader(self.automaton, self.runtime.spec.length + 1, self.parents, self.columns, rng)
        drawn = []
        for index in indices.tolist():
            if nodes[index] == NO_NODE:
                drawn.append(Drawn(None, float(logs[index])))
                continue
            text, share = reader.text(int(nodes[index]))
            drawn.append(Drawn(text, float(logs[index]) + share, bool(symbols[index] == self.runtime.spec.cut)))
        return drawn

    def _end(self, nodes: IntArray, symbols: IntArray, masses: FloatArray, logs: FloatArray) -> None:
        self.ends.append(_StringEnds(nodes, symbols, masses, logs))


class _Reader:
    """Spells the text of a node. Of letters with equal transitions, one is drawn by its share."""

    def __init__(
        self,
        automaton: Automaton,
        roots: int,
        parents: list[IntArray],
        columns: list[IntArray],
        rng: np.random.Generator,
    ) -> None:
        representatives, class_of = same_columns(automaton.letters.symbols[None], automaton.next)
        self._letters = [np.flatnonzero(class_of == column) for column in range(len(representatives))]
        self._alphabet, self._roots, self._rng = automaton.letters, roots, rng
        self._parents, self._columns = np.concatenate(parents), np.concatenate(columns)

    def text(self, node: int) -> tuple[str, float]:
        """The text, and the log of the share that its letters have of their symbols."""
        letters: list[int] = []
        while node >= self._roots:
            candidates = self._letters[self._columns[node - self._roots]]
            shares = self._alphabet.shares[candidates]
            letters.append(
                int(candidates[0] if len(candidates) == 1 else self._rng.choice(candidates, p=shares / shares.sum()))
            )
            node = int(self._parents[node - self._roots])
        text = "".join(self._alphabet.characters[letter] for letter in reversed(letters))
        return text, float(np.log(self._alphabet.shares[letters]).sum())


def _states(machine: SymbolAutomaton, prefixes: Prefixes, children: PrefixExtensions) -> IntArray:
    states: IntArray = machine.next[prefixes.states[children.parents], children.columns]
    return states


def _thinned_by_level(
    levels: IntArray, masses: FloatArray, budget: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """The children to keep and their masses: about equally many at each distance from a match."""
    distinct_levels = np.unique(levels)
    keep = max(PER_LEVEL, budget // max(1, len(distinct_levels)))
    survivors = [(np.empty(0, dtype=np.int64), np.empty(0))]
    for level in distinct_levels:
        group = np.flatnonzero(levels == level)
        indices, thinned_masses = thin(masses[group], keep, rng.random())
        survivors.append((group[indices], thinned_masses))
    return np.concatenate([survivor[0] for survivor in survivors]), np.concatenate(
        [survivor[1] for survivor in survivors]
    )
