"""Samples of rows from a model."""

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
ROUNDS = 6  # in which rows are drawn for those that failed the condition
MOST_FOR_ONE = 8  # rows that are drawn in a round for each that is missing


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
    """What rows are drawn of: a region, the densities of its boxes if it has several, and how a row is checked.

    ``cells`` has for each box what it allows of the cells of grids, by column.
    """

    region: Region
    masses: Sequence[float] = ()
    cells: Sequence[Mapping[int, CellParts]] = ()
    check: RowCheck | None = None


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some rows of a box: codes by column, texts by text column."""

    codes: list[IntArray]
    texts: list[list[Drawn]]
    log_probs: FloatArray
    effective: float
    exact: bool


@dataclass(frozen=True, eq=False)
class _Kept:
    """Rows with values, by column, that satisfy the condition, out of more that were drawn."""

    columns: list[list[str | None]]
    cut: list[tuple[str, ...]]
    log_probs: FloatArray
    effective: float
    exact: bool

    def __len__(self) -> int:
        return len(self.cut)


def samples(schema: Schema, runtimes: Runtimes, drawing: SampleSource, count: int, seed: int) -> Sample:
    """``count`` rows, at least one; fewer if the rows that are drawn fail the condition again and again."""
    if not drawing.region.boxes:
        raise NoRowsError("no row matches: there is nothing to draw")
    if not runtimes.texts and schema.texts:  # these columns are left out
        if not schema.coded:
            raise NoTextModelError("text is drawn from")
        schema = replace(schema, columns=schema.coded)
    rng = np.random.default_rng(seed)
    found: list[_Kept] = []
    missing, size, drawn = count, count, 0
    for _ in range(ROUNDS):
        part = _drawn(schema, runtimes, drawing, size, missing, rng)
        found.append(part)
        missing, drawn = missing - len(part), drawn + size
        if not missing:
            break
        size = min(MOST_FOR_ONE, drawn // max(1, count - missing) + 1) * missing
    if missing == count:
        raise NoRowsError(f"{drawn:,} rows were drawn, and none satisfies the condition: {WIDER}")
    return Sample(
        schema.names,
        tuple(column.type for column in schema.columns),
        tuple([value for part in found for value in part.columns[place]] for place in range(len(schema.columns))),
        count,
        sum(part.effective for part in found),
        all(part.exact for part in found),
        np.concatenate([part.log_probs for part in found]),
        tuple(cut for part in found for cut in part.cut),
    )


def _drawn(
    schema: Schema, runtimes: Runtimes, drawing: SampleSource, size: int, most: int, rng: np.random.Generator
) -> _Kept:
    """Draw ``size`` rows and keep those that satisfy the condition, ``most`` of them."""
    shares = rng.multinomial(size, _chances(drawing.region, drawing.masses))
    boxes = np.flatnonzero(shares).tolist()
    parts = [_rows(schema, runtimes, drawing.region.boxes[box], int(shares[box]), rng) for box in boxes]
    owner = np.repeat(boxes, shares[boxes])
    order = rng.permutation(size)
    owner = owner[order]
    codes = [np.concatenate([part.codes[place] for part in parts])[order] for place in range(len(schema.coded))]
    texts = []
    for place in range(len(schema.texts)):
        values = [value for part in parts for value in part.texts[place]]
        texts.append([values[row] for row in order])
    cells = CellDraws(schema, drawing.cells, codes, owner)
    columns = [cells.values(index, rng) for index in range(len(schema.coded))]
    columns += [[value.text for value in own] for own in texts]
    allowed = np.ones(size, dtype=np.bool_)
    if drawing.check is not None:
        cut = {
            schema.index_of_text(place): np.array([value.cut for value in own], dtype=np.bool_)
            for place, own in enumerate(texts)
        }
        allowed = cells.settle(drawing.check, columns, cut, rng)
    kept = np.flatnonzero(allowed)[:most].tolist()
    log_probs = np.concatenate([part.log_probs for part in parts])[order]
    rows = [[column[row] for row in kept] for column in columns]
    if schema.following and kept:
        recompute(schema, rows)
    return _Kept(
        rows,
        [tuple(text.name for text, own in zip(schema.texts, texts, strict=True) if own[row].cut) for row in kept],
        log_probs[kept],
        sum(part.effective for part in parts) * len(kept) / size,
        all(part.exact for part in parts),
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
        seen = contexts.copy()
        seen[:, schema.visible :] = schema.sizes[schema.visible :]  # MASK: a row has no hidden columns
        logs = row_log_probabilities(runtimes.columns, seen)
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
    for index, context in enumerate(different):
        rows: Sequence[int] = np.flatnonzero(places.ravel() == index).tolist()
        for row, drawn in zip(rows, sample(runtime, language, len(rows), rng, context), strict=True):
            found[row] = drawn
    return [drawn for drawn in found if drawn is not None]


def _everything(column: TextColumn) -> Language:
    return Language(Automaton.constant(column.letters, True), column.has_null, column.has_null)
