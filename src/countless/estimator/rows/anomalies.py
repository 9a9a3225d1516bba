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
    texts: FloatArray  # the log-probability of each text
    strings: tuple[str | None, ...]

    @classmethod
    def of(cls, chunk: Likelihoods, index: int) -> _Suspect:
        """The row at ``index`` of a chunk."""
        codes, impossible, texts = (part[index].copy() for part in (chunk.codes, chunk.impossible, chunk.texts))
        strings = tuple(None if column is None else column[index] for column in chunk.strings)
        return cls(chunk.first + index, float(chunk.log_probabilities[index]), codes, impossible, texts, strings)


@dataclass(frozen=True)
class _Blame:
    """The column that makes a row unlikely: its index, the probability of its value, and the expected value."""

    column: int
    probability: float
    expected: str | None = None
    expected_probability: float | None = None

    @property
    def details(self) -> tuple[float, str | None, float | None]:
        """All fields except the column."""
        return self.probability, self.expected, self.expected_probability


def anomalies(schema: Schema, runtimes: Runtimes, rows: Any, top: int, watch: Watch | None = None) -> Frame:
    """The ``top`` least likely rows, the least likely first."""
    with Recoded(derive(opened(rows, schema), schema.derived), schema) as recoded:
        suspects = _least_likely(schema, runtimes, recoded, top, watch)
        blames = _blames(schema, runtimes, suspects)
        values = _values(recoded, suspects, blames)
    lines = [
        (suspect.row, suspect.log_probability, schema.names[blame.column], value, *blame.details)
        for suspect, blame, value in zip(suspects, blames, values, strict=True)
    ]
    return Frame(NAMES, TYPES, tuple(map(list, zip(*lines, strict=True))) if lines else tuple([] for _ in NAMES))


def _least_likely(
    schema: Schema, runtimes: Runtimes, recoded: Recoded, top: int, watch: Watch | None
) -> list[_Suspect]:
    """The rows with most values that the table does not have; then those whose other values are least likely."""
    heap: list[tuple[float, float, int, _Suspect]] = []  # the likeliest is first
    for chunk in likelihoods(schema, runtimes, recoded, watch):
        impossible = chunk.impossible.sum(axis=1)
        order = np.lexsort((np.arange(len(chunk.possible)), chunk.possible, -impossible))[:top]
        for index in order.tolist():
            key = (float(impossible[index]), -float(chunk.possible[index]), -(chunk.first + index))
            if len(heap) < top:
                heapq.heappush(heap, (*key, _Suspect.of(chunk, index)))
            elif key > heap[0][:3]:
                heapq.heapreplace(heap, (*key, _Suspect.of(chunk, index)))
            else:
                break
    return [key[3] for key in sorted(heap, key=lambda key: key[:3], reverse=True)]


def _blames(schema: Schema, runtimes: Runtimes, suspects: list[_Suspect]) -> list[_Blame]:
    """The column to blame for each row.

    It is a column whose value the table does not have, if there is one. Otherwise it is the column whose value, given
    all others, is least likely in comparison with the likeliest value. No cell of a grid is likely, so a cell is
    compared with cells only, not with NULL. Text is blamed only if no other column can be.
    """
    if not suspects:
        return []
    candidates: list[list[tuple[float, _Blame]]] = [[] for _ in suspects]  # the least ratio is to blame
    codes = np.stack([suspect.codes for suspect in suspects])
    impossible = np.stack([suspect.impossible for suspect in suspects])
    symbols = symbols_of(schema, codes)
    for index, column in enumerate(schema.coded):
        rows = np.flatnonzero((codes[:, index] >= 0) | impossible[:, index])
        own_codes = np.maximum(codes[rows, index], NOBODY)
        texts = [[suspects[row].strings[text] for row in rows] for text in range(len(schema.texts))]
        completions = completions_of(schema, runtimes, symbols[rows], texts, index, column.size, own_codes)
        if column.grid is not None:
            completions = completions.without(column.null, own_codes != column.null)
        expected_entries = typical(completions, column)
        most, probabilities = completions.probabilities[completions.best()], completions.of(own_codes)
        ratios = np.divide(probabilities, most, out=np.zeros(len(completions)), where=most > 0)
        values = Values(column)
        for position, (row, entry) in enumerate(zip(rows.tolist(), expected_entries.tolist(), strict=True)):
            expected = values.plausible_value_at(int(completions.codes[entry]), MIDDLE)
            expected_probability = float(completions.probabilities[entry])
            blame = _Blame(index, float(probabilities[position]), expected, expected_probability)
            candidates[row].append((float(ratios[position]), blame))
    text_indexes = [index for index, column in enumerate(schema.columns) if column.is_text and runtimes.texts]
    for row_candidates, suspect in zip(candidates, suspects, strict=True):
        if not row_candidates or suspect.impossible[text_indexes].any():
            row_candidates.append(_text_blame(suspect, text_indexes))
    return [min(row_candidates, key=lambda candidate: candidate[0])[1] for row_candidates in candidates]


def _text_blame(suspect: _Suspect, text_indexes: list[int]) -> tuple[float, _Blame]:
    """The blame of a text that must not be NULL, or else of the least likely text; and its ratio."""
    impossible = suspect.impossible[text_indexes]
    text = int(np.lexsort((suspect.texts, ~impossible))[0])
    if impossible[text]:
        return 0.0, _Blame(text_indexes[text], 0.0)
    return 1.0, _Blame(text_indexes[text], float(np.exp(suspect.texts[text])))


def _values(recoded: Recoded, suspects: list[_Suspect], blames: list[_Blame]) -> list[str | None]:
    """The value of each row in the column to blame, as DuckDB prints it."""
    if not suspects:
        return []
    names = {blame.column: quote_identifier(recoded.columns[blame.column]) for blame in blames}
    number = quote_identifier(f"{recoded.source.name}_place")  # no column has this name
    lines = recoded.source.rows(
        f"SELECT {number}, {', '.join(f'CAST({name} AS VARCHAR)' for name in names.values())} "
        f"FROM (SELECT *, row_number() OVER () - 1 AS {number} FROM {recoded.source.table}) "
        f"WHERE {number} IN ({', '.join(str(suspect.row) for suspect in suspects)})"
    )
    values = {(row, column): text for row, *texts in lines for column, text in zip(names, texts, strict=True)}
    return [values[suspect.row, blame.column] for suspect, blame in zip(suspects, blames, strict=True)]
