"""The ``fit`` function: from a table to an estimator."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from countless.data.columns.derived import Derived, check_derived
from countless.data.columns.schema import Schema
from countless.data.encoding.column_blame import ColumnBlame
from countless.data.encoding.table import EXCLUDED, bytes_in_memory, modelled_names
from countless.data.evidence import EvidenceRows, evidence_rows
from countless.data.sources.arrow_batches import UNREADABLE
from countless.data.sources.connection import Limit
from countless.data.sources.csv_files import with_csv_options
from countless.data.sources.fingerprints import table_digest
from countless.data.sources.postgres import Loading
from countless.data.sources.source import Source
from countless.errors import OptionError, SourceError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.backends import backend_of, text_rows_within
from countless.estimator.fitting.calibrating import calibrated
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
from countless.query.rewrites.derivation import derive, read_derived
from countless.store import EVIDENCE, StoredRows
from countless.train import require_torch
from countless.train.options import CLOCKS
from countless.workload import WorkloadColumns, asked_columns, read_clauses

if TYPE_CHECKING:
    from countless.train.loop import Progress

logger = logging.getLogger(__name__)

TABLE = "table"  # in a report: a digest that tells the table's files from others
SAMPLE_ROWS = "sample_rows"  # in a report: how many random rows were trained on, if not all


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
    text_network: TextNetwork | str | None = None,
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
    if it holds long strings it is *text* (``text`` and ``no_text`` name columns that are, and are not). Patterns on it
    are answered from evidence rows and counts of substrings. With ``text_model`` one Transformer learns all text
    columns character by character, for samples, completion, anomalies and the paper's methods; without evidence rows it
    is always trained. It reads ``max_length`` characters, by default as many as 99% of strings have. ``text_network``,
    a preset (``default`` or ``paper``) or a :class:`TextNetwork`, asks for it too. Of a budget, the network that has
    more to learn, in bits of a row, gets more. With ``summary``, exact counts are stored too: the rows of every value
    and of pairs of values of two columns, some 300 kB, and those that contain each frequent substring of text.
    Questions about one or two columns, and short patterns, are answered from them, and other answers are corrected by
    them.

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
            text_rows = text_rows_within(whole_fit) if options.trains_text else 0
            learned, sample = backend.encode(source, reading, seed, listener, text_rows)
        held = (item for item in source.derived if item.name in learned.schema.names)
        schema = replace(learned.schema, derived=tuple(held), csv=dict(source.csv or {}))
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
