"""The result of a query with aggregates."""

from __future__ import annotations

from dataclasses import dataclass

from countless.data.frame import Frame
from countless.estimator.answers.estimate import Estimate


@dataclass(frozen=True, eq=False)
class QueryResult(Frame):
    """The rows of a query, as a small table with the names and types that DuckDB would give it.

    ``count`` is the estimate of the WHERE. ``left_out_rows`` is how many of its rows lie in groups that are not among
    the results, because less than half a row is believed to be in each. ``disagreement`` is by what share the parts of
    the answer differed most before they were made to agree. ``ms`` is how long it took.
    """

    count: Estimate
    disagreement: float
    left_out_rows: float
    ms: float
