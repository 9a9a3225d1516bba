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

FEWER = 0.5  # the share up to which other strings are few, so that what they leave is told well
UNKNOWN = "patterns without a counted piece need"  # a network
MOST_TAILS = 20.0  # how far a string that was cut may go on, in times of the mean


def text_density(
    runtime: TextRuntime,
    language: Language,
    method: TextMethod,
    budget: int | None,
    seed: int,
    summary: Substrings | None = None,
    context: IntArray | None = None,
) -> Answer:
    """The probability that a row's string is in ``language``, or that it is NULL and NULL is.

    ``budget`` is a number of particles or samples; None is the method's own choice. A ``summary`` of the same column
    makes answers better, and some of them exact; it is about all rows. ``context`` (positions of the row) is what is
    known of the row, to a model that has learned from it: see :mod:`countless.engine.text.conditional`.
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
        if method.rewrites and by_the_others(automaton):
            others = method.ask(runtime, ~automaton, budget, seed, contexts)
            if others.density <= FEWER:
                return replace(others, density=max(0.0, 1.0 - _null(runtime, contexts) - others.density))
        return method.ask(runtime, automaton, budget, seed, contexts)

    lengths = wanted_lengths(language, runtime.spec) if method.rewrites else None
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
    """The same by counts of substrings alone, where there is no network; an error if they do not tell."""
    if summary is None or not summary.rows or language.lengths is not None:
        raise NoTextModelError(UNKNOWN)
    null = summary.nulls / summary.rows
    return _with_null(refine(language.pattern, summary, _refuse), language, null, 1.0 - null)


def _refuse(strings: Automaton) -> Answer:
    raise NoTextModelError(UNKNOWN)


def _with_null(answer: Answer, language: Language, null: float, most: float) -> Answer:
    """An answer about strings, of which ``most`` is the share, with the share of ``null`` rows if NULL is asked for."""
    more = null if language.null else 0.0
    least, most = answer.least + more, min(1.0, min(answer.most, most) + more)
    return replace(answer, density=min(answer.density, 1.0 - null) + more, least=least, most=most)


def by_the_others(strings: Automaton) -> bool:
    """Whether the other strings are better asked for, as of ``NOT ILIKE '%abc%'``: to these can be skipped."""
    return not strings.is_left_ideal and (~strings).is_left_ideal


def _null(runtime: TextRuntime, contexts: Contexts) -> float:
    """The probability that there is no string."""
    return float(runtime.tree(contexts).starts[0, runtime.spec.null])


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
