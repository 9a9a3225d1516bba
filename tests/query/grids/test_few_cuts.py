"""A line that is cut at a few places: without arrays of all cells it is what it is with them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from countless.data.columns.grids.grid import Grid
from countless.data.columns.schema import Column
from countless.query.grids.few_cuts import FewAtoms
from countless.query.grids.line import Atoms, Line
from countless.query.grids.ranges import Cut, Ranges


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """Cells of one knot or several, of whole numbers or not."""
    knots = draw(st.lists(st.integers(-20, 60), min_size=1, max_size=14, unique=True).map(sorted))
    starts, shares, distinct = [0], [0.0], [1]
    for index in range(1, len(knots)):
        if draw(st.booleans()):  # a new cell
            starts.append(index)
            shares.append(0.0)
            distinct.append(1)
        else:
            shares.append(1.0)
            shares[-2] = 0.5 if index - 1 > starts[-1] else 0.0
            distinct[-1] = max(distinct[-1] + 1, draw(st.sampled_from([0, 10**10])))
    kind = draw(st.sampled_from(["BIGINT", "DOUBLE"]))
    values = tuple(map(str, knots if kind == "BIGINT" else map(float, knots)))
    grid = Grid(tuple(starts), tuple(shares), tuple(distinct))
    return Line(Column("a", kind, values, draw(st.booleans()), (len(starts) + 1,), grid), grid)


cuts = st.tuples(st.integers(-22, 62), st.integers(0, 1))
ends = st.one_of(st.none(), cuts)


@given(lines(), st.lists(st.tuples(ends, ends), min_size=0, max_size=3), st.booleans())
def test_they_agree(line: Line, pieces: list[tuple[Cut | None, Cut | None]], null: bool) -> None:
    ranges = Ranges(tuple(pieces))
    few, twin = FewAtoms(line, ranges.cuts()), Atoms(line, ranges.cuts(), False)
    chosen = [own and inside for own, inside in zip(few.can_hold_value, few.within(ranges), strict=True)]
    expected = twin.within(ranges).true
    alive = [is_chosen for is_chosen, kept in zip(chosen, few.can_hold_value, strict=True) if kept]
    assert alive == expected[: len(alive)].tolist()
    assert len(expected) == len(alive) + line.has_null
    if line.has_null:
        expected[-1] = null
    assert np.array_equal(few.weights(chosen, null), twin.weights(expected))
