"""Text conditioned on its row: the probability of a language, or of whole strings, in several contexts.

A *context* has a symbol for each position of the columns' model, MASK where the value is unknown. A model that was
trained without contexts (``spec.context`` is empty) gives the same probabilities in all of them.
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
    is_complement_cheaper,
    length_weights,
    shares_of_lengths,
    text_density,
)
from countless.engine.text.methods import PARTICLES, TextMethod, Walk
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.tree_search import StringSearchPlan, Walked

BATCH_NODES = 16_384  # of a tree that reads whole strings, about, with its roots
LEAST_MISSING = 1e-9  # a smaller difference of the mean is not redistributed


@dataclass(frozen=True, eq=False)
class Given:
    """The probability in each context, and how it was computed; see :class:`~countless.engine.answer.Answer`.

    ``most`` bounds the share of all rows that have such strings, by counts.
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

    ``weights`` are those of the contexts, and need not add up to 1. A method with a walk reads all contexts together;
    where prefixes must be thinned, those of heavy contexts survive more often. A context of weight 0 is left out and
    has probability 0. Other methods read one context after the other.

    A ``summary`` is about all rows. The factor by which it changes the answer for a row without known symbols is
    applied to the answers in all contexts, which are then clipped to [0, 1].
    """
    rows, masses = np.asarray(contexts), np.asarray(weights, dtype=np.float64)
    if rows.ndim != 2 or masses.shape != rows.shape[:1] or not len(masses):
        raise ValueError("every context has one weight")
    if not np.all(np.isfinite(masses)) or masses.min() < 0 or masses.sum() <= 0:
        raise ValueError("the weights of contexts are finite, not negative, and not all 0")
    if not runtime.spec.context:
        answer = text_density(runtime, language, method, budget, seed, summary)
        densities = np.full(len(rows), answer.density)
        return Given(densities, answer.exact, answer.particles, answer.forward_rows, most_of(answer))
    distinct, distinct_index = _distinct(rows)
    shares = np.bincount(distinct_index, masses / masses.sum(), len(distinct)).astype(np.float64)
    weighted = np.flatnonzero(shares)
    if method.walk is None:
        conditional = _one_by_one(runtime, language, distinct[weighted], method, budget, seed)
    else:
        conditional = _in_one_walk(
            runtime, language, distinct[weighted], shares[weighted], method.walk, method.rewrites, budget, seed
        )
    if summary is not None and summary.rows:
        conditional = _corrected(conditional, runtime, language, method, budget, seed, summary)
    probabilities = np.zeros(len(distinct))
    probabilities[weighted] = conditional.probabilities
    return replace(conditional, probabilities=probabilities[distinct_index])


def _in_one_walk(
    runtime: TextRuntime,
    language: Language,
    contexts: IntArray,
    weights: FloatArray,
    walk: Walk,
    rewrites: bool,
    budget: int | None,
    seed: int,
) -> Given:
    """The probabilities in all contexts, from one walk."""
    spec, null = runtime.spec, np.zeros(len(contexts))
    if language.has_null:
        null = runtime.tree(contexts).starts[:, spec.null].astype(np.float64)
    strings = language.pattern if rewrites else language.strings
    lengths = length_weights(language, spec) if rewrites else None
    walked, walk_arguments = Walked(weights, exact=True, particles=1, rows=0), (contexts, weights, walk, budget, seed)
    if lengths is not None and strings.lengths(0) is not None:
        walked = replace(walked, masses=weights * (shares_of_lengths(runtime, contexts) @ lengths))
    elif lengths is None and (strings.all() or not strings.any()):
        walked = replace(walked, masses=weights * strings.any())
    elif rewrites and lengths is None and (by_complement := _by_complement(runtime, strings, *walk_arguments)):
        walked = by_complement
    else:
        walked = walk(StringSearchPlan(runtime, strings, lengths, contexts, weights), budget, seed)
    chances = _bounded(walked.masses / weights, 1.0 - null, weights) + (null if language.null else 0.0)
    return Given(chances, walked.exact, walked.particles, walked.rows)


def _by_complement(
    runtime: TextRuntime,
    strings: Automaton,
    contexts: IntArray,
    weights: FloatArray,
    walk: Walk,
    budget: int | None,
    seed: int,
) -> Walked | None:
    """One minus the complement's masses, if the complement is cheaper and smaller; else None."""
    if not is_complement_cheaper(strings):
        return None
    complement = walk(StringSearchPlan(runtime, ~strings, None, contexts, weights), budget, seed)
    if complement.masses.sum() > FEWER * weights.sum():
        return None
    present = weights * (1.0 - runtime.tree(contexts).starts[:, runtime.spec.null])
    return replace(complement, masses=np.maximum(present - complement.masses, 0.0))


def _bounded(chances: FloatArray, most: FloatArray, weights: FloatArray) -> FloatArray:
    """The chances, each clipped to its bound. The excess goes to the others, so that the weighted mean stays.

    After thinning, the estimate of one context may be above its bound, and others too low.
    """
    mean = weights @ chances
    for _ in range(len(chances)):
        chances = np.minimum(chances, most)
        below_bound = (chances < most) & (chances > 0)
        missing, room = mean - weights @ chances, weights[below_bound] @ chances[below_bound]
        if missing <= LEAST_MISSING or room <= 0:
            break
        chances[below_bound] *= 1.0 + missing / room
    return np.minimum(chances, most)


def _one_by_one(
    runtime: TextRuntime, language: Language, contexts: IntArray, method: TextMethod, budget: int | None, seed: int
) -> Given:
    """The probabilities, computed for one context after the other."""
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
    """The probabilities times the factor by which the summary changes the answer about all rows."""
    with_summary = text_density(runtime, language, method, budget, seed, summary)
    without_summary = text_density(runtime, language, method, budget, seed)
    factor = (
        with_summary.density / without_summary.density
        if without_summary.density > 0
        else float(with_summary.density > 0)
    )
    return Given(
        np.clip(conditional.probabilities * factor, 0.0, 1.0),
        conditional.exact and with_summary.exact and without_summary.exact,
        max(conditional.particles, with_summary.particles, without_summary.particles),
        conditional.forward_rows + with_summary.forward_rows + without_summary.forward_rows,
        most_of(with_summary),
    )


def most_of(answer: Answer) -> float:
    """The upper bound of the share of rows with such strings; ``answer`` is about all rows."""
    return answer.density if answer.counted else answer.most


def log_probabilities(
    runtime: TextRuntime, symbols: ArrayLike, lengths: ArrayLike, contexts: ArrayLike | None = None
) -> FloatArray:
    """The log-probability of each whole string, including its END, CUT or NULL.

    ``symbols`` (strings, length + 1) and ``lengths`` are those of :class:`.Strings`. ``contexts`` (strings, positions)
    has one context for each string; without it nothing is known of the rows.
    """
    spec = runtime.spec
    strings, sizes = np.asarray(symbols), np.asarray(lengths)
    if strings.ndim != 2 or strings.shape[1] != spec.length + 1 or sizes.shape != strings.shape[:1]:
        raise ValueError(f"a string has {spec.length + 1} symbols, and a length")
    if np.any((sizes < 1) | (sizes > spec.length + 1)) or np.any((strings < 0) | (strings >= spec.symbols)):
        raise ValueError("a string has no symbol, or one that is none of the model's")
    if contexts is None or not spec.context:
        distinct, context_of = None, np.zeros(len(strings), dtype=np.int64)
    else:
        distinct, context_of = _distinct(np.asarray(contexts))
        if context_of.shape != sizes.shape:
            raise ValueError("every string has one context")
    logs = np.empty(len(strings))
    order = np.argsort(context_of, kind="stable")
    is_new = np.diff(context_of[order], prepend=-1) > 0  # the first string of each context, which adds the roots
    nodes = np.cumsum(sizes[order] - 1 + is_new * (spec.length + 1))
    for batch in np.split(
        order, np.searchsorted(nodes, np.arange(BATCH_NODES, nodes[-1] if len(nodes) else 0, BATCH_NODES))
    ):
        if len(batch):
            used_contexts, context_index = np.unique(context_of[batch], return_inverse=True)
            tree_contexts = None if distinct is None else distinct[used_contexts]
            logs[batch] = _read(runtime, strings[batch].astype(np.int64), sizes[batch], tree_contexts, context_index)
    return logs


def _read(
    runtime: TextRuntime, strings: IntArray, lengths: IntArray, contexts: IntArray | None, context_of: IntArray
) -> FloatArray:
    """The log-probability of each string, in the context with the index ``context_of``."""
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


def _distinct(contexts: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct contexts, and for each context its index among them."""
    distinct, context_of = np.unique(contexts, axis=0, return_inverse=True)
    return distinct, context_of.reshape(-1)
