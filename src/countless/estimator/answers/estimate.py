"""The Estimate: an estimated row count with its error bar."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """An estimated number of rows with its error bar.

    Attributes:
        where: The condition.
        rows: The estimate.
        selectivity: The estimate as a share of the table, from 0 to 1.
        low: Lower end of the error bar.
        high: Upper end of the error bar.
        level: The share of questions whose true count lies between ``low`` and ``high``, such as 0.9.
        method: What answered: ``fused``, or a method of the model alone.
        exact: The count is exact, not estimated; ``low``, ``rows`` and ``high`` are equal.
        ms: Time in milliseconds.
        forward_rows: Work of the model: how many conditional distributions were computed.
        sampled: The model's answer is from random sampling; another seed gives a slightly different one.
        hits: Number of evidence rows that match; None if they were not counted.
        evidence_rows: Number of evidence rows in the model file; None if they were not counted.
        model_rows: The estimate of the model alone; None if the model was not asked.
        calibrated: False if no calibration question was similar to this one. The error bar is then the widest.

    >>> estimate = est.estimate("age > 80")
    >>> print(estimate)
    148 rows (exact) where age > 80
    >>> estimate.low, estimate.high, estimate.exact
    (148.0, 148.0, True)
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
        """The fields as a dictionary that can be written as JSON.

        Returns:
            One item for each field.

        >>> est.estimate("age > 80").to_json()["rows"]
        148.0
        """
        return asdict(self)

    def __str__(self) -> str:
        return f"{format_rows(self.rows)} rows ({format_interval(self)}) where {self.where}"


UNCALIBRATED = "no calibration question was similar to this one, so the error bar is a cautious guess"


def format_rows(count: float) -> str:
    """A number of rows for people.

    >>> format_rows(1234567.2), format_rows(3.21), format_rows(3)
    ('1,234,567', '3.2', '3')
    """
    return f"{count:,.0f}" if count >= 10 or count == round(count) else f"{count:.1f}"


def format_share(share: float) -> str:
    """A share of rows for people.

    >>> format_share(0.0716), format_share(4.6e-6), format_share(0)
    ('7.160%', 'less than 0.001%', '0.000%')
    """
    return "less than 0.001%" if 0 < share < 0.00001 else f"{share:.3%}"


def format_interval(estimate: Estimate) -> str:
    """The error bar of an estimate for people. If both ends print the same number, its width is shown.

    >>> from dataclasses import replace
    >>> estimate = Estimate("a > 3", 75.2, 0.1, 70.0, 80.0, 0.9, "particles", exact=False, ms=1.0)
    >>> format_interval(estimate), format_interval(replace(estimate, low=75.0, high=75.4))
    ('70 to 80 at 90%', 'within 1 row at 90%')
    >>> format_interval(replace(estimate, rows=75.0, low=75.0, high=75.0, exact=True))
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
