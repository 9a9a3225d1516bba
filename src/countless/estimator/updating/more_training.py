"""Further training of a finished model on the table that it was fitted on."""

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
from countless.estimator.fitting.learning import Listener, bits_to_learn, late, training_on_text
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
NEXT = ".next"  # what the name of a checkpoint ends with until training is over
OTHER_TABLE = (
    "this is not the table that the model was fitted on, or it has changed: {what}; countless update adds new rows to "
    "the model, and countless fit learns the table anew"
)


def more_training(
    estimator: Estimator,
    sections: Sections,
    runtimes: Runtimes,
    table: Any,
    effort: MoreTrainingOptions,
    checkpoint: Path | None,
    listener: Listener | None,
) -> Estimator:
    """The estimator after further training: :meth:`countless.Estimator.train`."""
    began = time.monotonic()
    require_torch("training")
    listener = listener or LoggingListener()
    if not sections.networks:
        raise TrainingError("the model has no network to train, only counts and rows: fit it again with --text-model")
    if COLUMNS in sections.networks:
        require_kind(ModelSpec.from_json(sections.networks[COLUMNS].spec).kind)
    clauses = None if effort.workload is None else read_clauses(effort.workload)
    budget = DEFAULT_BUDGET if effort.budget is None and effort.epochs is None else effort.budget
    calibrates = bool(estimator.calibration.queries)
    plan = TimePlan(budget, spent=time.monotonic() - began, calibrates=calibrates)
    schema, report = estimator.schema, estimator.report
    table = with_default_options(table, schema.csv)
    digest = table_digest(table)
    listener.stage("reading the table")
    source = open_table(table, schema, listener.loading)
    _require_rows(source.count(), schema.rows)
    preflight(source, schema)
    asked = None if clauses is None else asked_columns(schema, clauses)
    rows = int(report[SAMPLE_ROWS]) if SAMPLE_ROWS in report else None
    with bounded(None, None) as bounds:
        try:
            read = replace(schema, derived=(), csv={})  # as the fit had it when it trained
            read = read if TEXT in sections.networks else replace(read, columns=schema.coded)
            needed = bytes_in_memory(read, rows_to_read(read, rows))
            if bounds is None or needed <= bounds.memory.codes:
                learned, sample = encode_in_memory(source, read, rows, _seed(report), listener)
            else:
                listener.notice(out_of_core(needed, bounds.memory))
                learned = encode_mapped(
                    source,
                    ReadingOptions(),
                    bounds.codes,
                    bounds.memory,
                    schema=read,
                    seed=_seed(report),
                    resume=False,
                    events=listener,
                )
                sample = learned if rows is None else learned.sampled(rows, _seed(report))
        except DataError as error:
            if str(error) == CHANGED:
                raise DataError(OTHER_TABLE.format(what="it has other values")) from None
            raise
        _require_counts(learned, None if runtimes.counts is None else runtimes.counts.pairs.counts)
        found, told = _MoreTraining(sections, report, sample, effort, asked, checkpoint, plan, listener).sections()
    report = {**report, **told, TABLE: digest}
    trained = Estimator(schema, found, report=report)
    if calibrates:
        listener.stage("calibrating")
        with salvaged(CALIBRATION, report, listener):
            trained = calibrated(source, trained, _seed(report), listener, plan)
    return trained


@dataclass(frozen=True)
class _MoreTraining:
    """Trains the networks of ``stored`` on the rows of ``table``; ``report`` says how they were fitted."""

    stored: Sections
    report: Mapping[str, Any]
    table: Table
    effort: MoreTrainingOptions
    asked: WorkloadColumns | None
    checkpoint: Path | None
    plan: TimePlan
    listener: Listener

    def sections(self) -> tuple[Sections, dict[str, Any]]:
        """The sections with other networks, and what changes in the report."""
        schema = self.table.schema
        self.plan.start_training(bool(schema.texts), TEXT in self.stored.networks)
        if self.plan.extended:
            self.listener.notice(late(self.plan))
        bits = bits_to_learn(self.table, TEXT in self.stored.networks)
        networks: dict[str, StoredNetwork] = {}
        told: dict[str, Any] = {}
        entry: dict[str, Any] = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "interrupted": False}
        try:
            if schema.coded:
                self.listener.stage("training")
                options = self._options(self.report, LEARNING_RATE, self.plan.training(0, bits))
                networks[COLUMNS], trained = self._trained(COLUMNS, self._columns_task, options, stopped=False)
                told.update(_summed(self.report, trained.report))
                entry |= _entry(trained.report)
            if TEXT in self.stored.networks:
                before = self.report.get("text", {})
                column_names = [column.name for column in schema.texts]
                self.listener.stage(training_on_text(column_names))
                options = self._options(before, TEXT_LEARNING_RATE, self.plan.training(len(bits) - 1, bits))
                networks[TEXT], trained = self._trained(TEXT, self._text_task, options, stopped=entry["interrupted"])
                told["text"] = {**_summed(before, trained.report), "columns": column_names}
                entry["text"] = _entry(trained.report)
                entry["interrupted"] |= trained.interrupted
            self._keep_checkpoints()
        finally:
            self._remove_unfinished()
        more = [*self.report.get("more_training", ()), entry]
        return replace(self.stored, networks=networks), {**told, "interrupted": False, "more_training": more}

    def _options(self, fitted_report: Mapping[str, Any], usual_rate: float, share: float | None) -> TrainOptions:
        """The options of the fit, with another end and a lower learning rate."""
        fitted = {
            name: value for name, value in fitted_report.get("options", {}).items() if name in names(TrainOptions)
        }
        rate = self.effort.learning_rate or PEAK * float(fitted.get("learning_rate", usual_rate))
        end = {"epochs": self.effort.epochs, "budget": self.plan.budget, "share": share}
        return TrainOptions(**fitted | end | {"learning_rate": rate, "warmup": WARMUP, "clock": "wall"})

    def _columns_task(self, options: TrainOptions, weights: Mapping[str, Any]) -> Task:
        from countless.train.tasks.columns import ColumnsTask

        spec = ModelSpec.from_json(self.stored.networks[COLUMNS].spec)
        asked = None if self.asked is None else self.asked.sets
        network, window = KINDS[spec.kind].make(), self.table.window
        return ColumnsTask(self.table.matrix(), spec, options, network, asked, start=weights, window=window)

    def _text_task(self, options: TrainOptions, weights: Mapping[str, Any]) -> Task:
        from countless.train.tasks.text import TextTask

        spec, schema = SharedTextSpec.from_json(self.stored.networks[TEXT].spec), self.table.schema
        codes = self.table.matrix() if schema.coded else None
        masking, window = "spans" if spec.gaps else "prefix", self.table.window
        return TextTask(self.table.strings, spec, options, masking, codes, schema.groups, weights, window)

    def _trained(self, name: str, make: Any, options: TrainOptions, stopped: bool) -> tuple[StoredNetwork, Trained]:
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
        """The weights to begin with: those of the checkpoint if it is of this model, or else those of the model."""
        from countless.train.checkpoint import Checkpoint
        from countless.train.loop import EarlierTraining

        report = self.report if name == COLUMNS else self.report.get("text", {})
        epochs = math.ceil(float(report.get("epochs", 0)))
        path = None if self.checkpoint is None else checkpoint_of(self.checkpoint, name)
        if path is None or not path.exists():
            lacking = "no checkpoint of its training was given" if path is None else f"there is no {path}"
        else:
            try:
                saved = Checkpoint.load(path)
                spec = (ModelSpec if name == COLUMNS else SharedTextSpec).from_json(stored.spec)
                for group in ("best", "model"):  # a run that was stopped is judged after its checkpoint is written
                    weights = {weight: tensor.numpy() for weight, tensor in saved.group(group).items()}
                    if _same_network(stored, spec, saved.identity.get("spec"), weights):
                        return weights, EarlierTraining(epochs, saved.group("adam"))
                lacking = f"{path} is of another model"
            except TrainingError:
                lacking = f"{path} cannot be read"
        self.listener.notice(f"{lacking}: training starts from the weights as the model stores them")
        return stored.weights, EarlierTraining(epochs, {})

    @property
    def _checkpoints(self) -> list[Path]:
        """Those of the networks, if they have a place."""
        place = self.checkpoint
        return [] if place is None else [checkpoint_of(place, name) for name in self.stored.networks]

    def _keep_checkpoints(self) -> None:
        """Put what the runs have left in the place of what they went on from."""
        from countless.train.checkpoint import Checkpoint

        for path in self._checkpoints:
            with suppress(TrainingError):  # a full disk must not cost what was learned
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
    """Whether a checkpoint's weights, stored as the model stores its own, are those of the model."""
    if saved_spec != json.loads(json.dumps(stored.spec)) or set(weights) != set(stored.weights):
        return False
    again = StoredNetwork.encoded(spec, weights, stored.weights.dtype)
    return all(np.array_equal(again.weights[name], stored.weights[name]) for name in weights)


def _summed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The report of a network after further training: its options are those of the fit."""
    sums = {name: before.get(name, 0) + now[name] for name in ("epochs", "rows_seen", "seconds")}
    done = before.get("epochs", 0)
    history = [{**entry, "epoch": done + entry["epoch"]} for entry in now["history"]]
    history = [*before.get("history", ()), *history]
    kept = {"options": before["options"]} if "options" in before else {}
    return {**before, **now, **sums, **kept, "best_epoch": done + now["best_epoch"], "history": history}


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
    """The seed of the fit: with it, the rows that were held out are held out again."""
    options = report.get("options") or report.get("text", {}).get("options", {})
    return int(options.get("seed", 0))


def _require_rows(rows: int, expected: int) -> None:
    if rows != expected:
        raise DataError(OTHER_TABLE.format(what=f"it has {rows:,} rows, and the model was made of {expected:,}"))


def _require_counts(table: Table, expected: Sequence[IntArray] | None) -> None:
    """Raise a :class:`DataError` if a column has other numbers of rows of its values, or a text of its characters."""
    coded = zip(table.schema.modelled, table.counts, expected, strict=True) if expected is not None else ()
    other = [column.name for column, now, before in coded if not np.array_equal(now, before)]
    for text, strings in zip(table.schema.texts, table.strings, strict=bool(table.strings)):
        characters = len(text.characters)
        now = sum(np.bincount(block.ravel(), minlength=characters)[:characters] for block in blocks(strings.symbols))
        if text.cut == 0 and not np.array_equal(now, text.frequencies):  # of strings that are cut all is counted
            other.append(text.name)
    if other:
        raise DataError(OTHER_TABLE.format(what=f'"{other[0]}" has other values'))
