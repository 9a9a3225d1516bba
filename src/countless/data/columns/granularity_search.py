"""The search for the granularity of a column's values, in DuckDB."""

from __future__ import annotations

from fractions import Fraction

from countless.data.columns.granularity import Granularity
from countless.data.columns.types import DECIMAL, FLOATS, INTEGERS
from countless.data.sources.source import Source

OBEY = 0.999  # of the rows: if so many keep to a step, it is the column's
MOST_DECIMALS = 9  # of a floating-point number that is meant as a decimal one
EXACT_FLOAT = 2**53  # up to here a DOUBLE tells whole numbers apart
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
        digits = int(kind.rstrip(")").split(",")[1])
        whole = "TRY_CAST(replace(CAST(value AS VARCHAR), '.', '') AS BIGINT)"
        return _multiples(source, values, whole, Fraction(1, 10**digits), ROUND_NUMBERS)
    if kind == "TIME" or kind.startswith("TIMESTAMP"):
        return _multiples(source, values, "epoch_us(value)", Fraction(1000), PARTS_OF_A_DAY)
    return None  # dates are whole days, and strings have no steps


def _decimals(source: Source, values: str, kind: str) -> int | None:
    """How many decimals nearly all floating-point numbers have."""
    places = range(MOST_DECIMALS + 1)
    rounded = (f"CAST(round(CAST(value AS DOUBLE), {place}) AS {kind}) = value" for place in places)
    shares = _shares(source, values, list(rounded))
    return next((place for place in places if shares[place] >= OBEY), None)


def _multiples(source: Source, values: str, whole: str, unit: Fraction, steps: tuple[int, ...]) -> Granularity | None:
    """The greatest of ``steps`` that most values keep to: ``whole`` is SQL for one as a whole number of units."""
    # Any value that nearly all others agree with will do as the first; the median is none of the odd ones at the ends.
    ((anchor,),) = source.rows(f"SELECT quantile_disc({whole}, 0.5) FROM {values}")
    if anchor is None:
        return None
    tests = [f"(({whole}) % {step} + {step}) % {step} = {int(anchor) % step}" for step in steps]
    kept = [step for step, share in zip(steps, _shares(source, values, tests), strict=True) if share >= OBEY]
    return Granularity(max(kept) * unit, int(anchor) % max(kept) * unit) if kept else None


def _shares(source: Source, values: str, tests: list[str]) -> list[float]:
    """The share of the rows for which each of ``tests`` is true."""
    sums = ", ".join(f"coalesce(sum(n) FILTER ({test}), 0)" for test in tests)
    ((rows, *found),) = source.rows(f"SELECT coalesce(sum(n), 0), {sums} FROM {values}")
    return [float(count) / max(1.0, float(rows)) for count in found]
