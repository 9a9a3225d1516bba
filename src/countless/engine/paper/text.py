"""The paper's samplers for text, and the naive one: independent samples of whole strings."""

from __future__ import annotations

import numpy as np

from countless.arrays import FloatArray, IntArray, Weights
from countless.engine.text.automaton_steps import SymbolAutomaton
from countless.engine.text.runtime import Tree
from countless.engine.text.walk import Starts

PART = 256  # samples that are walked together, once they differ


def naive(tree: Tree, machine: SymbolAutomaton, samples: int, rng: np.random.Generator) -> tuple[float, int]:
    """Draw whole strings from the model, without regard to the pattern, and see how many it accepts.

    Strings that begin alike share what is computed of them. Where they part, they go on in groups that fit the
    processor's cache. Returns the share, and the rows that were computed.
    """
    spec, letters = machine.spec, _Letters(machine)
    accepted, rows = 0.0, 0
    begun = np.zeros(samples, dtype=np.int64)
    groups = [(0, begun, begun, np.repeat(tree.starts[:1], samples, axis=0))]
    while groups:
        position, nodes, states, following = groups.pop()
        symbols = draw(following, rng)
        accepted += float(machine.ending[states, symbols].sum())
        going_on = letters.known[symbols]  # what no letter stands for is in no set
        if position == spec.length or not going_on.any():
            continue
        nodes, states, symbols = nodes[going_on], states[going_on], symbols[going_on]
        states = machine.next[states, letters.columns(symbols, rng)]
        different, same = np.unique(nodes * spec.symbols + symbols, return_inverse=True)
        nodes = tree.size + same
        following = tree.extend(different // spec.symbols, different % spec.symbols)[same]
        rows += len(different)
        if len(different) <= PART:
            groups.append((position + 1, nodes, states, following))
            continue
        parts = np.array_split(np.argsort(nodes), -(-len(different) // PART))
        groups += [(position + 1, nodes[part], states[part], following[part]) for part in parts]
    return accepted / samples, rows


def progressive(
    tree: Tree, machine: SymbolAutomaton, starts: Starts, samples: int, rng: np.random.Generator
) -> tuple[float, int]:
    """Progressive sampling: every step draws among the symbols that the pattern still allows, and remembers their mass.

    The samples are shared out evenly among ``starts``, and what is found at each is added up. From the start of strings
    alone it is the paper's baseline; from all offsets, with the automaton of last matches, its sum over offsets.
    """
    share = -(-samples // len(starts.nodes))
    every = np.repeat(np.arange(len(starts.nodes)), share)
    total, rows = 0.0, 0
    for first in range(0, len(every), PART):
        mass, computed = _mass(tree, machine, starts.some(every[first : first + PART]), rng)
        total += mass / share
        rows += computed
    return total, rows


def _mass(tree: Tree, machine: SymbolAutomaton, samples: Starts, rng: np.random.Generator) -> tuple[float, int]:
    """The mass that the samples find, and the rows that were computed."""
    nodes, masses, following = samples.nodes, samples.masses, samples.following
    positions = tree.positions[nodes]
    states = np.zeros(len(nodes), dtype=np.int64)
    mass = 0.0
    rows = 0
    for _ in range(machine.spec.length + 1):
        chances = following.astype(np.float64)
        mass += float(masses @ (chances * machine.ending[states]).sum(axis=1))
        ways = chances[:, machine.symbols] * machine.weights[states]
        ways[positions >= machine.spec.length] = 0.0
        total = ways.sum(axis=1)
        alive = np.flatnonzero(masses * total > 0)
        if not len(alive):
            break
        columns = draw(ways[alive] / total[alive, None], rng)
        masses = masses[alive] * total[alive]
        states, nodes, positions = machine.next[states[alive], columns], nodes[alive], positions[alive]
        done = machine.full[states]
        mass += float(masses[done].sum())
        rest = np.flatnonzero(~done)
        masses, states, nodes, columns = masses[rest], states[rest], nodes[rest], columns[rest]
        positions = positions[rest] + 1
        if not len(rest):
            break
        first = tree.size
        following = tree.extend(nodes, machine.symbols[columns])
        rows += len(rest)
        nodes = np.arange(first, first + len(rest))
    return mass, rows


def draw(chances: Weights | FloatArray, rng: np.random.Generator) -> IntArray:
    """One of each row's items, by its chance."""
    edges = chances.cumsum(axis=1)
    points = rng.random(len(edges)) * edges[:, -1]
    items: IntArray = np.minimum((edges <= points[:, None]).sum(axis=1), edges.shape[1] - 1)
    return items


class _Letters:
    """Which column of a machine reads a symbol; of one that has several, any of them by its share."""

    def __init__(self, machine: SymbolAutomaton) -> None:
        self.known = np.zeros(machine.spec.symbols, dtype=bool)
        self.known[machine.symbols] = True
        self._first = np.zeros(machine.spec.symbols, dtype=np.int64)
        self._first[machine.symbols] = np.arange(len(machine.symbols))
        self._several = {}
        for symbol in np.flatnonzero(np.bincount(machine.symbols) > 1).tolist():
            columns = np.flatnonzero(machine.symbols == symbol)
            self._several[symbol] = columns, machine.shares[columns] / machine.shares[columns].sum()

    def columns(self, symbols: IntArray, rng: np.random.Generator) -> IntArray:
        """A column for each symbol."""
        columns_read: IntArray = self._first[symbols]
        for symbol, (columns, shares) in self._several.items():
            reads = symbols == symbol
            columns_read[reads] = rng.choice(columns, size=int(reads.sum()), p=shares)
        return columns_read
