"""Boxes with text filters: rows sampled from the columns are the contexts for the text model.

A text model knows what else is known of a row, so that the density of a box is that of its columns times the mean
chance of its texts over the columns' rows. These are the particles of a walk, thinned to a handful. Columns that no
filter asks about stay MASK in them, and texts that nobody asks about are not read. Given the columns, two texts have
nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.engine.answer import Answer, Trace, Traced
from countless.engine.columns.particle_budget import offsets
from countless.engine.columns.thinning import even_hints, thin
from countless.engine.columns.trace import LABEL_STREAM, traced
from countless.engine.runtimes import Runtimes
from countless.engine.text.conditional import given, most_of
from countless.engine.text.density import density_by_counts, text_density
from countless.engine.text.methods import TextMethod
from countless.errors import QueryTooLargeError
from countless.region import Box, TextFilter

PARTICLES = 512  # of the walk through the columns, if nothing else is said
CONTEXTS = 16  # of them in which texts are read: more make no answer better (docs/text.md)
MOST_ENUMERATED = 4096  # contexts of a method that enumerates


@dataclass(frozen=True, eq=False)
class Chances:
    """The chance of some texts in each context, and how it was found; ``most`` is that of all rows, at most."""

    values: FloatArray
    exact: bool
    particles: int
    forward_rows: int
    most: float


def with_texts(
    runtimes: Runtimes, box: Box, columns: Answer, method: TextMethod, budget: int | None, seed: int
) -> Answer:
    """The density of ``box``, of which the answer for its ``columns`` is known."""
    knowing = bool(runtimes.texts) and any(runtimes.texts[item.column].spec.context for item in box.texts)
    if box.filters and knowing and columns.density > 0:
        return _in_contexts(runtimes, box, columns, method, budget, seed)
    answer = columns
    for item in box.texts:
        summary = runtimes.summaries[item.column]
        if not runtimes.texts:
            text = density_by_counts(item.language, summary)
        else:
            text = text_density(runtimes.texts[item.column], item.language, method, budget, seed, summary)
        answer = _both(answer, text, item.column)
    return answer


def _in_contexts(
    runtimes: Runtimes, box: Box, columns: Answer, method: TextMethod, budget: int | None, seed: int
) -> Answer:
    # The walk that counted the columns had other particles, and summed the last position: it cannot tell these rows.
    key = ("contexts", box.filters, method.enumerates, budget, seed)
    rows = runtimes.once(key, lambda: _contexts(runtimes, box, method, budget, seed))
    total = float(rows.masses.sum())
    if not total > 0:
        return replace(columns, density=columns.least, texts=tuple(item.column for item in box.texts), counted=False)
    text_chances = chances(runtimes, box.texts, rows.symbols, rows.masses, method, budget, seed)
    most = min(columns.most, text_chances.most)
    return replace(
        columns,
        density=min(columns.density * float(rows.masses @ text_chances.values) / total, most),
        exact=columns.exact and rows.exact and text_chances.exact,
        particles=max(columns.particles, text_chances.particles),
        forward_rows=columns.forward_rows + rows.forward_rows + text_chances.forward_rows,
        sampling_error=None,
        texts=tuple(item.column for item in box.texts),
        counted=False,
        least=0.0,
        most=most,
        contexts=len(rows.masses),
    )


def chances(
    runtimes: Runtimes,
    texts: Sequence[TextFilter],
    contexts: IntArray,
    weights: FloatArray,
    method: TextMethod,
    budget: int | None,
    seed: int,
) -> Chances:
    """The chance that all ``texts`` hold in each of the ``contexts``, which count by their ``weights``."""
    values, exact, particles, rows, most = np.ones(len(contexts)), True, 0, 0, 1.0
    for item in texts:
        runtime, summary = runtimes.text(item.column, "rows of a pattern are read by"), runtimes.summaries[item.column]
        in_contexts = given(runtime, item.language, contexts, weights, method, budget, seed, summary)
        values = values * in_contexts.probabilities
        exact, particles, rows = (
            exact and in_contexts.exact,
            max(particles, in_contexts.particles),
            rows + in_contexts.forward_rows,
        )
        most = min(most, in_contexts.most)
    return Chances(values, exact, particles, rows, most)


def handful(rows: Traced, count: int, seed: int, labels: IntArray | None = None) -> Traced:
    """At most about ``count`` of the rows, thinned by mass without bias; those of different ``labels`` apart."""
    alive = np.flatnonzero(rows.masses)
    masses = rows.masses[alive]
    hints = None
    if labels is not None and len(alive):
        hints = even_hints(masses, np.unique(labels[alive], return_inverse=True)[1], 1.0, np.ones(len(alive)))
    (number,) = offsets(seed, LABEL_STREAM + 1, 1)
    chosen, thinned = thin(masses, count, number, 1.0, hints)
    return rows.some(alive[chosen], thinned, exact=len(chosen) == len(alive))


def _contexts(runtimes: Runtimes, box: Box, method: TextMethod, budget: int | None, seed: int) -> Traced:
    """The rows of the box's columns in which its texts are read."""
    trace = Trace(runtimes.hinted(Box(box.filters)))
    if method.enumerates:
        rows = traced(runtimes.columns, trace, MOST_ENUMERATED, seed)
        if not rows.exact or len(rows.masses) > MOST_ENUMERATED:
            raise QueryTooLargeError(
                f"the columns have more than {MOST_ENUMERATED:,} combinations of values to read text in: "
                "use the method particles"
            )
        return rows
    return handful(traced(runtimes.columns, trace, budget or PARTICLES, seed), CONTEXTS, seed)


def _both(answer: Answer, text: Answer, column: int) -> Answer:
    """The conjunction of two answers, as if they had nothing to do with each other."""
    most = min(answer.most, most_of(text))
    return Answer(
        min(answer.density * text.density, most),
        answer.exact and text.exact,
        max(answer.particles, text.particles),
        answer.visited,
        answer.forward_rows + text.forward_rows,
        answer.sampling_error if text.exact else None,
        (*answer.texts, column),
        answer.counted and text.counted and not (answer.visited or answer.texts),
        least=text.least if answer.least >= 1.0 else 0.0,
        most=most,
        clipped=answer.clipped,
        excess=answer.excess,
        factor=answer.factor,
        corrected=answer.corrected,
        steps=max(answer.steps, text.steps),
    )
