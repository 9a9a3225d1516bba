"""A set of codes over digits accepts exactly those codes, and lets go as soon as it can."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from countless.data.digits import to_digits
from countless.region import DigitSet, ValueSet
from countless.workload import accepted


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple), st.data())
def test_a_digit_set_accepts_its_codes(radices: tuple[int, ...], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, math.prod(radices)))
    codes = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    digits = to_digits(np.arange(size), radices)
    assert accepted(digits, DigitSet(codes, radices)).tolist() == codes.tolist()


@given(st.integers(0, 24), st.integers(0, 24))
def test_a_range_asks_for_a_second_digit_only_at_its_ends(one: int, two: int) -> None:
    low, high = sorted((one, two))
    codes = np.arange(25)
    constraint = DigitSet((codes >= low) & (codes <= high), (5, 5))
    if constraint.free(constraint.start()):
        assert (low, high) == (0, 24)
        return
    allowed = np.flatnonzero(constraint.weights(constraint.start()))
    assert allowed.tolist() == list(range(low // 5, high // 5 + 1))
    bound = [digit for digit in allowed if not constraint.free(int(constraint.next(0, np.array([digit]))[0]))]
    assert set(bound) <= {low // 5, high // 5}


def test_a_full_digit_set_is_free_even_if_the_last_digits_make_no_code() -> None:
    constraint = DigitSet(np.ones(23, dtype=bool), (5, 5))
    assert constraint.free(constraint.start())
    assert constraint.free(int(constraint.next(0, np.array([4]))[0]))


def test_a_value_set_is_free_only_when_it_allows_everything() -> None:
    assert ValueSet(np.ones(3)).free(0)
    assert not ValueSet(np.array([1.0, 0.5, 1.0])).free(0)
    assert ValueSet(np.array([1.0, 0.0, 1.0])).free(1)
