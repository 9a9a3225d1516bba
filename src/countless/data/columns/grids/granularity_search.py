"""Search for the granularity of a column's values, in DuckDB."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from countless.data.columns.grids.granularity import Granularity
from countless.data.columns.types import DECIMAL, FLOATS, INTEGERS, decimal_digits
from countless.data.sources.source import Source

LEAST_SHARE = 0.999  # of the rows must have multiples of a step, so that it is the column's
MOST_DECIMALS = 9  # of a column of floating-point numbers that hold decimal ones
EXACT_FLOAT = 2**53  # below this a DOUBLE holds every whole number
SECOND, MINUTE, HOUR = 10**6, 60 * 10**6, 3600 * 10**6  # in microseconds
# Steps of times divide a day, so that it does not matter from which day they are counted.
TIME_STEPS = (
    *(10**power for power in range(6)),
    *(number * SECOND for number in (1, 2, 5, 10, 15, 20, 30)),
    *(number * MINUTE for number in (1, 2, 3, 5, 10, 15, 20, 30)),
    *(number * HOUR for number in (1, 2, 3, 4, 6, 8, 12, 24)),
)
# Steps of numbers are round; seconds and milliseconds since a moment have minutes, hours and days.
NUMBER_STEPS = (
    *(first * 10**power for power in range(10) for first in (1, 2, 5, 25)),
    *(number * unit for number in (30, 60, 300, 900, 1800, 3600, 86_400) for unit in (1, 1000)),
)


def read_granularity(source: Source, values: str, kind: str) -> Granularity | None:
    """The coarsest granularity of nearly all rows; ``values`` is a table of the values and the rows ``n`` of each."""
    if kind in FLOATS:
        decimals = _decimals(source, values, kind)
        if decimals is None:
            return None
        scaled = f"round(CAST(value AS DOUBLE) * 1e{decimals})"
        whole = f"CASE WHEN abs({scaled}) < {EXACT_FLOAT} THEN CAST({scaled} AS BIGINT) END"
        return _multiples(source, values, whole, Fraction(1, 10**decimals), NUMBER_STEPS)
    if kind in INTEGERS:
        return _multiples(source, values, "TRY_CAST(value AS BIGINT)", Fraction(1), NUMBER_STEPS)
    if DECIMAL.fullmatch(kind):
        scale = decimal_digits(kind)[1]
        whole = "TRY_CAST(replace(CAST(value AS VARCHAR), '.', '') AS BIGINT)"
        return _multiples(source, values, whole, Fraction(1, 10**scale), NUMBER_STEPS)
    if kind == "TIME" or kind.startswith("TIMESTAMP"):
        return _multiples(source, values, "epoch_us(value)", Fraction(1000), TIME_STEPS)
    return None  # dates are whole days, and strings have no steps


def _decimals(source: Source, values: str, kind: str) -> int | None:
    """The least number of decimals that nearly all floating-point numbers have at most."""
    candidates = range(MOST_DECIMALS + 1)
    tests = (f"CAST(round(CAST(value AS DOUBLE), {decimals}) AS {kind}) = value" for decimals in candidates)
    sums = ", ".join(f"sum(n) FILTER ({test})" for test in tests)
    ((rows, *passing),) = source.rows(f"SELECT sum(n), {sums} FROM {values}")
    least = LEAST_SHARE * float(rows or 1)
    return next((decimals for decimals in candidates if (passing[decimals] or 0) >= least), None)


def _multiples(source: Source, values: str, whole: str, unit: Fraction, steps: tuple[int, ...]) -> Granularity | None:
    """The greatest of ``steps`` of nearly all rows; ``whole`` is SQL for a value as a whole number of units."""
    counted = source.rows(f"SELECT {whole}, n FROM {values}")
    numbers = np.array([number for number, _ in counted if number is not None], dtype=np.int64)
    if not len(numbers):
        return None
    rows = np.array([n for number, n in counted if number is not None], dtype=np.float64)
    least = LEAST_SHARE * sum(float(n) for _, n in counted)
    # The offset is that of the median, because odd values are often at the ends.
    anchor = int(np.sort(numbers)[len(numbers) // 2])
    fitting = [step for step in steps if rows[numbers % step == anchor % step].sum() >= least]
    return Granularity(max(fitting) * unit, anchor % max(fitting) * unit) if fitting else None
