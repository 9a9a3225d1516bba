"""Replay against forgetting: old rows, real or sampled from the model, to train on along with new ones."""

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

AT_ONCE = 4_096  # rows that are drawn between two looks at the clock
CUT_MARK = "\x00"  # stands for the unknown rest of a text that is cut


@dataclass(frozen=True, eq=False)
class Old:
    """Some old rows: symbols (rows, positions) of the new schema, and the strings of each text column."""

    symbols: IntArray
    strings: tuple[Strings, ...]

    def __len__(self) -> int:
        return len(self.symbols)

    def chosen(self, places: IntArray) -> Old:
        """The rows at some places, which may come several times."""
        return Old(self.symbols[places], tuple(Strings(s.symbols[places], s.lengths[places]) for s in self.strings))


def rows_of(table: Table) -> Old:
    """All rows of an encoded table."""
    if table.schema.coded:
        return Old(table.matrix(), table.strings)
    return Old(np.empty((len(table.strings[0].symbols), 0), dtype=np.int64), table.strings)


def drawn(growth: Growth, runtimes: Runtimes, count: int, seconds: float | None, seed: int) -> Old:
    """``count`` rows that the model would write; fewer if ``seconds`` are over before."""
    rng, started = np.random.default_rng(seed), time.monotonic()
    parts: list[Old] = []
    found = 0
    while found < count and (seconds is None or not parts or time.monotonic() - started < seconds):
        parts.append(_drawn(growth, runtimes, min(AT_ONCE, count - found), rng))
        found += len(parts[-1])
    return joined(parts)


def _drawn(growth: Growth, runtimes: Runtimes, count: int, rng: np.random.Generator) -> Old:
    schema = growth.old
    symbols = np.empty((count, 0), dtype=np.int64)
    if schema.coded:
        symbols = ancestral_rows(runtimes.columns, count, rng)
        symbols = symbols[_valid(schema, symbols)]
    strings = []
    texts = zip(schema.texts, growth.schema.texts, runtimes.texts, strict=True) if runtimes.texts else ()
    for before, after, runtime in texts:
        found = sample_each(runtime, before.letters, symbols, rng)
        strings.append(encode(after, [_text(value, before.length) for value in found]))
    moved = growth.moved(symbols) if schema.coded else symbols
    return Old(moved, tuple(strings))


def joined(parts: Sequence[Old]) -> Old:
    """The rows of several parts."""
    strings = tuple(
        Strings(np.concatenate([part.symbols for part in own]), np.concatenate([part.lengths for part in own]))
        for own in zip(*(part.strings for part in parts), strict=True)
    )
    return Old(np.concatenate([part.symbols for part in parts]), strings)


def from_table(growth: Growth, table: Any, count: int, seed: int) -> Old:
    """At most ``count`` rows of the old table, which the caller has given."""
    source = derive(opened(table, growth.schema), growth.schema.derived)
    if source.count() > count:
        source = source.sampled(count, seed)
    return rows_of(encoded(conformed(source, growth.schema), growth.schema))


def from_evidence(growth: Growth, rows: EvidenceRows) -> Old:
    """The evidence rows of the model file, with the new codes."""
    return rows_of(encoded(conformed(rows.source(), growth.schema), growth.schema))


def mixed(old: Old, new: Old, old_rows: int, most: int, rng: np.random.Generator) -> Old:
    """Old and new rows in the shares that they have in the table, at most ``most`` in all."""
    total = old_rows + len(new)
    size = min(total, most)
    fresh = min(len(new), max(1, round(size * len(new) / total)))
    old_places = _repeated(len(old), size - fresh, rng)
    new_places = rng.permutation(len(new))[:fresh]
    return joined([old.chosen(old_places), new.chosen(new_places)])


def matrix_of(rows: Old, sizes: tuple[int, ...]) -> NDArray[Any]:
    """The symbols in the smallest signed type that training can index with."""
    return rows.symbols.astype(code_type(sizes))


def _repeated(rows: int, count: int, rng: np.random.Generator) -> IntArray:
    """``count`` places of this many rows, each about as often as any other."""
    times = -(-count // max(1, rows))
    return np.concatenate([np.empty(0, dtype=np.int64), *(rng.permutation(rows) for _ in range(times))])[:count]


def _valid(schema: Schema, symbols: IntArray) -> NDArray[np.bool_]:
    """The rows whose digits all make codes."""
    valid = np.ones(len(symbols), dtype=np.bool_)
    for own, column in zip(schema.spans, schema.modelled, strict=True):
        valid &= np.ravel_multi_index(tuple(symbols[:, own].T), column.radices) < column.size
    return valid


def _text(value: Drawn, length: int) -> str | None:
    if value.text is None or not value.cut:
        return value.text
    return value.text[:length].ljust(length + 1, CUT_MARK)
