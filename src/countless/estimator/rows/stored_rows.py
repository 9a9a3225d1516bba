"""Samples of evidence rows that satisfy a condition."""

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

STORED_STREAM = 29  # separates the random choice of rows from other uses of the seed


def stored_before_drawn(
    schema: Schema,
    runtimes: Runtimes,
    evidence: Evidence,
    question: Question,
    count: int,
    seed: int,
    draw: Callable[[int], Sample],
) -> Sample:
    """Evidence rows that satisfy a question; if they are too few and the model can draw text, also rows of ``draw``."""
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
    """Up to ``count`` random evidence rows that satisfy a question; perhaps none."""
    rows = np.flatnonzero(evidence.matches(question))
    rng = np.random.default_rng([seed, STORED_STREAM])
    rows = rng.choice(rows, min(count, len(rows)), replace=False)
    coded = evidence.rows.schema.coded
    columns = tuple(
        _values(column.values, codes[rows]) for column, codes in zip(coded, evidence.rows.codes, strict=True)
    )
    types = tuple(column.type for column in schema.columns)
    logs: FloatArray = np.full(len(rows), np.nan)
    stored = Sample(schema.names, types, columns, count, float(len(rows)), False, logs, ((),) * len(rows), len(rows))
    if not len(rows):
        return stored
    with contextlib.suppress(NoTextModelError):  # a table of text columns alone has no network then
        logs[:] = log_prob(schema, runtimes, stored.to_dicts())
    return stored


def joined(stored: Sample, drawn: Sample) -> Sample:
    """Stored rows, followed by rows that the model drew."""
    return Sample(
        stored.names,
        stored.types,
        tuple(
            [*stored_values, *drawn_values]
            for stored_values, drawn_values in zip(stored.columns, drawn.columns, strict=True)
        ),
        stored.requested,
        stored.effective_size + drawn.effective_size,
        False,
        np.concatenate([stored.log_probs, drawn.log_probs]),
        (*stored.cut, *drawn.cut),
        len(stored),
    )


def _values(values: Sequence[str], codes: IntArray) -> list[str | None]:
    """The value of each code; NULL has the code after the last value."""
    return [values[code] if code < len(values) else None for code in codes.tolist()]
