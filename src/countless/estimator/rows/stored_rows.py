"""Evidence rows that satisfy a condition, as a sample of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.data.columns.schema import Schema
from countless.engine.runtimes import Runtimes
from countless.errors import NoRowsError, NoTextModelError
from countless.estimator.answers.evidence import Evidence
from countless.estimator.rows.likelihood import log_prob
from countless.estimator.rows.sampling import Sample
from countless.query.question import Question

STORED_STREAM = 29  # keeps the random numbers of the choice apart from others of the seed


def stored_before_drawn(
    schema: Schema,
    runtimes: Runtimes,
    evidence: Evidence,
    question: Question,
    count: int,
    seed: int,
    draw: Callable[[int], Sample],
) -> Sample:
    """Evidence rows that satisfy a question, then rows of ``draw`` if too few are stored and the model can draw."""
    stored = stored_rows(schema, runtimes, evidence, question, count, seed)
    missing = count - len(stored)
    if not len(stored):
        return draw(missing)
    if not missing or not runtimes.texts:
        return stored
    try:
        return joined(stored, draw(missing))
    except NoRowsError:
        return stored


def stored_rows(
    schema: Schema, runtimes: Runtimes, evidence: Evidence, question: Question, count: int, seed: int
) -> Sample:
    """Up to ``count`` different evidence rows that satisfy a question, chosen at random; perhaps none."""
    places = np.flatnonzero(evidence.matches(question))
    rng = np.random.default_rng([seed, STORED_STREAM])
    places = rng.choice(places, min(count, len(places)), replace=False)
    coded = evidence.rows.schema.coded
    columns = tuple(
        _values(column.values, codes[places]) for column, codes in zip(coded, evidence.rows.codes, strict=True)
    )
    types = tuple(column.type for column in schema.columns)
    logs: FloatArray = np.full(len(places), np.nan)
    found = Sample(
        schema.names, types, columns, count, float(len(places)), False, logs, ((),) * len(places), len(places)
    )
    if not len(places):
        return found
    with contextlib.suppress(NoTextModelError):  # of text alone nothing is known
        logs[:] = log_prob(schema, runtimes, found.to_dicts())
    return found


def joined(stored: Sample, drawn: Sample) -> Sample:
    """Stored rows, and after them rows that the model drew."""
    return Sample(
        stored.names,
        stored.types,
        tuple([*left, *right] for left, right in zip(stored.columns, drawn.columns, strict=True)),
        stored.requested,
        stored.effective_size + drawn.effective_size,
        False,
        np.concatenate([stored.log_probs, drawn.log_probs]),
        (*stored.cut, *drawn.cut),
        len(stored),
    )


def _values(values: Sequence[str], codes: IntArray) -> list[str | None]:
    """The value of each code; NULL has the one after the last."""
    return [values[code] if code < len(values) else None for code in codes.tolist()]
