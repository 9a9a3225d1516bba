"""Synthetic rows that are drawn from a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.automata.language import Automaton, Language
from countless.data.columns.schema import Schema
from countless.data.columns.strings.text import TextColumn
from countless.data.frame import Frame
from countless.engine.distributions.likelihood import row_log_probabilities
from countless.engine.distributions.sampling import draw_rows
from countless.engine.runtimes import Runtimes
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.sampling import Drawn, sample, sample_each
from countless.errors import NoRowsError, NoTextModelError
from countless.estimator.answers.distributions.joint import axes_of
from countless.estimator.rows.cell_draws import CellDraws
from countless.query.grids.survey import CellParts
from countless.query.rewrites.derivation import recompute
from countless.query.row_check import RowCheck
from countless.region import Box, Region

WIDER = "ask for a wider condition, or fit the model with a higher max_distinct, so that it knows more values"
MAX_ROUNDS = 6  # of drawing; each replaces the rows that failed the condition
MAX_DRAWS_PER_ROW = 8  # rows drawn in a round for each missing row


@dataclass(frozen=True, eq=False)
class Sample(Frame):
    """Synthetic rows, with the table's types. Each satisfies the condition.

    Attributes:
        requested: Number of rows that were asked for. There are fewer, if most drawn rows failed the condition.
        effective_size: Number of independent rows that the sample is worth. It is smaller than the number of rows if
            the condition is so rare that several rows come from the same part of the model.
        enumerated: The rows were drawn from a list of all combinations that match.
        log_probs: Natural logarithm of each row's probability. For a column that is stored as a grid, that of the cell.
            NaN for evidence rows, if the model has only text columns and no network.
        stored: How many rows, the first ones, are evidence rows, that is, rows of the table.
        cut: For each row, the names of the columns whose text is longer than the model reads. Only its start is drawn.

    >>> est.sample(3, seed=1).requested
    3
    """

    requested: int
    effective_size: float
    enumerated: bool
    log_probs: FloatArray
    cut: tuple[tuple[str, ...], ...]
    stored: int = 0


@dataclass(frozen=True, eq=False)
class SampleSource:
    """The region to draw rows from, the densities of its boxes if it has several, and the check of a drawn row.

    ``cells`` has for each box the allowed parts of the cells of grids, by column.
    """

    region: Region
    masses: Sequence[float] = ()
    cells: Sequence[Mapping[int, CellParts]] = ()
    check: RowCheck | None = None


@dataclass(frozen=True, eq=False)
class _BoxRows:
    """Drawn rows of a box: codes by column, texts by text column."""

    codes: list[IntArray]
    texts: list[list[Drawn]]
    log_probs: FloatArray
    effective: float
    exact: bool


@dataclass(frozen=True, eq=False)
class _ValidRows:
    """Drawn rows that satisfy the condition, as values by column."""

    columns: list[list[str | None]]
    cut: list[tuple[str, ...]]
    log_probs: FloatArray
    effective: float
    exact: bool

    def __len__(self) -> int:
        return len(self.cut)


def samples(schema: Schema, runtimes: Runtimes, source: SampleSource, count: int, seed: int) -> Sample:
    """Up to ``count`` rows, at least one. There are fewer if too many drawn rows fail the condition."""
    if not source.region.boxes:
        raise NoRowsError("no row matches: there is nothing to draw")
    if not runtimes.texts and schema.texts:  # these columns are left out
        if not schema.coded:
            raise NoTextModelError("text is drawn from")
        schema = replace(schema, columns=schema.coded)
    rng = np.random.default_rng(seed)
    parts: list[_ValidRows] = []
    missing, size, drawn = count, count, 0
    for _ in range(MAX_ROUNDS):
        valid = _draw_valid(schema, runtimes, source, size, missing, rng)
        parts.append(valid)
        missing, drawn = missing - len(valid), drawn + size
        if not missing:
            break
        size = min(MAX_DRAWS_PER_ROW, drawn // max(1, count - missing) + 1) * missing
    if missing == count:
        raise NoRowsError(f"{drawn:,} rows were drawn, and none satisfies the condition: {WIDER}")
    return Sample(
        schema.names,
        tuple(column.type for column in schema.columns),
        tuple([value for part in parts for value in part.columns[index]] for index in range(len(schema.columns))),
        count,
        sum(part.effective for part in parts),
        all(part.exact for part in parts),
        np.concatenate([part.log_probs for part in parts]),
        tuple(cut for part in parts for cut in part.cut),
    )


def _draw_valid(
    schema: Schema, runtimes: Runtimes, source: SampleSource, size: int, most: int, rng: np.random.Generator
) -> _ValidRows:
    """Draw ``size`` rows and keep those that satisfy the condition, at most ``most``."""
    counts = rng.multinomial(size, _box_shares(source.region, source.masses))
    boxes = np.flatnonzero(counts).tolist()
    parts = [_draw_box(schema, runtimes, source.region.boxes[box], int(counts[box]), rng) for box in boxes]
    row_boxes = np.repeat(boxes, counts[boxes])
    order = rng.permutation(size)
    row_boxes = row_boxes[order]
    codes = [np.concatenate([part.codes[index] for part in parts])[order] for index in range(len(schema.coded))]
    texts = []
    for text_index in range(len(schema.texts)):
        values = [value for part in parts for value in part.texts[text_index]]
        texts.append([values[row] for row in order])
    cells = CellDraws(schema, source.cells, codes, row_boxes)
    columns = [cells.values(index, rng) for index in range(len(schema.coded))]
    columns += [[value.text for value in column_texts] for column_texts in texts]
    allowed = np.ones(size, dtype=np.bool_)
    if source.check is not None:
        cut = {
            schema.index_of_text(text_index): np.array([value.cut for value in column_texts], dtype=np.bool_)
            for text_index, column_texts in enumerate(texts)
        }
        allowed = cells.settle(source.check, columns, cut, rng)
    valid = np.flatnonzero(allowed)[:most].tolist()
    log_probs = np.concatenate([part.log_probs for part in parts])[order]
    rows = [[column[row] for row in valid] for column in columns]
    if schema.following and valid:
        recompute(schema, rows)
    return _ValidRows(
        rows,
        [
            tuple(text.name for text, column_texts in zip(schema.texts, texts, strict=True) if column_texts[row].cut)
            for row in valid
        ],
        log_probs[valid],
        sum(part.effective for part in parts) * len(valid) / size,
        all(part.exact for part in parts),
    )


def _box_shares(region: Region, masses: Sequence[float]) -> FloatArray:
    """The share of the region's rows in each of its disjoint boxes."""
    if len(region.boxes) == 1:
        return np.ones(1)
    box_masses = np.array(masses)
    if not box_masses.any():
        box_masses = np.ones(len(box_masses))
    shares: FloatArray = box_masses / box_masses.sum()
    return shares


def _draw_box(schema: Schema, runtimes: Runtimes, box: Box, count: int, rng: np.random.Generator) -> _BoxRows:
    """Draw ``count`` rows of a box."""
    languages = {text_filter.column: text_filter.language for text_filter in box.texts}
    contexts, codes, effective, exact, logs = None, [], float(count), not schema.texts, np.zeros(count)
    if schema.coded:
        axes = axes_of(schema, range(len(schema.coded)))
        drawn = draw_rows(runtimes, box, axes, count, rng)
        contexts, effective, exact = drawn.symbols, drawn.effective, drawn.exact and exact
        codes = [axis.codes(contexts) for axis in axes]
        visible_symbols = contexts.copy()
        visible_symbols[:, schema.visible :] = schema.sizes[schema.visible :]  # MASK: a row has no hidden columns
        logs = row_log_probabilities(runtimes.columns, visible_symbols)
    texts = [
        _draw_texts(runtime, column, languages.get(index), contexts, count, rng)
        for index, (column, runtime) in enumerate(zip(schema.texts, runtimes.texts, strict=True))
    ]
    logs = sum((np.array([drawn.log_probability for drawn in values]) for values in texts), logs)
    return _BoxRows(codes, texts, logs, effective, exact)


def _draw_texts(
    runtime: TextRuntime,
    column: TextColumn,
    language: Language | None,
    contexts: IntArray | None,
    count: int,
    rng: np.random.Generator,
) -> list[Drawn]:
    """A text for each row, from ``language`` if there is a filter, given the row's context if the model has one."""
    if contexts is None or not runtime.spec.context:
        return sample(runtime, language or _all_strings(column), count, rng)
    if language is None:
        return sample_each(runtime, column.letters, contexts, rng)
    return _draw_language(runtime, language, contexts, rng)


def _draw_language(
    runtime: TextRuntime, language: Language, contexts: IntArray, rng: np.random.Generator
) -> list[Drawn]:
    """A text of ``language`` for each row. Rows with the same context are drawn together."""
    distinct_contexts, context_indexes = np.unique(contexts, axis=0, return_inverse=True)
    texts: list[Drawn | None] = [None] * len(contexts)
    for index, context in enumerate(distinct_contexts):
        rows: Sequence[int] = np.flatnonzero(context_indexes.ravel() == index).tolist()
        for row, text in zip(rows, sample(runtime, language, len(rows), rng, context), strict=True):
            texts[row] = text
    return [text for text in texts if text is not None]


def _all_strings(column: TextColumn) -> Language:
    return Language(Automaton.constant(column.letters, True), column.has_null, column.has_null)
