"""Further training of a finished model, on the table that it was fitted on."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from countless.arrays import IntArray
from countless.data.encoding.blocks import blocks
from countless.data.encoding.encoder import CHANGED
from countless.data.encoding.memory_bounds import bounded
from countless.data.encoding.out_of_core import encode_mapped
from countless.data.encoding.table import Table, bytes_in_memory
from countless.data.sources.file_formats import with_default_options
from countless.data.sources.fingerprints import table_digest
from countless.engine.runtimes import Runtimes
from countless.errors import DataError, TrainingError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.backends import checkpoint_of, encode_in_memory, out_of_core, rows_to_read
from countless.estimator.fitting.calibrating import calibrated
from countless.estimator.fitting.fit import SAMPLE_ROWS, TABLE, LoggingListener
from countless.estimator.fitting.learning import Listener, bits_to_learn, late_warning, training_on_text
from countless.estimator.fitting.model_kinds import KINDS, require_kind
from countless.estimator.fitting.preflight import preflight
from countless.estimator.fitting.salvage import CALIBRATION, salvaged
from countless.estimator.fitting.time_budget import DEFAULT_BUDGET, TimePlan
from countless.estimator.model_table import open_table
from countless.options import MoreTrainingOptions, ReadingOptions
from countless.settings import names
from countless.spec import ModelSpec, SharedTextSpec
from countless.store import COLUMNS, TEXT, Sections, StoredNetwork
from countless.train import require_torch
from countless.train.options import LEARNING_RATE, TEXT_LEARNING_RATE, TrainOptions
from countless.workload import WorkloadColumns, asked_columns, read_clauses

if TYPE_CHECKING:
    from countless.train.loop import EarlierTraining, Trained
    from countless.train.tasks.task import Task

PEAK = 0.5  # of the fit's learning rate
WARMUP = 0.05
NEXT = ".next"  # suffix of a new checkpoint until training is over
OTHER_TABLE = (
    "this is not the table that the model was fitted on, or it has changed: {what}; countless update adds new rows to "
    "the model, and countless fit learns the table anew"
)


def more_training(
    estimator: Estimator,
    sections: Sections,
    runtimes: Runtimes,
    table: Any,
    options: MoreTrainingOptions,
    checkpoint: Path | None,
    listener: Listener | None,
) -> Estimator:
    """The estimator after further training: :meth:`countless.Estimator.train`."""
    started = time.monotonic()
    require_torch("training")
    listener = listener or LoggingListener()
    if not sections.networks:
        raise TrainingError("the model has no network to train, only counts and rows: fit it again with --text-model")
    if COLUMNS in sections.networks:
        require_kind(ModelSpec.from_json(sections.networks[COLUMNS].spec).kind)
    clauses = None if options.workload is None else read_clauses(options.workload)
    budget = DEFAULT_BUDGET if options.budget is None and options.epochs is None else options.budget
    calibrates = bool(estimator.calibration.queries)
    plan = TimePlan(budget, spent=time.monotonic() - started, calibrates=calibrates)
    schema, report = estimator.schema, estimator.report
    table = with_default_options(table, schema.csv)
    digest = table_digest(table)
    listener.stage("reading the table")
    source = open_table(table, schema, listener.loading)
    _require_rows(source.count(), schema.rows)
    preflight(source, schema)
    workload = None if clauses is None else asked_columns(schema, clauses)
    rows = int(report[SAMPLE_ROWS]) if SAMPLE_ROWS in report else None
    with bounded(None, None) as bounds:
        try:
            fit_schema = replace(schema, derived=(), csv={})  # as it was during the fit
            fit_schema = fit_schema if TEXT in sections.networks else replace(fit_schema, columns=schema.coded)
            needed = bytes_in_memory(fit_schema, rows_to_read(fit_schema, rows))
            if bounds is None or needed <= bounds.memory.codes:
                encoded, sample = encode_in_memory(source, fit_schema, rows, _seed(report), listener)
            else:
                listener.notice(out_of_core(needed, bounds.memory))
                encoded = encode_mapped(
                    source,
                    ReadingOptions(),
                    bounds.codes,
                    bounds.memory,
                    schema=fit_schema,
                    seed=_seed(report),
                    resume=False,
                    events=listener,
                )
                sample = encoded if rows is None else encoded.sampled(rows, _seed(report))
        except DataError as error:
            if str(error) == CHANGED:
                raise DataError(OTHER_TABLE.format(what="it has other values")) from None
            raise
        _require_counts(encoded, None if runtimes.counts is None else runtimes.counts.pairs.counts)
        training = _MoreTraining(sections, report, sample, options, workload, checkpoint, plan, listener)
        new_sections, changes = training.sections()
    report = {**report, **changes, TABLE: digest}
    trained = Estimator(schema, new_sections, report=report)
    if calibrates:
        listener.stage("calibrating")
        with salvaged(CALIBRATION, report, listener):
            trained = calibrated(source, trained, _seed(report), listener, plan)
    return trained


@dataclass(frozen=True)
class _MoreTraining:
    """Trains the networks of ``stored`` on the rows of ``table``; ``report`` is that of the fit."""

    stored: Sections
    report: Mapping[str, Any]
    table: Table
    options: MoreTrainingOptions
    workload: WorkloadColumns | None
    checkpoint: Path | None
    plan: TimePlan
    listener: Listener

    def sections(self) -> tuple[Sections, dict[str, Any]]:
        """The sections with the trained networks, and the changes of the report."""
        schema = self.table.schema
        self.plan.start_training(bool(schema.texts), TEXT in self.stored.networks)
        if self.plan.extended:
            self.listener.notice(late_warning(self.plan))
        bits = bits_to_learn(self.table, TEXT in self.stored.networks)
        networks: dict[str, StoredNetwork] = {}
        changes: dict[str, Any] = {}
        entry: dict[str, Any] = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "interrupted": False}
        try:
            if schema.coded:
                self.listener.stage("training")
                options = self._train_options(self.report, LEARNING_RATE, self.plan.training(0, bits))
                networks[COLUMNS], trained = self._train(COLUMNS, self._columns_task, options, stopped=False)
                changes.update(_summed(self.report, trained.report))
                entry |= _entry(trained.report)
            if TEXT in self.stored.networks:
                fit_report = self.report.get("text", {})
                column_names = [column.name for column in schema.texts]
                self.listener.stage(training_on_text(column_names))
                options = self._train_options(fit_report, TEXT_LEARNING_RATE, self.plan.training(len(bits) - 1, bits))
                networks[TEXT], trained = self._train(TEXT, self._text_task, options, stopped=entry["interrupted"])
                changes["text"] = {**_summed(fit_report, trained.report), "columns": column_names}
                entry["text"] = _entry(trained.report)
                entry["interrupted"] |= trained.interrupted
            self._keep_checkpoints()
        finally:
            self._remove_unfinished()
        entries = [*self.report.get("more_training", ()), entry]
        return replace(self.stored, networks=networks), {**changes, "interrupted": False, "more_training": entries}

    def _train_options(self, fit_report: Mapping[str, Any], default_rate: float, share: float | None) -> TrainOptions:
        """The options of the fit, with another end of training and a lower learning rate."""
        fit_options = {
            name: value for name, value in fit_report.get("options", {}).items() if name in names(TrainOptions)
        }
        rate = self.options.learning_rate or PEAK * float(fit_options.get("learning_rate", default_rate))
        end = {"epochs": self.options.epochs, "budget": self.plan.budget, "share": share}
        return TrainOptions(**fit_options | end | {"learning_rate": rate, "warmup": WARMUP, "clock": "wall"})

    def _columns_task(self, options: TrainOptions, weights: Mapping[str, Any]) -> Task:
        from countless.train.tasks.columns import ColumnsTask

        spec = ModelSpec.from_json(self.stored.networks[COLUMNS].spec)
        column_sets = None if self.workload is None else self.workload.sets
        network, window = KINDS[spec.kind].make(), self.table.window
        return ColumnsTask(self.table.matrix(), spec, options, network, column_sets, start=weights, window=window)

    def _text_task(self, options: TrainOptions, weights: Mapping[str, Any]) -> Task:
        from countless.train.tasks.text import TextTask

        spec, schema = SharedTextSpec.from_json(self.stored.networks[TEXT].spec), self.table.schema
        codes = self.table.matrix() if schema.coded else None
        masking, window = "spans" if spec.gaps else "prefix", self.table.window
        return TextTask(self.table.strings, spec, options, masking, codes, schema.groups, weights, window)

    def _train(self, name: str, make: Any, options: TrainOptions, stopped: bool) -> tuple[StoredNetwork, Trained]:
        from countless.train.loop import train

        before = self.stored.networks[name]
        weights, earlier = self._earlier(name, before)
        task = make(options, weights)
        trained = train(
            task,
            options,
            checkpoint=None if self.checkpoint is None else _next(checkpoint_of(self.checkpoint, name)),
            stopped=stopped,
            on_progress=self.listener.training,
            earlier=earlier,
        )
        return StoredNetwork.encoded(task.spec, trained.arrays, before.weights.dtype), trained

    def _earlier(self, name: str, stored: StoredNetwork) -> tuple[Mapping[str, Any], EarlierTraining]:
        """The weights to start from: those of the checkpoint if it is of this model, or else the model's."""
        from countless.train.checkpoint import Checkpoint
        from countless.train.loop import EarlierTraining

        report = self.report if name == COLUMNS else self.report.get("text", {})
        epochs = math.ceil(float(report.get("epochs", 0)))
        path = None if self.checkpoint is None else checkpoint_of(self.checkpoint, name)
        if path is None or not path.exists():
            reason = "no checkpoint of its training was given" if path is None else f"there is no {path}"
        else:
            try:
                saved = Checkpoint.load(path)
                spec = (ModelSpec if name == COLUMNS else SharedTextSpec).from_json(stored.spec)
                for group in ("best", "model"):  # a stopped run is validated after its checkpoint is written
                    weights = {weight: tensor.numpy() for weight, tensor in saved.group(group).items()}
                    if _same_network(stored, spec, saved.identity.get("spec"), weights):
                        return weights, EarlierTraining(epochs, saved.group("adam"))
                reason = f"{path} is of another model"
            except TrainingError:
                reason = f"{path} cannot be read"
        self.listener.notice(f"{reason}: training starts from the weights as the model stores them")
        return stored.weights, EarlierTraining(epochs, {})

    @property
    def _checkpoints(self) -> list[Path]:
        """The checkpoint files of the networks; none if there is no checkpoint."""
        checkpoint = self.checkpoint
        return [] if checkpoint is None else [checkpoint_of(checkpoint, name) for name in self.stored.networks]

    def _keep_checkpoints(self) -> None:
        """Replace the old checkpoints by those of this training."""
        from countless.train.checkpoint import Checkpoint

        for path in self._checkpoints:
            with suppress(TrainingError):  # a full disk must not lose the trained model
                Checkpoint.load(_next(path)).without_model().save(path)

    def _remove_unfinished(self) -> None:
        for path in self._checkpoints:
            with suppress(OSError):
                os.unlink(_next(path))


def _next(path: Path) -> Path:
    return path.with_name(path.name + NEXT)


def _same_network(
    stored: StoredNetwork, spec: ModelSpec | SharedTextSpec, saved_spec: Any, weights: Mapping[str, Any]
) -> bool:
    """Whether a checkpoint's weights, in the type of the model file, equal those of the model."""
    if saved_spec != json.loads(json.dumps(stored.spec)) or set(weights) != set(stored.weights):
        return False
    encoded = StoredNetwork.encoded(spec, weights, stored.weights.dtype)
    return all(np.array_equal(encoded.weights[name], stored.weights[name]) for name in weights)


def _summed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The report of a network after further training; its options stay those of the fit."""
    sums = {name: before.get(name, 0) + now[name] for name in ("epochs", "rows_seen", "seconds")}
    earlier_epochs = before.get("epochs", 0)
    history = [{**entry, "epoch": earlier_epochs + entry["epoch"]} for entry in now["history"]]
    history = [*before.get("history", ()), *history]
    options = {"options": before["options"]} if "options" in before else {}
    return {**before, **now, **sums, **options, "best_epoch": earlier_epochs + now["best_epoch"], "history": history}


def _entry(report: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of further training: validation before and after it."""
    bits = ("train_bits", "masked_bits", "unmasked_bits")
    before = report["history"][0]
    return {
        "unit": report["unit"],
        "epochs": report["epochs"],
        "seconds": report["seconds"],
        "interrupted": report["interrupted"],
        "before": {name: before[name] for name in bits},
        "after": {name: report[name] for name in bits},
        "options": report["options"],
    }


def _seed(report: Mapping[str, Any]) -> int:
    """The seed of the fit, so that the same rows are held out again."""
    options = report.get("options") or report.get("text", {}).get("options", {})
    return int(options.get("seed", 0))


def _require_rows(rows: int, expected: int) -> None:
    if rows != expected:
        raise DataError(OTHER_TABLE.format(what=f"it has {rows:,} rows, and the model was made of {expected:,}"))


def _require_counts(table: Table, expected: Sequence[IntArray] | None) -> None:
    """Raise a :class:`DataError` if the counts of a column's values, or of a text's characters, are not as expected."""
    coded = zip(table.schema.modelled, table.counts, expected, strict=True) if expected is not None else ()
    changed = [column.name for column, now, before in coded if not np.array_equal(now, before)]
    for text, strings in zip(table.schema.texts, table.strings, strict=bool(table.strings)):
        characters = len(text.characters)
        now = sum(np.bincount(block.ravel(), minlength=characters)[:characters] for block in blocks(strings.symbols))
        is_cut = text.cut > 0  # then the frequencies also count the characters that were cut off
        if not is_cut and not np.array_equal(now, text.frequencies):
            changed.append(text.name)
    if changed:
        raise DataError(OTHER_TABLE.format(what=f'"{changed[0]}" has other values'))
