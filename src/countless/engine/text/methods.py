"""Text methods: how each sampling method computes the probability of an automaton's strings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.automata.language import Automaton
from countless.engine.answer import Answer
from countless.engine.paper.text import naive, progressive
from countless.engine.text.automaton_steps import SymbolAutomaton
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.tree_search import StringSearchPlan, Walked, by_enumeration, by_particles
from countless.engine.text.walk import start_of

PAPER_SAMPLES = 1000

Contexts = IntArray | None  # one context (1, positions of the row); None if nothing is known of the row
AskText = Callable[[TextRuntime, Automaton, int | None, int, Contexts], Answer]  # ..., budget, seed, contexts
Walk = Callable[[StringSearchPlan, int | None, int], Walked]  # plan, budget, seed
TextSampler = Callable[[TextRuntime, Automaton, int, "np.random.Generator", Contexts], tuple[float, int]]


@dataclass(frozen=True)
class TextMethod:
    """How a method computes probabilities of text, and what it needs.

    ``ask`` computes one probability in one context, or without any. A ``walk`` reads all contexts together; without it
    they are asked one by one. A method that ``rewrites`` handles lengths of strings separately from their pattern, and
    computes the complement where that has fewer strings; it needs a ``walk``. A method that ``enumerates`` reads text
    in every combination of the columns' values instead of in a sample of them.
    """

    ask: AskText
    walk: Walk | None = None
    rewrites: bool = False
    enumerates: bool = False

    def __post_init__(self) -> None:
        if self.rewrites and self.walk is None:
            raise ValueError("a method that rewrites needs a walk")

    def of_lengths(
        self,
        runtime: TextRuntime,
        strings: Automaton,
        lengths: FloatArray,
        budget: int | None,
        seed: int,
        contexts: Contexts,
    ) -> Answer:
        """The probability of the strings, weighted by length."""
        assert self.walk is not None
        return _answer(self.walk(StringSearchPlan(runtime, strings, lengths, contexts), budget, seed))


def walking(walk: Walk, rewrites: bool = False, enumerates: bool = False) -> TextMethod:
    """A text method from a walk of all contexts together."""

    def ask(runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int, contexts: Contexts) -> Answer:
        return _answer(walk(StringSearchPlan(runtime, strings, contexts=contexts), budget, seed))

    return TextMethod(ask, walk, rewrites, enumerates)


def sampling(sampler: TextSampler) -> TextMethod:
    """A text method from a sampler, which draws a number of samples in one context."""

    def ask(runtime: TextRuntime, strings: Automaton, budget: int | None, seed: int, contexts: Contexts) -> Answer:
        samples = budget or PAPER_SAMPLES
        density, rows = sampler(runtime, strings, samples, np.random.default_rng(seed), contexts)
        return Answer(density, exact=False, particles=samples, visited=(), forward_rows=rows)

    return TextMethod(ask)


def _answer(walked: Walked) -> Answer:
    return Answer(float(walked.masses[0]), walked.exact, walked.particles, (), walked.rows)


def _naive(
    runtime: TextRuntime, strings: Automaton, samples: int, rng: np.random.Generator, contexts: Contexts
) -> tuple[float, int]:
    return naive(runtime.tree(contexts), SymbolAutomaton(strings, runtime.spec), samples, rng)


def _progressive(
    runtime: TextRuntime, strings: Automaton, samples: int, rng: np.random.Generator, contexts: Contexts
) -> tuple[float, int]:
    tree = runtime.tree(contexts)
    return progressive(tree, SymbolAutomaton(strings, runtime.spec), start_of(tree, runtime.spec), samples, rng)


def _skipping(
    runtime: TextRuntime, strings: Automaton, samples: int, rng: np.random.Generator, contexts: Contexts
) -> tuple[float, int]:
    plan = StringSearchPlan(runtime, strings, contexts=contexts)
    density, rows = progressive(plan.tree, plan.machine, plan.starts, samples, rng)
    return density + float(plan.mass_after_cut[0]), rows + plan.rows


def _enumeration(plan: StringSearchPlan, budget: int | None, seed: int) -> Walked:
    return by_enumeration(plan)


PARTICLES = walking(by_particles, rewrites=True)
SKIPPING = sampling(_skipping)
PROGRESSIVE = sampling(_progressive)
NAIVE = sampling(_naive)
EXACT = walking(_enumeration, enumerates=True)
