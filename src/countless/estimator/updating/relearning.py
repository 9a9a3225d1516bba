"""Relearning: the networks of a table that has grown are trained on its old and new rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countless.cached_property import cached_property
from countless.data.encoding.schema_growth import Growth
from countless.data.encoding.table import Table, position_counts
from countless.data.sources.source import Source
from countless.data.summaries.count_updates import added_pairs
from countless.data.summaries.substring_counting import StringScans
from countless.data.summaries.substring_updates import added_substrings
from countless.engine.runtimes import Runtimes
from countless.estimator.fitting.learning import Listener, training_on_text
from countless.estimator.fitting.model_kinds import KINDS
from countless.estimator.updating.replay import ReplayRows, matrix_of, mixed, rows_of
from countless.estimator.updating.weight_inheritance import Heritage, heritages, inherited, inherited_context
from countless.options import UpdateOptions
from countless.spec import ModelSpec, SharedTextSpec
from countless.store import COLUMNS, PAIRS, TEXT, Sections, StoredNetwork, StoredSummary, substrings_of
from countless.train.options import LEARNING_RATE, TEXT_LEARNING_RATE, TrainOptions

if TYPE_CHECKING:
    from countless.train.tasks.task import Task

BUDGET_SHARE = 0.12  # of the fit's time, for training; drawing and calibrating take additional time
LEAST_BUDGET, DEFAULT_BUDGET = 5.0, 60.0  # seconds; the latter if the time of the fit is unknown
PEAK = 0.25  # of the fit's learning rate
WARMUP = 0.1
MOST_ROWS = 2_000_000  # old and new rows to train on
UPDATE_STREAM = 11  # separates the random numbers of an update from other uses of the seed


@dataclass(frozen=True)
class RelearningOptions(UpdateOptions):
    """The options of an update, with defaults that follow from the fit's report."""

    def seconds(self, report: Mapping[str, Any]) -> float | None:
        """The time to train all networks, in seconds; None if epochs decide. ``report`` is that of the fit."""
        if self.budget is not None or self.epochs is not None:
            return None if self.budget is None else float(self.budget)
        return sum(_seconds(part) for part in (report, report.get("text", {})) if "seconds" in part)

    def train_options(self, report: Mapping[str, Any], default_rate: float, share: float) -> TrainOptions:
        """The options of one network, with a share of the time; ``report`` is that of its training in the fit."""
        fitted = report.get("options", {})
        budget = None if self.budget is None else self.budget * share
        if self.budget is None and self.epochs is None:
            budget = _seconds(report)
        return TrainOptions(
            epochs=self.epochs,
            budget=budget,
            batch=fitted.get("batch"),
            learning_rate=self.learning_rate or PEAK * float(fitted.get("learning_rate", default_rate)),
            warmup=WARMUP,
            masking=str(fitted.get("masking", "uniform")),
            clock=str(fitted.get("clock", "wall")),
            seed=self.seed,
            held_out=0.0,
        )


@dataclass(frozen=True, eq=False)
class Relearner:
    """Trains the networks of a table on its old and new rows.

    ``stored`` are the sections before the update, ``runtimes`` the same as runtimes, and ``report`` is that of the fit.
    ``new`` are the encoded rows of ``source``. ``update_report`` is filled during training.
    """

    stored: Sections
    runtimes: Runtimes
    report: Mapping[str, Any]
    growth: Growth
    new: Table
    old: ReplayRows
    source: Source
    options: RelearningOptions
    listener: Listener
    networks: dict[str, StoredNetwork] = field(default_factory=dict)
    summaries: dict[str, StoredSummary] = field(default_factory=dict)
    update_report: dict[str, Any] = field(default_factory=lambda: {"interrupted": False})

    def sections(self) -> tuple[Sections, dict[str, Any]]:
        """The new sections, and the report: bits of the new rows and of the old ones, before and after training."""
        if self.growth.schema.coded:
            self._train_columns()
        if TEXT in self.stored.networks:
            self._train_texts()
        for index in range(len(self.growth.schema.texts)):
            self._count_substrings(index)
        return Sections(self.networks, self.summaries), self.update_report

    @cached_property
    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.options.seed, UPDATE_STREAM])

    @cached_property
    def _mixed_rows(self) -> ReplayRows:
        """Old rows, followed by new ones; with strings only if there is a text network."""
        old, new = self.old, rows_of(self.new)
        if TEXT not in self.stored.networks:
            old, new = replace(old, strings=()), replace(new, strings=())
        return mixed(old, new, self.growth.old.rows, MOST_ROWS, self._rng)

    @cached_property
    def _matrix(self) -> NDArray[Any] | None:
        return matrix_of(self._mixed_rows, self.growth.schema.sizes) if self.growth.schema.coded else None

    @cached_property
    def _heritages(self) -> list[Heritage]:
        counts = self.runtimes.counts
        return heritages(self.growth, None if counts is None else counts.pairs.counts)

    @property
    def _text_share(self) -> float:
        """The share of the time for text columns: each gets as much as all other columns together."""
        texts = len(self.growth.schema.texts) if TEXT in self.stored.networks else 0
        return texts / (texts + bool(self.growth.schema.coded))

    def _train_columns(self) -> None:
        from countless.train.tasks.columns import ColumnsTask

        schema, matrix = self.growth.schema, self._matrix
        assert matrix is not None
        counts = [np.bincount(matrix[:, position], minlength=size) for position, size in enumerate(schema.sizes)]
        if self.runtimes.counts is not None:
            self.listener.stage("adding to the counts of pairs of columns")
            pairs = added_pairs(self.runtimes.counts.pairs, self.growth, self.new)
            self.summaries[PAIRS] = StoredSummary(pairs.arrays())
            counts = position_counts(schema.modelled, pairs.counts)
        network = self.stored.networks[COLUMNS]
        spec = replace(ModelSpec.from_json(network.spec), sizes=schema.sizes)
        options = self.options.train_options(self.report, LEARNING_RATE, 1.0 - self._text_share)
        start = inherited(network.weights, self._heritages, counts)
        task = ColumnsTask(matrix, spec, options, KINDS[spec.kind].make(), start=start)
        self.listener.stage("training")
        self.networks[COLUMNS], network_report = self._retrain(task, options, network)
        self.update_report.update(network_report)

    def _train_texts(self) -> None:
        from countless.train.tasks.text import TextTask

        network, names = self.stored.networks[TEXT], [column.name for column in self.growth.schema.texts]
        options = self.options.train_options(self.report.get("text", {}), TEXT_LEARNING_RATE, self._text_share)
        spec = SharedTextSpec.from_json(network.spec)
        spec = replace(spec, context=self.growth.schema.sizes) if spec.context else spec
        start = inherited_context(network.weights, self._heritages)
        masking = "spans" if spec.gaps else "prefix"
        task = TextTask(
            self._mixed_rows.strings, spec, options, masking, self._matrix, self.growth.schema.groups, start=start
        )
        self.listener.stage(training_on_text(names))
        self.networks[TEXT], network_report = self._retrain(task, options, network)
        self.update_report["text"] = {"columns": names, **network_report}
        self.update_report["interrupted"] |= network_report["interrupted"]

    def _count_substrings(self, index: int) -> None:
        summary = self.runtimes.summaries[index]
        if summary is None:
            return
        column = self.growth.schema.texts[index]
        self.listener.stage(f"counting substrings of {column.name}")
        counts = added_substrings(summary, StringScans.of(self.source, column, self.new.rows), column)
        self.summaries[substrings_of(index)] = StoredSummary(counts.arrays())

    def _retrain(
        self, task: Task, options: TrainOptions, old_network: StoredNetwork
    ) -> tuple[StoredNetwork, dict[str, Any]]:
        from countless.train.retraining import retrain

        new_rows = max(1, round(task.rows * self.new.rows / self.growth.schema.rows))  # these are the last ones
        result = retrain(
            task, options, new_rows, stopped=self.update_report["interrupted"], on_progress=self.listener.training
        )
        network_report = {
            "unit": task.unit,
            "epochs": result.trained.report["epochs"],
            "training_seconds": result.trained.report["seconds"],
            "learned_rows": task.rows,
            "interrupted": result.trained.interrupted,
            "bits_before": result.bits_before,
            "bits_after": result.bits_after,
            "options": result.trained.report["options"],
        }
        return StoredNetwork.encoded(task.spec, result.trained.arrays, old_network.weights.dtype), network_report


def _seconds(report: Mapping[str, Any]) -> float:
    """The time to train a network again; ``report`` is that of its training in the fit."""
    seconds = report.get("seconds")
    return DEFAULT_BUDGET if seconds is None else max(LEAST_BUDGET, BUDGET_SHARE * float(seconds))
