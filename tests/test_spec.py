"""A spec checks itself, and survives the file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.errors import ModelFileError
from countless.spec import ModelSpec, SharedTextSpec, TextSpec


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 40), st.randoms())
def test_round_trip(sizes: list[int], hidden: int, random: Any) -> None:
    order = list(range(len(sizes)))
    random.shuffle(order)
    spec = ModelSpec(tuple(sizes), hidden=hidden, orders=(tuple(order),))
    assert ModelSpec.from_json(spec.to_json()) == spec


@given(st.integers(1, 50), st.integers(1, 300))
def test_a_position_sees_exactly_the_units_below_its_rank(positions: int, hidden: int) -> None:
    spec = ModelSpec((2,) * positions, hidden=hidden)
    for rank, cut in enumerate(spec.cuts):
        assert np.all(spec.degrees[:cut] < rank)
        assert np.all(spec.degrees[cut:] >= rank)


def test_units_can_be_shared_out_unevenly() -> None:
    spec = ModelSpec((2, 2, 2, 2), hidden=5, units=(3, 0, 2))
    assert spec.degrees.tolist() == [0, 0, 0, 2, 2]
    assert spec.cuts.tolist() == [0, 3, 3, 5]
    assert ModelSpec.from_json(spec.to_json()) == spec


GOOD = {"kind": "resmade", "sizes": [2, 2], "hidden": 1, "blocks": 1, "embedding": 1, "orders": [[0, 1]], "groups": []}


@pytest.mark.parametrize(
    ("data", "phrase"),
    [
        ({**GOOD, "groups": [1]}, "share out"),
        ({**GOOD, "units": [2]}, "share out"),
        ({**GOOD, "units": [1, 0]}, "share out"),
        ({**GOOD, "sizes": [2, 2, 2], "orders": [[0, 1, 2]], "units": [2, -1]}, "units\\[\\] is -1"),
        ({**GOOD, "groups": [3, -1]}, "groups\\[\\] is -1"),
        ({**GOOD, "groups": [2], "orders": [[1, 0]]}, "in their own order"),
        ({}, "damaged"),
        ({"kind": "transformer"}, "damaged"),
        (
            {"kind": "resmade", "sizes": [], "hidden": 1, "blocks": 1, "embedding": 1, "orders": [[]], "groups": []},
            "at least one position",
        ),
        (
            {"kind": "resmade", "sizes": [2], "hidden": 0, "blocks": 1, "embedding": 1, "orders": [[0]], "groups": []},
            "at least 1",
        ),
        (
            {"kind": "resmade", "sizes": [2], "hidden": 1, "blocks": 1, "embedding": 1, "orders": [[1]], "groups": []},
            "permutation",
        ),
        (
            {"kind": "resmade", "sizes": "x", "hidden": 1, "blocks": 1, "embedding": 1, "orders": [], "groups": []},
            "damaged",
        ),
        (None, "damaged"),
    ],
)
def test_a_damaged_description(data: Any, phrase: str) -> None:
    with pytest.raises(ModelFileError, match=phrase):
        ModelSpec.from_json(data)


TEXT = SharedTextSpec.of([("abc", 9), ("cx", 4)], context=(3, 1, 700), context_width=8, gaps=True)


def test_the_spec_of_a_text_survives_the_file() -> None:
    for spec in (TEXT, SharedTextSpec.of([("", 1)])):
        assert SharedTextSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_columns_share_the_numbers_of_their_characters() -> None:
    one, two = TEXT.column(0), TEXT.column(1)
    assert (one.characters, one.length, two.characters, two.length) == (3, 9, 2, 4)
    assert one.hash_ids == (0, 1, 2, 4, 5, 6, 7, 8)
    assert two.hash_ids == (2, 3, 4, 5, 6, 7, 8)
    assert list(TEXT.union) == list(range(9))


@pytest.mark.parametrize(
    "changed",
    [
        {"context": [0]},
        {"context": [3, -1]},
        {"context": 4},
        {"context": ["x"]},
        {"context": None, "context_width": 0},
        {"alphabets": [[0, 1]]},
        {"alphabets": [], "lengths": []},
        {"alphabets": [[1, 0], [2]]},
        {"alphabets": [[0, 0], [2]]},
        {"alphabets": [[-1], [2]]},
        {"alphabets": [["x"], [2]]},
        {"lengths": [9, 0]},
        {"kind": "resmade"},
    ],
)
def test_a_damaged_spec_of_a_text(changed: Any) -> None:
    with pytest.raises(ModelFileError, match=r"damaged|at least 1|ascending|unknown kind"):
        SharedTextSpec.from_json({**TEXT.to_json(), **changed})


@pytest.mark.parametrize("hash_ids", [(0, 1), tuple(range(-1, 9)), (*range(9), 1 << 31)])
def test_every_symbol_has_a_number_in_the_hash(hash_ids: tuple[int, ...]) -> None:
    with pytest.raises(ModelFileError, match="every symbol, and MASK, has one number"):
        TextSpec(characters=5, length=9, hash_ids=hash_ids)
