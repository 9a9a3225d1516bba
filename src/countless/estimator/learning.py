"""The models of a table, learned one after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countless import store
from countless.data.blocks import counted
from countless.data.counting import count_pairs
from countless.data.ngrams import count_ngrams
from countless.data.progress import Meter, Reading
from countless.data.schema import Schema
from countless.data.table import Table
from countless.data.text import TextColumn
from countless.errors import TrainingError
from countless.estimator.kinds import KINDS
from countless.estimator.orders import Orders, entropy
from countless.estimator.parts import COLUMNS_MODEL, PAIRS, SUMMARY, summary_of, text_model
from countless.spec import RESMADE, TEXT_MASKINGS, ModelSpec, TextSpec
from countless.workload import Asked

if TYPE_CHECKING:
    from countless.train.loop import Progress
    from countless.train.options import TrainOptions
    from countless.train.recipe import Recipe, Trainer


class Listener:
    """Hears how a fit goes on; override what you want to show."""

    def stage(self, name: str) -> None:
        """A stage begins."""

    def loading(self, done: int, expected: int | None) -> None:
        """So many rows have come from PostgreSQL, of about so many, if it has a notion of it."""

    def table(self, schema: Schema) -> None:
        """The table has been read and encoded."""

    def workload(self, asked: Asked) -> None:
        """The workload has been read, and fits the table."""

    def training(self, progress: Progress) -> None:
        """A training step was made."""

    def reading(self, reading: Reading) -> None:
        """A pass over the table has gone on."""

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

    def spec(self, column: TextColumn, context: tuple[int, ...] = ()) -> TextSpec:
        """The network for ``column``, in rows whose other columns have ``context`` symbols at each position."""
        return self._sized(len(column.characters), column.length, context)

    def _sized(self, characters: int, length: int, context: tuple[int, ...] = ()) -> TextSpec:
        sizes = (self.width, self.blocks, self.heads, self.inner, self.grams, self.buckets)
        return TextSpec(characters, length, *sizes, context=context, gaps=self.masking == "spans")


NARROW, WIDE = (256, 3), (512, 2)  # hidden units and blocks; the first is the paper's
WIDE_FROM_ROWS, WIDE_FROM_SECONDS = 100_000, 300.0  # of which the wide network pays (docs/accuracy.md)
EVEN, BY_ENTROPY = "even", "entropy"
LEAST_BITS = 0.5  # that every position counts for when units are shared out
TEXT_LEARNING_RATE = 3e-3  # unless one is given
GRAMS = "grams"  # an array of text models: most of what they hold, and only looked up, so that halves will do
TEXT_PRESETS = {
    "default": TextNetwork(),
    "paper": TextNetwork(width=32, blocks=8, heads=4, inner=256, grams=()),
}


@dataclass(frozen=True)
class Network:
    """The model of the columns: a ResMADE, or another kind that is registered.

    ``hidden`` units and ``blocks`` that are not given are chosen by the table and the time to train. ``units`` tells
    how a ResMADE of one order shares its hidden units out over the columns: by ``entropy``, more to those that tell
    more, or ``even``, as the paper has it.
    """

    hidden: int | None = None
    blocks: int | None = None
    embedding: int = 32
    kind: str = RESMADE
    units: str = BY_ENTROPY

    def __post_init__(self) -> None:
        if min(self.hidden or 1, self.embedding) < 1 or self.hidden == 0 or (self.blocks or 0) < 0:
            raise TrainingError("a network has at least 1 hidden unit, 1 embedding dimension and 0 blocks")
        if self.units not in (EVEN, BY_ENTROPY):
            raise TrainingError(f"unknown way to share out units {self.units!r}: choose {EVEN} or {BY_ENTROPY}")
        if self.kind not in KINDS:
            raise TrainingError(f"unknown kind of model {self.kind!r}: choose {' or '.join(KINDS)}, or name its plugin")

    def sizes(self, rows: int, budget: float | None) -> tuple[int, int, int]:
        """Hidden units, blocks and embedding for a table of so many rows, to be trained for ``budget`` seconds.

        >>> Network().sizes(1_000_000, 900.0), Network().sizes(50_000, 120.0)
        ((512, 2, 32), (256, 3, 32))
        """
        worth = rows >= WIDE_FROM_ROWS and (budget is None or budget >= WIDE_FROM_SECONDS)
        hidden, blocks = WIDE if worth else NARROW
        return self.hidden or hidden, blocks if self.blocks is None else self.blocks, self.embedding


@dataclass(frozen=True)
class Learner:
    """Learns the columns of a table, and each of its text columns.

    It counts the rows of ``table`` and trains on those of ``sample``, which are the same, or some of them.
    """

    table: Table
    sample: Table
    options: TrainOptions
    text_options: TrainOptions
    network: Network
    orders: Orders
    text_network: TextNetwork
    dtype: str
    checkpoint: Path | None
    resume: bool
    trainer: Trainer
    listener: Listener
    asked: Asked | None = None

    def models(self, summary: bool) -> tuple[dict[str, store.StoredModel], dict[str, Any]]:
        """The models by name, with a ``summary`` of the columns and of each text column, and how training went.

        Who stops one model wants no other: those that follow are kept as they are then.
        """
        from countless.train.recipe import ColumnsRecipe, TextRecipe

        schema, network, text_network = self.table.schema, self.network, self.text_network
        found: dict[str, store.StoredModel] = {}
        report: dict[str, Any] = {"interrupted": False, "texts": {}}
        if schema.columns:
            matrix = self.sample.matrix()
            self.listener.stage("training")
            options = self.options.ended(len(matrix))
            sizes = network.sizes(len(matrix), options.budget)
            orders = self.orders.positions(self.table)
            spec = ModelSpec(schema.sizes, *sizes, orders, schema.groups, network.kind).narrowed()
            if network.units == BY_ENTROPY and network.kind == RESMADE and len(spec.orders) == 1:
                spec = with_units_by_entropy(spec, matrix)
            asked = None if self.asked is None else self.asked.sets
            recipe = ColumnsRecipe(spec, options, KINDS[network.kind].make(), asked)
            found[COLUMNS_MODEL], columns_report = self._learned(recipe, COLUMNS_MODEL, stopped=False)
            report.update(columns_report)
            if self.asked is not None:
                report["workload"] = {"queries": self.asked.queries, "column_sets": len(self.asked.sets)}
            if summary:
                self.listener.stage("counting pairs of columns")
                found[PAIRS] = store.StoredModel({"kind": PAIRS}, count_pairs(self.table).arrays())
        for index, column in enumerate(schema.texts):
            self.listener.stage(f"training on the text of {column.name}")
            text_spec = text_network.spec(column, schema.sizes)
            text = TextRecipe(index, text_spec, self.text_options, text_network.masking)
            name = text_model(index)
            found[name], report["texts"][column.name] = self._learned(text, name, report["interrupted"])
            report["interrupted"] |= report["texts"][column.name]["interrupted"]
            if summary:
                self.listener.stage(f"counting n-grams of {column.name}")
                meter = Meter(self.listener.reading, self.table.rows)
                counts = count_ngrams(self.table.strings[index].symbols, len(column.characters), meter.at)
                found[summary_of(index)] = store.StoredModel({"kind": SUMMARY}, counts.arrays())
        return found, report

    def _learned(self, recipe: Recipe, name: str, stopped: bool) -> tuple[store.StoredModel, dict[str, Any]]:
        trained = self.trainer(
            recipe,
            self.sample,
            checkpoint=None if self.checkpoint is None else checkpoint_of(self.checkpoint, name),
            resume=self.resume,
            stopped=stopped,
            on_progress=self.listener.training,
        )
        arrays = {key: array.astype(self.dtype) for key, array in trained.arrays.items()}
        if GRAMS in arrays:
            arrays[GRAMS] = arrays[GRAMS].astype("float16")
        return store.StoredModel(recipe.spec.to_json(), arrays), trained.report


def with_units_by_entropy(spec: ModelSpec, matrix: NDArray[Any]) -> ModelSpec:
    """``spec`` with more hidden units of the degrees at which positions tell more."""
    if len(spec.sizes) < 3:
        return spec
    counts = counted(matrix, spec.sizes)
    bits = np.array([entropy(counts[position]) for position in spec.orders[0]])
    wanted = (bits[:-1] + bits[1:]) / 2 + LEAST_BITS
    edges = np.rint(np.cumsum(wanted) / wanted.sum() * spec.hidden).astype(int)
    return replace(spec, units=tuple(np.diff(edges, prepend=0).tolist()))


def checkpoint_of(path: Path, name: str) -> Path:
    """Where the model called ``name`` keeps its checkpoint, if that of the columns is at ``path``."""
    return path if name == COLUMNS_MODEL else path.with_name(f"{path.name}-{name}")
