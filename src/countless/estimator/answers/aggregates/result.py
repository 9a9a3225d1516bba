"""The result of a query with aggregates."""

from __future__ import annotations

from dataclasses import dataclass

from countless.data.frame import Frame
from countless.estimator.answers.estimate import Estimate


@dataclass(frozen=True, eq=False)
class QueryResult(Frame):
    """The result of a SELECT: a small table with the names and types that DuckDB would give it.

    Attributes:
        count: The estimate for the WHERE clause.
        disagreement: The largest relative difference between parts of the answer, before they were scaled to agree.
        left_out_rows: Rows in groups that are not shown, because each is estimated to have less than half a row.
        ms: Time in milliseconds.

    >>> result = est.query("SELECT count(*) AS people, avg(age) AS age FROM adult WHERE income = '>50K'")
    >>> result.names, result.rows[0][0]
    (('people', 'age'), 11687)
    """

    count: Estimate
    disagreement: float
    left_out_rows: float
    ms: float
