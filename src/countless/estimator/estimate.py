"""What an estimator answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """An estimated number of rows with its error bar.

    The true count lies between ``low`` and ``high`` for about ``level`` of all questions. ``exact`` says that the
    model's own answer was computed without sampling; the model may still be wrong.
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

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.rows:,.0f} rows ({self.low:,.0f} to {self.high:,.0f}) where {self.where}"


def q_error(estimate: float, truth: float) -> float:
    """The factor by which an estimate is off, with both sides at least one row.

    >>> q_error(50, 100), q_error(0, 3), q_error(0.2, 0)
    (2.0, 3.0, 1.0)
    """
    high, low = max(estimate, truth, 1.0), max(1.0, min(estimate, truth))
    return high / low
