"""Completion (imputation): missing values of rows are filled in."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from countless.arrays import IntArray
from countless.data.columns.digits import to_digits
from countless.data.columns.schema import Column, Schema
from countless.data.encoding.recoding import MISSING, Recoded, RecodedRows, opened
from countless.data.frame import Frame
from countless.engine.distributions.completion import Completions
from countless.engine.runtimes import Runtimes
from countless.engine.text.sampling import sample_each
from countless.errors import DataError, NoTextModelError
from countless.estimator.answers.distributions.values import Values
from countless.estimator.rows.completed import Completed
from countless.estimator.rows.likelihood import Watch, symbols_of
from countless.estimator.rows.text_evidence import completions_of

TRIES = 20  # a string that is drawn as NULL so often stays missing
MIDDLE = 0.5  # a grid's cell is filled in with its median


@dataclass(frozen=True)
class CompletionOptions:
    """The columns to fill in, and the way to choose values.

    If ``columns`` is None, all columns are filled in except derived ones, and text only with ``draws``. With ``draws``
    values are random, each given those drawn before it in its row; otherwise each value is the most likely one.
    """

    columns: tuple[str, ...] | None = None
    draws: bool = False
    seed: int | None = None


@dataclass
class _Cells:
    """The cells that were filled in."""

    rows: list[int] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    values: list[str | None] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)

    def add(self, rows: IntArray, column: str, values: Sequence[str | None], probabilities: Sequence[float]) -> None:
        """Add cells of a column."""
        self.rows += rows.tolist()
        self.columns += [column] * len(rows)
        self.values += values
        self.probabilities += probabilities

    def frame(self) -> Frame:
        """A table of all cells, sorted by row."""
        order = np.argsort(np.array(self.rows, dtype=np.int64), kind="stable").tolist()
        columns = (self.rows, self.columns, self.values, self.probabilities)
        return Frame(
            ("row", "column", "value", "probability"),
            ("BIGINT", "VARCHAR", "VARCHAR", "DOUBLE"),
            tuple([column[index] for index in order] for column in columns),
        )


def complete(
    schema: Schema, runtimes: Runtimes, rows: Any, options: CompletionOptions, watch: Watch | None = None
) -> Completed:
    """The rows with their missing cells filled in."""
    columns = _columns_to_fill(schema, options, bool(runtimes.texts))
    source = opened(rows, schema, holes=True)
    cells, left = _Cells(), 0
    with Recoded(source, schema) as recoded:
        filler = _Filler(schema, runtimes, columns, np.random.default_rng(options.seed) if options.draws else None)
        for chunk in recoded.chunks():
            filler.fill(chunk, cells)
            left += sum(text.count(None) for text in chunk.texts if text is not None and not options.draws)
            if watch is not None:
                watch(chunk.first + len(chunk), recoded.rows)
        names = {schema.names[index]: name for index, name in recoded.columns.items()}
        total = recoded.rows
    types = {column.name: column.type for column in schema.columns}
    return Completed(source, cells.frame(), names, types, total, left)


class _Filler:
    """Fills in chunks of rows, one column after the other."""

    def __init__(
        self, schema: Schema, runtimes: Runtimes, indexes: Sequence[int], rng: np.random.Generator | None
    ) -> None:
        self.schema, self.runtimes, self.rng = schema, runtimes, rng
        columns = [index for index in indexes if not schema.columns[index].is_text]
        ranks = {position: rank for rank, position in enumerate(runtimes.columns[0].order)} if columns else {}
        self.columns = sorted(columns, key=lambda index: ranks[schema.positions(index)[0]])
        self.texts = [schema.text_index(index) for index in indexes if schema.columns[index].is_text]
        self.values = {index: Values(schema.coded[index]) for index in columns}

    def fill(self, rows: RecodedRows, cells: _Cells) -> None:
        """Fill in the missing cells of all columns. NULL is not a value to fill in."""
        symbols = symbols_of(self.schema, rows.codes)
        for index in self.columns:
            column, positions = self.schema.coded[index], self.schema.positions(index)
            missing = np.flatnonzero(rows.codes[:, index] == MISSING)
            if not len(missing) or not column.null:
                continue
            texts = [None if text is None else [text[row] for row in missing] for text in rows.texts]
            candidates = completions_of(self.schema, self.runtimes, symbols[missing], texts, index, column.null)
            if self.rng is None:
                entries = typical(candidates, column)
                values = [
                    self.values[index].plausible_value_at(code, MIDDLE) for code in candidates.codes[entries].tolist()
                ]
            else:
                entries = candidates.at(self.rng.random(len(candidates)))
                values = self.values[index].draw(candidates.codes[entries], self.rng)
                for position, digits in zip(
                    positions, to_digits(candidates.codes[entries], column.radices), strict=True
                ):
                    symbols[missing, position] = digits
            cells.add(rows.first + missing, column.name, values, candidates.probabilities[entries].tolist())
        for index in self.texts:
            self._draw_texts(rows, index, symbols, cells)

    def _draw_texts(self, rows: RecodedRows, index: int, symbols: IntArray, cells: _Cells) -> None:
        """Draw the missing strings of a text column; NULL is drawn again, at most ``TRIES`` times."""
        assert self.rng is not None
        column, runtime, texts = self.schema.texts[index], self.runtimes.texts[index], rows.texts[index]
        missing = np.array([row for row in range(len(rows)) if texts is None or texts[row] is None], dtype=np.int64)
        for _ in range(TRIES):
            drawn = sample_each(runtime, column.letters, symbols[missing], self.rng) if len(missing) else []
            has_text = np.array([value.text is not None for value in drawn], dtype=np.bool_)
            strings = [value for value in drawn if value.text is not None]
            probabilities = [math.exp(value.log_probability) for value in strings]
            cells.add(rows.first + missing[has_text], column.name, [value.text for value in strings], probabilities)
            missing = missing[~has_text]


def typical(candidates: Completions, column: Column) -> IntArray:
    """The entry of each row to fill in: the most likely one.

    In a grid only a cell of a single value, or NULL, can be likely. If the most likely entry is another cell, the
    median cell is chosen.
    """
    best = candidates.best()
    if column.grid is None:
        return best
    single = np.append(np.array(column.grid.distinct) == 1, True)  # NULL too
    return np.where(single[candidates.codes[best]], best, candidates.at(np.full(len(candidates), MIDDLE)))


def _columns_to_fill(schema: Schema, options: CompletionOptions, writes_text: bool) -> list[int]:
    """The indexes of the columns to fill in. Text can only be drawn, because no single string is likely."""
    if options.columns is None:
        if options.draws and not schema.coded and not writes_text:
            raise NoTextModelError("text is drawn from")
        fillable = schema.columns if options.draws and writes_text else schema.coded
        return [index for index in range(len(fillable)) if index not in schema.following]
    indexes = []
    for name in options.columns:
        index = schema.find(name)
        if index is None:
            similar = difflib.get_close_matches(name, schema.names, 1)
            hint = f'did you mean "{similar[0]}"?' if similar else f"the columns are {', '.join(schema.names)}"
            raise DataError(f'the model holds no column "{name}" to fill in: {hint}')
        if index in schema.following:
            derived = schema.following[index]
            raise DataError(
                f'"{name}" follows from {", ".join(derived.columns)}: fill these in, and compute {derived.sql}'
            )
        if schema.columns[index].is_text and not options.draws:
            raise DataError(f'"{name}" is modelled as text, which can only be drawn: ask for draws, or leave it out')
        if schema.columns[index].is_text and not writes_text:
            raise NoTextModelError("text is drawn from")
        indexes.append(index)
    return sorted(set(indexes))
