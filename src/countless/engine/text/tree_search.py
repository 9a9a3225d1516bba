"""Search plans for a set of strings, and the walks (particles, enumeration) that search in all contexts at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.automata.language import Automaton
from countless.engine.columns.particle_budget import offsets as random_numbers
from countless.engine.columns.thinning import thin
from countless.engine.text.automaton_steps import Spelling, SymbolAutomaton
from countless.engine.text.enumeration import exact
from countless.engine.text.particles import SEARCHING_POWER, Budget, particles
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.walk import Starts, Walk, start_of
from countless.spec import TextSpec

MOST_STARTS = 512  # starts of a walk in several contexts
STARTS_STREAM = 32  # the stream of the random number that thins starts


class StringSearchPlan:
    """How to search the strings of a set: from every offset if a match may begin anywhere, else from the beginning.

    Skipping to an offset requires a set that is closed under characters put before its strings, as for ``LIKE
    '%abc%'``. Then each string has a last offset from which it matches, and the plan's automaton accepts the rest from
    there. So every string is counted once, however often it matches.

    If all strings have a fixed beginning and may skip after it, as for ``LIKE 'https://%abc%'``, the beginning is read
    first and the walk skips from there. The model must be trained for this (``spec.gaps``).

    Strings in each of the ``contexts`` begin with the mass of the context in ``weights``. Without contexts nothing is
    known of the row, and the mass is 1.
    """

    def __init__(
        self,
        runtime: TextRuntime,
        strings: Automaton,
        lengths: FloatArray | None = None,
        contexts: IntArray | None = None,
        weights: FloatArray | None = None,
    ) -> None:
        spec = runtime.spec
        self.tree = runtime.tree(contexts)
        self.rows = 0  # rows that were computed to read the beginning
        weights = np.ones(len(self.tree.starts)) if weights is None else weights
        starts: Starts | None = None
        if strings.is_left_ideal:
            offsets = spec.length + 1
            starts = Starts(np.arange(len(weights) * offsets), np.repeat(weights, offsets), self.tree.roots)
        elif spec.gaps:
            prefix = SymbolAutomaton(strings, spec).spelled(0)
            after_prefix = strings.after(prefix.state)
            if 0 < len(prefix.symbols) < spec.length and after_prefix.is_left_ideal and not after_prefix.all():
                strings, starts = after_prefix, self._starts_after_prefix(prefix, spec, weights)
        self.skips = starts is not None
        self.machine = SymbolAutomaton(strings.last() if self.skips else strings, spec, lengths)
        self.mass_after_cut = np.zeros(
            len(weights)
        )  # the mass of matches that begin where the string was cut, or later
        if starts is None:
            self.starts = start_of(self.tree, spec, weights)
            return
        roots = np.arange(len(starts.nodes)).reshape(len(weights), -1)
        ends = roots[:, -1]  # the offset without room for another character
        cut = float(strings.cut_weights()[0]) * (1.0 if lengths is None else float(lengths[-1]))
        self.mass_after_cut = starts.masses[ends] * starts.following[ends, spec.cut] * cut
        self.starts = starts.at(roots[:, :-1].ravel())

    def _starts_after_prefix(self, prefix: Spelling, spec: TextSpec, weights: FloatArray) -> Starts:
        """The starts after the fixed beginning, in each context: right behind it, and after every gap."""
        contexts, count = len(weights), len(prefix.symbols)
        roots = start_of(self.tree, spec).nodes[:, None]
        nodes = self.tree.size + np.arange(contexts * count).reshape(contexts, count)
        parents = np.concatenate([roots, nodes[:, :-1]], axis=1)
        after_symbols = self.tree.extend(parents.ravel(), np.tile(prefix.symbols, contexts)).reshape(
            contexts, count, -1
        )
        before_symbols = np.concatenate([self.tree.starts[:, None], after_symbols[:, :-1]], axis=1)
        chances = before_symbols[:, np.arange(count), prefix.symbols].astype(np.float64).prod(axis=1)
        gaps = np.arange(count + 1, spec.length + 1)
        first_node = self.tree.size
        after_gaps = self.tree.masked(np.repeat(nodes[:, -1], len(gaps)), np.tile(gaps, contexts))
        masked = first_node + np.arange(contexts * len(gaps)).reshape(contexts, -1)
        following = np.concatenate([after_symbols[:, -1:], after_gaps.reshape(contexts, len(gaps), -1)], axis=1)
        self.rows = contexts * (count + len(gaps))
        start_nodes = np.concatenate([nodes[:, -1:], masked], axis=1)
        masses = np.repeat(weights * prefix.weight * chances, start_nodes.shape[1])
        return Starts(start_nodes.ravel(), masses, following.reshape(start_nodes.size, -1))


@dataclass(frozen=True, eq=False)
class Walked:
    """The mass in each context, whether it is exact, the largest number of prefixes, and the computed rows."""

    masses: FloatArray
    exact: bool
    particles: int
    rows: int


def by_particles(plan: StringSearchPlan, budget: int | None, seed: int) -> Walked:
    """A walk with unique weighted prefixes: at most ``budget`` at once, in all contexts together."""
    limits = Budget.of(len(plan.mass_after_cut)) if budget is None else Budget(budget, budget)
    walk = Walk(plan.tree, plan.machine)
    starts = _thinned_starts(plan, seed)
    walked = particles(walk, starts, limits, random_numbers(seed, 0, plan.machine.spec.length + 1))
    exact = walked.exact and len(starts.nodes) == len(plan.starts.nodes)
    return Walked(walked.masses + plan.mass_after_cut, exact, walked.most, walk.forward_rows + plan.rows)


def _thinned_starts(plan: StringSearchPlan, seed: int) -> Starts:
    """The plan's starts. Very many starts of several contexts are thinned without bias, by their mass after the first
    character of a match."""
    starts, machine = plan.starts, plan.machine
    if len(starts.nodes) <= MOST_STARTS or len(plan.mass_after_cut) == 1:
        return starts
    chances, states = starts.following.astype(np.float64), np.zeros(len(starts.nodes), dtype=np.int64)
    first_chances = chances[:, machine.symbols] @ machine.weights[0]
    first_chances += machine.ends(states, chances, plan.tree.positions[starts.nodes])
    masses = starts.masses * first_chances
    alive = np.flatnonzero(masses)
    (offset,) = random_numbers(seed, STARTS_STREAM, 1)
    indices, weights = thin(masses[alive], MOST_STARTS, offset, SEARCHING_POWER)
    thinned = starts.at(alive[indices])
    return replace(thinned, masses=thinned.masses * weights / masses[alive[indices]])


def by_enumeration(plan: StringSearchPlan) -> Walked:
    """A walk through every prefix."""
    walk = Walk(plan.tree, plan.machine)
    masses = exact(walk, plan.starts) + plan.mass_after_cut
    rows = walk.forward_rows + plan.rows
    return Walked(masses, exact=True, particles=rows, rows=rows)
