"""A spec checks itself, and survives the file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.errors import ModelFileError
from countless.spec import ModelSpec, TextSpec


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


GOOD = {"kind": "resmade", "sizes": [2, 2], "hidden": 1, "blocks": 1, "embedding": 1, "orders": [], "groups": []}


@pytest.mark.parametrize(
    ("data", "phrase"),
    [
        ({**GOOD, "groups": [1]}, "share out"),
        ({**GOOD, "units": [2]}, "share out"),
        ({**GOOD, "units": [1, 0]}, "share out"),
        ({**GOOD, "sizes": [2, 2, 2], "units": [2, -1]}, "fewer than 0"),
        ({**GOOD, "groups": [3, -1]}, "share out"),
        ({**GOOD, "groups": [2], "orders": [[1, 0]]}, "in their own order"),
        ({}, "damaged"),
        ({"kind": "transformer"}, "damaged"),
        (
            {"kind": "resmade", "sizes": [], "hidden": 1, "blocks": 1, "embedding": 1, "orders": [], "groups": []},
            "at least one position",
        ),
        (
            {"kind": "resmade", "sizes": [2], "hidden": 0, "blocks": 1, "embedding": 1, "orders": [], "groups": []},
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


TEXT = TextSpec(characters=5, length=9, context=(3, 1, 700), context_width=8, gaps=True)


def test_the_spec_of_a_text_survives_the_file() -> None:
    for spec in (TEXT, TextSpec(characters=0, length=1)):
        assert TextSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_older_files_have_no_context() -> None:
    older = {**TextSpec(characters=5, length=9).to_json(), "context": 0}
    del older["context_width"], older["gaps"]
    assert TextSpec.from_json(older) == TextSpec(characters=5, length=9)


@pytest.mark.parametrize(
    "changed",
    [{"context": [0]}, {"context": [3, -1]}, {"context": 4}, {"context": ["x"]}, {"context": None, "context_width": 0}],
)
def test_a_damaged_context(changed: Any) -> None:
    with pytest.raises(ModelFileError, match=r"damaged|at least 1"):
        TextSpec.from_json({**TEXT.to_json(), **changed})
