"""Bounds from exact counts hold the truth, whatever the values are and however a range cuts a grid's cells."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.data.summaries.counting import count_pairs
from countless.engine.fusion.pair_bounds import Counts
from countless.options import EncodeOptions
from countless.query.compile import Compiler

NUMBERS = st.one_of(
    st.integers(-20, 20).map(float),
    st.floats(-1e4, 1e4, allow_nan=False, width=32),
    st.sampled_from([1e300, -1e300, 1e-300, 5.0, 5.0 + 1e-12, 5.0 - 1e-12, 2.0**53]),
)
FAR = [*map(float, range(27)), 100.0, 101.0, *(1e300 * (1 + place) for place in range(12))]  # 101 is no knot
RANGES = st.tuples(st.sampled_from(["<", "<=", ">", ">=", "="]), NUMBERS)


@st.composite
def dependent_tables(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """Two columns of which one nearly determines the other."""
    one = draw(st.lists(NUMBERS, min_size=3, max_size=60))
    noise = st.sampled_from([0.0, 0.0, 1.0, -0.25])
    return one, [number + draw(noise) for number in one]


def matches(number: float, item: tuple[str, float]) -> bool:
    operator, bound = item
    return {
        "<": number < bound,
        "<=": number <= bound,
        ">": number > bound,
        ">=": number >= bound,
        "=": number == bound,
    }[operator]


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(dependent_tables(), st.lists(RANGES, min_size=1, max_size=2), RANGES, st.sampled_from([3, 1000]))
@example((FAR, FAR), [(">=", 101.5)], (">", -1.0), 3)
@example(([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]), [("<", 2.0)], ("<", 1.526297926902771), 3)
@example((FAR, FAR), [(">=", 101.0), ("<", 101.5)], (">", -1.0), 3)
def test_bounds_hold_the_truth(
    rows: tuple[list[float], list[float]], first: Sequence[tuple[str, float]], second: tuple[str, float], most: int
) -> None:
    """With room for 3 values a column is a grid; with more it has a code for each."""
    x, y = rows
    source = Source.open(pd.DataFrame({"x": x, "y": y}))
    table = Table.encode(source, EncodeOptions(max_distinct=most))
    counts = Counts(count_pairs(table), table.schema.spans)
    where = " AND ".join([*(f"x {sign} {bound!r}::DOUBLE" for sign, bound in first), f"y {second[0]} {second[1]!r}"])
    question = Compiler(table.schema).compile(where)
    truth = sum(
        all(matches(one, item) for item in first) and matches(two, second) for one, two in zip(x, y, strict=True)
    )
    assert question.certain
    known = [counts.of_box(box) for box in question.region.boxes if box.filters]
    free = len(question.region.boxes) - len(known)  # every row
    assert sum(each.least for each in known) * len(x) - 1e-6 <= truth - free * len(x)
    assert truth - free * len(x) <= sum(each.most for each in known) * len(x) + 1e-6
