"""Training recipes: descriptions of a training task that any process with the table can carry out."""

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
    """What training reads of a :class:`~countless.data.encoding.table.Table`."""

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
        """A digest: two tables with the same one train alike."""
        ...

    @property
    def window(self) -> int | None:
        """How many rows to read together, if they are in files."""
        ...

    def matrix(self) -> NDArray[Any]:
        """The codes (rows, positions)."""
        ...


class Recipe(Protocol):
    """How to make a task of a table. It pickles, and holds nothing of the table's rows."""

    @property
    def spec(self) -> ModelSpec | SharedTextSpec:
        """The model's description."""
        ...

    @property
    def options(self) -> TrainOptions:
        """How to train it."""
        ...

    def task(self, table: TrainingTable, device: str = CPU) -> Task:
        """The task, whose model is on ``device`` if it can be."""
        ...


@dataclass(frozen=True)
class ColumnsRecipe:
    """The columns of a table; see :class:`~countless.train.tasks.columns.ColumnsTask`."""

    spec: ModelSpec
    options: TrainOptions
    network: Callable[[ModelSpec], ColumnsNetwork]
    asked: Mapping[tuple[int, ...], float] | None = None
    counts: list[IntArray] | None = None  # rows of each symbol of each position

    def task(self, table: TrainingTable, device: str = CPU) -> Task:
        return ColumnsTask(
            table.matrix(),
            self.spec,
            self.options,
            self.network,
            self.asked,
            counts=self.counts,
            window=table.window,
            device=device,
        )


def pilot(recipe: ColumnsRecipe, table: TrainingTable) -> Task:
    """The task on a few rows, to find out how fast it is."""
    few = np.array(table.matrix()[:PILOT_ROWS])
    batch = recipe.options.batch_for(len(table.matrix()))
    return ColumnsTask(few, recipe.spec, replace(recipe.options, batch=batch), recipe.network)


@dataclass(frozen=True)
class TextRecipe:
    """The text columns of a table, all of them; see :class:`~countless.train.tasks.text.TextTask`."""

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
        """Train what ``recipe`` makes of ``table``."""
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
