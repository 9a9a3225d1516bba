"""Completion with text: the strings of a row change the probabilities of its other columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.columns.digits import to_digits
from countless.data.columns.schema import Schema
from countless.data.columns.strings.text import encode
from countless.engine.distributions.completion import Completions
from countless.engine.distributions.likelihood import NOBODY, completions
from countless.engine.runtimes import Runtimes
from countless.engine.text.conditional import log_probabilities

LEAST_RATIO = 1e-6  # candidates less likely than this times the best, before texts are read, are dropped
Texts = Sequence[Sequence[str | None] | None]  # for each text column the strings of the rows, or None


def completions_of(
    schema: Schema,
    runtimes: Runtimes,
    symbols: IntArray,
    texts: Texts,
    index: int,
    count: int,
    also: IntArray | None = None,
) -> Completions:
    """The probability of each code of the column at ``index``, given all other values of its row, texts included.

    The arguments are those of :func:`countless.engine.distributions.likelihood.completions`. Only text columns whose
    network reads the other columns count.
    """
    positions = schema.positions(index)
    candidates = completions(runtimes.columns, symbols, positions, count, also)
    text_indexes = [text for text, runtime in enumerate(runtimes.texts) if runtime.spec.context and texts[text]]
    if not text_indexes:
        return candidates
    also = np.full(len(candidates), NOBODY) if also is None else also
    most, rows = candidates.probabilities[candidates.best()], candidates.rows
    is_likely = (candidates.probabilities >= LEAST_RATIO * most[rows]) | (candidates.codes == also[rows])
    contexts = symbols[rows[is_likely]]
    digits = to_digits(candidates.codes[is_likely], schema.coded[index].radices)
    for position, digit in zip(positions, digits, strict=True):
        contexts[:, position] = digit
    logs = np.zeros(len(candidates.codes))
    for text_index in text_indexes:
        logs[is_likely] += _text_logs(schema, runtimes, text_index, texts, rows[is_likely], contexts)
    has_text = _has_text([texts[text_index] for text_index in text_indexes])
    logs[~is_likely & has_text[rows]] = -np.inf
    return candidates.weighed(logs)


def _text_logs(
    schema: Schema, runtimes: Runtimes, text_index: int, texts: Texts, rows: IntArray, contexts: IntArray
) -> FloatArray:
    """The log-probability of the text of each of ``rows`` in its context, 0 if it is missing."""
    values = texts[text_index] or []
    strings = encode(schema.texts[text_index], list(values))
    present = np.flatnonzero(_has_text([values])[rows])
    logs = np.zeros(len(rows))
    logs[present] = log_probabilities(
        runtimes.texts[text_index], strings.symbols[rows[present]], strings.lengths[rows[present]], contexts[present]
    )
    return logs


def _has_text(columns: Texts) -> BoolArray:
    """Which rows have a text in any of the columns."""
    is_present = np.array([[value is not None for value in column or []] for column in columns], dtype=np.bool_)
    has_text: BoolArray = np.any(is_present, axis=0)
    return has_text
