"""The door of the text engine: the probability that a string is in a language, by a named method."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.automaton import Automaton, Language
from countless.data.ngrams import NGrams
from countless.engine.answer import Answer
from countless.engine.text.machine import Machine
from countless.engine.text.paper import naive, progressive
from countless.engine.text.plan import Plan, by_enumeration, by_particles
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.summary import refine
from countless.engine.text.walk import start_of
from countless.errors import CountlessError
from countless.spec import TextSpec

PAPER_SAMPLES = 1000
FEWER = 0.5  # the share up to which other strings are few, so that what they leave is told well
MOST_TAILS = 20.0  # how far a string that was cut may go on, in times of the mean

Contexts = IntArray | None  # one context (1, positions of the row); None if nothing is known of the row


class Method(Protocol):
    """A way to answer: the probability of the strings of an automaton."""

    def __call__(
        self, runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int, contexts: Contexts = None
    ) -> Answer: ...


def text_density(
    runtime: TextRuntime,
    language: Language,
    method: str,
    budget: int | None,
    seed: int,
    summary: NGrams | None = None,
    context: IntArray | None = None,
) -> Answer:
    """The probability that a row's string is in ``language``, or that it is NULL and NULL is.

    ``budget`` is a number of particles or samples; None is the method's own choice. A ``summary`` of the same column
    makes the answers of the method ``particles`` better, and some of them exact; it is about all rows. ``context``
    (positions of the row) is what is known of the row, to a model that has learned from it: see
    :mod:`countless.engine.text.conditional`.
    """
    if method not in TEXT_METHODS:
        raise CountlessError(f"unknown method {method!r} for text: choose one of {', '.join(TEXT_METHODS)}")
    if summary is not None and (method != "particles" or not summary.rows or context is not None):
        summary = None
    contexts = None if context is None else context[None]
    if summary is not None:
        null = summary.nulls / summary.rows
    else:
        null = _null(runtime, contexts) if language.has_null else 0.0
    strings = language.pattern if method == "particles" else language.strings

    def estimate(asked: Automaton) -> Answer:
        if method == "particles" and by_the_others(asked):
            others = _particles(runtime, ~asked, budget, seed, contexts)
            if others.density <= FEWER:
                return replace(others, density=max(0.0, 1.0 - _null(runtime, contexts) - others.density))
        return TEXT_METHODS[method](runtime, asked, budget, seed, contexts)

    lengths = wanted_lengths(language, runtime.spec) if method == "particles" else None
    if lengths is not None:
        found = _of_lengths(runtime, strings, lengths, budget, seed, contexts)
    elif strings.all() or not strings.any():
        share = 1.0 - null if strings.any() else 0.0
        counted = summary is not None and not summary.cut  # beyond the cut there may be letters that nobody knows
        found = Answer(share, exact=True, particles=1, visited=(), forward_rows=0, counted=counted)
    else:
        found = estimate(strings) if summary is None else refine(strings, summary, estimate)
    return replace(found, density=min(found.density, 1.0 - null) + (null if language.null else 0.0))


def by_the_others(strings: Automaton) -> bool:
    """Whether the other strings are better asked for, as of ``NOT ILIKE '%abc%'``: to these can be skipped."""
    return not strings.is_left_ideal and (~strings).is_left_ideal


def _null(runtime: TextRuntime, contexts: Contexts) -> float:
    """The probability that there is no string."""
    return float(runtime.tree(contexts).starts[0, runtime.spec.null])


def _naive(
    runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int, contexts: Contexts = None
) -> Answer:
    samples = budget or PAPER_SAMPLES
    machine, rng = Machine(strings, runtime.spec), np.random.default_rng(seed)
    density, rows = naive(runtime.tree(contexts), machine, samples, rng)
    return Answer(density, exact=False, particles=samples, visited=(), forward_rows=rows)


def _progressive(
    runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int, contexts: Contexts = None
) -> Answer:
    samples, tree = budget or PAPER_SAMPLES, runtime.tree(contexts)
    machine, rng = Machine(strings, runtime.spec), np.random.default_rng(seed)
    density, rows = progressive(tree, machine, start_of(tree, runtime.spec), samples, rng)
    return Answer(density, exact=False, particles=samples, visited=(), forward_rows=rows)


def _skipping(
    runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int, contexts: Contexts = None
) -> Answer:
    samples, plan = budget or PAPER_SAMPLES, Plan(runtime, strings, contexts=contexts)
    density, rows = progressive(plan.tree, plan.machine, plan.starts, samples, np.random.default_rng(seed))
    density += float(plan.beyond[0])
    return Answer(density, exact=False, particles=samples, visited=(), forward_rows=rows + plan.rows)


def wanted_lengths(language: Language, spec: TextSpec) -> FloatArray | None:
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


def _of_lengths(
    runtime: TextRuntime, pattern: Automaton, lengths: FloatArray, budget: int | None, seed: int, contexts: Contexts
) -> Answer:
    """The probability of a pattern's strings of certain lengths; if only the length matters it is exact."""
    if pattern.lengths(0) is None:
        return _particles(runtime, pattern, budget, seed, contexts, lengths)
    density = float(shares_of_lengths(runtime, contexts)[0] @ lengths)
    return Answer(density, exact=True, particles=1, visited=(), forward_rows=0)


def shares_of_lengths(runtime: TextRuntime, contexts: IntArray | None) -> FloatArray:
    """The share of strings of every length, the last of those that were cut, in each context (contexts, length + 2).

    What follows a gap tells how many strings have ended by then.
    """
    tree, spec = runtime.tree(contexts), runtime.spec
    roots = tree.roots.reshape(len(tree.starts), spec.length + 1, spec.symbols).astype(np.float64)
    ended = np.concatenate([roots[:, :, spec.end], np.ones((len(roots), 1))], axis=1)
    ended[:, 1:] -= roots[:, :1, spec.null]  # which has no length, and counts as ended after the first position
    shares: FloatArray = np.maximum(np.diff(ended, axis=1, prepend=0.0), 0.0)
    return shares


def _particles(
    runtime: TextRuntime,
    strings: Automaton,
    budget: int | None,
    seed: int,
    contexts: Contexts = None,
    lengths: FloatArray | None = None,
) -> Answer:
    found = by_particles(Plan(runtime, strings, lengths, contexts), budget, seed)
    return Answer(float(found.masses[0]), found.exact, found.particles, (), found.rows)


def _exact(
    runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int, contexts: Contexts = None
) -> Answer:
    found = by_enumeration(Plan(runtime, strings, contexts=contexts))
    return Answer(float(found.masses[0]), found.exact, found.particles, (), found.rows)


TEXT_METHODS: dict[str, Method] = {
    "particles": _particles,
    "skipping": _skipping,
    "progressive": _progressive,
    "naive": _naive,
    "exact": _exact,
}
