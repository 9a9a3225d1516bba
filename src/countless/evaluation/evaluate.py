"""Evaluation on random queries: the estimates against the true counts from DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.errors import DataError, QueryError
from countless.estimator.answers.estimate import Estimate, q_error
from countless.estimator.calibration.bands import FILTERS, PREDICTED, band
from countless.estimator.calibration.conformal import LEVEL, width
from countless.estimator.model_table import open_table
from countless.query.parsing.parse import parse
from countless.workload import Query, both_clauses, contains_clauses, paper_clauses, pattern_clauses, questions_by_kind
from countless.workload.questions import KINDS as QUESTION_KINDS

QUANTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
REFUSED = "refused"  # the method of an estimate in place of a refused question
LEAST_COVERAGE, ENOUGH_QUERIES = 0.87, 50  # error bars of a group are too narrow if fewer of so many answers hold
SOME_ROWS = 10  # for questions with at least so many true rows, an error of a row or two is small


@dataclass(frozen=True)
class Evaluation:
    """Estimates and true counts."""

    method: str
    queries: tuple[Query, ...]
    estimates: tuple[Estimate, ...]

    @property
    def q_errors(self) -> list[float]:
        """One q-error per query."""
        return [
            q_error(estimate.rows, query.rows) for query, estimate in zip(self.queries, self.estimates, strict=True)
        ]

    @property
    def coverage(self) -> float | None:
        """The share of queries whose true count is inside the error bar."""
        return float(np.mean(self._is_inside_bar)) if self.queries else None

    @property
    def width(self) -> float | None:
        """The median ratio of the ends of an error bar, both at least one row."""
        return float(np.median(self._widths)) if self.queries else None

    @property
    def not_exact(self) -> Evaluation:
        """The queries whose answers are not exact. A wrong answer that claims to be exact is among them."""
        return self._part(
            not (estimate.exact and inside)
            for estimate, inside in zip(self.estimates, self._is_inside_bar, strict=True)
        )

    @property
    def refused(self) -> int:
        """The number of refused questions. Each counts as an estimate of 0 rows."""
        return sum(estimate.method == REFUSED for estimate in self.estimates)

    @property
    def _is_inside_bar(self) -> list[bool]:
        return [
            estimate.low <= query.rows <= estimate.high
            for query, estimate in zip(self.queries, self.estimates, strict=True)
        ]

    @property
    def _widths(self) -> list[float]:
        return [width(estimate.low, estimate.high) for estimate in self.estimates]

    def to_json(self) -> dict[str, Any]:
        """The summary as plain data."""
        kinds = [query.kind for query in self.queries]
        times = [estimate.ms for estimate in self.estimates]
        errors_from_10_rows = [
            error for error, query in zip(self.q_errors, self.queries, strict=True) if query.rows >= SOME_ROWS
        ]
        return {
            "q_error": _quantiles(self.q_errors),
            "q_error_10_rows": _quantiles(errors_from_10_rows),
            "latency_ms": {"p50": float(np.percentile(times, 50)), "p99": float(np.percentile(times, 99))},
            "coverage": self.coverage,
            "width": self.width,
            **self._bars_of_not_exact(),
            "queries": len(self.queries),
            "refused": self.refused,
            "queries_10_rows": len(errors_from_10_rows),
            "method": self.method,
            "by_class": self._summaries(sorted(set(kinds) - {""}), kinds),
        }

    def groups(self) -> dict[str, dict[str, Any]]:
        """Summaries by the number of filtered columns, and by the estimated rows."""
        filters = [_filtered_columns(query.where) for query in self.queries]
        return {
            "by_filters": self._summaries(FILTERS, [band(FILTERS, count) for count in filters]),
            "by_estimate": self._summaries(PREDICTED, [band(PREDICTED, estimate.rows) for estimate in self.estimates]),
        }

    def _summaries(self, labels: Iterable[str], label_of: Sequence[str]) -> dict[str, Any]:
        """A short summary of each group of queries. That of an empty group has only zeros and nulls."""
        summaries = {}
        for label in labels:
            group = self._part(query_label == label for query_label in label_of)
            bars = {"coverage": group.coverage, "width": group.width, **group._bars_of_not_exact()}
            count = len(group.queries)
            summaries[label] = {"queries": count, "refused": group.refused, **_quantiles(group.q_errors), **bars}
        return summaries

    def _bars_of_not_exact(self) -> dict[str, Any]:
        rest = self.not_exact
        exact = len(self.queries) - len(rest.queries)
        return {"exact": exact, "coverage_not_exact": rest.coverage, "width_not_exact": rest.width}

    def _part(self, chosen: Iterable[bool]) -> Evaluation:
        chosen = list(chosen)
        return Evaluation(self.method, tuple(compress(self.queries, chosen)), tuple(compress(self.estimates, chosen)))

    def worst(self, count: int = 5) -> list[tuple[float, Query, Estimate]]:
        """The queries with the largest q-errors."""
        ranked = sorted(
            zip(self.q_errors, self.queries, self.estimates, strict=True), key=lambda answered: -answered[0]
        )
        return ranked[:count]


def too_narrow(summary: Mapping[str, Any]) -> bool:
    """Whether the error bars of a group are too narrow, by its summary; exact answers do not count.

    >>> too_narrow({"queries": 90, "exact": 40, "coverage_not_exact": 0.86})
    True
    >>> too_narrow({"queries": 90, "exact": 41, "coverage_not_exact": 0.86})
    False
    """
    enough = summary["queries"] - summary["exact"] >= ENOUGH_QUERIES
    return enough and bool(summary["coverage_not_exact"] < LEAST_COVERAGE)


def random_workload(
    schema: Schema,
    table: Any,
    count: int,
    seed: int,
    patterns: str | None = None,
    kinds: bool = False,
    on_drawn: Callable[[int], None] = lambda queries: None,
) -> list[Query]:
    """``count`` random queries of the paper's kind on ``table``, with their true counts.

    With ``kinds`` they are typical questions of people: about ``count`` in all, equally many of each kind.

    Queries filter columns; or text if the table has only text, or if ``patterns`` is given: ``contains`` (the paper's
    pieces of 3 to 5 characters), ``mix`` (patterns of many kinds) or ``both`` (patterns and filters on columns).
    ``on_drawn`` is called with the number of queries before they are counted.
    """
    source = open_table(table, schema)
    if patterns is not None and not schema.texts:
        raise DataError("the model has no text column to draw patterns from: leave out --patterns")
    if patterns == "both" and not schema.coded:
        raise DataError("the model has only text columns: --patterns both needs other columns too")
    if patterns == "both":
        clauses = both_clauses(schema, source, count, seed)
    elif kinds:
        clauses = questions_by_kind(source, -(-count // len(QUESTION_KINDS)), seed, schema.names)
    elif patterns is None and schema.coded:
        clauses = [(where, "") for where in paper_clauses(schema, source, count, seed)]
    else:
        draw = pattern_clauses if patterns == "mix" else contains_clauses
        by_column = [draw(column, source, -(-count // len(schema.texts)), seed) for column in schema.texts]
        clauses = [clause for column_clauses in by_column for clause in column_clauses][:count]
    on_drawn(len(clauses))
    counts = source.counts([where for where, _ in clauses])
    return [Query(where, rows, kind) for (where, kind), rows in zip(clauses, counts, strict=True)]


def _quantiles(errors: Sequence[float]) -> dict[str, float | None]:
    return {
        name: float(np.percentile(errors, percentile)) if errors else None for name, percentile in QUANTILES.items()
    }


def _filtered_columns(where: str) -> int:
    return len({column.name.casefold() for column in parse(where).find_all(exp.Column)})


def or_refused(answer: Callable[[str], Estimate]) -> Callable[[str], Estimate]:
    """``answer``, but a refused question gets an estimate of 0 rows instead of an error."""

    def answer_or_refuse(where: str) -> Estimate:
        try:
            return answer(where)
        except QueryError:
            return Estimate(where, 0.0, 0.0, 0.0, 0.0, LEVEL, REFUSED, exact=False, ms=0.0)

    return answer_or_refuse


def evaluate(
    answer: Callable[[str], Estimate],
    queries: Sequence[Query],
    method: str,
    on_query: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Answer every query, and compare with the true counts. ``answer`` may be an estimator's or a baseline's."""
    estimates = []
    for done, query in enumerate(queries, 1):
        estimates.append(answer(query.where))
        if on_query is not None:
            on_query(done, len(queries))
    return Evaluation(method, tuple(queries), tuple(estimates))
