"""Counts that are added to are those of the whole table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.data.columns.schema import Column, Schema
from countless.data.encoding.schema_growth import NEW, Growth
from countless.data.encoding.table import Table
from countless.data.summaries import counting
from countless.data.summaries.count_updates import added_pairs, bucket_of
from countless.data.summaries.counting import count_pairs
from countless.data.summaries.pair_counts import Pairs

rows = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 5)), min_size=1, max_size=40)


def coded(given: list[tuple[int, int]], domains: list[list[int]]) -> Table:
    """Rows of two columns of numbers, of which the domains hold those that have codes."""
    columns = tuple(Column(f"c{i}", "INTEGER", tuple(map(str, own)), False) for i, own in enumerate(domains))
    codes = tuple(np.array([own.index(row[i]) for row in given]) for i, own in enumerate(domains))
    return Table(Schema(len(given), columns), codes)


@settings(deadline=None)
@given(rows, rows, st.sampled_from([2, 4, 128]), st.sampled_from([6, 2_048]))
def test_counts_of_pairs_add(old: list[tuple[int, int]], new: list[tuple[int, int]], buckets: int, most: int) -> None:
    held = [sorted({row[i] for row in old}) for i in range(2)]
    wider = [sorted({row[i] for row in (*old, *new)}) for i in range(2)]
    before, after = coded(old, held), coded(new, wider)
    origins = tuple(
        np.array([held[i].index(value) if value in held[i] else NEW for value in wider[i]]) for i in range(2)
    )
    whole = Schema(len(old) + len(new), after.schema.coded)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "BUCKETS", (buckets,))
        patch.setattr("countless.data.summaries.count_updates.MOST_BUCKETS", most)
        pairs = added_pairs(count_pairs(before), Growth(before.schema, whole, origins), after)
    every = coded([*old, *new], wider)
    codes = [np.asarray(code) for code in every.codes]
    for column in range(2):
        assert pairs.counts[column].tolist() == np.bincount(codes[column], minlength=len(wider[column])).tolist()
    for (one, two), table in pairs.tables.items():
        first, second = (bucket_of(pairs.starts[p], len(wider[p]))[codes[p]] for p in (one, two))
        truth = np.zeros(table.shape, dtype=int)
        np.add.at(truth, (first, second), 1)
        assert table.tolist() == truth.tolist()
    if buckets == 128 and most > 6:  # every value has a bucket of its own, a new one too
        assert pairs.code_by_code(0, 1) is not None
    for sparse in pairs.sparse:
        cells = np.zeros((len(wider[sparse.column]), len(wider[sparse.other])), dtype=int)
        np.add.at(cells, (codes[sparse.column], codes[sparse.other]), 1)
        assert [sparse.column_codes.tolist(), sparse.codes.tolist()] == [each.tolist() for each in np.nonzero(cells)]
        assert sparse.rows.tolist() == cells[cells > 0].tolist()
    again = Pairs.from_arrays(pairs.arrays(), whole)
    assert all(np.array_equal(pairs.tables[pair], again.tables[pair]) for pair in pairs.tables)
