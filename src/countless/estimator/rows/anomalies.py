"""Anomaly detection: the rows that a model finds least likely, and their unlikely values."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.columns.schema import Schema
from countless.data.columns.types import quote_identifier
from countless.data.encoding.recoding import Recoded, opened
from countless.data.frame import Frame
from countless.engine.distributions.likelihood import NOBODY
from countless.engine.runtimes import Runtimes
from countless.estimator.answers.distributions.values import Values
from countless.estimator.rows.completion import MIDDLE, typical
from countless.estimator.rows.likelihood import Likelihoods, Watch, likelihoods, symbols_of
from countless.estimator.rows.text_evidence import completions_of
from countless.query.rewrites.derivation import derive

NAMES = ("row", "log_probability", "column", "value", "probability", "expected", "expected_probability")
TYPES = ("BIGINT", "DOUBLE", "VARCHAR", "VARCHAR", "DOUBLE", "VARCHAR", "DOUBLE")


@dataclass(frozen=True, eq=False)
class _Suspect:
    """A row that may be among the least likely."""

    row: int
    log_probability: float
    codes: IntArray
    impossible: BoolArray  # by column
    texts: FloatArray  # the part that each text has in the probability
    strings: tuple[str | None, ...]

    @classmethod
    def of(cls, found: Likelihoods, place: int) -> _Suspect:
        codes, impossible, texts = (part[place].copy() for part in (found.codes, found.impossible, found.texts))
        strings = tuple(None if column is None else column[place] for column in found.strings)
        return cls(found.first + place, float(found.log_probabilities[place]), codes, impossible, texts, strings)


@dataclass(frozen=True)
class _Blame:
    """A column of a row, by its place, how likely its value is given all others, and what would be likelier."""

    column: int
    probability: float
    expected: str | None = None
    expected_probability: float | None = None

    @property
    def told(self) -> tuple[float, str | None, float | None]:
        """All but the column."""
        return self.probability, self.expected, self.expected_probability


def anomalies(schema: Schema, runtimes: Runtimes, rows: Any, top: int, watch: Watch | None = None) -> Frame:
    """The ``top`` rows of least probability, the least likely first."""
    with Recoded(derive(opened(rows, schema), schema.derived), schema) as recoded:
        suspects = _least(schema, runtimes, recoded, top, watch)
        blames = _blames(schema, runtimes, suspects)
        values = _values(recoded, suspects, blames)
    lines = [
        (suspect.row, suspect.log_probability, schema.names[blame.column], value, *blame.told)
        for suspect, blame, value in zip(suspects, blames, values, strict=True)
    ]
    return Frame(NAMES, TYPES, tuple(map(list, zip(*lines, strict=True))) if lines else tuple([] for _ in NAMES))


def _least(schema: Schema, runtimes: Runtimes, recoded: Recoded, top: int, watch: Watch | None) -> list[_Suspect]:
    """The rows with most values that were never seen, and then those of which the rest is least likely."""
    heap: list[tuple[float, float, int, _Suspect]] = []  # the likeliest is first
    for found in likelihoods(schema, runtimes, recoded, watch):
        impossible = found.impossible.sum(axis=1)
        order = np.lexsort((np.arange(len(found.seen)), found.seen, -impossible))[:top]
        for place in order.tolist():
            item = (float(impossible[place]), -float(found.seen[place]), -(found.first + place))
            if len(heap) < top:
                heapq.heappush(heap, (*item, _Suspect.of(found, place)))
            elif item > heap[0][:3]:
                heapq.heapreplace(heap, (*item, _Suspect.of(found, place)))
            else:
                break
    return [item[3] for item in sorted(heap, key=lambda item: item[:3], reverse=True)]


def _blames(schema: Schema, runtimes: Runtimes, suspects: list[_Suspect]) -> list[_Blame]:
    """The column to blame for each row.

    It is one whose value was never seen, if there is any; or else the one whose value, given all others, is the least
    likely beside the likeliest one; on a grid, of which no cell is likely, a value is compared with values, not with
    NULL. Text is blamed only where there is nothing else.
    """
    if not suspects:
        return []
    odd: list[list[tuple[float, _Blame]]] = [[] for _ in suspects]
    codes = np.stack([suspect.codes for suspect in suspects])
    impossible = np.stack([suspect.impossible for suspect in suspects])
    symbols = symbols_of(schema, codes)
    for index, column in enumerate(schema.coded):
        asked = np.flatnonzero((codes[:, index] >= 0) | impossible[:, index])
        own = np.maximum(codes[asked, index], NOBODY)
        texts = [[suspects[row].strings[place] for row in asked] for place in range(len(schema.texts))]
        found = completions_of(schema, runtimes, symbols[asked], texts, index, column.size, own)
        if column.grid is not None:
            found = found.without(column.null, own != column.null)
        chosen, most, mine = typical(found, column), found.probabilities[found.best()], found.of(own)
        oddities = np.divide(mine, most, out=np.zeros(len(found)), where=most > 0)
        values = Values(column)
        for place, row in enumerate(asked.tolist()):
            expected = values.plausible_value_at(int(found.codes[chosen[place]]), MIDDLE)
            blame = _Blame(index, float(mine[place]), expected, float(found.probabilities[chosen[place]]))
            odd[row].append((float(oddities[place]), blame))
    texts_at = [index for index, column in enumerate(schema.columns) if column.is_text and runtimes.texts]
    for ones, suspect in zip(odd, suspects, strict=True):
        if not ones or suspect.impossible[texts_at].any():
            ones.append(_odd_text(suspect, texts_at))
    return [min(ones, key=lambda item: item[0])[1] for ones in odd]


def _odd_text(suspect: _Suspect, texts_at: list[int]) -> tuple[float, _Blame]:
    """The text of a row that is NULL and must not be, or else the least likely; and how odd it is."""
    impossible = suspect.impossible[texts_at]
    text = int(np.lexsort((suspect.texts, ~impossible))[0])
    if impossible[text]:
        return 0.0, _Blame(texts_at[text], 0.0)
    return 1.0, _Blame(texts_at[text], float(np.exp(suspect.texts[text])))


def _values(recoded: Recoded, suspects: list[_Suspect], blames: list[_Blame]) -> list[str | None]:
    """The value that each row has in the column that is to blame, as DuckDB prints it."""
    if not suspects:
        return []
    names = {blame.column: quote_identifier(recoded.columns[blame.column]) for blame in blames}
    number = quote_identifier(f"{recoded.source.name}_place")  # no column has this name
    found = recoded.source.rows(
        f"SELECT {number}, {', '.join(f'CAST({name} AS VARCHAR)' for name in names.values())} "
        f"FROM (SELECT *, row_number() OVER () - 1 AS {number} FROM {recoded.source.table}) "
        f"WHERE {number} IN ({', '.join(str(suspect.row) for suspect in suspects)})"
    )
    values = {(row, column): text for row, *texts in found for column, text in zip(names, texts, strict=True)}
    return [values[suspect.row, blame.column] for suspect, blame in zip(suspects, blames, strict=True)]
