"""A schema finds its columns, and survives the file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.data.schema import Column, LeftOut, Schema
from countless.errors import ModelFileError

COLUMNS = st.builds(
    Column,
    name=st.text(),
    type=st.sampled_from(["INTEGER", "VARCHAR", "DECIMAL(10,2)", "TIMESTAMP WITH TIME ZONE"]),
    values=st.lists(st.text(), min_size=1).map(tuple),
    has_null=st.booleans(),
)
SCHEMAS = st.builds(
    Schema,
    rows=st.integers(1, 10**12),
    columns=st.lists(COLUMNS, min_size=1).map(tuple),
    left_out=st.lists(st.builds(LeftOut, st.text(), st.text(), st.text())).map(tuple),
)


@given(SCHEMAS)
def test_round_trip(schema: Schema) -> None:
    assert Schema.from_json(schema.to_json()) == schema


def test_names_are_found_exactly_first_and_then_without_case() -> None:
    schema = Schema(1, tuple(Column(name, "INTEGER", ("1",), False) for name in ("age", "Age", "City")))
    assert (schema.find("age"), schema.find("Age"), schema.find("AGE"), schema.find("city"), schema.find("x")) == (
        0,
        1,
        0,
        2,
        None,
    )


def good() -> dict[str, Any]:
    return Schema(1, (Column("a", "INTEGER", ("1",), False),)).to_json()


@pytest.mark.parametrize(
    ("path", "value", "phrase"),
    [
        ("rows", 0, "empty table"),
        ("rows", "many", "damaged"),
        ("columns", [], "empty table or column"),
        ("columns", 3, "damaged"),
        ("columns", [{"name": "a"}], "damaged"),
        (
            "columns",
            [{"name": "a", "type": "INTEGER", "values": [], "has_null": False, "radices": []}],
            "does not fit its positions|empty table or column",
        ),
        (
            "columns",
            [{"name": "a", "type": "INTEGER); DROP TABLE x; --", "values": ["1"], "has_null": False, "radices": [1]}],
            "unknown type",
        ),
        (
            "columns",
            [
                {
                    "name": "a",
                    "type": "DECIMAL(1,1)) FROM read_text('x'",
                    "values": ["1"],
                    "has_null": False,
                    "radices": [1],
                }
            ],
            "unknown type",
        ),
        *(
            (
                "columns",
                [{"name": "a", "type": "DATE", "values": ["1"], "has_null": False, "radices": radices}],
                "does not fit",
            )
            for radices in ([0], [2, 2], [-1, -1], [10**6, 10**6])
        ),
        ("left_out", [1], "damaged"),
    ],
)
def test_a_damaged_schema(path: str, value: Any, phrase: str) -> None:
    with pytest.raises(ModelFileError, match=phrase):
        Schema.from_json({**good(), path: value})
