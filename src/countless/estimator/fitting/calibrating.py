"""Calibration of a fitted model: random questions, their true counts, and the error bars that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from countless.data.columns.types import DECIMAL
from countless.data.evidence import EvidenceRows
from countless.data.progress import Meter
from countless.data.sources.source import Source
from countless.errors import CountlessError, EmptyTableError
from countless.estimator.calibration.conformal import Calibration, CalibrationQuery
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.learning import Listener
from countless.estimator.fitting.preflight import preflight
from countless.estimator.fitting.salvage import CALIBRATION, without_missing
from countless.estimator.fitting.time_budget import TimePlan
from countless.estimator.model_table import open_table
from countless.workload import mixed_clauses
from countless.workload.questions import KINDS, questions_by_kind

QUESTIONS = "calibration_questions"  # key in a report: how many were asked, and how many were planned
CALIBRATION_QUERIES = (400, 2_000)  # the least and the most; between them one per PER_ROWS rows
TEXT_QUERIES = 1_200  # the most, if there is text without a network
PER_ROWS = 10
COUNTED_ROWS = 3_000_000_000  # the most rows that all queries together scan, which takes some ten seconds
BATCH = 64  # queries that are counted in one scan
LEAST_QUERIES = 50  # asked even without time: with fewer, error bars have no ends
ENOUGH_QUERIES = 320  # up to this many, calibration may take longer: with fewer, the nearest queries are not similar
WORTH_A_SCAN = 8  # the least queries for another scan
ONE_IN_TYPICAL = 3  # one query in three is like those that people ask
TYPICAL_ROWS = 5_000  # random rows that give the literals of these queries
TYPICAL_TYPES = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP"}
)
# Common questions about text are counted in a sample of a large table: the least and the most rows, between them one
# row in SAMPLED_ONE_IN.
SAMPLED_ROWS = (1_000_000, 4_000_000)
SAMPLED_ONE_IN = 15
LARGE = 3  # a large table has at least this many times the rows of the smallest sample
ENOUGH_HITS = 20  # in the sample; the error by chance is then small beside the errors of estimates on text
CALIBRATION_STREAM = 7  # separates calibration's random numbers from other uses of the seed


def calibration_queries(rows: int, texts: bool = False, text_network: bool = True) -> int:
    """How many random queries calibrate a model of a table of ``rows`` rows. With a text network they are few.

    >>> [calibration_queries(rows) for rows in (50, 10_000, 300_000, 1_000_000, 10_000_000)]
    [400, 1000, 2000, 2000, 400]
    >>> calibration_queries(300_000, texts=True), calibration_queries(10_000_000, texts=True, text_network=False)
    (400, 1200)
    """
    least, most = CALIBRATION_QUERIES
    if texts:
        return least if text_network else max(least, min(TEXT_QUERIES, rows // PER_ROWS))
    return max(least, min(most, rows // PER_ROWS, COUNTED_ROWS // max(1, rows)))


def next_queries(done: int, count: int, spent: float, left: float | None) -> int:
    """How many calibration queries to ask next, if ``done`` of ``count`` took ``spent`` seconds; 0 if there is no time.

    >>> [next_queries(0, 400, 0.0, left) for left in (None, 30.0, 0.0)]
    [64, 50, 50]
    >>> next_queries(50, 400, 10.0, 4.0), next_queries(50, 400, 10.0, 1.0), next_queries(390, 400, 10.0, None)
    (20, 0, 10)
    """
    most = min(BATCH, count - done)
    if left is None:
        return most
    if done < LEAST_QUERIES:
        return min(most, LEAST_QUERIES - done)
    affordable = int(left * done / max(spent, 1e-9))
    return min(most, affordable) if affordable >= WORTH_A_SCAN else 0


def calibrated(source: Source, estimator: Estimator, seed: int, listener: Listener, plan: TimePlan) -> Estimator:
    """The estimator with error bars, from random queries whose true counts are counted in the table."""
    clause_seed = int(np.random.SeedSequence([seed, CALIBRATION_STREAM]).generate_state(1)[0])
    count = calibration_queries(estimator.rows, bool(estimator.schema.texts), "text" in estimator.report)
    clauses = mixed_clauses(estimator.schema, source, count, clause_seed)
    typical = _typical_clauses(estimator, source, count // ONE_IN_TYPICAL, clause_seed)
    clauses[ONE_IN_TYPICAL - 1 : ONE_IN_TYPICAL * len(typical) : ONE_IN_TYPICAL] = typical
    spent_before = plan.spent
    queries: list[CalibrationQuery] = []
    done = 0  # may exceed len(queries): questions with exact answers calibrate nothing
    with ExitStack() as stack:
        counter = TrueCounts(source, estimator, clause_seed, stack)
        while more := next_queries(
            done, count, plan.spent - spent_before, plan.left if done >= ENOUGH_QUERIES else plan.left_with_grace
        ):
            batch = clauses[done : done + more]
            source.watch = _scan_meter(listener, done, more, count)
            try:
                truths = counter.counts(batch)
            except CountlessError:  # probably by one of the typical questions: the others are plain
                batch = [clause for clause in batch if clause not in typical]
                truths = counter.counts(batch)
            queries += estimator.calibration_queries(batch, truths)
            source.watch = None
            done += more
            listener.calibrating(done, count)
    result = estimator.calibrated(Calibration(tuple(queries)))
    result.report = {**estimator.report, QUESTIONS: {"asked": done, "planned": count}}
    return result


def recalibrated(estimator: Estimator, table: Any, seed: int, listener: Listener) -> Estimator:
    """The estimator with error bars from random questions about ``table``: :meth:`countless.Estimator.calibrate`."""
    listener.stage("reading the table")
    source = open_table(table, estimator.schema, listener.loading)
    rows = source.count()
    if rows == 0:
        raise EmptyTableError("the table has no rows: give the table that the model was fitted on")
    if rows != estimator.rows:
        listener.notice(
            f"the table has {rows:,} rows, and the model was made of {estimator.rows:,}: its error bars will also "
            "cover what has changed since; fit or update the model for narrower ones"
        )
    preflight(source, estimator.schema)
    listener.stage("calibrating")
    result = calibrated(source, estimator, seed, listener, TimePlan(None))
    result.report = without_missing({**estimator.report, QUESTIONS: result.report[QUESTIONS]}, CALIBRATION)
    return result


class TrueCounts:
    """True counts of questions about ``source``, the table of a model.

    DuckDB needs seconds for a pattern on tens of millions of strings. So in a large table, questions about text are
    first counted in a sample. Those with few hits there, and all other questions, are counted in all rows.
    """

    def __init__(self, source: Source, model: Estimator, seed: int, stack: ExitStack) -> None:
        self._source, self._rows = source, model.rows
        self._texts = [column.name for column in model.schema.texts]
        least, most = SAMPLED_ROWS
        self._sample: Source | None = None
        if self._texts and model.rows >= LARGE * least:
            self._sampled = min(most, max(least, model.rows // SAMPLED_ONE_IN))
            sample = source.sample_table(self._sampled, seed, model.schema.names, model.rows)
            self._sample = stack.enter_context(sample)

    def counts(self, clauses: Sequence[str]) -> list[int]:
        """How many rows match each clause."""
        counts: dict[str, int] = {}
        if self._sample is not None:
            on_text = [clause for clause in clauses if any(name in clause for name in self._texts)]
            scale = self._rows / self._sampled
            for clause, hits in zip(on_text, self._sample.counts(on_text), strict=True):
                if hits >= ENOUGH_HITS:
                    counts[clause] = round(hits * scale)
        remaining = [clause for clause in clauses if clause not in counts]
        counts.update(zip(remaining, self._source.counts(remaining), strict=True))
        return [counts[clause] for clause in clauses]


def _typical_clauses(estimator: Estimator, source: Source, count: int, seed: int) -> list[str]:
    """Questions like those that people ask, of every kind, in random order.

    They are made from some rows in a separate database, and tried there. Some functions fail on some values in DuckDB,
    and such a failure must not end the connection that reads the table.
    """
    names = [column.name for column in estimator.schema.columns if _is_typical(column.type)]
    try:
        sample = EvidenceRows.drawn(source, estimator.schema, TYPICAL_ROWS, seed).source()
        clauses = [clause for clause, _ in questions_by_kind(sample, -(-count // len(KINDS)) + 1, seed, names)]
        sample.counts(clauses)
    except CountlessError:
        return []
    return [clauses[index] for index in np.random.default_rng(seed).permutation(len(clauses))[:count].tolist()]


def _is_typical(kind: str) -> bool:
    """Whether people ask about columns of this type."""
    return kind in TYPICAL_TYPES or DECIMAL.fullmatch(kind) is not None


def _scan_meter(listener: Listener, done: int, more: int, count: int) -> Meter:
    """A meter that reports the progress of the scan that counts ``more`` queries."""
    return Meter(lambda reading: listener.calibrating(done + int(more * reading.fraction), count))
