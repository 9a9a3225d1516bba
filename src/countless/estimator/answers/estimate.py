"""The Estimate: an estimated row count with its error bar."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """An estimated number of rows with its error bar.

    The true count lies between ``low`` and ``high`` for about ``level`` of all questions. ``exact`` says that it
    is no estimate, but the table's own count: then both are ``rows``. ``sampled`` says that the model was not asked in
    full but sampled; the same question with another seed may have another answer. ``forward_rows`` is the work it took:
    how many times a position's distribution was computed.

    Of ``evidence_rows`` random rows of the table, which the model file holds, ``hits`` satisfy the condition; both are
    None if they were not counted. ``model_rows`` is what the model says alone, or None if it was not asked.
    ``calibrated`` is false if the model was asked, and no question of this kind has told how far off it may be: the
    error bar is then the widest.
    """

    where: str
    rows: float
    selectivity: float
    low: float
    high: float
    level: float
    method: str
    exact: bool
    ms: float
    forward_rows: int = 0
    sampled: bool = False
    hits: int | None = None
    evidence_rows: int | None = None
    model_rows: float | None = None
    calibrated: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{format_rows(self.rows)} rows ({format_interval(self)}) where {self.where}"


UNCALIBRATED = "no question of this kind was calibrated, so the error bar is a cautious guess"


def format_rows(count: float) -> str:
    """A number of rows for people.

    >>> format_rows(1234567.2), format_rows(3.21), format_rows(3)
    ('1,234,567', '3.2', '3')
    """
    return f"{count:,.0f}" if count >= 10 or count == round(count) else f"{count:.1f}"


def format_interval(estimate: Estimate) -> str:
    """The error bar of an estimate for people. One whose ends look the same is told by its width.

    >>> from dataclasses import replace
    >>> found = Estimate("a > 3", 75.2, 0.1, 70.0, 80.0, 0.9, "particles", exact=False, ms=1.0)
    >>> format_interval(found), format_interval(replace(found, low=75.0, high=75.4))
    ('70 to 80 at 90%', 'within 1 row at 90%')
    >>> format_interval(replace(found, rows=75.0, low=75.0, high=75.0, exact=True))
    'exact'
    """
    if estimate.exact:
        return "exact"
    low, high = format_rows(estimate.low), format_rows(estimate.high)
    return f"{'within 1 row' if low == high else f'{low} to {high}'} at {estimate.level:.0%}"


def q_error(estimate: float, truth: float) -> float:
    """The factor by which an estimate is off, with both sides at least one row.

    >>> q_error(50, 100), q_error(0, 3), q_error(0.2, 0)
    (2.0, 3.0, 1.0)
    """
    high, low = max(estimate, truth, 1.0), max(1.0, min(estimate, truth))
    return high / low
