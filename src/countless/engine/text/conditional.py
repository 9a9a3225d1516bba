"""Text conditioned on its row: the probability of a language, or of whole strings, in several contexts.

A *context* has a symbol for each position of the columns' model, or MASK where nothing is known. A model that was
learned without (``spec.context`` is empty) says the same in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from countless.arrays import FloatArray, IntArray
from countless.automata.language import Automaton, Language
from countless.data.summaries.substrings import Substrings
from countless.engine.answer import Answer
from countless.engine.text.density import (
    FEWER,
    by_the_others,
    shares_of_lengths,
    text_density,
    wanted_lengths,
)
from countless.engine.text.methods import PARTICLES, TextMethod, Walk
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.tree_search import StringSearchPlan, Walked

AT_ONCE = 16_384  # nodes of a tree, roots included, that reads whole strings; about
LEAST_MISSING = 1e-9  # of a mean, below which it is not made up for


@dataclass(frozen=True, eq=False)
class Given:
    """The probability in each context, and how it was found, as :class:`~countless.engine.answer.Answer` has it.

    ``most`` is what share of all rows has such strings at most, by counts.
    """

    probabilities: FloatArray
    exact: bool
    particles: int
    forward_rows: int
    most: float = 1.0


def given(
    runtime: TextRuntime,
    language: Language,
    contexts: ArrayLike,
    weights: ArrayLike,
    method: TextMethod = PARTICLES,
    budget: int | None = None,
    seed: int = 0,
    summary: Substrings | None = None,
) -> Given:
    """The probability that a row's string is in ``language``, in each of the ``contexts`` (contexts, positions).

    ``weights`` say how much each context counts, and need not add up to 1. A method that has a walk reads
    all contexts together, and where prefixes must be thinned, those of heavy contexts are kept rather; a context of
    weight 0 is not asked, and has probability 0. Other methods take one context after the other.

    A ``summary`` is about all rows. By how much it changes the answer for a row of which nothing is known, the answers
    in all contexts are changed too, by the same factor, and clipped to [0, 1].
    """
    rows, masses = np.asarray(contexts), np.asarray(weights, dtype=np.float64)
    if rows.ndim != 2 or masses.shape != rows.shape[:1] or not len(masses):
        raise ValueError("every context has one weight")
    if not np.all(np.isfinite(masses)) or masses.min() < 0 or masses.sum() <= 0:
        raise ValueError("the weights of contexts are finite, not negative, and not all 0")
    if not runtime.spec.context:
        answer = text_density(runtime, language, method, budget, seed, summary)
        same = np.full(len(rows), answer.density)
        return Given(same, answer.exact, answer.particles, answer.forward_rows, most_of(answer))
    different, row_of = _different(rows)
    shares = np.bincount(row_of, masses / masses.sum(), len(different)).astype(np.float64)
    weighed = np.flatnonzero(shares)
    if method.walk is None:
        conditional = _in_turn(runtime, language, different[weighed], method, budget, seed)
    else:
        conditional = _together(
            runtime, language, different[weighed], shares[weighed], method.walk, method.rewrites, budget, seed
        )
    if summary is not None and summary.rows:
        conditional = _corrected(conditional, runtime, language, method, budget, seed, summary)
    probabilities = np.zeros(len(different))
    probabilities[weighed] = conditional.probabilities
    return replace(conditional, probabilities=probabilities[row_of])


def _together(
    runtime: TextRuntime,
    language: Language,
    contexts: IntArray,
    weights: FloatArray,
    walk: Walk,
    rewrites: bool,
    budget: int | None,
    seed: int,
) -> Given:
    """All contexts in one walk."""
    spec, null = runtime.spec, np.zeros(len(contexts))
    if language.has_null:
        null = runtime.tree(contexts).starts[:, spec.null].astype(np.float64)
    strings = language.pattern if rewrites else language.strings
    lengths = wanted_lengths(language, spec) if rewrites else None
    walked, walk_arguments = Walked(weights, exact=True, particles=1, rows=0), (contexts, weights, walk, budget, seed)
    if lengths is not None and strings.lengths(0) is not None:
        walked = replace(walked, masses=weights * (shares_of_lengths(runtime, contexts) @ lengths))
    elif lengths is None and (strings.all() or not strings.any()):
        walked = replace(walked, masses=weights * strings.any())
    elif rewrites and lengths is None and (others := _others(runtime, strings, *walk_arguments)):
        walked = others
    else:
        walked = walk(StringSearchPlan(runtime, strings, lengths, contexts, weights), budget, seed)
    chances = _bounded(walked.masses / weights, 1.0 - null, weights) + (null if language.null else 0.0)
    return Given(chances, walked.exact, walked.particles, walked.rows)


def _others(
    runtime: TextRuntime,
    strings: Automaton,
    contexts: IntArray,
    weights: FloatArray,
    walk: Walk,
    budget: int | None,
    seed: int,
) -> Walked | None:
    """What the other strings leave, if these are better asked for, and fewer; else None."""
    if not by_the_others(strings):
        return None
    others = walk(StringSearchPlan(runtime, ~strings, None, contexts, weights), budget, seed)
    if others.masses.sum() > FEWER * weights.sum():
        return None
    there = weights * (1.0 - runtime.tree(contexts).starts[:, runtime.spec.null])
    return replace(others, masses=np.maximum(there - others.masses, 0.0))


def _bounded(chances: FloatArray, most: FloatArray, weights: FloatArray) -> FloatArray:
    """The chances, none above its bound. What is taken from some goes to the others, so that their mean stays.

    Where few prefixes stand for many, one context may seem to have more than all, at the cost of others.
    """
    mean = weights @ chances
    for _ in range(len(chances)):
        chances = np.minimum(chances, most)
        free = (chances < most) & (chances > 0)
        missing, room = mean - weights @ chances, weights[free] @ chances[free]
        if missing <= LEAST_MISSING or room <= 0:
            break
        chances[free] *= 1.0 + missing / room
    return np.minimum(chances, most)


def _in_turn(
    runtime: TextRuntime, language: Language, contexts: IntArray, method: TextMethod, budget: int | None, seed: int
) -> Given:
    """One context after the other."""
    answers = [text_density(runtime, language, method, budget, seed, context=context) for context in contexts]
    return Given(
        np.array([answer.density for answer in answers]),
        all(answer.exact for answer in answers),
        max(answer.particles for answer in answers),
        sum(answer.forward_rows for answer in answers),
    )


def _corrected(
    conditional: Given,
    runtime: TextRuntime,
    language: Language,
    method: TextMethod,
    budget: int | None,
    seed: int,
    summary: Substrings,
) -> Given:
    """The probabilities times the factor that the summary brings to the answer about all rows."""
    better = text_density(runtime, language, method, budget, seed, summary)
    plain = text_density(runtime, language, method, budget, seed)
    factor = better.density / plain.density if plain.density > 0 else float(better.density > 0)
    return Given(
        np.clip(conditional.probabilities * factor, 0.0, 1.0),
        conditional.exact and better.exact and plain.exact,
        max(conditional.particles, better.particles, plain.particles),
        conditional.forward_rows + better.forward_rows + plain.forward_rows,
        most_of(better),
    )


def most_of(answer: Answer) -> float:
    """What share of all rows has such strings at most, if this is the answer about all rows."""
    return answer.density if answer.counted else answer.most


def log_probabilities(
    runtime: TextRuntime, symbols: ArrayLike, lengths: ArrayLike, contexts: ArrayLike | None = None
) -> FloatArray:
    """The logarithm of the probability of each whole string, END, CUT or NULL included.

    ``symbols`` (strings, length + 1) and ``lengths`` are those of :class:`.Strings`; every string
    has its own of the ``contexts`` (strings, positions). Without any, nothing is known of the rows.
    """
    spec = runtime.spec
    strings, sizes = np.asarray(symbols), np.asarray(lengths)
    if strings.ndim != 2 or strings.shape[1] != spec.length + 1 or sizes.shape != strings.shape[:1]:
        raise ValueError(f"a string has {spec.length + 1} symbols, and a length")
    if np.any((sizes < 1) | (sizes > spec.length + 1)) or np.any((strings < 0) | (strings >= spec.symbols)):
        raise ValueError("a string has no symbol, or one that is none of the model's")
    if contexts is None or not spec.context:
        different, context_of = None, np.zeros(len(strings), dtype=np.int64)
    else:
        different, context_of = _different(np.asarray(contexts))
        if context_of.shape != sizes.shape:
            raise ValueError("every string has one context")
    logs = np.empty(len(strings))
    order = np.argsort(context_of, kind="stable")
    new = np.diff(context_of[order], prepend=-1) > 0  # strings that bring a context, and its roots
    nodes = np.cumsum(sizes[order] - 1 + new * (spec.length + 1))
    for some in np.split(order, np.searchsorted(nodes, np.arange(AT_ONCE, nodes[-1] if len(nodes) else 0, AT_ONCE))):
        if len(some):
            used, there = np.unique(context_of[some], return_inverse=True)
            tree_contexts = None if different is None else different[used]
            logs[some] = _read(runtime, strings[some].astype(np.int64), sizes[some], tree_contexts, there)
    return logs


def _read(
    runtime: TextRuntime, strings: IntArray, lengths: IntArray, contexts: IntArray | None, context_of: IntArray
) -> FloatArray:
    """The logarithms of the strings' probabilities, of which each is in the context at its ``place``."""
    tree, spec = runtime.tree(contexts), runtime.spec
    reads = np.arange(spec.length) < lengths[:, None] - 1  # all but the last symbol
    nodes = np.full((len(strings), spec.length + 1), -1)
    nodes[:, 0] = context_of * (spec.length + 1)
    nodes[:, 1:][reads] = tree.size + np.arange(reads.sum())
    following = tree.extend(nodes[:, :-1][reads], strings[:, :-1][reads])
    chances = following[np.arange(len(following)), strings[:, 1:][reads]]
    with np.errstate(divide="ignore"):
        logs = np.zeros(reads.shape)
        logs[reads] = np.log(chances.astype(np.float64))
        first = np.log(tree.starts[context_of, strings[:, 0]].astype(np.float64))
    total: FloatArray = first + logs.sum(axis=1)
    return total


def _different(contexts: IntArray) -> tuple[IntArray, IntArray]:
    """The different ones, and of each context which of them it is."""
    different, context_of = np.unique(contexts, axis=0, return_inverse=True)
    return different, context_of.reshape(-1)
