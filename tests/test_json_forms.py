"""Forms find what does not fit, and say where it stands."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.errors import ModelFileError
from countless.json_forms import (
    CALIBRATION,
    MANIFEST,
    REPORT,
    SCHEMA,
    Boolean,
    Form,
    ListOf,
    MappingOf,
    Number,
    OrNull,
    Pair,
    Record,
    String,
    Whole,
    check_section,
)

FLOATS = st.floats(allow_nan=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        (Boolean(), [True, False], [1, 0, 2, "true", None, 0.5, []]),
        (Whole(1, 5), [1, 5], [0, 6, 1.0, True, "1", None, 10**400]),
        (Number(0, 1), [0, 1, 0.5], [-1e-9, 2, math.nan, math.inf, "0", True, 10**400]),
        (Number(finite=False), [math.nan, math.inf, 0.5], ["nan", None]),
        (String(), ["", "x\n"], [1, None, ["x"]]),
        (String("a|b"), ["a", "b"], ["c", "ab", "a\n"]),
        (OrNull(Whole()), [None, 3], ["x", -1]),
        (ListOf(Whole(), 1, 2), [[1], [1, 2]], [[], [1, 2, 3], ["x"], {}, "1", None]),
        (ListOf(String()), [[], ["a", ""]], [["a", 1], [None]]),
        (Pair(String(), Whole()), [["a", 1]], [["a"], [1, "a"], ["a", 1, 1], "a1"]),
        (MappingOf(Whole()), [{}, {"a": 1}], [{"a": "x"}, [], None]),
        (Record({"a": Whole()}, {"b": String()}), [{"a": 1}, {"a": 1, "b": "", "c": [[]]}], [{}, {"a": 1, "b": 1}, []]),
    ],
)
def test_forms(form: Form, good: list[Any], bad: list[Any]) -> None:
    assert [form.problem(value, "it") for value in good] == [None] * len(good)
    assert all(form.problem(value, "it") is not None for value in bad)


@pytest.mark.parametrize("form", [SCHEMA, MANIFEST, CALIBRATION, REPORT])
@given(value=JSON)
def test_any_json_is_judged_in_one_short_line(form: Form, value: Any) -> None:
    message = form.problem(value, "it")
    assert message is None or ("\n" not in message and len(message) < 400)


def test_the_place_is_told() -> None:
    report = {"text": {"columns": ["url"], "seconds": [1, 2]}}
    with pytest.raises(ModelFileError, match=r"report\.json\.text\.seconds is a list of 2, not a number"):
        check_section("report.json", REPORT, report)
