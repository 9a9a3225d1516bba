"""A schema finds its columns, and survives the file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.data.columns.schema import Column, LeftOut, Schema
from countless.errors import ModelFileError

VALUES = {
    "INTEGER": st.integers(-(2**31), 2**31 - 1).map(str),
    "VARCHAR": st.text(),
    "DECIMAL(10,2)": st.decimals(-99_999_999, 99_999_999, places=2).map(str),
    "TIMESTAMP WITH TIME ZONE": st.datetimes().map(lambda time: f"{time:%Y-%m-%d %H:%M:%S}+00".rjust(22, "0")),
}
COLUMNS = st.sampled_from(sorted(VALUES)).flatmap(
    lambda kind: st.builds(
        Column,
        name=st.text(),
        type=st.just(kind),
        values=st.lists(VALUES[kind], min_size=1).map(tuple),
        has_null=st.booleans(),
    )
)
SCHEMAS = st.builds(
    Schema,
    rows=st.integers(1, 10**12),
    columns=st.lists(COLUMNS, min_size=1, unique_by=lambda column: column.name).map(tuple),
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
        ("rows", 0, "rows is 0"),
        ("rows", 10**400, "rows is a huge number"),
        ("rows", "many", "damaged"),
        ("columns", [], "empty table or column"),
        ("columns", 3, "damaged"),
        ("columns", [{"name": "a"}], "damaged"),
        (
            "columns",
            [{"name": "a", "type": "INTEGER", "values": [], "has_null": False, "radices": []}],
            "radices is a list of 0",
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
                "does not fit|is 0|is -1",
            )
            for radices in ([0], [2, 2], [-1, -1], [10**6, 10**6])
        ),
        *(
            (
                "columns",
                [{"name": "a", "type": kind, "values": [value], "has_null": False, "radices": [1]}],
                phrase,
            )
            for kind, value, phrase in (
                ("INTEGER", "1e9", "not of type INTEGER"),
                ("DECIMAL(4,2)", "x", "not of type DECIMAL"),
                ("DATE", "2021-02-29", "not of type DATE"),
                ("BOOLEAN", "yes", "not of type BOOLEAN"),
                ("DECIMAL(99,2)", "1.00", "unknown type"),
                ("INTEGER", 1, "is 1, not a string"),
            )
        ),
        (
            "columns",
            [{"name": "a", "type": "INTEGER", "values": ["1"], "has_null": False, "radices": [1]}] * 2,
            "two columns of one name",
        ),
        ("left_out", [1], "damaged"),
    ],
)
def test_a_damaged_schema(path: str, value: Any, phrase: str) -> None:
    with pytest.raises(ModelFileError, match=phrase):
        Schema.from_json({**good(), path: value})
