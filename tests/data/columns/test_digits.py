"""Digits are the code, and keep its order."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from countless.data.columns.digits import DIGITS_FROM, WIDEST_DIGIT, from_digits, radices_of, to_digits


@given(st.integers(1, 3_000_000))
def test_radices_hold_every_code_and_little_more(size: int) -> None:
    radices = radices_of(size)
    assert size <= math.prod(radices) <= 2 * size
    if size <= DIGITS_FROM:
        assert radices == (size,)
    else:
        assert len(radices) <= 3
        assert max(radices) <= WIDEST_DIGIT


@given(st.integers(1, 3_000_000), st.data())
def test_round_trip_in_order(size: int, data: st.DataObject) -> None:
    codes = np.array(sorted(data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=50))))
    radices = radices_of(size)
    digits = to_digits(codes, radices)
    assert from_digits(digits, radices).tolist() == codes.tolist()
    assert all(digit.max() < radix for digit, radix in zip(digits, radices, strict=True))
    rows = list(zip(*(digit.tolist() for digit in digits), strict=True))
    assert rows == sorted(rows)
