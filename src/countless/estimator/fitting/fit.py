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
from countless.estimator.fitting.salvage import CALIBRATION, salvaged
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

TABLE = "table"  # key in a report: a digest that identifies the table's files
SAMPLE_ROWS = "sample_rows"  # key in a report: the number of random rows that were trained on, if not all


class LoggingListener(Listener):
    """The default listener of :func:`fit`: it logs stages and epochs, and warns of columns that are left out."""

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
            message = "skipped %d clauses of the workload: they have no filter, or only filters on text"
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
    """Fit a model to a table.

    The time for the whole fit (reading, counting, training, calibrating) is at most five minutes unless ``budget`` or
    ``epochs`` says otherwise; a small table takes less. Ctrl-C ends training early and keeps the best model so far.

    The model and its file hold distinct values, exact counts and random rows of the table (*evidence rows*).

    Args:
        source: A path or glob of CSV, Parquet or JSON files; a pandas, polars or Arrow table; a DuckDB relation; the
            name of a data set (``adult``, ``npm_urls``); or a database, as a DuckDB file or a ``postgresql://`` URL.
        reading: Options for reading the table, as one object.
        network: Options of the network, as one object.
        text_network: The text model: a :class:`TextNetwork`, or the preset ``default`` or ``paper``. It also turns on
            ``text_model``.
        training: Options of the training, as one object.
        resources: Options for memory, clusters and checkpoints, as one object.
        storage: Options for what the model file holds, as one object.
        listener: Receives progress. By default progress is logged, by Python's ``logging``.
        keywords: Every field of :class:`ReadingOptions`, :class:`Network`, :class:`TrainingOptions`,
            :class:`ResourceOptions` and :class:`StorageOptions` by its name. A keyword overrides the object's field.

    These keywords are used most:

    - ``budget``: the time, as ``"90s"``, ``"5m"``, a number of seconds or a ``timedelta``.
    - ``columns`` and ``exclude``: the columns to fit, or to leave out. The name of a struct means all its fields.
    - ``table`` and ``query``: what to read from a database. ``query`` may also be a SELECT on files.
    - ``csv``: how to read a CSV file, by DuckDB's names: ``{"delim": ";", "decimal_separator": ","}``.
    - ``derive``: new columns, such as ``["lower(city) AS city_lower"]``.
    - ``evidence``: how many rows the file holds: a number, ``"5%"``, ``"all"`` or ``"none"``.
    - ``workload``: WHERE clauses that will likely be asked. Training then favours their columns.
    - ``text_model``: train a Transformer on text columns, for synthetic rows, completion and anomalies.
    - ``memory``: the most memory to use, such as ``"2GB"``. A larger table is read from disk.
    - ``checkpoint`` and ``resume``: a file that keeps the training, so that a stopped fit can continue.

    Returns:
        The fitted estimator. Save it with :meth:`Estimator.save`.

    Raises:
        OptionError: An option is wrong. This is checked before the table is read.
        DataError: The table cannot be read, is empty, or has no column that can be modelled.
        MissingExtraError: PyTorch or another package is not installed.
        TrainingError: The checkpoint belongs to another table or other options.

    >>> countless.fit("adult", columns=["age", "sex"], epochs=1, sample_rows=500, hidden=8, calibrate=False)
    <Estimator of 48,842 rows, 2 columns>
    """
    started = time.monotonic()
    options = FitOptions.of(
        keywords,
        reading=reading,
        network=network,
        text_network=text_network,
        training=training,
        resources=resources,
        storage=storage,
    )
    return fit_with_options(source, options, listener or LoggingListener(), started)


def fit_with_options(source: Any, options: FitOptions, listener: Listener, started: float) -> Estimator:
    """Fit a model with checked options; the time budget runs since ``started``, by ``time.monotonic``."""
    require_torch("fitting")
    require_kind(options.network.kind)
    listener = timer = StageTimer(listener)
    reading, training, storage = options.reading, options.training, options.storage
    seed = training.seed
    budget = DEFAULT_BUDGET if training.budget is None and training.epochs is None else training.budget
    spent = time.monotonic() - started
    plan = TimePlan(budget, CLOCKS[training.clock], spent=spent, calibrates=storage.calibrate)
    clauses = None if training.workload is None else read_clauses(training.workload)
    derived = read_derived(reading.derive)
    source = with_csv_options(source, reading.csv)
    # The digest is of the table before it is read, so that a change while it is read shows later.
    digest = table_digest(source, reading.table, reading.query)
    with backend_of(options.resources) as backend:
        limit = None if backend.bounds is None else backend.bounds.duckdb
        opened = _opened(source, reading, derived, limit, listener.loading)
        for warning in opened.warnings():
            listener.notice(warning)
        check_order(options.network, modelled_names(opened, reading))
        with ColumnBlame(lambda: _opened(source, reading, derived, limit), reading):
            text_rows = text_rows_within(budget) if options.trains_text else 0
            encoded, sample = backend.encode(opened, reading, seed, listener, text_rows)
        modelled = tuple(column for column in opened.derived if column.name in encoded.schema.names)
        schema = replace(encoded.schema, derived=modelled, csv=dict(opened.csv or {}))
        listener.table(schema)
        rows = _evidence_section(opened, schema, storage.evidence, seed, listener)
        if storage.calibrate:
            preflight(opened, schema)
        workload = None
        if clauses is not None:
            workload = asked_columns(schema, clauses)
            listener.workload(workload)
        learner = Learner(opened, encoded, sample, options, backend, listener, plan, workload)
        sections, report = learner.sections()
        report[TABLE] = digest
        report[EVIDENCE] = storage.evidence
        if sample is not encoded:
            report[SAMPLE_ROWS] = sample.encoded_rows
        if encoded.mapped is not None and backend.bounds is not None:
            report["on_disk"] = {"bytes": bytes_in_memory(schema), "memory": backend.bounds.memory.total}
        fitted = Estimator(schema, replace(sections, rows=rows), report=report)
        if storage.calibrate:
            stopped = "stopped early, calibrating before the model is kept"
            listener.stage(stopped if report["interrupted"] else "calibrating")
            with salvaged(CALIBRATION, report, listener):
                fitted = calibrated(opened, fitted, seed, listener, plan)
        fitted.report["stages"] = timer.stop()
        return fitted


def _evidence_section(
    source: Source, schema: Schema, size: str, seed: int, listener: Listener
) -> dict[str, StoredRows]:
    """The section of evidence rows, if ``size`` asks for any."""
    count = evidence_rows(size, schema.rows)
    if not count:
        return {}
    listener.stage("drawing evidence rows")
    rows = EvidenceRows.drawn(source, schema, count, seed)
    return {EVIDENCE: StoredRows(rows.arrays(schema))}


def _opened(
    source: Any,
    reading: ReadingOptions,
    derived: Sequence[Derived],
    limit: Limit | None,
    loading: Loading | None = None,
) -> Source:
    """The opened table, with its derived columns."""
    opened = Source.open(
        source, table=reading.table, query=reading.query, loading=loading, limit=limit, flatten=reading.flatten
    )
    check_derived(derived, [name for name, _ in opened.columns()] if derived else ())
    for column in derived:
        try:
            opened = derive(opened, [column])
        except SourceError as error:
            reason = str(error).removeprefix(UNREADABLE)
            raise OptionError(f"{{derive}} {column.sql} AS {column.name}: {reason}") from None
    return opened
