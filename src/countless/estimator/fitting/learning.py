"""Learning of a table: exact counts first, then the networks, one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from countless.arrays import IntArray
from countless.data.columns.schema import Schema
from countless.data.columns.strings.text import TextColumn
from countless.data.encoding.table import Table
from countless.data.evidence import evidence_rows
from countless.data.progress import Events, Meter
from countless.data.sources.source import Source
from countless.data.summaries.counting import count_pairs
from countless.data.summaries.substring_counting import StringScans, count_substrings
from countless.estimator.fitting.backends import Backend, checkpoint_of
from countless.estimator.fitting.model_kinds import KINDS
from countless.estimator.fitting.orders import entropy, orders_of
from countless.estimator.fitting.time_budget import TimePlan
from countless.options import BY_ENTROPY, FitOptions, Network, TextNetwork
from countless.spec import RESMADE, ModelSpec, SharedTextSpec
from countless.store import COLUMNS, PAIRS, TEXT, Sections, StoredNetwork, StoredSummary, substrings_of
from countless.train.options import CLOCKS, HOT_STEPS, LEARNING_RATE, TEXT_LEARNING_RATE, TrainOptions
from countless.workload import WorkloadColumns

if TYPE_CHECKING:
    from countless.train.loop import Progress
    from countless.train.tasks.recipe import ColumnsRecipe, Recipe, TextRecipe


class Listener(Events):
    """Receives the progress of a fit. Override the methods that you need; each does nothing by default.

    >>> class Printer(countless.Listener):
    ...     def stage(self, name: str) -> None:
    ...         print(name)
    >>> countless.fit("adult", listener=Printer())  # doctest: +SKIP
    """

    def loading(self, done: int, expected: int | None) -> None:
        """Rows were read from PostgreSQL.

        Args:
            done: Number of rows so far.
            expected: About how many there will be, if PostgreSQL knows.
        """

    def table(self, schema: Schema) -> None:
        """The table was read and encoded.

        Args:
            schema: Its columns.
        """

    def workload(self, asked: WorkloadColumns) -> None:
        """The workload was read.

        Args:
            asked: The columns that its clauses filter.
        """

    def training(self, progress: Progress) -> None:
        """A training step is done.

        Args:
            progress: The epoch, the loss and the time left.
        """

    def calibrating(self, done: int, total: int) -> None:
        """A calibration question was answered.

        Args:
            done: Number of answers so far.
            total: Number of all questions.
        """


# The least number of characters, and for it: width, inner layer, buckets for n-grams of each length (docs/text.md).
TEXT_SIZES = ((8_000_000, (64, 256, 1 << 14)), (200_000, (64, 256, 2_560)), (0, (32, 128, 1 << 9)))
SMALL, NARROW, WIDE = (128, 3), (256, 3), (512, 2)  # hidden units and blocks; NARROW is the paper's
WIDE_FROM_ROWS, WIDE_FROM_PASSES = 100_000, 20.0  # the least for a wide network (docs/accuracy.md)
LEAST_BITS = 0.5  # added to the bits of each position when hidden units are distributed


@dataclass(frozen=True)
class Learner:
    """Counts the rows of a table and trains its networks.

    ``table`` is the encoded ``source``, whose rows are counted. ``sample`` has the rows to train on: the same table, or
    some of its rows. With a ``workload``, training favours the columns that its clauses filter.
    """

    source: Source
    table: Table
    sample: Table
    options: FitOptions
    backend: Backend
    listener: Listener
    plan: TimePlan
    workload: WorkloadColumns | None = None

    def sections(self) -> tuple[Sections, dict[str, Any]]:
        """The networks and the exact counts, and the report of the training.

        After an interrupt the remaining models stay untrained.
        """
        summaries = self._summaries() if self.options.storage.summary else {}
        networks: dict[str, StoredNetwork] = {}
        report: dict[str, Any] = {"interrupted": False}
        schema = self.table.schema
        trains_text = bool(schema.texts) and self.options.trains_text
        self.plan.start_training(bool(schema.texts), trains_text)
        if self.plan.extended:
            self.listener.notice(late_warning(self.plan))
        bits = bits_to_learn(self.sample, trains_text)
        if schema.coded:
            self.listener.stage("training")
            recipe = self._columns_recipe(partial(self.plan.training, 0, bits))
            networks[COLUMNS], columns_report = self._train(recipe, COLUMNS, stopped=False)
            report.update(columns_report)
            if self.workload is not None:
                report["workload"] = {"queries": self.workload.queries, "column_sets": len(self.workload.sets)}
        if trains_text:
            names = [column.name for column in schema.texts]
            self.listener.stage(training_on_text(names))
            text = self._text_recipe(self.plan.training(len(bits) - 1, bits))
            networks[TEXT], text_report = self._train(text, TEXT, report["interrupted"])
            report["text"] = {"columns": names, **text_report}
            report["interrupted"] |= text_report["interrupted"]
        return Sections(networks, summaries), report

    @property
    def _stores_all_rows(self) -> bool:
        """Whether the file holds all rows. Then counts are exact, and the networks are only for other questions."""
        return evidence_rows(self.options.storage.evidence, self.table.rows) >= self.table.rows

    def _summaries(self) -> dict[str, StoredSummary]:
        """The exact counts, by section. They come first, and training gets the time that is left."""
        schema, summaries = self.table.schema, {}
        if schema.coded:
            self.listener.stage("counting pairs of columns")
            meter = Meter(self.listener.reading, self.table.rows)
            summaries[PAIRS] = StoredSummary(count_pairs(self.table, tell=meter.at).arrays())
        storage = self.options.storage
        has_counts = storage.text_counts != "none" and not (storage.text_counts == "auto" and self._stores_all_rows)
        for index, column in enumerate(schema.texts if has_counts else ()):
            self.listener.stage(f"counting substrings of {column.name}")
            counts = count_substrings(
                StringScans.of(self.source, column, schema.rows),
                column,
                size=None if storage.text_counts == "auto" else int(storage.text_counts),
                kept_rows=evidence_rows(storage.evidence, schema.rows),
                seconds=self.plan.counting(len(schema.texts) - index, self.options.trains_text),
                seed=self.options.training.seed,
                clock=self.plan.clock,
                tell=Meter(self.listener.reading, self.table.rows).at,
            )
            summaries[substrings_of(index)] = StoredSummary(counts.arrays())
        return summaries

    def _columns_recipe(self, share: Callable[[], float | None]) -> ColumnsRecipe:
        """The recipe of the columns' network; ``share`` returns the seconds that are left to train it."""
        from countless.train.tasks.recipe import ColumnsRecipe

        schema, network = self.table.schema, self.options.network
        options = TrainOptions.of(self.options.training, LEARNING_RATE, share(), HOT_STEPS)
        orders, counts = orders_of(network, self.table), self.sample.symbol_counts

        def recipe(hidden: int, blocks: int, embedding: int) -> ColumnsRecipe:
            spec = ModelSpec(schema.sizes, hidden, blocks, embedding, orders, schema.groups, network.kind)
            spec = replace(spec, parts=len(schema.calendar)).narrowed()
            if network.units == BY_ENTROPY and network.kind == RESMADE and len(spec.orders) == 1:
                spec = with_units_by_entropy(spec, counts)
            column_sets = None if self.workload is None else self.workload.sets
            return ColumnsRecipe(spec, options, KINDS[network.kind].make(), column_sets, counts)

        sizes = self._network_sizes(options.epochs_for(len(self.sample.matrix())), share(), recipe)
        # Choosing the sizes took time, so the share is another.
        options = TrainOptions.of(self.options.training, LEARNING_RATE, share(), HOT_STEPS)
        return recipe(*sizes)

    def _network_sizes(
        self, epochs: int | None, share: float | None, recipe: Callable[[int, int, int], ColumnsRecipe]
    ) -> tuple[int, int, int]:
        """The sizes of the columns' network: those of the checkpoint, or what pays in the available time."""
        network, resources, rows = self.options.network, self.options.resources, len(self.sample.matrix())
        if resources.resume and resources.checkpoint is not None:
            for size in (SMALL, NARROW, WIDE):
                sizes = sizes_of(network, size)
                if is_spec_of(recipe(*sizes).spec, resources.checkpoint):
                    return sizes
        if self._stores_all_rows:
            return sizes_of(network, SMALL)
        passes = float(epochs or math.inf)
        has_sizes = network.hidden is not None and network.blocks is not None
        if share is not None and rows >= WIDE_FROM_ROWS and not has_sizes:
            wide = recipe(*sizes_of(network, WIDE))
            passes = min(passes, passes_within(wide, self.sample, share))
        return sizes_of(network, size_for(rows, passes))

    def _text_recipe(self, share: float | None) -> TextRecipe:
        """The recipe of the text network; ``share`` is the time to train it, in seconds."""
        from countless.train.tasks.recipe import TextRecipe

        schema, sampled_share = self.table.schema, self.sample.encoded_rows / self.table.rows
        network = self.options.text_network
        if self._stores_all_rows:
            width, inner, buckets = text_sizes(network, 0.0)
            network = replace(network, width=width, inner=inner, buckets=buckets)
        spec = text_spec(network, schema.texts, sampled_share, schema.sizes)
        return TextRecipe(spec, TrainOptions.of(self.options.training, TEXT_LEARNING_RATE, share), network.masking)

    def _train(self, recipe: Recipe, name: str, stopped: bool) -> tuple[StoredNetwork, dict[str, Any]]:
        """Train the network called ``name``. If the fit was ``stopped`` before, it stays untrained."""
        resources = self.options.resources
        trained = self.backend.train(
            recipe,
            self.sample,
            checkpoint=None if resources.checkpoint is None else checkpoint_of(resources.checkpoint, name),
            resume=resources.resume,
            stopped=stopped,
            on_progress=self.listener.training,
        )
        return StoredNetwork.encoded(recipe.spec, trained.arrays, self.options.storage.dtype), trained.report


def bits_to_learn(table: Table, text: bool) -> list[float]:
    """Bits per row when only frequencies are known, for each network: the columns', and with ``text`` the texts'."""
    schema = table.schema
    bits = []
    if schema.coded:
        bits.append(sum(map(entropy, table.symbol_counts)))
    frequencies = [np.array(column.frequencies, dtype=np.int64) for column in schema.texts if text]
    if frequencies:
        bits.append(sum(float(counts.sum()) / max(1, schema.rows) * entropy(counts) for counts in frequencies))
    return bits


def size_for(rows: int, passes: float) -> tuple[int, int]:
    """Hidden units and blocks for a table of this many rows.

    ``passes`` is how many times a wide network could read the rows in the available time.

    >>> size_for(1_000_000, 25.0), size_for(1_000_000, 2.0), size_for(50_000, 90.0)
    ((512, 2), (256, 3), (256, 3))
    """
    return WIDE if rows >= WIDE_FROM_ROWS and passes >= WIDE_FROM_PASSES else NARROW


def sizes_of(network: Network, size: tuple[int, int]) -> tuple[int, int, int]:
    """Hidden units, blocks and embedding: those of the options, or else those of ``size``."""
    hidden, blocks = size
    return network.hidden or hidden, blocks if network.blocks is None else network.blocks, network.embedding


def text_sizes(network: TextNetwork, characters: float) -> tuple[int, int, int]:
    """Width, inner layer and buckets of n-grams for this many characters, in all rows and text columns.

    >>> network = TextNetwork()
    >>> text_sizes(network, 9_000_000), text_sizes(network, 5_000_000), text_sizes(network, 5_000)
    ((64, 256, 16384), (64, 256, 2560), (32, 128, 512))
    """
    defaults = next(sizes for least, sizes in TEXT_SIZES if characters >= least)
    options = (network.width, network.inner, network.buckets)
    width, inner, buckets = (
        default if option is None else option for option, default in zip(options, defaults, strict=True)
    )
    return width, inner, buckets


def text_spec(
    network: TextNetwork, columns: Sequence[TextColumn], share: float, context: tuple[int, ...]
) -> SharedTextSpec:
    """The spec of the network for ``columns``, which is trained on this ``share`` of their rows.

    ``context`` has the number of symbols of each position of the table's other columns.
    """
    width, inner, buckets = text_sizes(network, share * sum(sum(column.frequencies) for column in columns))
    return SharedTextSpec.of(
        [(column.characters, column.length) for column in columns],
        width=width,
        blocks=network.blocks,
        heads=network.heads,
        inner=inner,
        grams=network.grams,
        buckets=buckets,
        context=context,
        gaps=network.masking == "spans",
    )


def with_units_by_entropy(spec: ModelSpec, counts: Sequence[IntArray]) -> ModelSpec:
    """``spec`` with hidden units distributed by entropy: degrees of positions with more information have more units.

    ``counts`` has the rows of each symbol of each position.
    """
    if len(spec.sizes) < 3:
        return spec
    bits = np.array([entropy(counts[position]) for position in spec.orders[0]])
    weights = (bits[:-1] + bits[1:]) / 2 + LEAST_BITS
    edges = np.rint(np.cumsum(weights) / weights.sum() * spec.hidden).astype(int)
    return replace(spec, units=tuple(np.diff(edges, prepend=0).tolist()))


def late_warning(plan: TimePlan) -> str:
    """The warning if reading a table left too little time to train."""
    spent, budget, remaining = (round(seconds or 0.0) for seconds in (plan.spent, plan.budget, plan.left))
    return (
        f"reading the table took {spent} s of the {budget} s that the fit has: it continues for {remaining} s more, "
        f"to train; for a better model give it more time, such as --budget {max(1, math.ceil(plan.spent / 20))}m"
    )


def passes_within(recipe: ColumnsRecipe, table: Table, seconds: float) -> float:
    """About how many times a network could read the rows of ``table`` in this many seconds of training."""
    from countless.train.speed import rows_per_second
    from countless.train.tasks.recipe import pilot

    speed = rows_per_second(pilot(recipe, table), CLOCKS[recipe.options.clock])
    return speed * seconds / len(table.matrix())


def is_spec_of(spec: ModelSpec, checkpoint: Path) -> bool:
    """Whether a checkpoint holds the network that ``spec`` describes."""
    from countless.train.checkpoint import saved_spec

    return saved_spec(checkpoint) == spec.to_json()


def training_on_text(names: Sequence[str]) -> str:
    """The name of the stage that trains on the text columns of these names.

    >>> training_on_text(["a", "b", "c"])
    'training on the text of a, b and c'
    """
    *all_but_last, last = names
    return f"training on the text of {' and '.join([', '.join(all_but_last), last] if all_but_last else [last])}"
