"""A walk of string prefixes through an automaton, all prefixes at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray, Weights
from countless.engine.text.automaton_steps import SymbolAutomaton
from countless.engine.text.runtime import Tree
from countless.spec import TextSpec


@dataclass(frozen=True, eq=False)
class Starts:
    """Where walks start: nodes of the tree, their masses, and the probabilities of the symbol after each."""

    nodes: IntArray
    masses: FloatArray
    following: Weights

    def at(self, indices: slice | IntArray) -> Starts:
        """The starts at these indices."""
        return Starts(self.nodes[indices], self.masses[indices], self.following[indices])


def start_of(tree: Tree, spec: TextSpec, masses: FloatArray | None = None) -> Starts:
    """The beginning of strings in each context of the tree. ``masses`` are those of the contexts; 1 by default."""
    contexts = len(tree.starts)
    return Starts(np.arange(contexts) * (spec.length + 1), np.ones(contexts) if masses is None else masses, tree.starts)


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Prefixes: their last nodes in the tree, states of the automaton, masses, and probabilities of the next symbol."""

    nodes: IntArray
    states: IntArray
    masses: FloatArray
    following: Weights  # (prefixes, symbols)

    def __len__(self) -> int:
        return len(self.nodes)

    def at(self, indices: IntArray) -> Prefixes:
        """The prefixes at these indices."""
        return Prefixes(self.nodes[indices], self.states[indices], self.masses[indices], self.following[indices])


@dataclass(frozen=True, eq=False)
class PrefixExtensions:
    """Children of prefixes that are not settled yet: the index of the parent, the automaton's column, the mass."""

    parents: IntArray
    columns: IntArray
    masses: FloatArray


class Walk:
    """A walk of one automaton over one tree. It counts computed rows and returns masses by context."""

    def __init__(self, tree: Tree, machine: SymbolAutomaton) -> None:
        self.tree, self.machine = tree, machine
        self.forward_rows = 0

    def begin(self, starts: Starts) -> Prefixes:
        """The empty prefix at each start."""
        states = np.zeros(len(starts.nodes), dtype=np.int64)
        return Prefixes(starts.nodes, states, starts.masses, starts.following)

    def settle(self, prefixes: Prefixes) -> tuple[Prefixes, FloatArray]:
        """Read forced symbols, then remove prefixes after which all is accepted. Also returns the removed mass."""
        settled = np.zeros(len(self.tree.starts))
        machine = self.machine
        forced = machine.forced[prefixes.states]
        if forced.any():
            groups = [prefixes.at(np.flatnonzero(~forced))]
            for state in np.unique(prefixes.states[forced]).tolist():
                groups += self._spell_where_it_fits(prefixes.at(np.flatnonzero(prefixes.states == state)), state)
            prefixes = _concatenated(groups)
        done = machine.full[prefixes.states]
        if done.any():
            settled = self._by_context(prefixes.nodes[done], prefixes.masses[done])
            prefixes = prefixes.at(np.flatnonzero(~done))
        return prefixes, settled

    def branch(self, prefixes: Prefixes) -> tuple[PrefixExtensions, FloatArray]:
        """All children that are not settled yet, and the mass of those that are."""
        machine = self.machine
        chances = prefixes.following.astype(np.float64)
        positions = self.tree.positions[prefixes.nodes]
        settled = prefixes.masses * machine.ends(prefixes.states, chances, positions)
        masses = prefixes.masses[:, None] * chances[:, machine.symbols] * machine.weights[prefixes.states]
        masses[positions >= machine.spec.length] = 0.0  # there is no room for another character
        done = machine.full[machine.next[prefixes.states]]
        settled += np.where(done, masses, 0.0).sum(axis=1)
        parents, columns = np.nonzero((masses > 0) & ~done)
        return PrefixExtensions(parents, columns, masses[parents, columns]), self._by_context(prefixes.nodes, settled)

    def grow(self, prefixes: Prefixes, children: PrefixExtensions, indices: IntArray, masses: FloatArray) -> Prefixes:
        """The prefixes of these children, with new masses."""
        parents, columns = children.parents[indices], children.columns[indices]
        first_node = self.tree.size
        following = self.tree.extend(prefixes.nodes[parents], self.machine.symbols[columns])
        self.forward_rows += len(indices)
        nodes = np.arange(first_node, first_node + len(indices))
        return Prefixes(nodes, self.machine.next[prefixes.states[parents], columns], masses, following)

    def _by_context(self, nodes: IntArray, masses: FloatArray) -> FloatArray:
        """The sum of the nodes' masses by context."""
        contexts = len(self.tree.starts)
        if contexts == 1:
            return np.array([masses.sum()])
        return np.bincount(self.tree.contexts[nodes], masses, contexts).astype(np.float64)

    def _spell_where_it_fits(self, group: Prefixes, state: int) -> list[Prefixes]:
        """The ``group``, all in ``state``, after the symbols that must follow, where there is room for them."""
        room = self.machine.spec.length - self.tree.positions[group.nodes]
        fits = room >= len(self.machine.spelled(state).symbols)
        groups = [self._spell(group.at(np.flatnonzero(fits)), state)]
        if self.machine.cuts:  # the others go on step by step: they may be cut on the way
            groups.append(group.at(np.flatnonzero(~fits)))
        return groups

    def _spell(self, group: Prefixes, state: int) -> Prefixes:
        """The prefixes of ``group``, all in ``state``, after the symbols that must follow it."""
        spelling = self.machine.spelled(state)
        count = len(spelling.symbols)
        group = group.at(np.flatnonzero(group.following[:, spelling.symbols[0]] > 0))
        masses = group.masses * spelling.weight * group.following[:, spelling.symbols[0]]
        read = count - 1 if self.machine.full[spelling.state] else count  # what follows the last one is not needed
        nodes, following = group.nodes, group.following
        if read and len(group):
            first_node = self.tree.size
            new_nodes = np.arange(first_node, first_node + len(group) * read).reshape(len(group), read)
            parents = np.concatenate([group.nodes[:, None], new_nodes[:, :-1]], axis=1)
            rows = self.tree.extend(parents.ravel(), np.tile(spelling.symbols[:read], len(group)))
            self.forward_rows += len(rows)
            rows = rows.reshape(len(group), read, -1)
            predicted = np.arange(count - 1)
            masses = masses * rows[:, predicted, spelling.symbols[1:]].astype(np.float64).prod(axis=1)
            nodes, following = new_nodes[:, -1], rows[:, -1]
        return Prefixes(nodes, np.full(len(group), spelling.state), masses, following)


def _concatenated(groups: list[Prefixes]) -> Prefixes:
    return Prefixes(
        np.concatenate([group.nodes for group in groups]),
        np.concatenate([group.states for group in groups]),
        np.concatenate([group.masses for group in groups]),
        np.concatenate([group.following for group in groups]),
    )
