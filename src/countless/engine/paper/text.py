"""The paper's samplers for text, and the naive one: independent samples of whole strings."""

from __future__ import annotations

import numpy as np

from countless.arrays import FloatArray, IntArray, Weights
from countless.engine.text.automaton_steps import SymbolAutomaton
from countless.engine.text.runtime import Tree
from countless.engine.text.walk import Starts

GROUP_SAMPLES = 256  # samples that are walked together after their prefixes differ


def naive(tree: Tree, machine: SymbolAutomaton, samples: int, rng: np.random.Generator) -> tuple[float, int]:
    """Draw whole strings from the model without the pattern, and count how many the pattern accepts.

    Strings with an equal prefix share its computation. Where they differ, they go on in groups that fit the processor's
    cache. Returns the accepted share and the number of computed rows.
    """
    spec, columns_of_symbols = machine.spec, _ColumnOfSymbol(machine)
    accepted, rows = 0.0, 0
    zeros = np.zeros(samples, dtype=np.int64)
    groups = [(0, zeros, zeros, np.repeat(tree.starts[:1], samples, axis=0))]
    while groups:
        position, nodes, states, following = groups.pop()
        symbols = draw(following, rng)
        accepted += float(machine.ending[states, symbols].sum())
        is_read = columns_of_symbols.is_read[symbols]  # a symbol without a letter is in no set
        if position == spec.length or not is_read.any():
            continue
        nodes, states, symbols = nodes[is_read], states[is_read], symbols[is_read]
        states = machine.next[states, columns_of_symbols.draw_columns(symbols, rng)]
        distinct, index_of = np.unique(nodes * spec.symbols + symbols, return_inverse=True)
        nodes = tree.size + index_of
        following = tree.extend(distinct // spec.symbols, distinct % spec.symbols)[index_of]
        rows += len(distinct)
        if len(distinct) <= GROUP_SAMPLES:
            groups.append((position + 1, nodes, states, following))
            continue
        index_groups = np.array_split(np.argsort(nodes), -(-len(distinct) // GROUP_SAMPLES))
        groups += [(position + 1, nodes[group], states[group], following[group]) for group in index_groups]
    return accepted / samples, rows


def progressive(
    tree: Tree, machine: SymbolAutomaton, starts: Starts, samples: int, rng: np.random.Generator
) -> tuple[float, int]:
    """Progressive sampling: every step draws one of the symbols that the pattern allows, and multiplies by their mass.

    Each of the ``starts`` gets the same number of samples, and their masses are added up. From the beginning of strings
    alone this is the paper's baseline; from all offsets, with the automaton of last matches, its sum over offsets.
    """
    samples_per_start = -(-samples // len(starts.nodes))
    start_of_sample = np.repeat(np.arange(len(starts.nodes)), samples_per_start)
    total, rows = 0.0, 0
    for begin in range(0, len(start_of_sample), GROUP_SAMPLES):
        mass, computed = _mass(tree, machine, starts.at(start_of_sample[begin : begin + GROUP_SAMPLES]), rng)
        total += mass / samples_per_start
        rows += computed
    return total, rows


def _mass(tree: Tree, machine: SymbolAutomaton, samples: Starts, rng: np.random.Generator) -> tuple[float, int]:
    """The mass that the samples estimate, and the number of computed rows."""
    nodes, masses, following = samples.nodes, samples.masses, samples.following
    positions = tree.positions[nodes]
    states = np.zeros(len(nodes), dtype=np.int64)
    mass = 0.0
    rows = 0
    for _ in range(machine.spec.length + 1):
        chances = following.astype(np.float64)
        mass += float(masses @ (chances * machine.ending[states]).sum(axis=1))
        allowed = chances[:, machine.symbols] * machine.weights[states]
        allowed[positions >= machine.spec.length] = 0.0
        total = allowed.sum(axis=1)
        alive = np.flatnonzero(masses * total > 0)
        if not len(alive):
            break
        columns = draw(allowed[alive] / total[alive, None], rng)
        masses = masses[alive] * total[alive]
        states, nodes, positions = machine.next[states[alive], columns], nodes[alive], positions[alive]
        is_accepted = machine.full[states]
        mass += float(masses[is_accepted].sum())
        unfinished = np.flatnonzero(~is_accepted)
        masses, states, nodes, columns = masses[unfinished], states[unfinished], nodes[unfinished], columns[unfinished]
        positions = positions[unfinished] + 1
        if not len(unfinished):
            break
        first_node = tree.size
        following = tree.extend(nodes, machine.symbols[columns])
        rows += len(unfinished)
        nodes = np.arange(first_node, first_node + len(unfinished))
    return mass, rows


def draw(chances: Weights | FloatArray, rng: np.random.Generator) -> IntArray:
    """One index for each row, drawn by its chance."""
    edges = chances.cumsum(axis=1)
    points = rng.random(len(edges)) * edges[:, -1]
    drawn: IntArray = np.minimum((edges <= points[:, None]).sum(axis=1), edges.shape[1] - 1)
    return drawn


class _ColumnOfSymbol:
    """The column of an automaton that reads a symbol; if there are several, one is drawn by its share."""

    def __init__(self, machine: SymbolAutomaton) -> None:
        self.is_read = np.zeros(machine.spec.symbols, dtype=bool)
        self.is_read[machine.symbols] = True
        self._first = np.zeros(machine.spec.symbols, dtype=np.int64)
        self._first[machine.symbols] = np.arange(len(machine.symbols))
        self._choices = {}
        for symbol in np.flatnonzero(np.bincount(machine.symbols) > 1).tolist():
            columns = np.flatnonzero(machine.symbols == symbol)
            self._choices[symbol] = columns, machine.shares[columns] / machine.shares[columns].sum()

    def draw_columns(self, symbols: IntArray, rng: np.random.Generator) -> IntArray:
        """A column for each symbol."""
        columns_read: IntArray = self._first[symbols]
        for symbol, (columns, shares) in self._choices.items():
            has_symbol = symbols == symbol
            columns_read[has_symbol] = rng.choice(columns, size=int(has_symbol.sum()), p=shares)
        return columns_read
