"""Samples of rows from a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.automata.language import Automaton, Language
from countless.data.columns.schema import Schema
from countless.data.columns.text import TextColumn
from countless.data.frame import Frame
from countless.engine.distributions.likelihood import row_log_probabilities
from countless.engine.distributions.sampling import draw_rows
from countless.engine.runtimes import Runtimes
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.sampling import Drawn, sample, sample_each
from countless.errors import NoRowsError
from countless.estimator.answers.joint import axes_of
from countless.estimator.answers.values import Values
from countless.region import Box, Region

EVERY_ROW = Region((Box(),))


@dataclass(frozen=True, eq=False)
class Sample(Frame):
    """Rows that were drawn, in any order, with the table's types.

    They are worth ``effective_size`` independent rows: fewer than there are, if the condition is so rare that some
    stand for the same part of the model. ``enumerated`` says that they were drawn from all rows of the condition.
    ``log_probs`` are the natural logarithms of the rows' probabilities, of a grid's column that of the cell. ``cut``
    names for each row the columns whose text is longer than the model sees: only how it begins is told.
    """

    effective_size: float
    enumerated: bool
    log_probs: FloatArray
    cut: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some rows: codes by column, texts by text column."""

    codes: list[IntArray]
    texts: list[list[Drawn]]
    log_probs: FloatArray
    effective: float
    exact: bool


def samples(
    schema: Schema, runtimes: Runtimes, region: Region, count: int, seed: int, masses: Sequence[float] = ()
) -> Sample:
    """``count`` rows of ``region``, at least one. If it has several boxes, ``masses`` are their densities."""
    if not region.boxes:
        raise NoRowsError("no row matches: there is nothing to draw")
    rng = np.random.default_rng(seed)
    shares = rng.multinomial(count, _chances(region, masses))
    parts = [
        _rows(schema, runtimes, box, int(share), rng) for box, share in zip(region.boxes, shares, strict=True) if share
    ]
    order = rng.permutation(count)
    values: list[list[str | None]] = []
    for place, column in enumerate(schema.coded):
        codes = np.concatenate([part.codes[place] for part in parts])[order]
        values.append(Values(column).drawn(codes, rng))
    cut: list[list[str]] = [[] for _ in range(count)]
    for place, text in enumerate(schema.texts):
        drawn = [value for part in parts for value in part.texts[place]]
        values.append([drawn[row].text for row in order])
        for row, source in enumerate(order):
            if drawn[source].cut:
                cut[row].append(text.name)
    return Sample(
        schema.names,
        tuple(column.type for column in schema.columns),
        tuple(values),
        sum(part.effective for part in parts),
        all(part.exact for part in parts),
        np.concatenate([part.log_probs for part in parts])[order],
        tuple(map(tuple, cut)),
    )


def _chances(region: Region, masses: Sequence[float]) -> FloatArray:
    """How much of the region each of its disjoint boxes is."""
    if len(region.boxes) == 1:
        return np.ones(1)
    found = np.array(masses)
    if not found.any():
        found = np.ones(len(found))
    chances: FloatArray = found / found.sum()
    return chances


def _rows(schema: Schema, runtimes: Runtimes, box: Box, count: int, rng: np.random.Generator) -> _Rows:
    languages = {item.column: item.language for item in box.texts}
    contexts, codes, effective, exact, logs = None, [], float(count), not schema.texts, np.zeros(count)
    if schema.coded:
        axes = axes_of(schema, range(len(schema.coded)))
        drawn = draw_rows(runtimes, box, axes, count, rng)
        contexts, effective, exact = drawn.symbols, drawn.effective, drawn.exact and exact
        codes = [axis.codes(contexts) for axis in axes]
        logs = row_log_probabilities(runtimes.columns, contexts)
    texts = [
        _texts(runtime, column, languages.get(index), contexts, count, rng)
        for index, (column, runtime) in enumerate(zip(schema.texts, runtimes.texts, strict=True))
    ]
    logs = sum((np.array([drawn.log_probability for drawn in values]) for values in texts), logs)
    return _Rows(codes, texts, logs, effective, exact)


def _texts(
    runtime: TextRuntime,
    column: TextColumn,
    language: Language | None,
    contexts: IntArray | None,
    count: int,
    rng: np.random.Generator,
) -> list[Drawn]:
    """A text for each row, of ``language`` if one is asked for, in the row's context if the model knows it."""
    if contexts is None or not runtime.spec.context:
        return sample(runtime, language or _everything(column), count, rng)
    if language is None:
        return sample_each(runtime, column.letters, contexts, rng)
    return _of_language(runtime, language, contexts, rng)


def _of_language(runtime: TextRuntime, language: Language, contexts: IntArray, rng: np.random.Generator) -> list[Drawn]:
    different, places = np.unique(contexts, axis=0, return_inverse=True)
    found: list[Drawn | None] = [None] * len(contexts)
    for place, context in enumerate(different):
        rows: Sequence[int] = np.flatnonzero(places.ravel() == place).tolist()
        for row, drawn in zip(rows, sample(runtime, language, len(rows), rng, context), strict=True):
            found[row] = drawn
    return [drawn for drawn in found if drawn is not None]


def _everything(column: TextColumn) -> Language:
    return Language(Automaton.constant(column.letters, True), column.has_null, column.has_null)
