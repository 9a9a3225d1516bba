"""The cells of the paper's sweep: questions about a table, models of it, and a model's answers by one method."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import countless
from countless import store, workload
from countless.data.encoding.table import Table
from countless.data.evidence import EvidenceRows
from countless.data.sources.source import Source
from countless.data.summaries.counting import count_pairs
from countless.engine.answer import Answer
from countless.engine.columns.particle_budget import fixed
from countless.engine.columns.runtime import Runtime
from countless.engine.methods import METHODS, Method, every_order
from countless.estimator.fitting.model_kinds import KINDS
from countless.estimator.loading import made_ready
from countless.estimator.plugins import fingerprint, load_plugins, plugin_names
from countless.evaluation.evaluate import evaluate, random_workload
from countless.options import EncodeOptions
from countless.region import Box
from countless.spec import RESMADE
from countless_lab.paper import completion

QUESTION_SEED = 2020
ROWS_SEED = 7
HOLES_SEED = 2_021
MOST_EVIDENCE = 100_000
BLIND = "particles-without-look-ahead"
BLIND_PARTICLES = 1_000  # if nothing else is said
BLOCKS = 3  # of every network of columns
MOST_CHARACTERS = 100  # of a string, as the paper has it
TEXT_LEARNING_RATE, TEXT_TOKENS = 3e-3, 8_192  # of a step

Say = Callable[[str], None]


@dataclass(frozen=True)
class Data:
    """The rows to experiment on: ``rows`` random ones of a table, which is a path or the name of a data set.

    ``name`` is what results call it. Of text there is one column, and nothing else.
    """

    name: str
    source: str
    rows: int
    exclude: tuple[str, ...] = ()
    text: bool = False

    def open(self) -> Source:
        """Those rows."""
        source = Source.open(self.source)
        return source if source.count() <= self.rows else source.sampled(self.rows, ROWS_SEED)


@dataclass(frozen=True)
class ModelRecipe:
    """How a model is made.

    ``orders`` is how many it learns, and ``order`` the seed they are drawn with; None is the table's own order. Of all
    this, a model of text has only its ``masking``, and a ``network`` by name.
    """

    masking: str
    orders: int = 1
    order: int | None = None
    hidden: int = 256
    embedding: int = 32
    network: str | None = None
    kind: str = RESMADE

    @property
    def name(self) -> str:
        """A short name for files."""
        if self.network is not None:
            return f"{self.network}-{self.masking}"
        order = "natural" if self.order is None else f"order{self.order}"
        kind = "" if self.kind == RESMADE else f"{self.kind}-"
        return f"{kind}{self.masking}-{self.orders}x-{order}-h{self.hidden}-e{self.embedding}"


@dataclass(frozen=True)
class QuestionSet:
    """Random queries with their true counts. The result has their number, and the rows and columns of the table."""

    one_thread: ClassVar[bool] = False

    data: Data
    queries: int
    seed: int = QUESTION_SEED

    @property
    def name(self) -> str:
        return f"{self.data.name}-questions"

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def file(self, folder: Path) -> Path:
        """Where the queries are."""
        return folder / "questions" / f"{self.name}.jsonl"

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (self.file(folder),)

    def run(self, folder: Path, say: Say) -> dict[str, Any]:
        source = self.data.open()
        say("reading the table")
        schema = Table.encode(source, EncodeOptions(exclude=self.data.exclude)).schema
        say("counting queries")
        asked = random_workload(schema, source, self.queries, self.seed)
        path = self.file(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        workload.save(path, asked)
        domains = [column.distinct for column in schema.columns]
        return {
            "queries": len(asked),
            "rows": schema.rows,
            "columns": len(domains),
            "domains": [min(domains), max(domains)],
            "median_rows": sorted(query.rows for query in asked)[len(asked) // 2],
        }


@dataclass(frozen=True)
class TrainedModel:
    """A trained model. The result has its bits per row, of rows held out and with nothing masked, and its size."""

    one_thread: ClassVar[bool] = False

    data: Data
    recipe: ModelRecipe
    epochs: int
    batch: int
    learning_rate: float

    @property
    def name(self) -> str:
        return f"{self.data.name}-{self.recipe.name}"

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def to_json(self) -> dict[str, Any]:
        brought = {} if self.recipe.kind == RESMADE else {"plugin": _brought(KINDS[self.recipe.kind].network)}
        return {**asdict(self), **brought}

    def file(self, folder: Path) -> Path:
        """Where the model is."""
        return folder / "models" / f"{self.name}.countless"

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (self.file(folder),)

    def run(self, folder: Path, say: Say) -> dict[str, Any]:
        load_plugins()
        path = self.file(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        checkpoint = path.with_suffix(".checkpoint")
        recipe = self.recipe
        if self.data.text:
            network = replace(countless.TextNetwork.preset(recipe.network or "default"), masking=recipe.masking)
            how: dict[str, Any] = {
                "text_network": network,
                "max_length": MOST_CHARACTERS,
                "learning_rate": TEXT_LEARNING_RATE,
                "text_tokens": TEXT_TOKENS,
            }
        else:
            how = {
                "masking": recipe.masking,
                "network": countless.Network(recipe.hidden, BLOCKS, recipe.embedding, recipe.kind, units="even"),
                "order": "natural" if recipe.order is None else f"random:{recipe.order}",
                "orders": recipe.orders,
                "batch": self.batch,
                "learning_rate": self.learning_rate,
            }
        estimator = countless.fit(
            self.data.open(),
            exclude=self.data.exclude,
            epochs=self.epochs,
            seed=recipe.order or 0,
            schedule="cosine",
            checkpoint=checkpoint,
            resume=any(path.parent.glob(f"{checkpoint.name}*")),
            summary=False,
            evidence="none",
            calibrate=False,
            listener=_Told(say),
            **how,
        )
        estimator.save(path)
        for left in path.parent.glob(f"{checkpoint.name}*"):
            left.unlink(missing_ok=True)
        report = estimator.report["text"] if self.data.text else estimator.report
        kept = ("unmasked_bits", "masked_bits", "train_bits", "parameters", "epochs", "seconds", "train_rows", "unit")
        facts = {name: report[name] for name in kept}
        return {**facts, "bytes": path.stat().st_size}


@dataclass(frozen=True)
class ModelWithAdditions:
    """A trained model with what we add to the paper's: counts of values and pairs, and evidence rows."""

    one_thread: ClassVar[bool] = False

    model: TrainedModel

    @property
    def name(self) -> str:
        return f"{self.model.name}-additions"

    @property
    def recipe(self) -> ModelRecipe:
        """How the model in it was made."""
        return self.model.recipe

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.model.name,)

    def to_json(self) -> dict[str, Any]:
        return {"model": self.model.to_json(), "evidence": self._evidence}

    def file(self, folder: Path) -> Path:
        """Where the model is."""
        return folder / "models" / f"{self.name}.countless"

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (self.file(folder),)

    def run(self, folder: Path, say: Say) -> dict[str, Any]:
        load_plugins()
        contents = store.read(self.model.file(folder))
        schema, data = countless.load(self.model.file(folder)).schema, self.model.data
        source = data.open()
        say("counting pairs of columns")
        table = Table.encode(source, EncodeOptions(exclude=data.exclude))
        counts = store.StoredSummary(count_pairs(table).arrays())
        say("drawing evidence rows")
        rows = store.StoredRows(EvidenceRows.drawn(source, schema, self._evidence, 0).arrays(schema))
        sections = replace(contents.sections, summaries={store.PAIRS: counts}, rows={store.EVIDENCE: rows})
        store.write(self.file(folder), replace(contents, sections=sections))
        return {"evidence": self._evidence, "bytes": self.file(folder).stat().st_size}

    @property
    def _evidence(self) -> int:
        """Rows: as many as a fit keeps of a large table, but no more than a third of a small one."""
        return min(MOST_EVIDENCE, self.model.data.rows // 3)


@dataclass(frozen=True)
class AnswerSet:
    """A model's answers by one method and budget. The result has a q-error and a time for each query."""

    one_thread: ClassVar[bool] = False

    model: TrainedModel | ModelWithAdditions
    questions: QuestionSet
    method: str
    samples: int

    @property
    def name(self) -> str:
        return f"{self.model.name}-{self.method}-{self.samples}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.model.name, self.questions.name)

    def to_json(self) -> dict[str, Any]:
        known = METHODS.get(self.method)
        brought = {} if known is None or known.own else {"plugin": _brought()}
        return {**asdict(self), "model": self.model.to_json(), **brought}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return ()

    def run(self, folder: Path, say: Say) -> dict[str, Any]:
        load_plugins()
        METHODS.setdefault(BLIND, Method(every_order(_blind), uses_counts=True, compared=False))
        estimator = countless.load(self.model.file(folder))
        asked = workload.load(self.questions.file(folder))
        found = evaluate(
            lambda where: estimator.estimate(where, method=self.method, particles=self.samples),
            asked,
            self.method,
            lambda done, total: say(f"{done:,} of {total:,} queries"),
        )
        rows = [estimate.forward_rows for estimate in found.estimates]
        return {
            "q_errors": [round(error, 4) for error in found.q_errors],
            "ms": [round(estimate.ms, 3) for estimate in found.estimates],
            "forward_rows": sum(rows) / len(rows),
        }


@dataclass(frozen=True)
class CompletionSet:
    """How well a model fills in hidden values. The result has the chance of each true value, and which came first."""

    one_thread: ClassVar[bool] = False

    model: TrainedModel
    holes: int
    method: str  # skipping or progressive
    samples: int

    @property
    def name(self) -> str:
        return f"{self.model.name}-completion-{self.method}-{self.samples}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.model.name,)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "model": self.model.to_json()}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return ()

    def run(self, folder: Path, say: Say) -> dict[str, Any]:
        load_plugins()
        contents = store.read(self.model.file(folder))
        schema = countless.load(self.model.file(folder)).schema
        runtimes, source = made_ready(schema, contents.sections), self.model.data.open()
        holes = completion.holes(source, schema, self.holes, HOLES_SEED)
        skips = METHODS[self.method].skips
        chances, right, milliseconds, passes = [], [], [], []
        for number, hole in enumerate(holes):
            say(f"{number:,} of {len(holes):,} holes")
            began = time.process_time()
            filled = completion.fill(runtimes, hole, self.samples, skips, np.random.default_rng(number))
            milliseconds.append(round(1e3 * (time.process_time() - began), 3))
            chances.append(float(f"{filled.chances[hole.truth]:.4g}"))
            right.append(int(filled.chances.argmax()) == hole.truth)
            passes.append(filled.forward_rows)
        return {"right": right, "chances": chances, "ms": milliseconds, "forward_rows": float(np.mean(passes))}


Cell = QuestionSet | TrainedModel | ModelWithAdditions | AnswerSet | CompletionSet


def _blind(runtime: Runtime[Any], boxes: Sequence[Box], budget: int | None, seed: int) -> list[Answer]:
    """Particles that do not look ahead."""
    return fixed(runtime, boxes, BLIND_PARTICLES if budget is None else budget, seed)


def _brought(network: str = "") -> str:
    """The source of what plugins bring: an answer that an earlier version of it gave is asked for again."""
    module = network.partition(":")[0]
    return fingerprint([*plugin_names(), *([module] if module else [])])


class _Told(countless.Listener):
    """Says how a fit goes on."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def stage(self, name: str) -> None:
        self._say(name)

    def training(self, progress: Any) -> None:
        self._say(f"training, {progress.fraction:.0%}")
