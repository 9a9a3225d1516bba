"""Rows as bits: they are counted as codes are, from the second use of every filter on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.arrays import BoolArray
from countless.engine.columns.kernel import SWITCH_OFF, compiled
from countless.engine.row_sets import (
    MOST_FILTERS,
    RowSets,
    bits_of,
    count_by_numpy,
    first_two_by_numpy,
    pairs_of_rows,
)
from countless.region import Filter, ValueSet


def filters_on(count: int) -> list[Filter]:
    return [Filter((column,), ValueSet(np.array([True, False]))) for column in range(count)]


def row_sets_of(marks: Sequence[BoolArray]) -> RowSets:
    return RowSets(lambda item: marks[item.positions[0]])


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 3_000))
def test_bits_are_counted_as_marks(seed: int, count: int, rows: int) -> None:
    marks = [np.random.default_rng([seed, index]).random(rows) < 0.8 for index in range(count)]
    expected = np.count_nonzero(np.logical_and.reduce(marks))
    assert count_by_numpy(list(map(bits_of, marks))) == expected
    filters, row_sets = filters_on(count), row_sets_of(marks)
    assert row_sets.count(filters) is None
    assert row_sets.count(filters) == expected == row_sets.count(filters)


def test_without_the_compiled_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH_OFF, "1")
    marks = [np.arange(100) % 2 == 0, np.arange(100) < 30]
    filters, row_sets = filters_on(2), row_sets_of(marks)
    row_sets.count(filters)
    assert row_sets.count(filters) == 15


def test_one_new_filter_is_not_counted() -> None:
    filters, row_sets = filters_on(3), row_sets_of([np.ones(5, dtype=np.bool_)] * 3)
    row_sets.count(filters[:2])
    assert row_sets.count(filters) is None
    assert row_sets.count(filters) == 5
    assert row_sets.count([]) is None


def test_more_filters_than_the_compiled_module_takes() -> None:
    filters = filters_on(MOST_FILTERS + 1)
    row_sets = row_sets_of([np.ones(5, dtype=np.bool_)] * len(filters))
    row_sets.count(filters)
    assert row_sets.count(filters) is None


def test_other_values_seen_are_another_set_of_rows() -> None:
    constraint = ValueSet(np.array([True, False]))
    row_sets = row_sets_of([])
    one, two = (Filter((0,), constraint, np.array([seen])) for seen in (True, False))
    first = row_sets.of(one)
    assert row_sets.of(one) is first
    assert row_sets.of(two) is not first


@pytest.mark.skipif(compiled() is None, reason="the extension was not built")
def test_the_compiled_module_refuses_other_arrays() -> None:
    module = compiled()
    assert module is not None
    words = np.zeros(3, dtype=np.uint64)
    for sets in ([], [words] * (MOST_FILTERS + 1), [words, words[:2]], [words.astype(np.float64)], (words,)):
        with pytest.raises(ValueError, match="expected"):
            module.common_rows(sets)


@given(st.integers(0, 2**32), st.sampled_from([1, 3, 256, 300, 70_000]), st.integers(1, 2_000))
def test_the_first_two_rows_of_each_code(seed: int, size: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, size, rows).astype(np.min_scalar_type(size - 1))
    order = rng.permutation(rows)
    of_code: dict[int, list[int]] = {}
    for row in order.tolist():
        of_code.setdefault(int(codes[row]), []).append(row)
    twice = sorted(code for code, own in of_code.items() if len(own) > 1)
    expected = [of_code[code][0] for code in twice] + [of_code[code][1] for code in twice]
    assert pairs_of_rows(codes, size, order).tolist() == expected
    first_two = first_two_by_numpy(codes, size, order)
    assert first_two[:, first_two[1] >= 0].ravel().tolist() == expected


@pytest.mark.skipif(compiled() is None, reason="the extension was not built")
def test_rows_and_codes_out_of_range_are_refused() -> None:
    module = compiled()
    assert module is not None
    out = np.empty((2, 2), dtype=np.int64)
    for codes, order in (([0, 2], [0, 1]), ([0, 1], [0, 2]), ([0, 1], [-1, 0])):
        with pytest.raises(ValueError, match="out of range"):
            module.first_two(np.array(codes, dtype=np.uint8), np.array(order), out)
    with pytest.raises(ValueError, match="expected"):
        module.first_two(np.zeros(3, dtype=np.uint8), np.arange(2), out)
