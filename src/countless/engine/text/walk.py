"""The walk of string prefixes through an automaton, for all prefixes at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray, Weights
from countless.engine.text.automaton_steps import SymbolAutomaton
from countless.engine.text.runtime import Tree
from countless.spec import TextSpec


@dataclass(frozen=True, eq=False)
class Starts:
    """Places from which strings are read: nodes of the tree, the mass that each begins with, and what follows it."""

    nodes: IntArray
    masses: FloatArray
    following: Weights

    def some(self, which: slice | IntArray) -> Starts:
        """Some of them."""
        return Starts(self.nodes[which], self.masses[which], self.following[which])


def start_of(tree: Tree, spec: TextSpec, masses: FloatArray | None = None) -> Starts:
    """Where strings begin, in each context of the tree; ``masses`` has that of each, 1 if it is not given."""
    contexts = len(tree.starts)
    return Starts(np.arange(contexts) * (spec.length + 1), np.ones(contexts) if masses is None else masses, tree.starts)


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Prefixes with their last nodes in the tree, the automaton's states, their masses, and what follows each."""

    nodes: IntArray
    states: IntArray
    masses: FloatArray
    following: Weights  # (prefixes, symbols)

    def __len__(self) -> int:
        return len(self.nodes)

    def at(self, chosen: IntArray) -> Prefixes:
        """Some of them."""
        return Prefixes(self.nodes[chosen], self.states[chosen], self.masses[chosen], self.following[chosen])


@dataclass(frozen=True, eq=False)
class PrefixExtensions:
    """The ways on from prefixes that leave more to ask: the place of each parent, the column taken, the mass."""

    parents: IntArray
    columns: IntArray
    masses: FloatArray


class Walk:
    """One automaton, one tree; counts the work that is done. Masses are told by context."""

    def __init__(self, tree: Tree, machine: SymbolAutomaton) -> None:
        self.tree, self.machine = tree, machine
        self.forward_rows = 0

    def begin(self, starts: Starts) -> Prefixes:
        """The empty prefix at each of these places."""
        states = np.zeros(len(starts.nodes), dtype=np.int64)
        return Prefixes(starts.nodes, states, starts.masses, starts.following)

    def settle(self, prefixes: Prefixes) -> tuple[Prefixes, FloatArray]:
        """Spell out what is forced. Prefixes from which all is accepted leave, and their mass is told."""
        settled = np.zeros(len(self.tree.starts))
        machine = self.machine
        forced = machine.forced[prefixes.states]
        if forced.any():
            parts = [prefixes.at(np.flatnonzero(~forced))]
            for state in np.unique(prefixes.states[forced]).tolist():
                parts += self._spelled_out(prefixes.at(np.flatnonzero(prefixes.states == state)), state)
            prefixes = _joined(parts)
        done = machine.full[prefixes.states]
        if done.any():
            settled = self._told(prefixes.nodes[done], prefixes.masses[done])
            prefixes = prefixes.at(np.flatnonzero(~done))
        return prefixes, settled

    def branch(self, prefixes: Prefixes) -> tuple[PrefixExtensions, FloatArray]:
        """Every way on that leaves something to ask; the mass of those that do not is told."""
        machine = self.machine
        chances = prefixes.following.astype(np.float64)
        positions = self.tree.positions[prefixes.nodes]
        settled = prefixes.masses * machine.ends(prefixes.states, chances, positions)
        masses = prefixes.masses[:, None] * chances[:, machine.symbols] * machine.weights[prefixes.states]
        masses[positions >= machine.spec.length] = 0.0  # no character has room there
        done = machine.full[machine.next[prefixes.states]]
        settled += np.where(done, masses, 0.0).sum(axis=1)
        parents, columns = np.nonzero((masses > 0) & ~done)
        return PrefixExtensions(parents, columns, masses[parents, columns]), self._told(prefixes.nodes, settled)

    def grow(self, prefixes: Prefixes, children: PrefixExtensions, chosen: IntArray, masses: FloatArray) -> Prefixes:
        """The prefixes that the chosen children are, with these masses."""
        parents, columns = children.parents[chosen], children.columns[chosen]
        first = self.tree.size
        following = self.tree.extend(prefixes.nodes[parents], self.machine.symbols[columns])
        self.forward_rows += len(chosen)
        nodes = np.arange(first, first + len(chosen))
        return Prefixes(nodes, self.machine.next[prefixes.states[parents], columns], masses, following)

    def _told(self, nodes: IntArray, masses: FloatArray) -> FloatArray:
        """The masses of these nodes, added up by context."""
        contexts = len(self.tree.starts)
        if contexts == 1:
            return np.array([masses.sum()])
        return np.bincount(self.tree.contexts[nodes], masses, contexts).astype(np.float64)

    def _spelled_out(self, group: Prefixes, state: int) -> list[Prefixes]:
        """The group after what must follow ``state``, in which all of it is, as far as it has room."""
        room = self.machine.spec.length - self.tree.positions[group.nodes]
        fits = room >= len(self.machine.spelled(state).symbols)
        parts = [self._spell(group.at(np.flatnonzero(fits)), state)]
        if self.machine.cuts:  # the others go on step by step, for they may be cut on the way
            parts.append(group.at(np.flatnonzero(~fits)))
        return parts

    def _spell(self, group: Prefixes, state: int) -> Prefixes:
        """The group after the symbols that must follow."""
        spelling = self.machine.spelled(state)
        count = len(spelling.symbols)
        group = group.at(np.flatnonzero(group.following[:, spelling.symbols[0]] > 0))
        masses = group.masses * spelling.weight * group.following[:, spelling.symbols[0]]
        read = count - 1 if self.machine.full[spelling.state] else count  # of the last one nobody asks what follows
        nodes, following = group.nodes, group.following
        if read and len(group):
            first = self.tree.size
            ids = np.arange(first, first + len(group) * read).reshape(len(group), read)
            parents = np.concatenate([group.nodes[:, None], ids[:, :-1]], axis=1)
            rows = self.tree.extend(parents.ravel(), np.tile(spelling.symbols[:read], len(group)))
            self.forward_rows += len(rows)
            rows = rows.reshape(len(group), read, -1)
            told = np.arange(count - 1)
            masses = masses * rows[:, told, spelling.symbols[1:]].astype(np.float64).prod(axis=1)
            nodes, following = ids[:, -1], rows[:, -1]
        return Prefixes(nodes, np.full(len(group), spelling.state), masses, following)


def _joined(parts: list[Prefixes]) -> Prefixes:
    return Prefixes(
        np.concatenate([part.nodes for part in parts]),
        np.concatenate([part.states for part in parts]),
        np.concatenate([part.masses for part in parts]),
        np.concatenate([part.following for part in parts]),
    )
