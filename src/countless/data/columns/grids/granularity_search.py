"""The search for the granularity of a column's values, in DuckDB."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from countless.data.columns.grids.granularity import Granularity
from countless.data.columns.types import DECIMAL, FLOATS, INTEGERS, decimal_digits
from countless.data.sources.source import Source

OBEY = 0.999  # of the rows: if this many keep to a step, it is the column's
MOST_DECIMALS = 9  # of a floating-point number that is meant as a decimal one
EXACT_FLOAT = 2**53  # up to here a DOUBLE distinguishes whole numbers
SECOND, MINUTE, HOUR = 10**6, 60 * 10**6, 3600 * 10**6  # in microseconds
# Times keep to parts of a day, so that it does not matter from which day they are counted.
PARTS_OF_A_DAY = (
    *(10**power for power in range(6)),
    *(number * SECOND for number in (1, 2, 5, 10, 15, 20, 30)),
    *(number * MINUTE for number in (1, 2, 3, 5, 10, 15, 20, 30)),
    *(number * HOUR for number in (1, 2, 3, 4, 6, 8, 12, 24)),
)
# Numbers keep to round ones; seconds and milliseconds since a moment to minutes, hours and days.
ROUND_NUMBERS = (
    *(first * 10**power for power in range(10) for first in (1, 2, 5, 25)),
    *(number * unit for number in (30, 60, 300, 900, 1800, 3600, 86_400) for unit in (1, 1000)),
)


def read_granularity(source: Source, values: str, kind: str) -> Granularity | None:
    """The coarsest step that nearly all rows keep to; ``values`` lists values of type ``kind`` and the rows ``n``."""
    if kind in FLOATS:
        decimals = _decimals(source, values, kind)
        if decimals is None:
            return None
        scaled = f"round(CAST(value AS DOUBLE) * 1e{decimals})"
        whole = f"CASE WHEN abs({scaled}) < {EXACT_FLOAT} THEN CAST({scaled} AS BIGINT) END"
        return _multiples(source, values, whole, Fraction(1, 10**decimals), ROUND_NUMBERS)
    if kind in INTEGERS:
        return _multiples(source, values, "TRY_CAST(value AS BIGINT)", Fraction(1), ROUND_NUMBERS)
    if DECIMAL.fullmatch(kind):
        digits = decimal_digits(kind)[1]
        whole = "TRY_CAST(replace(CAST(value AS VARCHAR), '.', '') AS BIGINT)"
        return _multiples(source, values, whole, Fraction(1, 10**digits), ROUND_NUMBERS)
    if kind == "TIME" or kind.startswith("TIMESTAMP"):
        return _multiples(source, values, "epoch_us(value)", Fraction(1000), PARTS_OF_A_DAY)
    return None  # dates are whole days, and strings have no steps


def _decimals(source: Source, values: str, kind: str) -> int | None:
    """How many decimals nearly all floating-point numbers have."""
    places = range(MOST_DECIMALS + 1)
    tests = (f"CAST(round(CAST(value AS DOUBLE), {place}) AS {kind}) = value" for place in places)
    sums = ", ".join(f"sum(n) FILTER ({test})" for test in tests)
    ((rows, *obeying),) = source.rows(f"SELECT sum(n), {sums} FROM {values}")
    return next((place for place in places if (obeying[place] or 0) >= OBEY * float(rows or 1)), None)


def _multiples(source: Source, values: str, whole: str, unit: Fraction, steps: tuple[int, ...]) -> Granularity | None:
    """The greatest of ``steps`` that most values keep to: ``whole`` is SQL for one as a whole number of units."""
    found = source.rows(f"SELECT {whole}, n FROM {values}")
    numbers = np.array([number for number, _ in found if number is not None], dtype=np.int64)
    if not len(numbers):
        return None
    rows = np.array([n for number, n in found if number is not None], dtype=np.float64)
    least = OBEY * sum(float(n) for _, n in found)
    # Any value that nearly all others agree with will do as the first; the median is none of the odd ones at the ends.
    anchor = int(np.sort(numbers)[len(numbers) // 2])
    kept = [step for step in steps if rows[numbers % step == anchor % step].sum() >= least]
    return Granularity(max(kept) * unit, anchor % max(kept) * unit) if kept else None
