"""The models of a table, learned one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countless.data.blocks import counted, spaced
from countless.data.counting import count_pairs
from countless.data.ngram_sample import count_ngrams_within
from countless.data.progress import Meter, Reading
from countless.data.schema import Schema
from countless.data.table import Table
from countless.data.text import TextColumn
from countless.errors import TrainingError
from countless.estimator.kinds import KINDS
from countless.estimator.orders import Orders, entropy
from countless.estimator.timeplan import TimePlan
from countless.spec import RESMADE, TEXT_MASKINGS, ModelSpec, SharedTextSpec
from countless.store import COLUMNS, PAIRS, TEXT, Sections, StoredNetwork, StoredSummary, ngrams_of
from countless.workload import Asked

if TYPE_CHECKING:
    from countless.train.loop import Progress
    from countless.train.options import TrainOptions
    from countless.train.recipe import ColumnsRecipe, Recipe, TextRecipe, Trainer


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

    def notice(self, message: str) -> None:
        """Something was decided that the user should know of."""

    def training(self, progress: Progress) -> None:
        """A training step was made."""

    def reading(self, reading: Reading) -> None:
        """A pass over the table has gone on."""

    def calibrating(self, done: int, total: int) -> None:
        """A calibration query was answered."""


@dataclass(frozen=True)
class TextNetwork:
    """The Transformer that learns the text columns, and how it is masked: ``prefix``, ``spans`` or ``none``.

    ``spans`` also learns what follows a gap inside a string. N-grams of the lengths ``grams`` have embeddings in so
    many ``buckets``. A ``width``, ``inner`` layer or number of ``buckets`` that is not given is chosen by the table.
    """

    width: int | None = None
    blocks: int = 2
    heads: int = 4
    inner: int | None = None
    grams: tuple[int, ...] = (2, 3, 4)
    buckets: int | None = None
    masking: str = "prefix"

    def __post_init__(self) -> None:
        if self.masking not in TEXT_MASKINGS:
            raise TrainingError(f"unknown masking of text {self.masking!r}: choose one of {', '.join(TEXT_MASKINGS)}")
        self.spec([])  # sizes that do not go together are told now, not after other models are trained

    @classmethod
    def preset(cls, name: str) -> TextNetwork:
        """The network called ``name``: ``default`` or ``paper``."""
        if name not in TEXT_PRESETS:
            raise TrainingError(f"unknown preset {name!r} for text: choose {' or '.join(TEXT_PRESETS)}")
        return TEXT_PRESETS[name]

    def sizes(self, characters: float) -> tuple[int, int, int]:
        """Width, inner layer and buckets of n-grams for so many characters, in all rows and text columns.

        >>> TextNetwork().sizes(9_000_000), TextNetwork().sizes(5_000_000), TextNetwork().sizes(5_000)
        ((64, 256, 16384), (64, 256, 2560), (32, 128, 512))
        """
        chosen = next(sizes for least, sizes in TEXT_SIZES if characters >= least)
        given = (self.width, self.inner, self.buckets)
        width, inner, buckets = (usual if own is None else own for own, usual in zip(given, chosen, strict=True))
        return width, inner, buckets

    def spec(self, columns: Sequence[TextColumn], share: float = 1.0, context: tuple[int, ...] = ()) -> SharedTextSpec:
        """The network for ``columns``, to be trained on this share of their rows.

        ``context`` has the number of symbols of each position of the table's other columns.
        """
        width, inner, buckets = self.sizes(share * sum(sum(column.frequencies) for column in columns))
        return SharedTextSpec.of(
            [(column.characters, column.length) for column in columns] or [("", 1)],
            width=width,
            blocks=self.blocks,
            heads=self.heads,
            inner=inner,
            grams=self.grams,
            buckets=buckets,
            context=context,
            gaps=self.masking == "spans",
        )


# From so many characters on: width, inner layer, and buckets for n-grams of each length (docs/text.md).
TEXT_SIZES = ((8_000_000, (64, 256, 1 << 14)), (200_000, (64, 256, 2_560)), (0, (32, 128, 1 << 9)))
NARROW, WIDE = (256, 3), (512, 2)  # hidden units and blocks; the first is the paper's
WIDE_FROM_ROWS, WIDE_FROM_PASSES = 100_000, 20.0  # over them, from which the wide network pays (docs/accuracy.md)
EVEN, BY_ENTROPY = "even", "entropy"
ENTROPY_ROWS, ENTROPY_BLOCK = 1 << 20, 1 << 12  # rows, and rows of a block, of which entropies are told
LEAST_BITS = 0.5  # that every position counts for when units are shared out
TEXT_LEARNING_RATE = 3e-3  # unless one is given
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

    @property
    def is_given(self) -> bool:
        """Whether units and blocks are both given, so that nothing is to be chosen."""
        return self.hidden is not None and self.blocks is not None

    def sizes(self, rows: int, passes: float) -> tuple[int, int, int]:
        """Hidden units, blocks and embedding for a table of so many rows.

        ``passes`` is how often a wide network would go through them in the time that there is.

        >>> Network().sizes(1_000_000, 25.0), Network().sizes(1_000_000, 2.0), Network().sizes(50_000, 90.0)
        ((512, 2, 32), (256, 3, 32), (256, 3, 32))
        """
        return self.sized(WIDE if rows >= WIDE_FROM_ROWS and passes >= WIDE_FROM_PASSES else NARROW)

    def sized(self, size: tuple[int, int]) -> tuple[int, int, int]:
        """Hidden units, blocks and embedding: those of ``size`` where they are not given."""
        hidden, blocks = size
        return self.hidden or hidden, blocks if self.blocks is None else self.blocks, self.embedding


@dataclass(frozen=True)
class Learner:
    """Learns the columns of a table, and its text columns.

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
    plan: TimePlan
    asked: Asked | None = None

    def sections(self, summary: bool) -> tuple[Sections, dict[str, Any]]:
        """The networks, with a ``summary`` of the columns and of each text column, and how training went.

        Who stops one model wants no other: those that follow are kept as they are then.
        """
        summaries = self._counts() if summary else {}
        networks: dict[str, StoredNetwork] = {}
        report: dict[str, Any] = {"interrupted": False}
        schema = self.table.schema
        self.plan.start_training(bool(schema.texts))
        if self.plan.extended:
            self.listener.notice(late(self.plan))
        bits = self._bits()
        if schema.coded:
            self.listener.stage("training")
            recipe = self._columns_recipe(self.plan.training(0, bits))
            networks[COLUMNS], columns_report = self._learned(recipe, COLUMNS, stopped=False)
            report.update(columns_report)
            if self.asked is not None:
                report["workload"] = {"queries": self.asked.queries, "column_sets": len(self.asked.sets)}
        if schema.texts:
            names = [column.name for column in schema.texts]
            self.listener.stage(training_on_text(names))
            text = self._text_recipe(self.plan.training(len(bits) - 1, bits))
            networks[TEXT], text_report = self._learned(text, TEXT, report["interrupted"])
            report["text"] = {"columns": names, **text_report}
            report["interrupted"] |= text_report["interrupted"]
        return Sections(networks, summaries), report

    def _counts(self) -> dict[str, StoredSummary]:
        """What is counted, by name. It comes before training, which gets the time that counting leaves."""
        schema, found = self.table.schema, {}
        if schema.coded:
            self.listener.stage("counting pairs of columns")
            meter = Meter(self.listener.reading, self.table.rows)
            found[PAIRS] = StoredSummary(count_pairs(self.table, tell=meter.at).arrays())
        for index, column in enumerate(schema.texts):
            self.listener.stage(f"counting n-grams of {column.name}")
            counts = count_ngrams_within(
                self.table.strings[index].symbols,
                len(column.characters),
                self.plan.counting(len(schema.texts) - index),
                self.plan.clock,
                Meter(self.listener.reading, self.table.rows).at,
            )
            found[ngrams_of(index)] = StoredSummary(counts.arrays())
        return found

    def _bits(self) -> list[float]:
        """Bits of a row that each network has to learn, if nothing but frequencies is known: columns, then text."""
        schema = self.table.schema
        found = []
        if schema.coded:
            found.append(sum(map(entropy, counted(_some(self.sample.matrix()), schema.sizes))))
        frequencies = [np.array(column.frequencies, dtype=np.int64) for column in schema.texts]
        if frequencies:
            found.append(sum(float(each.sum()) / max(1, schema.rows) * entropy(each) for each in frequencies))
        return found

    def _columns_recipe(self, share: float | None) -> ColumnsRecipe:
        from countless.train.recipe import ColumnsRecipe

        schema, network, options = self.table.schema, self.network, replace(self.options, share=share)
        orders, matrix = self.orders.positions(self.table), self.sample.matrix()

        def recipe(hidden: int, blocks: int, embedding: int) -> ColumnsRecipe:
            spec = ModelSpec(schema.sizes, hidden, blocks, embedding, orders, schema.groups, network.kind).narrowed()
            if network.units == BY_ENTROPY and network.kind == RESMADE and len(spec.orders) == 1:
                spec = with_units_by_entropy(spec, _some(matrix))
            asked = None if self.asked is None else self.asked.sets
            return ColumnsRecipe(spec, options, KINDS[network.kind].make(), asked)

        return recipe(*self._sizes(len(matrix), share, recipe))

    def _sizes(
        self, rows: int, share: float | None, recipe: Callable[[int, int, int], ColumnsRecipe]
    ) -> tuple[int, int, int]:
        """The sizes of the columns' network: those it began with, or what pays in the time that there is."""
        network = self.network
        if self.resume and self.checkpoint is not None:
            for size in (NARROW, WIDE):
                begun = network.sized(size)
                if is_spec_of(recipe(*begun).spec, self.checkpoint):
                    return begun
        passes = float(self.options.epochs_for(rows) or math.inf)
        if share is not None and rows >= WIDE_FROM_ROWS and not network.is_given:
            wide = recipe(*network.sized(WIDE))
            passes = min(passes, passes_within(wide, self.sample, share))
        return network.sizes(rows, passes)

    def _text_recipe(self, share: float | None) -> TextRecipe:
        from countless.train.recipe import TextRecipe

        schema, trained_on = self.table.schema, self.sample.rows / self.table.rows
        spec = self.text_network.spec(schema.texts, trained_on, schema.sizes)
        return TextRecipe(spec, replace(self.text_options, share=share), self.text_network.masking)

    def _learned(self, recipe: Recipe, name: str, stopped: bool) -> tuple[StoredNetwork, dict[str, Any]]:
        trained = self.trainer(
            recipe,
            self.sample,
            checkpoint=None if self.checkpoint is None else checkpoint_of(self.checkpoint, name),
            resume=self.resume,
            stopped=stopped,
            on_progress=self.listener.training,
        )
        return StoredNetwork.encoded(recipe.spec, trained.arrays, self.dtype), trained.report


def with_units_by_entropy(spec: ModelSpec, matrix: NDArray[Any]) -> ModelSpec:
    """``spec`` with more hidden units of the degrees at which positions tell more."""
    if len(spec.sizes) < 3:
        return spec
    counts = counted(matrix, spec.sizes)
    bits = np.array([entropy(counts[position]) for position in spec.orders[0]])
    wanted = (bits[:-1] + bits[1:]) / 2 + LEAST_BITS
    edges = np.rint(np.cumsum(wanted) / wanted.sum() * spec.hidden).astype(int)
    return replace(spec, units=tuple(np.diff(edges, prepend=0).tolist()))


def late(plan: TimePlan) -> str:
    """What to tell if reading a table left too little time to train."""
    spent, budget, left = (round(seconds or 0.0) for seconds in (plan.spent, plan.budget, plan.left))
    return (
        f"reading the table took {spent} seconds of the {budget} that the fit has: it goes on for {left} seconds more, "
        f"to train; for a better model give it more time, such as --budget {max(1, math.ceil(plan.spent / 20))}m"
    )


def passes_within(recipe: ColumnsRecipe, table: Table, seconds: float) -> float:
    """About how often a network would go through the rows of ``table`` in so many seconds of training."""
    from countless.train.options import CLOCKS
    from countless.train.recipe import pilot
    from countless.train.speed import rows_per_second

    speed = rows_per_second(pilot(recipe, table), CLOCKS[recipe.options.clock])
    return speed * seconds / len(table.matrix())


def is_spec_of(spec: ModelSpec, checkpoint: Path) -> bool:
    """Whether a checkpoint holds the network that ``spec`` describes."""
    from countless.train.checkpoint import saved_spec

    return saved_spec(checkpoint) == spec.to_json()


def _some(matrix: NDArray[Any]) -> NDArray[Any]:
    """Enough rows of a matrix to know how often each symbol occurs: all of a small one, else evenly spread blocks."""
    starts = spaced(len(matrix), ENTROPY_BLOCK, ENTROPY_ROWS // ENTROPY_BLOCK)
    return np.concatenate([matrix[first : first + ENTROPY_BLOCK] for first in starts])


def training_on_text(names: Sequence[str]) -> str:
    """The stage in which the text columns of these names are learned.

    >>> training_on_text(["a", "b", "c"])
    'training on the text of a, b and c'
    """
    *others, last = names
    return f"training on the text of {' and '.join([', '.join(others), last] if others else [last])}"


def checkpoint_of(path: Path, name: str) -> Path:
    """Where the model called ``name`` keeps its checkpoint, if that of the columns is at ``path``."""
    return path if name == COLUMNS else path.with_name(f"{path.name}-{name}")
