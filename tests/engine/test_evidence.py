"""Counting of coded rows: the compiled loop agrees with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.engine.columns.kernel import SWITCH_OFF
from countless.engine.evidence import CodedRows, CodeSet
from countless.region import Box, Filter, Region, ValueSet

SIZES = (1, 2, 5, 200, 256, 257, 3_000, 70_000)  # of columns: codes of one, two and four bytes


def rows_of(rng: np.random.Generator, count: int, sizes: list[int]) -> CodedRows:
    codes = [rng.integers(0, size, count).astype(np.min_scalar_type(size - 1)) for size in sizes]
    return CodedRows(codes, sizes, [(index,) for index in range(len(sizes))])


def random_set(rng: np.random.Generator, column: int, size: int) -> CodeSet:
    """Codes at random, or some runs of neighbours."""
    allowed = rng.random(size) < rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    if rng.random() < 0.6:
        allowed[:] = False
        for _ in range(int(rng.integers(0, 6))):
            low = int(rng.integers(0, size))
            allowed[low : low + 1 + int(rng.integers(0, size))] = True
    return column, allowed


@given(st.integers(0, 2**32), st.lists(st.sampled_from(SIZES), min_size=1, max_size=6), st.integers(1, 5_000))
def test_compiled_loop_agrees(seed: int, sizes: list[int], count: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rows_of(rng, count, sizes)
    sets = [random_set(rng, column, size) for column, size in enumerate(sizes)]
    expected = rows.marks_by_numpy(sets)
    assert rows.marks(sets).tolist() == expected.tolist()
    assert rows.count(sets) == np.count_nonzero(expected)


@pytest.mark.parametrize("some", [0, 3, 4_000])
def test_some_rows_are_marked_as_all_are(some: int) -> None:
    rng = np.random.default_rng(some)
    rows = rows_of(rng, 5_000, [5, 300])
    box = Box(tuple(Filter((column,), ValueSet(rng.random(size) < 0.5)) for column, size in enumerate((5, 300))))
    chosen = rng.integers(0, 5_000, some)
    assert rows.mark_some(box, chosen).tolist() == rows.mark_region(Region((box,)))[chosen].tolist()


def test_no_filter_keeps_every_row() -> None:
    assert rows_of(np.random.default_rng(0), 5_000, [3]).count([]) == 5_000


def test_without_the_compiled_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH_OFF, "1")
    rows = CodedRows([np.array([0, 1, 1], dtype=np.uint8)], [2], [(0,)])
    assert rows.count([(0, np.array([False, True]))]) == 2


def test_codes_that_a_column_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="code that its column does not have"):
        CodedRows([np.array([0, 3], dtype=np.uint8)], [2], [(0,)])
    rows = rows_of(np.random.default_rng(0), 10, [4])
    with pytest.raises(ValueError, match="has 4 codes"):
        rows.count([(0, np.ones(3, dtype=bool))])
