"""Replay: old rows, real or sampled from the model, to train on along with new rows, so that they are not forgotten."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.data.columns.digits import code_type
from countless.data.columns.schema import Schema
from countless.data.columns.strings.text import Strings, encode
from countless.data.encoding.recoding import opened
from countless.data.encoding.schema_growth import Growth, conformed, encoded
from countless.data.encoding.table import Table
from countless.data.evidence import EvidenceRows
from countless.engine.distributions.ancestral import ancestral_rows
from countless.engine.runtimes import Runtimes
from countless.engine.text.sampling import Drawn, sample_each
from countless.query.rewrites.derivation import derive

BATCH = 4_096  # rows that are drawn between two looks at the clock
CUT_MARK = "\x00"  # stands for the unknown rest of a text that is cut


@dataclass(frozen=True, eq=False)
class ReplayRows:
    """Encoded rows: symbols (rows, positions) of the new schema, and the strings of each text column."""

    symbols: IntArray
    strings: tuple[Strings, ...]

    def __len__(self) -> int:
        return len(self.symbols)

    def take(self, indexes: IntArray) -> ReplayRows:
        """The rows at ``indexes``, which may repeat."""
        return ReplayRows(
            self.symbols[indexes], tuple(Strings(s.symbols[indexes], s.lengths[indexes]) for s in self.strings)
        )


def rows_of(table: Table) -> ReplayRows:
    """All rows of an encoded table."""
    if table.schema.coded:
        return ReplayRows(table.matrix(), table.strings)
    return ReplayRows(np.empty((len(table.strings[0].symbols), 0), dtype=np.int64), table.strings)


def draw_rows(growth: Growth, runtimes: Runtimes, count: int, seconds: float | None, seed: int) -> ReplayRows:
    """``count`` rows that are drawn from the model; fewer if that takes longer than ``seconds``."""
    rng, started = np.random.default_rng(seed), time.monotonic()
    parts: list[ReplayRows] = []
    rows = 0
    while rows < count and (seconds is None or not parts or time.monotonic() - started < seconds):
        parts.append(_draw_batch(growth, runtimes, min(BATCH, count - rows), rng))
        rows += len(parts[-1])
    return joined(parts)


def _draw_batch(growth: Growth, runtimes: Runtimes, count: int, rng: np.random.Generator) -> ReplayRows:
    """Up to ``count`` rows from the model, without those whose digits make no code."""
    schema = growth.old
    symbols = np.empty((count, 0), dtype=np.int64)
    if schema.coded:
        symbols = ancestral_rows(runtimes.columns, count, rng)
        symbols = symbols[_valid(schema, symbols)]
    strings = []
    texts = zip(schema.texts, growth.schema.texts, runtimes.texts, strict=True) if runtimes.texts else ()
    for old_column, new_column, runtime in texts:
        values = sample_each(runtime, old_column.letters, symbols, rng)
        strings.append(encode(new_column, [_text(text, old_column.length) for text in values]))
    new_symbols = growth.moved(symbols) if schema.coded else symbols
    return ReplayRows(new_symbols, tuple(strings))


def joined(parts: Sequence[ReplayRows]) -> ReplayRows:
    """The rows of several parts."""
    strings = tuple(
        Strings(
            np.concatenate([part.symbols for part in column_parts]),
            np.concatenate([part.lengths for part in column_parts]),
        )
        for column_parts in zip(*(part.strings for part in parts), strict=True)
    )
    return ReplayRows(np.concatenate([part.symbols for part in parts]), strings)


def from_table(growth: Growth, table: Any, count: int, seed: int) -> ReplayRows:
    """At most ``count`` rows of the old table."""
    source = derive(opened(table, growth.schema), growth.schema.derived)
    if source.count() > count:
        source = source.sampled(count, seed)
    return rows_of(encoded(conformed(source, growth.schema), growth.schema))


def from_evidence(growth: Growth, rows: EvidenceRows) -> ReplayRows:
    """The evidence rows of the model file, with the new codes."""
    return rows_of(encoded(conformed(rows.source(), growth.schema), growth.schema))


def mixed(old: ReplayRows, new: ReplayRows, old_rows: int, most: int, rng: np.random.Generator) -> ReplayRows:
    """Old and new rows in the proportion that they have in the table, at most ``most`` in all."""
    total = old_rows + len(new)
    size = min(total, most)
    new_count = min(len(new), max(1, round(size * len(new) / total)))
    old_indexes = _repeated_indexes(len(old), size - new_count, rng)
    new_indexes = rng.permutation(len(new))[:new_count]
    return joined([old.take(old_indexes), new.take(new_indexes)])


def matrix_of(rows: ReplayRows, sizes: tuple[int, ...]) -> NDArray[Any]:
    """The symbols in the smallest signed type that training can index with."""
    return rows.symbols.astype(code_type(sizes))


def _repeated_indexes(rows: int, count: int, rng: np.random.Generator) -> IntArray:
    """``count`` random indexes of this many rows, each about equally often."""
    times = -(-count // max(1, rows))
    return np.concatenate([np.empty(0, dtype=np.int64), *(rng.permutation(rows) for _ in range(times))])[:count]


def _valid(schema: Schema, symbols: IntArray) -> NDArray[np.bool_]:
    """Which rows have digits that make a code in every column."""
    valid = np.ones(len(symbols), dtype=np.bool_)
    for positions, column in zip(schema.spans, schema.modelled, strict=True):
        valid &= np.ravel_multi_index(tuple(symbols[:, positions].T), column.radices) < column.size
    return valid


def _text(value: Drawn, length: int) -> str | None:
    if value.text is None or not value.cut:
        return value.text
    return value.text[:length].ljust(length + 1, CUT_MARK)
