"""The ``fit`` function: from a table to an estimator."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from countless.data.columns.derived import Derived, check_derived
from countless.data.columns.schema import Schema
from countless.data.columns.types import DECIMAL
from countless.data.encoding.column_blame import ColumnBlame
from countless.data.encoding.table import EXCLUDED, bytes_in_memory, modelled_names
from countless.data.evidence import EvidenceRows, evidence_rows
from countless.data.progress import Meter
from countless.data.sources.arrow_batches import UNREADABLE
from countless.data.sources.connection import Limit
from countless.data.sources.csv_files import with_csv_options
from countless.data.sources.fingerprints import table_digest
from countless.data.sources.postgres import Loading
from countless.data.sources.source import Source
from countless.errors import CountlessError, OptionError, SourceError
from countless.estimator.calibration.conformal import Calibration, CalibrationQuery
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.backends import backend_of, text_rows_within
from countless.estimator.fitting.learning import Learner, Listener
from countless.estimator.fitting.model_kinds import require_kind
from countless.estimator.fitting.orders import check_order
from countless.estimator.fitting.preflight import preflight
from countless.estimator.fitting.salvage import CALIBRATION, Salvage
from countless.estimator.fitting.stage_times import StageTimer
from countless.estimator.fitting.time_budget import DEFAULT_BUDGET, TimePlan
from countless.options import (
    FitKeywords,
    FitOptions,
    Network,
    ReadingOptions,
    ResourceOptions,
    StorageOptions,
    TextNetwork,
    TrainingOptions,
)
from countless.query.derivation import derive, read_derived
from countless.store import EVIDENCE, StoredRows
from countless.train import require_torch
from countless.train.options import CLOCKS
from countless.workload import WorkloadColumns, asked_columns, mixed_clauses, read_clauses
from countless.workload.questions import KINDS, questions_by_kind

if TYPE_CHECKING:
    from countless.train.loop import Progress

logger = logging.getLogger(__name__)

CALIBRATION_QUERIES = (400, 2_000)  # at least and at most; between them one
PER_ROWS = 10  # rows, but no more than look at
COUNTED_ROWS = 3_000_000_000  # rows in all, which takes some ten seconds
TOGETHER = 64  # calibration queries that are counted in one scan, and then walked
LEAST_QUERIES = 50  # calibration queries, however little time there is: with fewer, error bars have no ends
WORTH_A_SCAN = 8  # so many more queries are worth another scan
ONE_IN_USUAL = 3  # calibration queries is one as people ask them; it has literals of so many random rows
USUAL_ROWS = 5_000
USUAL_TYPES = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP"}
)
TABLE = "table"  # in a report: a digest that tells the table's files from others
SAMPLE_ROWS = "sample_rows"  # in a report: how many random rows were trained on, if not all
CALIBRATION_STREAM = 7  # keeps calibration's random numbers apart from every other use of the seed


class LoggingListener(Listener):
    """What :func:`fit` does without a listener: it logs stages and epochs, and warns of columns that are left out."""

    def __init__(self) -> None:
        self._epoch = 0

    def stage(self, name: str) -> None:
        logger.info(name)

    def training(self, progress: Progress) -> None:
        if progress.epoch != self._epoch:
            self._epoch = progress.epoch
            logger.debug("epoch %d: loss %.2f, %.0f s left", progress.epoch, progress.loss, progress.seconds_left)

    def table(self, schema: Schema) -> None:
        logger.info("%d rows, %d columns", schema.rows, len(schema.names))
        for column in schema.left_out:
            if column.reason != EXCLUDED:
                logger.warning("left out %s: %s", column.name, column.reason)

    def notice(self, message: str) -> None:
        logger.warning(message)

    def workload(self, asked: WorkloadColumns) -> None:
        if asked.passed_over:
            message = "passed over %d of the workload's clauses: nothing is filtered, or text alone"
            logger.warning(message, asked.passed_over)


def fit(
    source: Any,
    *,
    reading: ReadingOptions | None = None,
    network: Network | None = None,
    text_network: TextNetwork | str = "default",
    training: TrainingOptions | None = None,
    resources: ResourceOptions | None = None,
    storage: StorageOptions | None = None,
    listener: Listener | None = None,
    **keywords: Unpack[FitKeywords],
) -> Estimator:
    """Learn the joint distribution of a table's columns.

    ``source`` is a path or glob that DuckDB scans (CSV, Parquet, JSON), a pandas, polars or Arrow table, a DuckDB
    relation, the name of a data set (``adult``, ``npm_urls``, or one of the paper's), or a database: a DuckDB file or a
    ``postgresql://`` URL, of which ``table`` or the rows of ``query`` are read. ``csv`` says how to read a CSV file, by
    the names of DuckDB's options: ``{"delim": ";", "decimal_separator": ","}``. ``budget`` is the time for the whole
    fit: reading, counting, training and calibrating. Give it as ``"90s"``, as a number of seconds or as a timedelta. If
    neither it nor ``epochs`` is given, five minutes are the most, and a small table takes less. With ``epochs`` alone
    there is no limit. If reading leaves less than a third of the budget, the fit takes that third more. With
    ``checkpoint``, a file, training survives a stop: call again with ``resume=True``, which has the budget anew; a
    network that was begun goes on for the time it was given then. Ctrl-C ends training early and keeps the best model
    so far. ``dtype="float32"`` stores twice the bytes, for no more accuracy that we could see.

    The options are fields of :class:`ReadingOptions`, :class:`Network`, :class:`TrainingOptions`,
    :class:`ResourceOptions` and :class:`StorageOptions`. Give them as keywords, or give such an object, or both: a
    keyword changes its field. A wrong one is an :class:`OptionError`, before any work.

    A struct ``address`` becomes the columns ``address.city``, ``address.zip`` and so on; its name among ``columns`` or
    ``exclude`` stands for all of them. ``flatten`` is how many levels of structs become columns; with 0, structs are
    left out, as lists and maps always are. ``derive=["lower(city) AS city_lower"]`` adds a column that DuckDB computes
    from one row; the table that the model is compared with, or learns from, later does not need it.

    The model reads the columns in the table's own order, or in a random one (``order="random:3"``; the number is a
    seed), by ``falling`` or ``rising`` entropy, or the named ones first. With ``orders=10`` it learns ten random ones
    and answers by their mean; it has fewer hidden units then, so that it has as many parameters as with one. Without
    ``calibrate`` it has no error bars.

    A column with more than ``max_distinct`` values, or with nearly as many as rows, is stored as a quantile grid; but
    if it holds long strings it is *text* (``text`` and ``no_text`` name columns that are, and are not). One Transformer
    learns all text columns character by character; its size follows from the number of characters. Strings are cut at
    ``max_length`` characters, by default where 99% have ended. ``text_network`` is a preset, ``default`` or ``paper``,
    or a :class:`TextNetwork`. Of a budget, the network that has more to learn, in bits of a row, gets more.
    With ``summary``, exact counts are stored too: the rows of every value and of pairs of values of two columns, some
    300 kB, and those that contain each frequent substring of text. Questions about one or two columns, and
    short patterns, are answered from them, and other answers are corrected by them.

    ``workload`` is what will likely be asked: a file of WHERE clauses (one a line, or with semicolons, or the JSON
    lines of ``countless evaluate --save``), or a list of them. The last part of training is about the columns that they
    filter together.

    If the encoded table would take more than half of the memory that the machine, or its container, has left, it is
    written to the folder ``codes``, which ``resume=True`` goes on with, or to one that is removed afterwards, and read
    from there (docs/scaling.md). ``memory``, such as ``"2GB"``, lowers that bound. ``sample_rows`` is how many
    random rows to train on; domains, exact counts and error bars are those of all rows nevertheless.

    With ``ray``, the address of a Ray cluster or ``auto``, the table is encoded and learned there, by ``workers``
    processes of so many ``threads`` each (by default one process on each GPU or else on each machine, of one thread).
    ``shared`` is a folder that all its machines see; by default that of the checkpoint. ``memory`` is that of a worker.

    The estimator, and the file it saves, hold every distinct value of the other fitted columns, and some of those.
    They also hold ``evidence``: random rows of the table, whole. A question is counted in them first, and the model
    adds what they cannot tell. By default it is 100,000 rows, or all of a smaller table; or a number of rows,
    a percentage such as ``"5%"``, ``"all"`` or ``"none"``.
    """
    began = time.monotonic()
    options = FitOptions.of(
        keywords,
        reading=reading,
        network=network,
        text_network=text_network,
        training=training,
        resources=resources,
        storage=storage,
    )
    require_torch("fitting")
    require_kind(options.network.kind)
    return _fitted(source, options, listener or LoggingListener(), began)


def _fitted(source: Any, options: FitOptions, listener: Listener, began: float) -> Estimator:
    """The estimator of a table; the clock of the budget stood at ``began`` when the fit was called."""
    listener = timer = StageTimer(listener)
    reading, training, storage = options.reading, options.training, options.storage
    seed, table, query = training.seed, reading.table, reading.query
    whole_fit = DEFAULT_BUDGET if training.budget is None and training.epochs is None else training.budget
    spent = time.monotonic() - began
    plan = TimePlan(whole_fit, CLOCKS[training.clock], spent=spent, calibrates=storage.calibrate)
    clauses = None if training.workload is None else read_clauses(training.workload)
    derived = read_derived(reading.derive)
    source = with_csv_options(source, reading.csv)
    digest = table_digest(source, table, query)  # of the table before it is read, so that a later change shows
    with backend_of(options.resources) as backend:
        limit = None if backend.bounds is None else backend.bounds.duckdb
        given = source
        source = _opened(given, reading, derived, limit, listener.loading)
        for warning in source.warnings():
            listener.notice(warning)
        check_order(options.network, modelled_names(source, reading))
        with ColumnBlame(lambda: _opened(given, reading, derived, limit), reading):
            learned, sample = backend.encode(source, reading, seed, listener, text_rows_within(whole_fit))
        held = (item for item in source.derived if item.name in learned.schema.names)
        schema = replace(learned.schema, derived=tuple(held))
        listener.table(schema)
        rows = {}
        if count := evidence_rows(storage.evidence, schema.rows):
            listener.stage("drawing evidence rows")
            drawn = EvidenceRows.drawn(source, schema, count, seed)
            rows[EVIDENCE] = StoredRows(drawn.arrays(schema))
        if storage.calibrate:
            preflight(source, schema)
        asked = None
        if clauses is not None:
            asked = asked_columns(schema, clauses)
            listener.workload(asked)
        found, report = Learner(source, learned, sample, options, backend, listener, plan, asked).sections()
        report[TABLE] = digest
        report[EVIDENCE] = storage.evidence
        if sample is not learned:
            report[SAMPLE_ROWS] = sample.encoded_rows
        if learned.mapped is not None and backend.bounds is not None:
            report["on_disk"] = {"bytes": bytes_in_memory(schema), "memory": backend.bounds.memory.total}
        fitted = Estimator(schema, replace(found, rows=rows), report=report)
        if storage.calibrate:
            stopped = "stopped early, calibrating before the model is kept"
            listener.stage(stopped if report["interrupted"] else "calibrating")
            with Salvage(CALIBRATION, report, listener):
                fitted = calibrated(source, fitted, seed, listener, plan)
        report["stages"] = timer.stop()
        return fitted


def _opened(
    given: Any, reading: ReadingOptions, derived: Sequence[Derived], limit: Limit | None, loading: Loading | None = None
) -> Source:
    """The table that a fit was given, with its derived columns."""
    source = Source.open(
        given, table=reading.table, query=reading.query, loading=loading, limit=limit, flatten=reading.flatten
    )
    check_derived(derived, [name for name, _ in source.columns()] if derived else ())
    for item in derived:
        try:
            source = derive(source, [item])
        except SourceError as error:
            reason = str(error).removeprefix(UNREADABLE)
            raise OptionError(f"{{derive}} {item.sql} AS {item.name}: {reason}") from None
    return source


def calibration_queries(rows: int, texts: bool = False) -> int:
    """How many random queries calibrate a model of a table of ``rows`` rows; those about text take their time.

    >>> [calibration_queries(rows) for rows in (50, 10_000, 300_000, 1_000_000, 10_000_000)]
    [400, 1000, 2000, 2000, 400]
    >>> calibration_queries(300_000, texts=True)
    400
    """
    least, most = CALIBRATION_QUERIES
    return least if texts else max(least, min(most, rows // PER_ROWS, COUNTED_ROWS // max(1, rows)))


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
    """The estimator with its error bars, from random queries whose truth the table tells, while there is time."""
    clause_seed = int(np.random.SeedSequence([seed, CALIBRATION_STREAM]).generate_state(1)[0])
    count = calibration_queries(raw.rows, bool(raw.schema.texts))
    clauses = mixed_clauses(raw.schema, source, count, clause_seed)
    usual = _usual_clauses(raw, source, count // ONE_IN_USUAL, clause_seed)
    clauses[ONE_IN_USUAL - 1 : ONE_IN_USUAL * len(usual) : ONE_IN_USUAL] = usual
    began = plan.spent
    queries: list[CalibrationQuery] = []
    done = 0  # more than there are queries: what the counts tell for certain calibrates nothing
    while more := next_queries(done, count, plan.spent - began, plan.left):
        batch = clauses[done : done + more]
        source.watch = _scan_meter(listener, done, more, count)
        try:
            truths = source.counts(batch)
        except CountlessError:  # one of the usual questions, perhaps: the others are plain
            batch = [clause for clause in batch if clause not in usual]
            truths = source.counts(batch)
        queries += raw.calibration_queries(batch, truths)
        source.watch = None
        done += more
        listener.calibrating(done, count)
    return raw.calibrated(Calibration(tuple(queries)))


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
    """Tells how far the scan is that counts so many ``more`` queries."""
    return Meter(lambda reading: listener.calibrating(done + int(more * reading.fraction), count))
