"""Evidence from text: how the strings of rows change the probabilities of their other columns."""

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

LEAST = 1e-6  # candidates that are less likely than this times the best, before texts are read, have no part
Texts = Sequence[Sequence[str | None] | None]  # of each text column the strings of the rows, if there are any


def completions_of(
    schema: Schema,
    runtimes: Runtimes,
    symbols: IntArray,
    texts: Texts,
    index: int,
    count: int,
    also: IntArray | None = None,
) -> Completions:
    """How likely each code of a column is, given all that is present in its row, texts that know their row included.

    As :func:`countless.engine.distributions.likelihood.completions` has it, of the column at ``index``.
    """
    positions = schema.positions(index)
    found = completions(runtimes.columns, symbols, positions, count, also)
    telling = [place for place, runtime in enumerate(runtimes.texts) if runtime.spec.context and texts[place]]
    if not telling:
        return found
    own = np.full(len(found), NOBODY) if also is None else also
    most = found.probabilities[found.best()]
    asked = (found.probabilities >= LEAST * most[found.rows]) | (found.codes == own[found.rows])
    contexts = symbols[found.rows[asked]]
    digits = to_digits(found.codes[asked], schema.coded[index].radices)
    for position, digit in zip(positions, digits, strict=True):
        contexts[:, position] = digit
    logs = np.zeros(len(found.codes))
    for place in telling:
        logs[asked] += _text_logs(schema, runtimes, place, texts, found.rows[asked], contexts)
    has_text = _has_text([texts[place] for place in telling])
    logs[~asked & has_text[found.rows]] = -np.inf
    return found.weighed(logs)


def _text_logs(
    schema: Schema, runtimes: Runtimes, place: int, texts: Texts, rows: IntArray, contexts: IntArray
) -> FloatArray:
    """The log-probability of the text of each of ``rows`` in its context, 0 if it is missing."""
    values = texts[place] or []
    strings = encode(schema.texts[place], list(values))
    there = np.flatnonzero(_has_text([values])[rows])
    found = np.zeros(len(rows))
    found[there] = log_probabilities(
        runtimes.texts[place], strings.symbols[rows[there]], strings.lengths[rows[there]], contexts[there]
    )
    return found


def _has_text(columns: Texts) -> BoolArray:
    """Which rows have a text in any of the columns."""
    there = np.array([[value is not None for value in column or []] for column in columns], dtype=np.bool_)
    found: BoolArray = np.any(there, axis=0)
    return found
