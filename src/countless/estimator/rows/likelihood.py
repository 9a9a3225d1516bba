"""Log-likelihoods of rows under a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.columns.digits import to_digits
from countless.data.columns.schema import Schema
from countless.data.columns.strings.text import TextColumn, encode
from countless.data.encoding.recoding import UNSEEN, Recoded, RecodedRows, opened
from countless.engine.distributions.likelihood import row_log_probabilities
from countless.engine.runtimes import Runtimes
from countless.engine.text.conditional import log_probabilities as text_log_probabilities
from countless.errors import NoTextModelError
from countless.query.rewrites.derivation import derive

Watch = Callable[[int, int], None]  # called with the number of rows done and the number of all rows


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """A chunk of rows, whose first has the number ``first``, and the log-probability of each row.

    ``codes`` (rows, columns) have NULL's own code where NULL is a value. ``impossible`` (rows, columns, text last) are
    the values that the table does not have. ``possible`` is the log-probability of all other values of a row, and
    ``texts`` (rows, text columns) the part of it that each of the ``strings`` contributes.
    """

    first: int
    codes: IntArray
    impossible: BoolArray
    possible: FloatArray
    texts: FloatArray
    strings: tuple[list[str | None] | None, ...]

    @property
    def log_probabilities(self) -> FloatArray:
        """The log-probability of whole rows: minus infinity if a value is impossible."""
        return np.where(self.impossible.any(axis=1), -np.inf, self.possible)


def log_prob(schema: Schema, runtimes: Runtimes, rows: Any) -> FloatArray:
    """The natural logarithm of each row's probability."""
    with Recoded(derive(opened(rows, schema), schema.derived), schema) as recoded:
        chunks = [chunk.log_probabilities for chunk in likelihoods(schema, runtimes, recoded)]
    return np.concatenate([np.zeros(0), *chunks])


def likelihoods(
    schema: Schema, runtimes: Runtimes, recoded: Recoded, watch: Watch | None = None
) -> Iterator[Likelihoods]:
    """The log-probabilities of all rows, in chunks. Text counts only if there is a network of text."""
    if not runtimes.columns and not runtimes.texts:
        raise NoTextModelError("the probability of text is read from")
    for rows in recoded.chunks():
        yield _likelihoods(schema, runtimes, rows)
        if watch is not None:
            watch(rows.first + len(rows), recoded.rows)


def symbols_of(schema: Schema, codes: IntArray) -> IntArray:
    """The symbols (rows, positions) of codes (rows, columns): MASK where there is no code."""
    symbols = np.tile(np.array(schema.sizes, dtype=np.int64), (len(codes), 1))
    for index, column in enumerate(schema.coded):
        has_code = np.flatnonzero(codes[:, index] >= 0)
        for position, digits in zip(
            schema.positions(index), to_digits(codes[has_code, index], column.radices), strict=True
        ):
            symbols[has_code, position] = digits
    return symbols


def _rare_shares(column: TextColumn, texts: Sequence[str | None]) -> FloatArray:
    """For each text, the sum of the logarithms of its rare characters' shares in the UNKNOWN symbol.

    A character that never occurred has the share of the rarest.
    """
    unknown = sum(count for _, count in column.rare)
    shares = {character: math.log(count / unknown) for character, count in column.rare}
    least, common = min(shares.values(), default=0.0), set(column.characters)
    return np.array(
        [
            sum(shares.get(letter, least) for letter in (text or "")[: column.length] if letter not in common)
            for text in texts
        ]
    )


def _likelihoods(schema: Schema, runtimes: Runtimes, rows: RecodedRows) -> Likelihoods:
    codes = rows.codes.copy()
    impossible = np.zeros((len(rows), len(schema.names)), dtype=np.bool_)
    possible = np.zeros(len(rows))
    for index, column in enumerate(schema.coded):
        if column.has_null:
            codes[rows.nulls[:, index], index] = column.null
            impossible[:, index] = codes[:, index] == UNSEEN
        else:
            impossible[:, index] = (codes[:, index] == UNSEEN) | rows.nulls[:, index]
        if column.grid is not None:
            # A cell's rows are spread evenly over its values, as for a question about one of them.
            log_values = np.append(np.log(column.grid.distinct), np.zeros(1 + column.has_null))  # the last for no code
            possible -= log_values[np.maximum(codes[:, index], -1)]
    symbols = symbols_of(schema, codes)
    if schema.coded:
        possible += row_log_probabilities(runtimes.columns, symbols)
    texts = np.zeros((len(rows), len(schema.texts)))
    for index, text in enumerate(schema.texts):
        values = rows.texts[index]
        if values is None or not runtimes.texts:
            continue
        strings = encode(text, values)
        texts[:, index] = text_log_probabilities(runtimes.texts[index], strings.symbols, strings.lengths, symbols)
        texts[:, index] += _rare_shares(text, values)
        if not text.has_null:
            nulls = np.array([value is None for value in values], dtype=np.bool_)
            impossible[:, schema.index_of_text(index)] = nulls
            texts[nulls, index] = 0.0
    with np.errstate(invalid="ignore"):
        return Likelihoods(rows.first, codes, impossible, possible + texts.sum(axis=1), texts, rows.texts)
