"""The experiments on one data set, and the cells that they consist of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from countless.engine.methods import FUSED, METHODS
from countless.spec import RESMADE
from countless_lab.paper.cells import (
    BLIND,
    AnswerSet,
    Cell,
    CompletionSet,
    Data,
    ModelRecipe,
    ModelWithAdditions,
    QuestionSet,
    TrainedModel,
)
from countless_lab.paper.scale import PaperScale

NO_MASKING, MASKING = "none", "uniform"
TEXT_MASKING = "prefix"
PARTICLES = "particles"

RUNGS = (1, 1.5, 3, 10)  # times a method's samples: budgets of particles among which one is chosen
MAX_PARTICLES = 10_000  # unless the method itself has more samples
FEWER = 10  # times fewer particles than samples on text, where each is a string
SKIPPING = ("skipping", "multi-order+skipping")
PAPER = ("progressive", "multi-order", "skipping", "multi-order+skipping")  # its methods, as its tables list them
TEXT_METHODS = {"naive": NO_MASKING, "progressive": NO_MASKING, "skipping": TEXT_MASKING, PARTICLES: TEXT_MASKING}


@dataclass(frozen=True)
class Study:
    """The cells of ``data`` at one ``scale``, with models of one ``kind``."""

    data: Data
    scale: PaperScale
    kind: str = RESMADE

    @property
    def questions(self) -> QuestionSet:
        """The questions to every model."""
        return QuestionSet(self.data, self.scale.text_queries if self.data.text else self.scale.queries)

    def model(
        self,
        masking: str,
        *,
        orders: int = 1,
        order: int | None = None,
        hidden: int | None = None,
        embedding: int | None = None,
    ) -> TrainedModel:
        """A model of the columns; arguments that are left out are the paper's."""
        sizes = (hidden or self.scale.hidden, embedding or self.scale.embedding)
        recipe = ModelRecipe(masking, orders, order, *sizes, kind=self.kind)
        epochs = self.scale.epochs_for(self.data.name, self.data.rows)
        return TrainedModel(self.data, recipe, epochs, self.scale.batch, self.scale.learning_rate)

    def text_model(self, masking: str) -> TrainedModel:
        """A model of the text."""
        recipe = ModelRecipe(masking, network=self.scale.text_network)
        return TrainedModel(self.data, recipe, self.scale.text_epochs, self.scale.batch, self.scale.learning_rate)

    def model_for(self, method: str, order: int) -> TrainedModel:
        """The model that a method is asked of; ``order`` is the seed of its random order, or set of orders."""
        wants = METHODS[method]
        orders = self.scale.ensemble if wants.several else 1
        return self.model(MASKING if wants.skips else NO_MASKING, orders=orders, order=order)

    def answers(self, model: TrainedModel, method: str, samples: int) -> AnswerSet:
        """The answers of ``model``."""
        return AnswerSet(model, self.questions, method, samples)

    def contest(self, samples: int, order: int) -> dict[str, AnswerSet]:
        """The paper's methods at one budget and order, and those that plugins bring."""
        return {name: self.answers(self.model_for(name, order), name, samples) for name in (*PAPER, *new_methods())}

    def rungs(self, samples: int, order: int) -> dict[str, list[AnswerSet]]:
        """Particles on the models of the paper's methods that skip, with budgets from ``samples`` up.

        Particles take fewer forward passes than as many samples, since equal prefixes are stored once. Which budget
        takes about as many passes as the paper's method is known once both are measured.
        """
        budgets = [round(samples * times) for times in RUNGS if times == 1 or samples * times <= MAX_PARTICLES]
        return {
            base: [self.answers(self.model_for(base, order), PARTICLES, budget) for budget in budgets]
            for base in SKIPPING
        }

    def likelihoods(self, order: int) -> dict[str, TrainedModel]:
        """The models of the table of likelihoods, under one order."""
        multi_order = {
            f"multi-order({count})": self.model(NO_MASKING, orders=count, order=order) for count in self.scale.ensembles
        }
        return {
            "baseline": self.model(NO_MASKING, order=order),
            "masking": self.model(MASKING, order=order),
            **multi_order,
        }

    def sizes(self) -> dict[tuple[int, int], dict[str, AnswerSet]]:
        """By hidden units and embedding size: progressive sampling, skipping and particles in the table's own order."""
        samples = self.scale.ablation_samples
        answer_sets = {}
        for hidden in self.scale.hiddens:
            for embedding in self.scale.embeddings:
                plain = self.model(NO_MASKING, hidden=hidden, embedding=embedding)
                masked = self.model(MASKING, hidden=hidden, embedding=embedding)
                answer_sets[hidden, embedding] = {
                    name: self.answers(masked if METHODS[name].skips else plain, name, samples)
                    for name in ("progressive", "skipping", PARTICLES, *new_methods(several=False))
                }
        return answer_sets

    def maskings(self) -> dict[str, dict[str, AnswerSet]]:
        """By masking scheme: skipping and particles in the table's own order."""
        samples = self.scale.ablation_samples
        methods = ("skipping", PARTICLES, *(name for name in new_methods(several=False) if METHODS[name].skips))
        return {
            masking: {method: self.answers(self.model(masking), method, samples) for method in methods}
            for masking in self.scale.maskings
        }

    def additions(self, samples: int, order: int) -> dict[str, AnswerSet]:
        """Skipping, particles on its model, and particles with one after the other of what we add to the model."""
        model = self.model_for("skipping", order)
        more = ModelWithAdditions(model)
        return {
            "skipping": AnswerSet(model, self.questions, "skipping", samples),
            PARTICLES: AnswerSet(model, self.questions, PARTICLES, samples),
            "counts": AnswerSet(more, self.questions, BLIND, samples),
            "look-ahead": AnswerSet(more, self.questions, PARTICLES, samples),
            "evidence": AnswerSet(more, self.questions, FUSED, samples),
        }

    def completions(self) -> list[CompletionSet]:
        """A masked model, and an unmasked one with several numbers of samples, in the table's own order."""
        scale = self.scale
        if self.data.text:
            masked, plain = self.text_model(TEXT_MASKING), self.text_model(NO_MASKING)
            holes, max_samples = scale.text_queries, scale.text_samples
        else:
            masked, plain = self.model(MASKING), self.model(NO_MASKING)
            holes, max_samples = scale.queries, scale.ablation_samples
        budgets = (max(1, max_samples // FEWER), max_samples)
        return [
            CompletionSet(masked, holes, "skipping", 1),
            *(CompletionSet(plain, holes, "progressive", samples) for samples in budgets),
        ]

    def text_contest(self) -> dict[str, AnswerSet]:
        """The methods for text, each on the model it needs; particles has a fraction of the samples."""
        samples = self.scale.text_samples
        budgets = {method: samples if method != PARTICLES else max(1, samples // FEWER) for method in TEXT_METHODS}
        return {
            method: self.answers(self.text_model(masking), method, budgets[method])
            for method, masking in TEXT_METHODS.items()
        }


def new_methods(several: bool = True) -> list[str]:
    """Methods that are neither the paper's nor ours; without ``several``, only those for models of one order."""
    own_methods = (*PAPER, PARTICLES)
    return [
        name
        for name, method in METHODS.items()
        if method.compared and method.columns and name not in own_methods and (several or not method.several)
    ]


def with_needs(cells: Iterable[Cell]) -> list[Cell]:
    """The cells and all that they need, each once, and each after the cells that it needs."""
    cells_by_name: dict[str, Cell] = {}
    for cell in cells:
        for needed in _needed(cell):
            cells_by_name.setdefault(needed.name, needed)
    return list(cells_by_name.values())


def _needed(cell: Cell) -> Iterator[Cell]:
    """A cell after all that it needs."""
    if isinstance(cell, AnswerSet):
        yield cell.questions
    if not isinstance(cell, QuestionSet | TrainedModel):
        yield from _needed(cell.model)
    yield cell
