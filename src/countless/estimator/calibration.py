"""Error bars from queries whose true counts are known: split-conformal prediction.

The score of a query is ``|log(estimate / truth)|``, both at least one row. The conformal quantile of the scores at a
level, such as 90%, is a factor: of fresh questions like these, at least that share has its truth within that factor
of the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from countless.errors import ModelFileError
from countless.estimator.estimate import q_error

LEVEL = 0.9


@dataclass(frozen=True)
class CalibrationQuery:
    """A question, the truth, and what the model answered."""

    where: str
    rows: int
    estimate: float


@dataclass(frozen=True)
class Calibration:
    """Queries with known truth, and the one factor that follows from them."""

    queries: tuple[CalibrationQuery, ...]
    level: float = LEVEL

    @property
    def factor(self) -> float:
        """How far off an estimate may be at this level; infinite when there are too few queries to say."""
        errors = sorted(q_error(query.estimate, query.rows) for query in self.queries)
        place = math.ceil((len(errors) + 1) * self.level)
        return errors[place - 1] if 0 < place <= len(errors) else math.inf

    def to_json(self) -> dict[str, Any]:
        """Plain data for the model file."""
        queries = [{"where": query.where, "rows": query.rows, "estimate": query.estimate} for query in self.queries]
        return {"level": self.level, "queries": queries}

    @classmethod
    def from_json(cls, data: Any) -> Calibration:
        """The calibration that :meth:`to_json` wrote; anything else is a :class:`ModelFileError`."""
        try:
            level = float(data["level"])
            queries = tuple(
                CalibrationQuery(str(q["where"]), int(q["rows"]), float(q["estimate"])) for q in data["queries"]
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"the calibration is damaged ({error!r}): fit the model again") from None
        if not 0 < level < 1 or any(not math.isfinite(query.estimate) for query in queries):
            raise ModelFileError("the calibration is damaged: fit the model again")
        return cls(queries, level)


def interval(rows: float, total: int, factor: float) -> tuple[float, float]:
    """The error bar around ``rows`` of ``total``: a factor each way, from zero if one row is within it.

    >>> interval(100.0, 1000, 2.0), interval(0.3, 1000, 2.0), interval(800.0, 1000, 2.0)
    ((50.0, 200.0), (0.0, 2.0), (400.0, 1000.0))
    """
    at_least_one = max(rows, 1.0)
    low = at_least_one / factor
    return (low if low > 1.0 else 0.0), min(float(total), at_least_one * factor)
