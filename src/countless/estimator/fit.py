"""From a table to an estimator."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from countless import store
from countless.data.ngrams import count_ngrams
from countless.data.schema import Schema
from countless.data.source import Source
from countless.data.table import EXCLUDED, MAX_DISTINCT, EncodeOptions, Table
from countless.data.text import TextColumn
from countless.errors import MissingExtraError, TrainingError
from countless.estimator.calibration import Calibration, CalibrationQuery
from countless.estimator.estimator import COLUMNS_MODEL, SUMMARY, Estimator, summary_of, text_model
from countless.spec import ModelSpec, TextSpec
from countless.workload import mixed_clauses

if TYPE_CHECKING:
    from countless.train.loop import Progress
    from countless.train.task import Task

logger = logging.getLogger(__name__)

CALIBRATION_QUERIES = 400
DTYPES = ("float32", "float16")  # in which a model may be stored; it is always evaluated in float32
CALIBRATION_STREAM = 7  # keeps calibration's random numbers apart from every other use of the seed


class Listener:
    """Hears how a fit goes on; override what you want to show."""

    def stage(self, name: str) -> None:
        """A stage begins."""

    def table(self, schema: Schema) -> None:
        """The table has been read and encoded."""

    def training(self, progress: Progress) -> None:
        """A training step was made."""

    def calibrating(self, done: int, total: int) -> None:
        """A calibration query was answered."""


class LoggingListener(Listener):
    """What :func:`fit` does without a listener: stages are logged, and a column that was left out is a warning."""

    def stage(self, name: str) -> None:
        logger.info(name)

    def table(self, schema: Schema) -> None:
        for column in schema.left_out:
            if column.reason != EXCLUDED:
                logger.warning("left out %s: %s", column.name, column.reason)


@dataclass(frozen=True)
class TextNetwork:
    """The size of the Transformer that learns a text column, and how it is masked: ``prefix``, ``spans`` or ``none``.

    ``spans`` also learns what follows a gap inside a string.
    """

    width: int = 64
    blocks: int = 2
    heads: int = 4
    inner: int = 256
    grams: tuple[int, ...] = (2, 3, 4)
    buckets: int = 1 << 14
    masking: str = "prefix"

    def spec(self, column: TextColumn) -> TextSpec:
        """The network for ``column``."""
        sizes = (self.width, self.blocks, self.heads, self.inner, self.grams, self.buckets)
        return TextSpec(len(column.characters), column.length, *sizes, gaps=self.masking == "spans")


TEXT_MASKINGS = ("prefix", "spans", "none")
TEXT_PRESETS = {
    "default": TextNetwork(),
    "paper": TextNetwork(width=32, blocks=8, heads=4, inner=256, grams=()),
}


@dataclass(frozen=True)
class Network:
    """The size of the ResMADE: the paper's by default."""

    hidden: int = 256
    blocks: int = 3
    embedding: int = 32

    def __post_init__(self) -> None:
        if min(self.hidden, self.embedding) < 1 or self.blocks < 0:
            raise TrainingError("a network has at least 1 hidden unit, 1 embedding dimension and 0 blocks")


def fit(
    source: Any,
    *,
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    epochs: int | None = None,
    budget: float | None = None,
    seed: int = 0,
    masking: str = "uniform",
    learning_rate: float | None = None,
    batch: int | None = None,
    network: Network | None = None,
    text: Iterable[str] = (),
    no_text: Iterable[str] = (),
    max_length: int | None = None,
    text_network: TextNetwork | str = "default",
    summary: bool = True,
    max_distinct: int = MAX_DISTINCT,
    dtype: str = "float32",
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    listener: Listener | None = None,
) -> Estimator:
    """Learn the joint distribution of a table's columns.

    ``source`` is a path or glob that DuckDB scans (CSV, Parquet, JSON), a pandas, polars or Arrow table, or a DuckDB
    relation. ``budget`` is in seconds. With ``checkpoint``, a file, training survives a stop: call again with
    ``resume=True``. Ctrl-C ends training early and keeps the best model so far. ``dtype="float16"`` halves the model.

    A column with more than ``max_distinct`` values, or with nearly as many as rows, is stored as a quantile grid; but
    if it holds long strings it is *text*, and a Transformer learns it character by character (``text`` and ``no_text``
    name columns that are, and are not). Strings are cut at ``max_length`` characters, by default where 99% have ended.
    ``text_network`` is a preset, ``default`` or ``paper``, or a :class:`TextNetwork`. ``budget`` is shared out evenly.
    With ``summary``, how many rows contain each frequent n-gram of text is stored too: some 600 kB, and short patterns
    are answered exactly.

    The estimator, and the file it saves, hold every distinct value of the other fitted columns, and some of those.
    """
    try:
        from countless.train.columns import ColumnsTask
        from countless.train.loop import train
        from countless.train.options import TrainOptions
        from countless.train.text import TextTask
    except ImportError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("fitting needs PyTorch: pip install 'countless[train]'") from None
    if dtype not in DTYPES:
        raise TrainingError(f"unknown dtype {dtype!r}: choose {' or '.join(DTYPES)}")
    listener = listener or LoggingListener()
    network = network or Network()
    text_network = _preset(text_network) if isinstance(text_network, str) else text_network
    source = Source.open(source)
    encode = EncodeOptions(
        None if columns is None else _names(columns),
        _names(exclude),
        max_distinct,
        _names(text),
        _names(no_text),
        max_length,
    )
    table = Table.encode(source, encode, listener.stage)
    schema = table.schema
    listener.table(schema)
    models = len(schema.texts) + bool(schema.columns)
    chosen = {"learning_rate": learning_rate} if learning_rate is not None else {}
    options = TrainOptions(
        epochs=epochs,
        budget=None if budget is None else budget / models,
        batch=batch,
        masking=masking,
        seed=seed,
        **chosen,
    )

    def learned(task: Task, name: str) -> tuple[store.StoredModel, dict[str, Any]]:
        trained = train(
            task,
            options,
            fingerprint=table.fingerprint,
            checkpoint=None if checkpoint is None else checkpoint_of(checkpoint, name),
            resume=resume,
            on_progress=listener.training,
        )
        arrays = {key: array.astype(dtype) for key, array in trained.arrays.items()}
        return store.StoredModel(task.spec.to_json(), arrays), trained.report

    found: dict[str, store.StoredModel] = {}
    report: dict[str, Any] = {"interrupted": False, "texts": {}}
    if schema.columns:
        listener.stage("training")
        spec = ModelSpec(schema.sizes, network.hidden, network.blocks, network.embedding, groups=schema.groups)
        found[COLUMNS_MODEL], columns_report = learned(ColumnsTask(table.matrix(), spec, options), COLUMNS_MODEL)
        report.update(columns_report)
    for index, (column, strings) in enumerate(zip(schema.texts, table.strings, strict=True)):
        listener.stage(f"training on the text of {column.name}")
        task = TextTask(strings, text_network.spec(column), options, text_network.masking)
        found[text_model(index)], text_report = learned(task, text_model(index))
        if summary:
            listener.stage(f"counting n-grams of {column.name}")
            counts = count_ngrams(strings.symbols, len(column.characters))
            found[summary_of(index)] = store.StoredModel({"kind": SUMMARY}, counts.arrays())
        report["texts"][column.name] = text_report
        report["interrupted"] |= text_report["interrupted"]
    stopped = "stopped early, calibrating before the model is kept"
    listener.stage(stopped if report["interrupted"] else "calibrating")
    return _calibrated(source, Estimator(schema, found, report=report), seed, listener)


def checkpoint_of(path: str | os.PathLike[str], name: str) -> Path:
    """Where the model called ``name`` keeps its checkpoint, if that of the columns is at ``path``."""
    place = Path(path)
    return place if name == COLUMNS_MODEL else place.with_name(f"{place.name}-{name}")


def _preset(name: str) -> TextNetwork:
    if name not in TEXT_PRESETS:
        raise TrainingError(f"unknown preset {name!r} for text: choose {' or '.join(TEXT_PRESETS)}")
    return TEXT_PRESETS[name]


def _names(names: Iterable[str]) -> tuple[str, ...]:
    """Several names, or one that was given without a list around it."""
    return (names,) if isinstance(names, str) else tuple(names)


def _calibrated(source: Source, raw: Estimator, seed: int, listener: Listener) -> Estimator:
    """The estimator with its error bars, from random queries whose truth the table tells."""
    clause_seed = int(np.random.SeedSequence([seed, CALIBRATION_STREAM]).generate_state(1)[0])
    clauses = mixed_clauses(raw.schema, source, CALIBRATION_QUERIES, clause_seed)
    queries = []
    for done, (where, truth) in enumerate(zip(clauses, source.counts(clauses), strict=True), 1):
        queries.append(CalibrationQuery(where, truth, raw.estimate(where).rows))
        listener.calibrating(done, CALIBRATION_QUERIES)
    return raw.calibrated(Calibration(tuple(queries)))
