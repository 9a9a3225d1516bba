"""Training recipes: descriptions of a training task. Any process that has the table can run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.data.columns.schema import Schema
from countless.data.columns.strings.text import Strings
from countless.models.network import ColumnsNetwork
from countless.spec import ModelSpec, SharedTextSpec
from countless.train.loop import Progress, Trained, train
from countless.train.options import TrainOptions
from countless.train.speed import PILOT_ROWS
from countless.train.tasks.columns import ColumnsTask
from countless.train.tasks.task import Task
from countless.train.tasks.text import TextTask

CPU = "cpu"


class TrainingTable(Protocol):
    """The part of a :class:`~countless.data.encoding.table.Table` that training reads."""

    @property
    def schema(self) -> Schema:
        """Its columns."""
        ...

    @property
    def strings(self) -> tuple[Strings, ...]:
        """The symbols of each text column."""
        ...

    @property
    def fingerprint(self) -> str:
        """A digest of the table's content."""
        ...

    @property
    def window(self) -> int | None:
        """The number of rows to read together, if they are in files."""
        ...

    def matrix(self) -> NDArray[Any]:
        """The codes (rows, positions)."""
        ...


class Recipe(Protocol):
    """How to make a task from a table. It can be pickled, and has none of the table's rows."""

    @property
    def spec(self) -> ModelSpec | SharedTextSpec:
        """The model's description."""
        ...

    @property
    def options(self) -> TrainOptions:
        """How to train it."""
        ...

    def task(self, table: TrainingTable, device: str = CPU) -> Task:
        """The task. Its model is on ``device`` if the network supports that."""
        ...


@dataclass(frozen=True)
class ColumnsRecipe:
    """Training of a table's columns; see :class:`~countless.train.tasks.columns.ColumnsTask`."""

    spec: ModelSpec
    options: TrainOptions
    network: Callable[[ModelSpec], ColumnsNetwork]
    column_sets: Mapping[tuple[int, ...], float] | None = None
    counts: list[IntArray] | None = None  # rows of each symbol of each position

    def task(self, table: TrainingTable, device: str = CPU) -> Task:
        return ColumnsTask(
            table.matrix(),
            self.spec,
            self.options,
            self.network,
            self.column_sets,
            counts=self.counts,
            window=table.window,
            device=device,
        )


def pilot(recipe: ColumnsRecipe, table: TrainingTable) -> Task:
    """The task on a few rows, to measure its speed."""
    rows = np.array(table.matrix()[:PILOT_ROWS])
    batch = recipe.options.batch_for(len(table.matrix()))
    return ColumnsTask(rows, recipe.spec, replace(recipe.options, batch=batch), recipe.network)


@dataclass(frozen=True)
class TextRecipe:
    """Training of all text columns of a table; see :class:`~countless.train.tasks.text.TextTask`."""

    spec: SharedTextSpec
    options: TrainOptions
    masking: str

    def task(self, table: TrainingTable, device: str = CPU) -> Task:
        """The task. It stays on the CPU, whatever the device."""
        codes = table.matrix() if table.schema.coded else None
        groups, window = table.schema.groups, table.window
        return TextTask(table.strings, self.spec, self.options, self.masking, codes, groups, window=window)


class Trainer(Protocol):
    """Where training takes place. The arguments are those of :func:`~countless.train.loop.train`."""

    def __call__(
        self,
        recipe: Recipe,
        table: TrainingTable,
        *,
        checkpoint: Path | None,
        resume: bool,
        stopped: bool,
        on_progress: Callable[[Progress], None],
    ) -> Trained:
        """Train the task of ``recipe`` on ``table``."""
        ...


def train_here(
    recipe: Recipe,
    table: TrainingTable,
    *,
    checkpoint: Path | None,
    resume: bool,
    stopped: bool,
    on_progress: Callable[[Progress], None],
) -> Trained:
    """Train in this process, alone."""
    return train(
        recipe.task(table),
        recipe.options,
        fingerprint=table.fingerprint,
        checkpoint=checkpoint,
        resume=resume,
        stopped=stopped,
        on_progress=on_progress,
    )
