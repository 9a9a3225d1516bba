"""Front coding: any list of strings comes back, and bytes that it cannot have written are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.data.front_coding import front_coded, front_decoded, front_decoded_by_python

WORDS = st.text(st.sampled_from("ab\0é漢\U0001f600"), max_size=6)


@given(st.lists(st.one_of(WORDS, st.builds(lambda text: "x" * 254 + text, WORDS))))
def test_strings_come_back(texts: list[str]) -> None:
    coded = front_coded(texts)
    assert front_decoded(*coded) == front_decoded_by_python(*coded) == tuple(texts)


@given(st.binary(max_size=12), st.lists(st.integers(0, 5), max_size=4))
def test_any_bytes_are_strings_to_both_or_to_none(rests: bytes, shared: list[int]) -> None:
    coded = np.frombuffer(rests.replace(b"\0", b"\xff"), dtype=np.uint8), np.array(shared, dtype=np.uint8)
    try:
        expected: object = front_decoded_by_python(*coded)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - any: the caller tells it in its own words
            front_decoded(*coded)
    else:
        assert front_decoded(*coded) == expected


def test_sorted_strings_take_few_bytes() -> None:
    rests, shared = front_coded([f"/usr/share/doc/{number:04}" for number in range(1_000)])
    assert shared.tolist()[1:4] == [18, 18, 18]
    assert len(rests) < 2_200


@pytest.mark.parametrize(
    ("rests", "shared"),
    [
        (b"a\xffb", [0, 0]),  # no end
        (b"a\xff", [0, 0]),
        (b"a\xff\xff", [0, 2]),  # more than there is
        (b"a\xff", [1]),
        (b"\x80\xff", [0]),
        ("é".encode()[:1] + b"\xff", [0]),
    ],
)
def test_other_bytes_are_refused(rests: bytes, shared: list[int]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any: the caller tells it in its own words
        front_decoded(np.frombuffer(rests, dtype=np.uint8), np.array(shared, dtype=np.uint8))


def test_other_types_are_refused() -> None:
    rests, shared = front_coded(["a"])
    for one, two in ((rests, shared.astype(np.int64)), (rests.reshape(1, -1), shared), (rests.astype(bool), shared)):
        with pytest.raises(ValueError, match="no bytes"):
            front_decoded(one, two)
