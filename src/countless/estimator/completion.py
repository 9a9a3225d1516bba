"""Filling in what is missing in given rows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from countless.arrays import IntArray
from countless.data.digits import to_digits
from countless.data.frame import Frame
from countless.data.recode import MISSING, Recoded, Rows, opened
from countless.data.schema import Column, Schema
from countless.engine.completions import Completions
from countless.engine.conditional import completions
from countless.engine.runtimes import Runtimes
from countless.errors import DataError
from countless.estimator.completed import Completed
from countless.estimator.likelihood import Watch, symbols_of
from countless.estimator.values import Values

MIDDLE = 0.5  # of a cell's values the one in the middle stands for all


@dataclass(frozen=True)
class CompletionOptions:
    """What to fill in, and how.

    ``columns`` are those to fill in (None is all that the model has codes for). With ``draws`` values are drawn by
    their probabilities, each given those drawn before in its row; otherwise each is the most likely one.
    """

    columns: tuple[str, ...] | None = None
    draws: bool = False
    seed: int | None = None


@dataclass
class _Cells:
    """What was filled in."""

    rows: list[int] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    values: list[str | None] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)

    def frame(self) -> Frame:
        order = np.argsort(np.array(self.rows, dtype=np.int64), kind="stable").tolist()
        columns = (self.rows, self.columns, self.values, self.probabilities)
        return Frame(
            ("row", "column", "value", "probability"),
            ("BIGINT", "VARCHAR", "VARCHAR", "DOUBLE"),
            tuple([column[place] for place in order] for column in columns),
        )


def complete(
    schema: Schema, runtimes: Runtimes, rows: Any, options: CompletionOptions, watch: Watch | None = None
) -> Completed:
    """The rows with their missing cells filled in."""
    wanted = _wanted(schema, options.columns)
    source = opened(rows, schema)
    cells, left = _Cells(), 0
    with Recoded(source, schema) as recoded:
        filler = _Filler(schema, runtimes, wanted, np.random.default_rng(options.seed) if options.draws else None)
        for some in recoded.chunks():
            filler.fill(some, cells)
            left += sum(text.count(None) for text in some.texts if text is not None)
            if watch is not None:
                watch(some.first + len(some), recoded.rows)
        names = {schema.columns[index].name: name for index, name in recoded.columns.items()}
        total = recoded.rows
    types = {column.name: column.type for column in schema.columns}
    return Completed(source, cells.frame(), names, types, total, left)


class _Filler:
    """Fills in chunks of rows, one column after the other."""

    def __init__(
        self, schema: Schema, runtimes: Runtimes, wanted: Sequence[int], rng: np.random.Generator | None
    ) -> None:
        self.schema, self.orders, self.rng = schema, runtimes.columns, rng
        ranks = {position: rank for rank, position in enumerate(self.orders[0].order)} if wanted else {}
        self.wanted = sorted(wanted, key=lambda index: ranks[schema.positions(index)[0]])
        self.values = {index: Values(schema.columns[index]) for index in wanted}

    def fill(self, rows: Rows, cells: _Cells) -> None:
        """Fill in every missing cell of the wanted columns; NULL itself is no value to fill in."""
        symbols = symbols_of(self.schema, rows.codes)
        for index in self.wanted:
            column, positions = self.schema.columns[index], self.schema.positions(index)
            missing = np.flatnonzero(rows.codes[:, index] == MISSING)
            if not len(missing) or not column.null:
                continue
            found = completions(self.orders, symbols[missing], positions, column.null)
            if self.rng is None:
                entries = typical(found, column)
                values = [self.values[index].at(code, MIDDLE) for code in found.codes[entries].tolist()]
            else:
                entries = found.at(self.rng.random(len(found)))
                values = self.values[index].drawn(found.codes[entries], self.rng)
                for position, digits in zip(positions, to_digits(found.codes[entries], column.radices), strict=True):
                    symbols[missing, position] = digits
            cells.rows += (rows.first + missing).tolist()
            cells.columns += [column.name] * len(missing)
            cells.values += values
            cells.probabilities += found.probabilities[entries].tolist()


def typical(found: Completions, column: Column) -> IntArray:
    """The entry of each row to choose: the most likely one.

    No cell of a grid is likely, unless it is of a single value. If such a one is not the most likely, it is the cell
    that has as much probability below it as above.
    """
    best = found.best()
    if column.grid is None:
        return best
    single = np.append(np.array(column.grid.distinct) == 1, True)  # NULL too
    return np.where(single[found.codes[best]], best, found.at(np.full(len(found), MIDDLE)))


def _wanted(schema: Schema, names: Iterable[str] | None) -> list[int]:
    """The places of the columns to fill in."""
    if names is None:
        return list(range(len(schema.columns)))
    found = []
    for name in names:
        index = schema.find(name)
        if index is None and schema.find_text(name) is not None:
            raise DataError(f'"{name}" is modelled as text, which is not filled in: leave it out')
        if index is None:
            close = difflib.get_close_matches(name, schema.names, 1)
            hint = f'did you mean "{close[0]}"?' if close else f"the columns are {', '.join(schema.names)}"
            raise DataError(f'the model holds no column "{name}" to fill in: {hint}')
        found.append(index)
    return sorted(set(found))
