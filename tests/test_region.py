"""A set of codes over digits accepts exactly those codes, and lets go as soon as it can."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from countless.data.columns.digits import to_digits
from countless.region import FREE, START, DigitSet, ValueSet
from countless.workload import accepted

WEIGHTS = st.sampled_from([0.0, 0.25, 1.0])


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple), st.data())
def test_a_digit_set_gives_each_code_its_weight(radices: tuple[int, ...], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, math.prod(radices)))
    weights = np.array(data.draw(st.lists(WEIGHTS, min_size=size, max_size=size)))
    digits = to_digits(np.arange(size), radices)
    assert accepted(digits, DigitSet(weights, radices)).tolist() == weights.tolist()


@given(st.integers(0, 24), st.integers(0, 24))
def test_a_range_asks_for_a_second_digit_only_at_its_ends(one: int, two: int) -> None:
    low, high = sorted((one, two))
    codes = np.arange(25)
    constraint = DigitSet((codes >= low) & (codes <= high), (5, 5))
    if constraint.start == FREE:
        assert (low, high) == (0, 24)
        return
    leading = constraint.transitions[0]
    allowed = np.flatnonzero(leading.weights[START])
    assert allowed.tolist() == list(range(low // 5, high // 5 + 1))
    assert {digit for digit in allowed if leading.next[START, digit] != FREE} <= {low // 5, high // 5}


def test_a_full_digit_set_is_free_even_if_the_last_digits_make_no_code() -> None:
    assert DigitSet(np.ones(23, dtype=bool), (5, 5)).start == FREE
    some = DigitSet(np.arange(23) >= 5, (5, 5))
    assert some.transitions[0].next[START, 4] == FREE


def test_an_empty_digit_set_has_a_state_to_start_in_and_no_weight() -> None:
    none = DigitSet(np.zeros(23), (5, 5))
    assert none.start == START
    assert not none.transitions[0].weights[START].any()


def test_a_free_particle_reads_only_mask() -> None:
    for transitions in DigitSet(np.arange(25) >= 12, (5, 5)).transitions:
        assert transitions.weights[FREE].tolist() == [0.0] * 5 + [1.0]
        assert transitions.next[FREE, 5] == FREE
        assert not transitions.weights[START:, 5].any()


def test_a_value_set_is_free_only_when_it_allows_everything() -> None:
    assert ValueSet(np.ones(3)).start == FREE
    assert ValueSet(np.array([1.0, 0.5, 1.0])).start == START
    assert ValueSet(np.array([True, False])).transitions[0].next[START].tolist() == [FREE, FREE, FREE]
