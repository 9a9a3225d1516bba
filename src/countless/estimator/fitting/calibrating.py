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

QUESTIONS = "calibration_questions"  # in a report: how many were asked, and how many were planned
CALIBRATION_QUERIES = (400, 2_000)  # at least and at most; between them one
TEXT_QUERIES = 1_200  # the same at most, if there is text without a network
PER_ROWS = 10  # rows, but no more than look at
COUNTED_ROWS = 3_000_000_000  # rows in all, which takes some ten seconds
TOGETHER = 64  # calibration queries that are counted in one scan, and then walked
LEAST_QUERIES = 50  # calibration queries, however little time there is: with fewer, error bars have no ends
ENOUGH_QUERIES = (
    320  # queries for which the end may be put off a little: with fewer, even the nearest ones are unlike a question
)
WORTH_A_SCAN = 8  # queries that are worth another scan
ONE_IN_USUAL = 3  # one calibration query in three is one as people ask them
USUAL_ROWS = 5_000  # random rows that give its literals
USUAL_TYPES = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP"}
)
SAMPLED_ROWS = (1_000_000, 4_000_000)  # of a large table, at least and at most; between them one
SAMPLED_ONE_IN = 15  # rows, in which common questions about text are counted
LARGE = 3  # times as many rows has a large table at least
ENOUGH_HITS = 20  # in that sample: their chance error is small beside the errors of estimates on text
CALIBRATION_STREAM = 7  # keeps calibration's random numbers apart from every other use of the seed


def calibration_queries(rows: int, texts: bool = False, text_network: bool = True) -> int:
    """How many random queries calibrate a model of a table of ``rows`` rows; a network of text takes its time.

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
    """How many calibration queries to ask next, if ``done`` of ``count`` took ``spent`` seconds; 0 if time is over.

    >>> [next_queries(0, 400, 0.0, left) for left in (None, 30.0, 0.0)]
    [64, 50, 50]
    >>> next_queries(50, 400, 10.0, 4.0), next_queries(50, 400, 10.0, 1.0), next_queries(390, 400, 10.0, None)
    (20, 0, 10)
    """
    most = min(TOGETHER, count - done)
    if left is None:
        return most
    if done < LEAST_QUERIES:
        return min(most, LEAST_QUERIES - done)
    affordable = int(left * done / max(spent, 1e-9))
    return min(most, affordable) if affordable >= WORTH_A_SCAN else 0


def calibrated(source: Source, raw: Estimator, seed: int, listener: Listener, plan: TimePlan) -> Estimator:
    """The estimator with its error bars, from random queries that are counted in the table, while there is time."""
    clause_seed = int(np.random.SeedSequence([seed, CALIBRATION_STREAM]).generate_state(1)[0])
    count = calibration_queries(raw.rows, bool(raw.schema.texts), "text" in raw.report)
    clauses = mixed_clauses(raw.schema, source, count, clause_seed)
    usual = _usual_clauses(raw, source, count // ONE_IN_USUAL, clause_seed)
    clauses[ONE_IN_USUAL - 1 : ONE_IN_USUAL * len(usual) : ONE_IN_USUAL] = usual
    began = plan.spent
    queries: list[CalibrationQuery] = []
    done = 0  # more than there are queries: what the counts tell for certain calibrates nothing
    with ExitStack() as stack:
        counter = TrueCounts(source, raw, clause_seed, stack)
        while more := next_queries(
            done, count, plan.spent - began, plan.left if done >= ENOUGH_QUERIES else plan.left_with_grace
        ):
            batch = clauses[done : done + more]
            source.watch = _scan_meter(listener, done, more, count)
            try:
                truths = counter.counts(batch)
            except CountlessError:  # one of the usual questions, perhaps: the others are plain
                batch = [clause for clause in batch if clause not in usual]
                truths = counter.counts(batch)
            queries += raw.calibration_queries(batch, truths)
            source.watch = None
            done += more
            listener.calibrating(done, count)
    found = raw.calibrated(Calibration(tuple(queries)))
    found.report = {**raw.report, QUESTIONS: {"asked": done, "planned": count}}
    return found


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
    found = calibrated(source, estimator, seed, listener, TimePlan(None))
    found.report = without_missing({**estimator.report, QUESTIONS: found.report[QUESTIONS]}, CALIBRATION)
    return found


class TrueCounts:
    """True counts of questions about ``source``, the table of a model.

    A pattern takes DuckDB seconds on tens of millions of strings. So questions about text are first counted in a sample
    of a large table, and those that are rare there in all rows. Other questions are counted in all rows.
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
        others = [clause for clause in clauses if clause not in counts]
        counts.update(zip(others, self._source.counts(others), strict=True))
        return [counts[clause] for clause in clauses]


def _usual_clauses(raw: Estimator, source: Source, count: int, seed: int) -> list[str]:
    """Questions as people ask them, of every kind, in random order.

    They are made of some rows in a database of their own, and tried there: functions fail on some values in DuckDB, and
    a failure must not cost the connection that the table is read by.
    """
    names = [column.name for column in raw.schema.columns if _is_usual(column.type)]
    try:
        some = EvidenceRows.drawn(source, raw.schema, USUAL_ROWS, seed).source()
        asked = [clause for clause, _ in questions_by_kind(some, -(-count // len(KINDS)) + 1, seed, names)]
        some.counts(asked)
    except CountlessError:
        return []
    return [asked[place] for place in np.random.default_rng(seed).permutation(len(asked))[:count].tolist()]


def _is_usual(kind: str) -> bool:
    """Whether columns of this type are asked about with functions."""
    return kind in USUAL_TYPES or DECIMAL.fullmatch(kind) is not None


def _scan_meter(listener: Listener, done: int, more: int, count: int) -> Meter:
    """Shows the progress of the scan that counts ``more`` queries."""
    return Meter(lambda reading: listener.calibrating(done + int(more * reading.fraction), count))
