"""Counts of columns and pairs against brute force, and what becomes of them in a file."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.data.columns.digits import to_digits
from countless.data.columns.schema import Column, Schema
from countless.data.encoding.table import Table
from countless.data.summaries import counting
from countless.data.summaries.counting import bucket_starts, count_pairs
from countless.data.summaries.integer_packing import packed
from countless.data.summaries.pair_counts import Pairs
from countless.errors import ModelFileError


def encoded(rows: Sequence[tuple[int, ...]], sizes: tuple[int, ...]) -> Table:
    """A table of codes; the last code of a column is NULL's if it has three or more."""
    columns = tuple(
        Column(f"c{index}", "INTEGER", tuple(map(str, range(size - (size > 2)))), size > 2)
        for index, size in enumerate(sizes)
    )
    codes = np.array(rows, dtype=np.int64).reshape(-1, len(sizes))
    digits = (digit for index, column in enumerate(columns) for digit in to_digits(codes[:, index], column.radices))
    return Table(Schema(len(rows), columns), tuple(digits))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    sizes = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    row = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    return encoded(draw(st.lists(row, min_size=1, max_size=40)), sizes)


@given(tables(), st.sampled_from([2, 4, 128]))
def test_every_pair_is_counted(table: Table, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "BUCKETS", (most,))
        pairs = count_pairs(table)
    codes = [np.asarray(code) for code in table.codes]
    assert len(pairs.tables) == len(codes) * (len(codes) - 1) // 2
    for column, code in enumerate(codes):
        assert pairs.counts[column].tolist() == [(code == value).sum() for value in range(table.schema.sizes[column])]
    for (one, two), found in pairs.tables.items():
        first, second = (np.searchsorted(pairs.starts[place], codes[place], "right") - 1 for place in (one, two))
        truth = [[((first == a) & (second == b)).sum() for b in range(found.shape[1])] for a in range(found.shape[0])]
        assert found.tolist() == truth
    for sparse in pairs.sparse:
        assert (
            len(pairs.starts[sparse.column]) < table.schema.sizes[sparse.column]
            or len(pairs.starts[sparse.other]) < table.schema.sizes[sparse.other]
        )
        every = np.zeros([table.schema.sizes[column] for column in (sparse.column, sparse.other)], dtype=int)
        np.add.at(every, (codes[sparse.column], codes[sparse.other]), 1)
        assert [sparse.column_codes.tolist(), sparse.codes.tolist()] == [each.tolist() for each in np.nonzero(every)]
        assert sparse.rows.tolist() == every[every > 0].tolist()


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(2, 20), st.booleans())
def test_buckets_are_even(counts: list[int], most: int, has_null: bool) -> None:
    rows = np.array(counts)
    starts = bucket_starts(rows, most, has_null)
    assert starts[0] == 0
    assert np.all(np.diff(starts) > 0)
    assert len(starts) <= 2 * most + 1
    if has_null:
        assert starts[-1] == len(rows) - 1
    wide = np.diff(starts, append=len(rows)) > 1
    assert np.all(np.add.reduceat(rows, starts)[wide] <= 2 * rows.sum() / (most - 1))


def test_the_most_telling_pairs_are_kept() -> None:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 20, (2000, 3))
    table = encoded([(a, b, c, a) for a, b, c in noise.tolist()], (21, 21, 21, 21))
    whole = count_pairs(table)
    assert len(whole.tables) == 6
    some = count_pairs(table, most_bytes=600)
    assert 0 < len(some.tables) < 6
    assert (0, 3) in some.tables
    assert not count_pairs(table, most_bytes=10).tables


def test_of_many_columns_the_uncertain_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_MEMBERS", 2)
    rows = [(row % 2, 0, row % 5, row % 7) for row in range(70)]
    pairs = count_pairs(encoded(rows, (2, 2, 5, 7)))
    assert pairs.members == (2, 3)
    assert len(pairs.counts) == 4
    same(Pairs.from_arrays(pairs.arrays(), encoded(rows, (2, 2, 5, 7)).schema), pairs)


def same(one: Pairs, two: Pairs) -> None:
    assert (one.rows, one.members, list(one.tables)) == (two.rows, two.members, list(two.tables))
    for own, other in zip(one.sparse, two.sparse, strict=True):
        assert (own.column, own.other) == (other.column, other.other)
        for name in ("starts", "codes", "rows"):
            assert getattr(own, name).tolist() == getattr(other, name).tolist()
    for mine, theirs in zip(
        (*one.counts, *one.starts, *one.tables.values()), (*two.counts, *two.starts, *two.tables.values()), strict=True
    ):
        assert mine.tolist() == theirs.tolist()


@given(tables())
def test_a_file_holds_it(table: Table) -> None:
    pairs = count_pairs(table)
    same(Pairs.from_arrays(pairs.arrays(), table.schema), pairs)


TABLE = encoded([(0, 1, 2), (1, 0, 2), (1, 1, 0), (2, 1, 1), (0, 0, 3)], (3, 2, 4))
WHOLE = count_pairs(TABLE)
with pytest.MonkeyPatch.context() as of_few_buckets:
    of_few_buckets.setattr(counting, "BUCKETS", (2,))
    SPARSE = count_pairs(TABLE)


@settings(max_examples=300)
@given(st.data())
def test_damage_is_told(data: st.DataObject) -> None:
    """Whatever is changed, the file is refused, or reads as a summary that is sound in itself."""
    summary = data.draw(st.sampled_from([WHOLE, SPARSE]))
    arrays = {name: array.copy() for name, array in summary.arrays().items()}
    name = data.draw(st.sampled_from(sorted(name for name, array in arrays.items() if len(array))))
    array = arrays[name]
    how = data.draw(st.sampled_from(["change", "shorten", "lengthen", "missing", "type", "unpacked"]))
    number = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 6)
    if how == "change":
        place = data.draw(st.integers(0, len(array) - 1))
        array[place] = data.draw(st.integers(0, 255) if array.dtype == np.uint8 else number)
    elif how == "shorten":
        arrays[name] = array[: data.draw(st.integers(0, len(array) - 1))]
    elif how == "lengthen":
        arrays[name] = np.concatenate([array, array[:1]])
    elif how == "missing":
        del arrays[name]
    elif how == "type":
        arrays[name] = array.astype(np.float32)
    elif name not in ("pairs.sizes", "pairs.sparse"):  # any numbers, well packed
        heads, cells = arrays["pairs.sparse"].reshape(-1, 3), [table.numbers() for table in summary.sparse]
        count = {
            "pairs.counts": 9,
            "pairs.starts": sum(map(len, summary.starts)),
            "pairs.which": 3,
            "pairs.cells": sum(table.size for table in summary.tables.values()),
            "pairs.sparse_cells": sum(len(part[0]) for part in cells),
            "pairs.sparse_codes": int(heads[:, 2].sum()),
            "pairs.sparse_rows": sum(len(part[2]) for part in cells),
        }[name]
        arrays[name] = packed(np.array(data.draw(st.lists(number, min_size=count, max_size=count))))
    try:
        pairs = Pairs.from_arrays(arrays, TABLE.schema)
    except ModelFileError:
        return
    assert all(counts.min() >= 0 and counts.sum() == 5 for counts in pairs.counts)
    for (one, two), table in pairs.tables.items():
        assert table.sum(axis=1).tolist() == pairs.buckets[one].tolist()
        assert table.sum(axis=0).tolist() == pairs.buckets[two].tolist()
    for sparse in pairs.sparse:
        assert np.bincount(sparse.column_codes, sparse.rows, len(pairs.counts[sparse.column])).tolist() == (
            pairs.counts[sparse.column].tolist()
        )
        assert np.bincount(sparse.codes, sparse.rows, len(pairs.counts[sparse.other])).tolist() == (
            pairs.counts[sparse.other].tolist()
        )
        assert sparse.rows.min() > 0


def test_sparse_tables_are_chosen_by_what_they_tell() -> None:
    """Of a column with many values, the table of one that it decides is kept, and that of a random one is not."""
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 900, 20_000)
    rows = np.stack([wide, wide % 7, rng.integers(0, 700, 20_000)], axis=1)
    pairs = count_pairs(encoded(rows.tolist(), (901, 8, 701)))
    assert [(table.column, table.other) for table in pairs.sparse] == [(0, 1)]
    assert pairs.sparse[0].codes.tolist() == [code % 7 for code in sorted(set(wide.tolist()))]
    same(Pairs.from_arrays(pairs.arrays(), encoded(rows.tolist(), (901, 8, 701)).schema), pairs)


def test_another_table() -> None:
    for other in (encoded([(0, 1, 2)], (3, 2, 4)), encoded([(0, 1)] * 5, (3, 2)), encoded([(0, 1, 2)] * 5, (3, 2, 5))):
        with pytest.raises(ModelFileError, match="counts of columns"):
            Pairs.from_arrays(WHOLE.arrays(), other.schema)


def test_a_bomb_is_not_unpacked() -> None:
    bomb = np.frombuffer(zlib.compress(bytes(10**7)), dtype=np.uint8)
    for name in (name for name in WHOLE.arrays() if name not in ("pairs.sizes", "pairs.sparse")):
        with pytest.raises(ModelFileError):
            Pairs.from_arrays({**SPARSE.arrays(), name: bomb}, TABLE.schema)
