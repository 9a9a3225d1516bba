"""From a table to an estimator."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from countless.data.memory import Memory
from countless.data.schema import Schema
from countless.data.source import Source
from countless.data.table import EXCLUDED, MAX_DISTINCT, EncodeOptions
from countless.errors import MissingExtraError, TrainingError
from countless.estimator.calibration import Calibration, CalibrationQuery
from countless.estimator.estimator import Estimator
from countless.estimator.learning import TEXT_LEARNING_RATE, Learner, Listener, Network, TextNetwork
from countless.estimator.orders import Orders
from countless.estimator.parts import ROWS
from countless.estimator.place import place_of
from countless.estimator.replay import kept_rows, rows_of
from countless.estimator.stages import StageTimer
from countless.estimator.wanted import whole
from countless.workload import Asked, Workload, asked_columns, mixed_clauses, read_clauses

logger = logging.getLogger(__name__)

CALIBRATION_QUERIES = (400, 2_000)  # at least and at most; between them one
PER_ROWS = 10  # rows, but no more than look at
COUNTED_ROWS = 1_000_000_000  # rows in all, which takes some seconds
TOGETHER = 256  # calibration queries that are counted, and then walked
DTYPES = ("float16", "float32")  # in which a model may be stored; it is always evaluated in float32
CALIBRATION_STREAM = 7  # keeps calibration's random numbers apart from every other use of the seed


class LoggingListener(Listener):
    """What :func:`fit` does without a listener: stages are logged, and a column that was left out is a warning."""

    def stage(self, name: str) -> None:
        logger.info(name)

    def table(self, schema: Schema) -> None:
        for column in schema.left_out:
            if column.reason != EXCLUDED:
                logger.warning("left out %s: %s", column.name, column.reason)

    def workload(self, asked: Asked) -> None:
        if asked.passed_over:
            message = "passed over %d of the workload's clauses: nothing is filtered, or text alone"
            logger.warning(message, asked.passed_over)


def fit(
    source: Any,
    *,
    table: str | None = None,
    query: str | None = None,
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    epochs: int | None = None,
    budget: float | None = None,
    seed: int = 0,
    masking: str = "uniform",
    learning_rate: float | None = None,
    batch: int | None = None,
    network: Network | None = None,
    order: str | Sequence[str] | None = None,
    orders: int = 1,
    text: Iterable[str] = (),
    no_text: Iterable[str] = (),
    max_length: int | None = None,
    text_network: TextNetwork | str = "default",
    summary: bool = True,
    max_distinct: int = MAX_DISTINCT,
    dtype: str = DTYPES[0],
    workload: Workload | None = None,
    memory: str | int | None = None,
    sample_rows: int | None = None,
    calibrate: bool = True,
    keep_rows: int = 0,
    training: Mapping[str, Any] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    codes: str | os.PathLike[str] | None = None,
    resume: bool = False,
    ray: str | None = None,
    workers: int | None = None,
    threads: int | None = None,
    shared: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
) -> Estimator:
    """Learn the joint distribution of a table's columns.

    ``source`` is a path or glob that DuckDB scans (CSV, Parquet, JSON), a pandas, polars or Arrow table, a DuckDB
    relation, the name of a data set (``adult``, ``npm_urls``, or one of the paper's), or a database: a DuckDB file or a
    ``postgresql://`` URL, of which ``table`` or the rows of ``query`` are read. ``budget`` is in seconds; if neither it
    nor ``epochs`` is given, the table's size decides, and a quarter of an hour is the most. With ``checkpoint``, a
    file, training survives a stop: call again with ``resume=True``. Ctrl-C ends training early and keeps the best model
    so far. ``dtype="float32"`` stores twice the bytes, for no more accuracy that we could see. ``training`` has further
    options of :class:`~countless.train.options.TrainOptions` by name, for experiments.

    The model reads the columns in the table's own order, or in a random one (``order="random:3"``; the number is a
    seed), by ``falling`` or ``rising`` entropy, or the named ones first. With ``orders=10`` it learns ten random ones
    and answers by their mean; it has fewer hidden units then, so that it has as many parameters as with one. Without
    ``calibrate`` it has no error bars.

    A column with more than ``max_distinct`` values, or with nearly as many as rows, is stored as a quantile grid; but
    if it holds long strings it is *text*, and a Transformer learns it character by character (``text`` and ``no_text``
    name columns that are, and are not). Strings are cut at ``max_length`` characters, by default where 99% have ended.
    ``text_network`` is a preset, ``default`` or ``paper``, or a :class:`TextNetwork`. ``budget`` is shared out evenly.
    With ``summary``, exact counts are stored too: the rows of every value and of pairs of values of two columns, some
    300 kB, and those that contain each frequent n-gram of text, some 600 kB. Questions about one or two columns, and
    short patterns, are answered from them, and other answers are corrected by them.

    ``workload`` is what will likely be asked: a file of WHERE clauses (one a line, or with semicolons, or the JSON
    lines of ``countless evaluate --save``), or a list of them. The last part of training is about the columns that they
    filter together.

    With ``memory``, such as ``"2GB"``, no more is taken, however large the table: its codes are written to the folder
    ``codes``, which ``resume=True`` goes on with, or to one that is removed afterwards, and read from there
    (docs/scaling.md). ``sample_rows`` is how many random rows to train on; domains, exact counts and error bars are
    those of all rows nevertheless.

    With ``ray``, the address of a Ray cluster or ``auto``, the table is encoded and learned there, by ``workers``
    processes of so many ``threads`` each (by default one process on each GPU or else on each machine, of one thread).
    ``shared`` is a folder that all its machines see; by default that of the checkpoint. ``memory`` is that of a worker.

    The estimator, and the file it saves, hold every distinct value of the other fitted columns, and some of those.
    ``keep_rows`` of the table's rows are kept in it besides, whole, for :meth:`Estimator.update`; by default none.
    """
    try:
        from countless.train.options import TrainOptions
    except ImportError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("fitting needs PyTorch: pip install 'countless[train]'") from None
    if dtype not in DTYPES:
        raise TrainingError(f"unknown dtype {dtype!r}: choose {' or '.join(DTYPES)}")
    listener = timer = StageTimer(listener or LoggingListener())
    network = network or Network()
    planned = Orders.read(order, orders)
    text_network = TextNetwork.preset(text_network) if isinstance(text_network, str) else text_network
    chosen: dict[str, Any] = {"learning_rate": learning_rate} if learning_rate is not None else {}
    options = TrainOptions(epochs=epochs, budget=budget, batch=batch, masking=masking, seed=seed, **chosen)
    options = options.changed(training or {})
    if sample_rows is not None and sample_rows < 1:
        raise TrainingError("--sample-rows must be at least 1")
    keep_rows = whole(keep_rows, "the number of rows to keep", 0)
    limit = None if memory is None else Memory.read(memory)
    clauses = None if workload is None else read_clauses(workload)
    encode = EncodeOptions(
        None if columns is None else _names(columns),
        _names(exclude),
        max_distinct,
        _names(text),
        _names(no_text),
        max_length,
    )
    kept = None if checkpoint is None else Path(checkpoint)
    text_options = replace(options, learning_rate=learning_rate or TEXT_LEARNING_RATE)
    with (
        place_of(ray, workers, threads, shared, kept) as place,
        place.bounded(limit, None if codes is None else Path(codes)) as bounds,
    ):
        kept_to = None if bounds is None else bounds.duckdb
        source = Source.open(source, table=table, query=query, loading=listener.loading, limit=kept_to)
        learned = place.encoded(source, encode, bounds, seed, resume, listener)
        schema = learned.schema
        listener.table(schema)
        asked = None
        if clauses is not None:
            asked = asked_columns(schema, clauses)
            listener.workload(asked)
        if budget is not None:
            share = budget / (len(schema.texts) + bool(schema.columns))
            options, text_options = (replace(each, budget=share) for each in (options, text_options))
        sample = learned if sample_rows is None else learned.sampled(sample_rows, seed)
        learner = Learner(
            learned,
            sample,
            options,
            text_options,
            network,
            planned,
            text_network,
            dtype,
            kept,
            resume,
            place.train,
            listener,
            asked,
        )
        found, report = learner.models(summary)
        if keep_rows:
            some = whole(keep_rows, "the number of rows to keep", 0)
            found[ROWS] = kept_rows(rows_of(learned.sampled(some, seed)), some, seed)
        fitted = Estimator(schema, found, report=report)
        if calibrate:
            stopped = "stopped early, calibrating before the model is kept"
            listener.stage(stopped if report["interrupted"] else "calibrating")
            fitted = _calibrated(source, fitted, seed, listener)
        report["stages"] = timer.stop()
        return fitted


def _names(names: Iterable[str]) -> tuple[str, ...]:
    """Several names, or one that was given without a list around it."""
    return (names,) if isinstance(names, str) else tuple(names)


def calibration_queries(rows: int, texts: bool = False) -> int:
    """How many random queries calibrate a model of a table of ``rows`` rows; those about text take their time.

    >>> [calibration_queries(rows) for rows in (50, 10_000, 300_000, 1_000_000, 10_000_000)]
    [400, 1000, 2000, 1000, 400]
    >>> calibration_queries(300_000, texts=True)
    400
    """
    least, most = CALIBRATION_QUERIES
    return least if texts else max(least, min(most, rows // PER_ROWS, COUNTED_ROWS // max(1, rows)))


def _calibrated(source: Source, raw: Estimator, seed: int, listener: Listener) -> Estimator:
    """The estimator with its error bars, from random queries whose truth the table tells."""
    clause_seed = int(np.random.SeedSequence([seed, CALIBRATION_STREAM]).generate_state(1)[0])
    count = calibration_queries(raw.rows, bool(raw.schema.texts))
    clauses = mixed_clauses(raw.schema, source, count, clause_seed)
    queries: list[CalibrationQuery] = []
    for first in range(0, count, TOGETHER):
        batch = clauses[first : first + TOGETHER]
        queries += raw.calibration_queries(batch, source.counts(batch))
        listener.calibrating(first + len(batch), count)
    return raw.calibrated(Calibration(tuple(queries)))
