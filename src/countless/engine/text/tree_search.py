"""Search plans for the strings of a set, and the walks (particles, enumeration) over all contexts at once."""

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

MOST_STARTS = 512  # places to start from in several contexts
STARTS_STREAM = 32  # keeps the random number that thins them apart from others


class StringSearchPlan:
    """How strings of a set are found: by skipping to any offset, if a match may begin anywhere; else from the start.

    To skip, the set must be closed under characters put before its strings, as that of ``LIKE '%abc%'`` is. Then each
    of its strings has a last offset from which it matches; the plan's automaton accepts what stands from there on, so
    that every string is counted once, however often it matches.

    If all strings must begin alike and only then may skip, as those of ``LIKE 'https://%abc%'``, the beginning is read
    first, and what follows is found by skipping from there. A model must have learned to (``spec.gaps``).

    Strings of each of the ``contexts`` begin with the mass that it has in ``weights``; without any, nothing is known of
    the row, and the mass is 1.
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
        self.rows = 0  # that reading the beginning took
        weights = np.ones(len(self.tree.starts)) if weights is None else weights
        starts: Starts | None = None
        if strings.is_left_ideal:
            each = spec.length + 1
            starts = Starts(np.arange(len(weights) * each), np.repeat(weights, each), self.tree.roots)
        elif spec.gaps:
            beginning = SymbolAutomaton(strings, spec).spelled(0)
            rest = strings.after(beginning.state)
            if 0 < len(beginning.symbols) < spec.length and rest.is_left_ideal and not rest.all():
                strings, starts = rest, self._read(beginning, spec, weights)
        self.skips = starts is not None
        self.machine = SymbolAutomaton(strings.last() if self.skips else strings, spec, lengths)
        self.beyond = np.zeros(len(weights))  # the mass of matches that begin where the string was cut, or later
        if starts is None:
            self.starts = start_of(self.tree, spec, weights)
            return
        roots = np.arange(len(starts.nodes)).reshape(len(weights), -1)
        ends = roots[:, -1]  # where a string has no room for another character
        cut = float(strings.cut_weights()[0]) * (1.0 if lengths is None else float(lengths[-1]))
        self.beyond = starts.masses[ends] * starts.following[ends, spec.cut] * cut
        self.starts = starts.some(roots[:, :-1].ravel())

    def _read(self, beginning: Spelling, spec: TextSpec, weights: FloatArray) -> Starts:
        """Every place after the beginning, in each context: right behind it, or after a gap."""
        contexts, count = len(weights), len(beginning.symbols)
        roots = start_of(self.tree, spec).nodes[:, None]
        nodes = self.tree.size + np.arange(contexts * count).reshape(contexts, count)
        parents = np.concatenate([roots, nodes[:, :-1]], axis=1)
        read = self.tree.extend(parents.ravel(), np.tile(beginning.symbols, contexts)).reshape(contexts, count, -1)
        before = np.concatenate([self.tree.starts[:, None], read[:, :-1]], axis=1)
        chances = before[:, np.arange(count), beginning.symbols].astype(np.float64).prod(axis=1)
        gaps = np.arange(count + 1, spec.length + 1)
        first = self.tree.size
        after = self.tree.masked(np.repeat(nodes[:, -1], len(gaps)), np.tile(gaps, contexts))
        masked = first + np.arange(contexts * len(gaps)).reshape(contexts, -1)
        following = np.concatenate([read[:, -1:], after.reshape(contexts, len(gaps), -1)], axis=1)
        self.rows = contexts * (count + len(gaps))
        places = np.concatenate([nodes[:, -1:], masked], axis=1)
        masses = np.repeat(weights * beginning.weight * chances, places.shape[1])
        return Starts(places.ravel(), masses, following.reshape(places.size, -1))


@dataclass(frozen=True, eq=False)
class Walked:
    """The mass that was found in each context, whether it is exact, the most prefixes held, and the rows computed."""

    masses: FloatArray
    exact: bool
    particles: int
    rows: int


def by_particles(plan: StringSearchPlan, budget: int | None, seed: int) -> Walked:
    """Unique weighted prefixes: at most ``budget`` at once, in all contexts together."""
    held = Budget.of(len(plan.beyond)) if budget is None else Budget(budget, budget)
    walk = Walk(plan.tree, plan.machine)
    starts = _fewer(plan, seed)
    walked = particles(walk, starts, held, random_numbers(seed, 0, plan.machine.spec.length + 1))
    exact = walked.exact and len(starts.nodes) == len(plan.starts.nodes)
    return Walked(walked.masses + plan.beyond, exact, walked.most, walk.forward_rows + plan.rows)


def _fewer(plan: StringSearchPlan, seed: int) -> Starts:
    """The places to start from; of very many, as there are in many contexts, some, thinned without bias by what a
    match's first character leaves of their mass."""
    starts, machine = plan.starts, plan.machine
    if len(starts.nodes) <= MOST_STARTS or len(plan.beyond) == 1:
        return starts
    chances, states = starts.following.astype(np.float64), np.zeros(len(starts.nodes), dtype=np.int64)
    first = chances[:, machine.symbols] @ machine.weights[0]
    first += machine.ends(states, chances, plan.tree.positions[starts.nodes])
    masses = starts.masses * first
    alive = np.flatnonzero(masses)
    (number,) = random_numbers(seed, STARTS_STREAM, 1)
    chosen, weights = thin(masses[alive], MOST_STARTS, number, SEARCHING_POWER)
    thinned = starts.some(alive[chosen])
    return replace(thinned, masses=thinned.masses * weights / masses[alive[chosen]])


def by_enumeration(plan: StringSearchPlan) -> Walked:
    """Every prefix."""
    walk = Walk(plan.tree, plan.machine)
    masses = exact(walk, plan.starts) + plan.beyond
    rows = walk.forward_rows + plan.rows
    return Walked(masses, exact=True, particles=rows, rows=rows)
