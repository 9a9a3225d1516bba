"""The cells of the paper's sweep: questions about a table, models of it, and the answers of a model by one method."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

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
from countless_lab.runner.job import ExperimentJob, Result, Say

QUESTION_SEED = 2020
ROWS_SEED = 7
HOLES_SEED = 2_021
MAX_EVIDENCE = 100_000  # rows
BLIND = "particles-without-look-ahead"
BLIND_PARTICLES = 1_000  # by default
BLOCKS = 3  # of every network of columns
MAX_CHARACTERS = 100  # of a string, as in the paper
TEXT_LEARNING_RATE, TEXT_TOKENS = 3e-3, 8_192  # of a step


@dataclass(frozen=True)
class Data:
    """The rows to experiment on: ``rows`` random ones of a table, which is a path or the name of a data set.

    ``name`` is its name in results. Data of text has one column, and no other.
    """

    name: str
    source: str
    rows: int
    exclude: tuple[str, ...] = ()
    text: bool = False

    def open(self) -> Source:
        """Open a source of these rows."""
        source = Source.open(self.source)
        return source if source.count() <= self.rows else source.sampled(self.rows, ROWS_SEED)


@dataclass(frozen=True)
class ModelRecipe:
    """How a model is trained.

    ``orders`` is how many orders it learns, and ``order`` the seed that draws them; None is the table's own order. A
    model of text uses ``masking`` and the name of its ``network`` alone.
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
class QuestionSet(ExperimentJob):
    """Random queries with their true counts. The result has their number, and the rows and columns of the table."""

    data: Data
    queries: int
    seed: int = QUESTION_SEED

    @property
    def name(self) -> str:
        return f"{self.data.name}-questions"

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "questions" / f"{self.name}.jsonl",)

    def run(self, folder: Path, say: Say) -> Result:
        source = self.data.open()
        say("reading the table")
        schema = Table.encode(source, EncodeOptions(exclude=self.data.exclude)).schema
        say("counting queries")
        queries = random_workload(schema, source, self.queries, self.seed)
        workload.save(self.new_output(folder), queries)
        domains = [column.distinct for column in schema.columns]
        return {
            "queries": len(queries),
            "rows": schema.rows,
            "columns": len(domains),
            "domains": [min(domains), max(domains)],
            "median_rows": sorted(query.rows for query in queries)[len(queries) // 2],
        }


@dataclass(frozen=True)
class TrainedModel(ExperimentJob):
    """A trained model. The result has its bits per row, of rows held out and with nothing masked, and its size."""

    data: Data
    recipe: ModelRecipe
    epochs: int
    batch: int
    learning_rate: float

    @property
    def name(self) -> str:
        return f"{self.data.name}-{self.recipe.name}"

    def to_json(self) -> Result:
        plugin = {} if self.recipe.kind == RESMADE else {"plugin": _plugin_fingerprint(KINDS[self.recipe.kind].network)}
        return {**asdict(self), **plugin}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "models" / f"{self.name}.countless",)

    def run(self, folder: Path, say: Say) -> Result:
        load_plugins()
        path = self.new_output(folder)
        checkpoint = path.with_suffix(".checkpoint")
        recipe = self.recipe
        if self.data.text:
            network = replace(countless.TextNetwork.preset(recipe.network or "default"), masking=recipe.masking)
            options: dict[str, Any] = {
                "text_network": network,
                "max_length": MAX_CHARACTERS,
                "learning_rate": TEXT_LEARNING_RATE,
                "text_tokens": TEXT_TOKENS,
            }
        else:
            options = {
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
            listener=_SayProgress(say),
            **options,
        )
        estimator.save(path)
        for leftover in path.parent.glob(f"{checkpoint.name}*"):
            leftover.unlink(missing_ok=True)
        report = estimator.report["text"] if self.data.text else estimator.report
        names = ("unmasked_bits", "masked_bits", "train_bits", "parameters", "epochs", "seconds", "train_rows", "unit")
        return {**{name: report[name] for name in names}, "bytes": path.stat().st_size}


@dataclass(frozen=True)
class ModelWithAdditions(ExperimentJob):
    """A trained model with our additions to the paper's: counts of values and pairs, and evidence rows."""

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

    def to_json(self) -> Result:
        return {"model": self.model.to_json(), "evidence": self._evidence}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / "models" / f"{self.name}.countless",)

    def run(self, folder: Path, say: Say) -> Result:
        load_plugins()
        contents = store.read(self.model.output(folder))
        schema, data = countless.load(self.model.output(folder)).schema, self.model.data
        source = data.open()
        say("counting pairs of columns")
        table = Table.encode(source, EncodeOptions(exclude=data.exclude))
        counts = store.StoredSummary(count_pairs(table).arrays())
        say("drawing evidence rows")
        rows = store.StoredRows(EvidenceRows.drawn(source, schema, self._evidence, 0).arrays(schema))
        sections = replace(contents.sections, summaries={store.PAIRS: counts}, rows={store.EVIDENCE: rows})
        store.write(self.output(folder), replace(contents, sections=sections))
        return {"evidence": self._evidence, "bytes": self.output(folder).stat().st_size}

    @property
    def _evidence(self) -> int:
        """The number of evidence rows: as many as a fit stores of a large table, at most a third of the rows."""
        return min(MAX_EVIDENCE, self.model.data.rows // 3)


@dataclass(frozen=True)
class AnswerSet(ExperimentJob):
    """A model's answers by one method and budget. The result has a q-error and a time for each query."""

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

    def to_json(self) -> Result:
        method = METHODS.get(self.method)
        plugin = {} if method is None or method.own else {"plugin": _plugin_fingerprint()}
        return {**asdict(self), "model": self.model.to_json(), **plugin}

    def run(self, folder: Path, say: Say) -> Result:
        load_plugins()
        METHODS.setdefault(BLIND, Method(every_order(_blind), uses_counts=True, compared=False))
        estimator = countless.load(self.model.output(folder))
        evaluation = evaluate(
            lambda where: estimator.estimate(where, method=self.method, particles=self.samples),
            workload.load(self.questions.output(folder)),
            self.method,
            lambda done, total: say(f"{done:,} of {total:,} queries"),
        )
        rows = [estimate.forward_rows for estimate in evaluation.estimates]
        return {
            "q_errors": [round(error, 4) for error in evaluation.q_errors],
            "ms": [round(estimate.ms, 3) for estimate in evaluation.estimates],
            "forward_rows": sum(rows) / len(rows),
        }


@dataclass(frozen=True)
class CompletionSet(ExperimentJob):
    """How well a model fills in hidden values. The result has the probability of each true value, and if it won."""

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

    def to_json(self) -> Result:
        return {**asdict(self), "model": self.model.to_json()}

    def run(self, folder: Path, say: Say) -> Result:
        load_plugins()
        contents = store.read(self.model.output(folder))
        schema = countless.load(self.model.output(folder)).schema
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
    """Particles without look-ahead."""
    return fixed(runtime, boxes, BLIND_PARTICLES if budget is None else budget, seed)


def _plugin_fingerprint(network: str = "") -> str:
    """A digest of the plugins' source: when it changes, their answers are computed again."""
    module = network.partition(":")[0]
    return fingerprint([*plugin_names(), *([module] if module else [])])


class _SayProgress(countless.Listener):
    """Reports the progress of a fit."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def stage(self, name: str) -> None:
        self._say(name)

    def training(self, progress: Any) -> None:
        self._say(f"training, {progress.fraction:.0%}")
