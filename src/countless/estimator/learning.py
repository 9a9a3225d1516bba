"""The models of a table, learned one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countless import store
from countless.data.counting import count_pairs
from countless.data.ngrams import count_ngrams
from countless.data.schema import Schema
from countless.data.table import Table
from countless.data.text import TextColumn
from countless.errors import TrainingError
from countless.estimator.estimator import COLUMNS_MODEL, PAIRS, SUMMARY, summary_of, text_model
from countless.estimator.kinds import KINDS
from countless.estimator.orders import Orders
from countless.spec import RESMADE, TEXT_MASKINGS, ModelSpec, TextSpec

if TYPE_CHECKING:
    from countless.train.loop import Progress
    from countless.train.options import TrainOptions
    from countless.train.task import Task


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

    def __post_init__(self) -> None:
        if self.masking not in TEXT_MASKINGS:
            raise TrainingError(f"unknown masking of text {self.masking!r}: choose one of {', '.join(TEXT_MASKINGS)}")
        self._sized(1, 1)  # sizes that do not go together are told now, not after other models are trained

    @classmethod
    def preset(cls, name: str) -> TextNetwork:
        """The network called ``name``: ``default`` or ``paper``."""
        if name not in TEXT_PRESETS:
            raise TrainingError(f"unknown preset {name!r} for text: choose {' or '.join(TEXT_PRESETS)}")
        return TEXT_PRESETS[name]

    def spec(self, column: TextColumn) -> TextSpec:
        """The network for ``column``."""
        return self._sized(len(column.characters), column.length)

    def _sized(self, characters: int, length: int) -> TextSpec:
        sizes = (self.width, self.blocks, self.heads, self.inner, self.grams, self.buckets)
        return TextSpec(characters, length, *sizes, gaps=self.masking == "spans")


TEXT_LEARNING_RATE = 3e-3  # unless one is given
GRAMS = "grams"  # an array of text models: most of what they hold, and only looked up, so that halves will do
TEXT_PRESETS = {
    "default": TextNetwork(),
    "paper": TextNetwork(width=32, blocks=8, heads=4, inner=256, grams=()),
}


@dataclass(frozen=True)
class Network:
    """The model of the columns: a ResMADE of the paper's size by default, or another kind that is registered."""

    hidden: int = 256
    blocks: int = 3
    embedding: int = 32
    kind: str = RESMADE

    def __post_init__(self) -> None:
        if min(self.hidden, self.embedding) < 1 or self.blocks < 0:
            raise TrainingError("a network has at least 1 hidden unit, 1 embedding dimension and 0 blocks")
        if self.kind not in KINDS:
            raise TrainingError(f"unknown kind of model {self.kind!r}: choose {' or '.join(KINDS)}, or name its plugin")


@dataclass(frozen=True)
class Learner:
    """Learns the columns of a table, and each of its text columns."""

    table: Table
    options: TrainOptions
    text_options: TrainOptions
    network: Network
    orders: Orders
    text_network: TextNetwork
    dtype: str
    checkpoint: Path | None
    resume: bool
    listener: Listener

    def models(self, summary: bool) -> tuple[dict[str, store.StoredModel], dict[str, Any]]:
        """The models by name, with a ``summary`` of the columns and of each text column, and how training went.

        Who stops one model wants no other: those that follow are kept as they are then.
        """
        from countless.train.columns import ColumnsTask
        from countless.train.text import TextTask

        schema, network, text_network = self.table.schema, self.network, self.text_network
        found: dict[str, store.StoredModel] = {}
        report: dict[str, Any] = {"interrupted": False, "texts": {}}
        if schema.columns:
            self.listener.stage("training")
            sizes = (network.hidden, network.blocks, network.embedding)
            orders = self.orders.positions(schema)
            spec = ModelSpec(schema.sizes, *sizes, orders, schema.groups, network.kind).narrowed()
            task = ColumnsTask(self.table.matrix(), spec, self.options, KINDS[network.kind].make())
            found[COLUMNS_MODEL], columns_report = self._learned(task, self.options, COLUMNS_MODEL, stopped=False)
            report.update(columns_report)
            if summary:
                self.listener.stage("counting pairs of columns")
                found[PAIRS] = store.StoredModel({"kind": PAIRS}, count_pairs(self.table).arrays())
        for index, (column, strings) in enumerate(zip(schema.texts, self.table.strings, strict=True)):
            self.listener.stage(f"training on the text of {column.name}")
            text = TextTask(strings, text_network.spec(column), self.text_options, text_network.masking)
            name = text_model(index)
            found[name], report["texts"][column.name] = self._learned(
                text, self.text_options, name, report["interrupted"]
            )
            report["interrupted"] |= report["texts"][column.name]["interrupted"]
            if summary:
                self.listener.stage(f"counting n-grams of {column.name}")
                counts = count_ngrams(strings.symbols, len(column.characters))
                found[summary_of(index)] = store.StoredModel({"kind": SUMMARY}, counts.arrays())
        return found, report

    def _learned(
        self, task: Task, options: TrainOptions, name: str, stopped: bool
    ) -> tuple[store.StoredModel, dict[str, Any]]:
        from countless.train.loop import train

        trained = train(
            task,
            options,
            fingerprint=self.table.fingerprint,
            checkpoint=None if self.checkpoint is None else checkpoint_of(self.checkpoint, name),
            resume=self.resume,
            stopped=stopped,
            on_progress=self.listener.training,
        )
        arrays = {key: array.astype(self.dtype) for key, array in trained.arrays.items()}
        if GRAMS in arrays:
            arrays[GRAMS] = arrays[GRAMS].astype("float16")
        return store.StoredModel(task.spec.to_json(), arrays), trained.report


def checkpoint_of(path: Path, name: str) -> Path:
    """Where the model called ``name`` keeps its checkpoint, if that of the columns is at ``path``."""
    return path if name == COLUMNS_MODEL else path.with_name(f"{path.name}-{name}")
