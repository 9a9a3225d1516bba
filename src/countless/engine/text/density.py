"""The probability that a string is in a language, by a named method: the entry point of the text engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.automata.language import Automaton, Language
from countless.data.summaries.substrings import Substrings
from countless.engine.answer import Answer
from countless.engine.text.methods import Contexts, TextMethod
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.substring_answers import refine
from countless.errors import NoTextModelError
from countless.spec import TextSpec

FEWER = 0.5  # up to this share of the complement, its answer is used: 1 - share is then accurate
UNKNOWN = "patterns without a counted piece need"  # ... a text model, in NoTextModelError
MOST_TAILS = 20.0  # how far lengths of cut strings are followed, in multiples of the mean


def text_density(
    runtime: TextRuntime,
    language: Language,
    method: TextMethod,
    budget: int | None,
    seed: int,
    summary: Substrings | None = None,
    context: IntArray | None = None,
) -> Answer:
    """The probability that a row's string, or NULL, is in ``language``.

    ``budget`` is a number of particles or samples; with None the method chooses. A ``summary`` of the same column makes
    answers better, and some of them exact; it is about all rows. ``context`` (positions of the row) has the known
    symbols of the row, for a model that was trained with contexts: see :mod:`countless.engine.text.conditional`.
    """
    if summary is not None and (not summary.rows or context is not None):
        summary = None
    contexts = None if context is None else context[None]
    if summary is not None:
        null = summary.nulls / summary.rows
    else:
        null = _null(runtime, contexts) if language.has_null else 0.0
    strings = language.pattern if method.rewrites else language.strings

    def estimate(automaton: Automaton) -> Answer:
        if method.rewrites and is_complement_cheaper(automaton):
            complement = method.ask(runtime, ~automaton, budget, seed, contexts)
            if complement.density <= FEWER:
                return replace(complement, density=max(0.0, 1.0 - _null(runtime, contexts) - complement.density))
        return method.ask(runtime, automaton, budget, seed, contexts)

    lengths = length_weights(language, runtime.spec) if method.rewrites else None
    if lengths is not None and strings.lengths(0) is not None:
        density = float(shares_of_lengths(runtime, contexts)[0] @ lengths)
        answer = Answer(density, exact=True, particles=1, visited=(), forward_rows=0)
    elif lengths is not None:
        answer = method.of_lengths(runtime, strings, lengths, budget, seed, contexts)
    elif strings.all() or not strings.any():
        share = 1.0 - null if strings.any() else 0.0
        counted = summary is not None
        least, most = (share, share) if counted else (0.0, 1.0)
        answer = Answer(
            share, exact=True, particles=1, visited=(), forward_rows=0, counted=counted, least=least, most=most
        )
    else:
        answer = estimate(strings) if summary is None else refine(strings, summary, estimate)
    return _with_null(answer, language, null, 1.0 if summary is None else 1.0 - null)


def density_by_counts(language: Language, summary: Substrings | None) -> Answer:
    """The same by counts of substrings alone, without a text model. An error if they give no estimate."""
    if summary is None or not summary.rows or language.lengths is not None:
        raise NoTextModelError(UNKNOWN)
    null = summary.nulls / summary.rows
    return _with_null(refine(language.pattern, summary, _refuse), language, null, 1.0 - null)


def _refuse(strings: Automaton) -> Answer:
    raise NoTextModelError(UNKNOWN)


def _with_null(answer: Answer, language: Language, null: float, most: float) -> Answer:
    """The answer, plus the share ``null`` of NULL rows if the language has NULL. ``most`` is the share of strings."""
    null_share = null if language.null else 0.0
    least, most = answer.least + null_share, min(1.0, min(answer.most, most) + null_share)
    return replace(answer, density=min(answer.density, 1.0 - null) + null_share, least=least, most=most)


def is_complement_cheaper(strings: Automaton) -> bool:
    """Whether the complement is cheaper, as for ``NOT ILIKE '%abc%'``: a walk can skip to its matches."""
    return not strings.is_left_ideal and (~strings).is_left_ideal


def _null(runtime: TextRuntime, contexts: Contexts) -> float:
    """The probability of NULL."""
    return float(runtime.tree(contexts).starts[0, runtime.spec.null])


def length_weights(language: Language, spec: TextSpec) -> FloatArray | None:
    """The weight of every length up to the model's, last that of cut strings; None if all lengths are allowed."""
    letters, pattern = language.pattern.letters, language.pattern
    most = spec.length + 1 + (round(MOST_TAILS / letters.stop) if letters.stop else 0)
    pattern_lengths = pattern.lengths(most)
    if language.lengths is None and (pattern_lengths is None or pattern_lengths.all() or not pattern_lengths.any()):
        return None
    allowed = np.ones(most + 1, dtype=bool) if pattern_lengths is None else pattern_lengths
    if language.lengths is not None:
        allowed = allowed & language.lengths[np.minimum(np.arange(most + 1), len(language.lengths) - 1)]
    cut_allowed = allowed[spec.length + 1 :]
    chances = letters.stop * (1 - letters.stop) ** np.arange(len(cut_allowed))
    cut_weight = cut_allowed @ chances / chances.sum() if letters.stop else float(cut_allowed[0])
    return np.append(allowed[: spec.length + 1], cut_weight).astype(np.float64)


def shares_of_lengths(runtime: TextRuntime, contexts: IntArray | None) -> FloatArray:
    """The share of strings of every length, last that of cut strings, in each context (contexts, length + 2).

    The probability of END after a gap is the share of strings that have ended by then.
    """
    tree, spec = runtime.tree(contexts), runtime.spec
    roots = tree.roots.reshape(len(tree.starts), spec.length + 1, spec.symbols).astype(np.float64)
    ended = np.concatenate([roots[:, :, spec.end], np.ones((len(roots), 1))], axis=1)
    ended[:, 1:] -= roots[:, :1, spec.null]  # NULL has no length; it counts as ended after the first position
    shares: FloatArray = np.maximum(np.diff(ended, axis=1, prepend=0.0), 0.0)
    return shares
