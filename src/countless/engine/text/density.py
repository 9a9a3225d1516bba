"""The door of the text engine: the probability that a string is in a language, by a named method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from countless.arrays import FloatArray
from countless.automaton import Automaton, Language
from countless.data.ngrams import NGrams
from countless.engine.answer import Answer
from countless.engine.budget import offsets as random_numbers
from countless.engine.text.exact import exact
from countless.engine.text.machine import Machine, Spelling
from countless.engine.text.paper import naive, progressive
from countless.engine.text.particles import Budget, particles
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.summary import refine
from countless.engine.text.walk import Starts, Walk, start_of
from countless.errors import CountlessError
from countless.spec import TextSpec

PAPER_SAMPLES = 1000
MOST_TAILS = 20.0  # how far a string that was cut may go on, in times of the mean

Method = Callable[[TextRuntime, Automaton, int | None, int], Answer]


def text_density(
    runtime: TextRuntime,
    language: Language,
    method: str,
    budget: int | None,
    seed: int,
    summary: NGrams | None = None,
) -> Answer:
    """The probability that a row's string is in ``language``, or that it is NULL and NULL is.

    ``budget`` is a number of particles or samples; None is the method's own choice. A ``summary`` of the same column
    makes the answers of the method ``particles`` better, and some of them exact.
    """
    if method not in TEXT_METHODS:
        raise CountlessError(f"unknown method {method!r} for text: choose one of {', '.join(TEXT_METHODS)}")
    if summary is not None and (method != "particles" or not summary.rows):
        summary = None
    if summary is not None:
        null = summary.nulls / summary.rows
    else:
        null = float(runtime.tree().roots[0, runtime.spec.null]) if language.has_null else 0.0
    strings = language.pattern if method == "particles" else language.strings

    def estimate(asked: Automaton) -> Answer:
        return TEXT_METHODS[method](runtime, asked, budget, seed)

    lengths = _lengths(language, runtime.spec) if method == "particles" else None
    if lengths is not None:
        found = _of_lengths(runtime, strings, lengths, budget, seed)
    elif strings.all() or not strings.any():
        share = 1.0 - null if strings.any() else 0.0
        counted = summary is not None and not summary.cut  # beyond the cut there may be letters that nobody knows
        found = Answer(share, exact=True, particles=1, visited=(), forward_rows=0, counted=counted)
    else:
        found = estimate(strings) if summary is None else refine(strings, summary, estimate)
    return replace(found, density=min(found.density, 1.0 - null) + (null if language.null else 0.0))


class Plan:
    """How strings of a set are found: by skipping to any offset, if a match may begin anywhere; else from the start.

    To skip, the set must be closed under characters put before its strings, as that of ``LIKE '%abc%'`` is. Then each
    of its strings has a last offset from which it matches; the plan's automaton accepts what stands from there on, so
    that every string is counted once, however often it matches.

    If all strings must begin alike and only then may skip, as those of ``LIKE 'https://%abc%'``, the beginning is read
    first, and what follows is found by skipping from there. A model must have learned to (``spec.gaps``).
    """

    def __init__(self, runtime: TextRuntime, strings: Automaton, lengths: FloatArray | None = None) -> None:
        spec = runtime.spec
        self.tree = runtime.tree()
        self.rows = 0  # that reading the beginning took
        starts = Starts(np.arange(spec.length + 1), np.ones(spec.length + 1), self.tree.roots)
        self.skips = strings.is_left_ideal()
        if not self.skips and spec.gaps:
            beginning = Machine(strings, spec).spelled(0)
            rest = strings.after(beginning.state)
            if 0 < len(beginning.symbols) < spec.length and rest.is_left_ideal() and not rest.all():
                strings, self.skips = rest, True
                starts = self._read(beginning, spec)
        self.machine = Machine(strings.last() if self.skips else strings, spec, lengths)
        self.beyond = 0.0  # the mass of matches that begin where the string was cut, or later
        if self.skips:
            self.beyond = float(starts.masses[-1] * starts.following[-1, spec.cut]) * float(strings.cut_weights()[0])
            if lengths is not None:
                self.beyond *= float(lengths[-1])
        self.starts = starts.some(slice(len(starts.nodes) - 1 if self.skips else 1))

    def _read(self, beginning: Spelling, spec: TextSpec) -> Starts:
        """Every place after the beginning: right behind it, or after a gap."""
        count = len(beginning.symbols)
        node = self.tree.size
        told = self.tree.extend([0, *range(node, node + count - 1)], beginning.symbols)
        before = np.concatenate([self.tree.roots[:1], told[:-1]])
        mass = beginning.weight * before[np.arange(count), beginning.symbols].astype(np.float64).prod()
        behind = node + count - 1
        gaps = np.arange(count + 1, spec.length + 1)
        following = np.concatenate([told[-1:], self.tree.masked(np.full(len(gaps), behind), gaps)])
        nodes = np.append(behind, np.arange(behind + 1, behind + 1 + len(gaps)))
        self.rows = count + len(gaps)
        return Starts(nodes, np.full(len(nodes), mass), following)


def _naive(runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int) -> Answer:
    samples = budget or PAPER_SAMPLES
    machine, rng = Machine(strings, runtime.spec), np.random.default_rng(seed)
    density, rows = naive(runtime.tree(), machine, samples, rng)
    return Answer(density, exact=False, particles=samples, visited=(), forward_rows=rows)


def _progressive(runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int) -> Answer:
    samples, tree = budget or PAPER_SAMPLES, runtime.tree()
    machine, rng = Machine(strings, runtime.spec), np.random.default_rng(seed)
    density, rows = progressive(tree, machine, start_of(tree), samples, rng)
    return Answer(density, exact=False, particles=samples, visited=(), forward_rows=rows)


def _skipping(runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int) -> Answer:
    samples, plan = budget or PAPER_SAMPLES, Plan(runtime, strings)
    density, rows = progressive(plan.tree, plan.machine, plan.starts, samples, np.random.default_rng(seed))
    return Answer(density + plan.beyond, exact=False, particles=samples, visited=(), forward_rows=rows + plan.rows)


def _lengths(language: Language, spec: TextSpec) -> FloatArray | None:
    """The weight of every length that the model sees and, last, of strings that were cut; None if all are wanted."""
    letters, pattern = language.pattern.letters, language.pattern
    most = spec.length + 1 + (round(MOST_TAILS / letters.stop) if letters.stop else 0)
    only = pattern.lengths(most)
    if language.lengths is None and (only is None or only.all() or not only.any()):
        return None
    wanted = np.ones(most + 1, dtype=bool) if only is None else only
    if language.lengths is not None:
        wanted = wanted & language.lengths[np.minimum(np.arange(most + 1), len(language.lengths) - 1)]
    beyond = wanted[spec.length + 1 :]
    chances = letters.stop * (1 - letters.stop) ** np.arange(len(beyond))
    last = beyond @ chances / chances.sum() if letters.stop else float(beyond[0])
    return np.append(wanted[: spec.length + 1], last).astype(np.float64)


def _of_lengths(runtime: TextRuntime, pattern: Automaton, lengths: FloatArray, budget: int | None, seed: int) -> Answer:
    """The probability of a pattern's strings of certain lengths.

    If only the length matters it is exact: what follows a gap tells how many strings have ended by then.
    """
    if pattern.lengths(0) is None:
        return _particles(runtime, pattern, budget, seed, lengths)
    roots = runtime.tree().roots.astype(np.float64)
    ended = np.append(roots[:, runtime.spec.end], 1.0)
    ended[1:] -= roots[0, runtime.spec.null]  # which has no length, and counts as ended after the first position
    shares = np.maximum(np.diff(ended, prepend=0.0), 0.0)
    return Answer(float(shares @ lengths), exact=True, particles=1, visited=(), forward_rows=0)


def _particles(
    runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int, lengths: FloatArray | None = None
) -> Answer:
    plan = Plan(runtime, strings, lengths)
    held = Budget() if budget is None else Budget(budget, budget)
    walk = Walk(plan.tree, plan.machine)
    found = particles(walk, plan.starts, held, random_numbers(seed, 0, runtime.spec.length + 1))
    return Answer(found.mass + plan.beyond, found.exact, found.most, (), walk.forward_rows + plan.rows)


def _exact(runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int) -> Answer:
    plan = Plan(runtime, strings)
    walk = Walk(plan.tree, plan.machine)
    density = exact(walk, plan.starts) + plan.beyond
    rows = walk.forward_rows + plan.rows
    return Answer(density, exact=True, particles=rows, visited=(), forward_rows=rows)


TEXT_METHODS: dict[str, Method] = {
    "particles": _particles,
    "skipping": _skipping,
    "progressive": _progressive,
    "naive": _naive,
    "exact": _exact,
}
