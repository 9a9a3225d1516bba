"""A prepared question: a condition that is compiled and counted once, for several requests about its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from countless.data.evidence import Hits
from countless.engine.density import Density, densities
from countless.engine.memo import Memo
from countless.engine.methods import DEFAULT_METHOD, MODEL_METHOD, uses_evidence
from countless.engine.runtimes import Runtimes
from countless.errors import NoRowsError, NoTextModelError, QueryTypeError, UnsupportedQueryError
from countless.estimator.answering_model import AnsweringModel
from countless.estimator.answers.counts import estimate_of, is_certain, today
from countless.estimator.answers.estimate import Estimate
from countless.estimator.answers.fused import Fusion, prior_densities
from countless.estimator.arguments import names_of, whole
from countless.query.answer_clock import answer_clock
from countless.query.question import Question
from countless.region import EVERY_ROW

if TYPE_CHECKING:
    from countless.estimator.answers.distributions.distribution import BinsWanted, Distribution
    from countless.estimator.answers.distributions.joint import Joint, ObservedGroups
    from countless.estimator.answers.explain import Explanation
    from countless.estimator.rows.sampling import Sample, SampleSource
    from countless.query.parameters import Clause
    from countless.query.predicate import Where


class PreparedQuestion:
    """A condition on rows that is compiled and counted once. :meth:`Estimator.prepare` makes one.

    Its methods give the same answers as the estimator's methods of the same names. Threads may share it.

    Args:
        model: What answers the question.
        where: The condition; None is every row.
        started: When reading the condition began, by the answer clock; None is now.

    >>> question = est.prepare("age > $least")
    >>> question(least=80).estimate().rows
    148.0
    """

    def __init__(
        self, model: AnsweringModel, where: Where | Clause | None = None, started: float | None = None
    ) -> None:
        started = answer_clock() if started is None else started
        self._model = model
        self._counted = Memo()
        self._where = where
        self._question: Question | None = None
        if where is None:
            self._question = Question("TRUE", EVERY_ROW)
        else:
            self._question = self._plain(where)
        if self._question is None and not self._read.parameters:
            self._question = model.compiler.compile(self._read)
        self._runtimes = model.runtimes.remembering()
        self._compile_ms = _since(started)

    def _plain(self, where: Where | Clause) -> Question | None:
        """The question from filters that are simple, or that are known; None if it must be compiled whole."""
        if isinstance(where, str):
            return self._model.filters.by_pieces(where)
        from countless.query.parameters import Clause

        if isinstance(where, Clause) and where.source is not None and not where.parameters:
            return self._model.filters.by_pieces(where.text)
        return None

    @property
    def _read(self) -> Clause:
        """The condition, parsed when it is first asked for."""
        from countless.query.parameters import Clause

        where = self._where
        assert where is not None
        if isinstance(where, Clause):
            return where
        return self._counted.once("clause", lambda: self._model.compiler.read(where))

    def __call__(self, *values: Any, **named: Any) -> PreparedQuestion:
        """Bind values to the parameters.

        Args:
            values: One value for each ``?``, or for ``$1``, ``$2`` and so on.
            named: Values for ``$name``.

        Returns:
            The question with these values.

        Raises:
            QueryTypeError: There are too few or too many values, or one does not fit its column.
        """
        if self._question is not None:
            if values or named:
                raise QueryTypeError(f"{self.where} has no parameters: write ? or $name in their places")
            return self
        started = answer_clock()
        return PreparedQuestion(self._model, self._read.bound(values, named), started)

    @property
    def where(self) -> str:
        """The condition as SQL, with the values of its parameters once they are bound.

        >>> est.prepare("age > ?")(80).where
        'age > 80'
        """
        return self._read.text if self._question is None else self._question.where

    @property
    def question(self) -> Question:
        """The compiled condition, for use with the engine.

        >>> len(est.prepare("age > 80 OR sex = 'Male'").question.comparisons)
        2
        """
        if self._question is None:
            raise self._read.unbound()
        return self._question

    @property
    def total(self) -> Estimate:
        """How many rows match, by the default method.

        >>> est.prepare("age > 80").total.rows
        148.0
        """
        return self.estimate()

    def estimate(
        self,
        *,
        method: str = DEFAULT_METHOD,
        particles: int | None = None,
        summary: bool = True,
        table_rows: int | None = None,
    ) -> Estimate:
        """Estimate how many rows match.

        Args:
            method: As in :meth:`Estimator.estimate`.
            particles: As in :meth:`Estimator.estimate`.
            summary: As in :meth:`Estimator.estimate`.
            table_rows: As in :meth:`Estimator.estimate`.

        Returns:
            The estimate. ``ms`` is the time of compiling and counting, also if an earlier call did that.

        >>> est.prepare("age > 80").estimate().rows
        148.0
        """
        method, now = self._model.method(method), today(table_rows)
        return self._answered(method, particles, summary, now)[1]

    def _answered(
        self, method: str, particles: int | None, summary: bool, now: int | None
    ) -> tuple[Density | None, Estimate]:
        """The model's density, if it was asked, and the answer."""
        key = ("estimate", method, particles, summary, now)
        if not uses_evidence(method):
            if error := only_evidence(self.question):
                raise error
            density, ms = self._density(method, particles, summary)
            return density, self._counted.once(key, lambda: self._estimate(density, ms, method, now))
        fusion, asked, ms = self._fused(particles, summary)
        return asked, self._counted.once(key, lambda: fusion.estimate(asked, method, self._compile_ms + ms, now))

    def _fused(self, particles: int | None, summary: bool) -> tuple[Fusion, Density | None, float]:
        """The hits among evidence rows, the model's density if it was asked, and the milliseconds that both took."""

        def counted() -> tuple[Fusion, Density | None, float]:
            started = answer_clock()
            runtimes = self._runtimes if summary else self._bare()
            fusion = self._model.fusion(runtimes, self.question)
            (asked,) = prior_densities(runtimes, [fusion], particles, self._model.seed)
            return fusion, asked, _since(started)

        return self._counted.once(("fused", particles, summary), counted)

    def explain(self, *, method: str = DEFAULT_METHOD, particles: int | None = None) -> Explanation:
        """Answer, and say how.

        Args:
            method: As in :meth:`Estimator.estimate`.
            particles: As in :meth:`Estimator.estimate`.

        Returns:
            The explanation, as :meth:`Estimator.explain` gives it.

        >>> est.prepare("age > 80").explain().estimate.rows
        148.0
        """
        from countless.estimator.answers.explain import explanation

        method, question = self._model.method(method), self.question
        density, estimate = self._answered(method, particles, True, None)
        stages = {"parse": self._compile_ms, "answer": estimate.ms - self._compile_ms}
        return explanation(self._model.schema, question, density, estimate, stages)

    def joint(self, columns: Sequence[str], *, groups: int | None = None) -> Joint:
        """Count the rows of each combination of values.

        Args:
            columns: As in :meth:`Estimator.joint`.
            groups: As in :meth:`Estimator.joint`.

        Returns:
            The combinations, as :meth:`Estimator.joint` gives them.

        >>> est.prepare("age > 80").joint(["sex"]).rows.tolist()
        [48.0, 100.0]
        """
        places = self._places(columns)
        if twice := [place for place in places if places.count(place) > 1]:
            raise QueryTypeError(f'"{self._model.schema.names[twice[0]]}" is named twice: name each column once')
        return self.joint_of(places, len(places) if groups is None else groups)

    def joint_of(self, places: Sequence[int], groups: int) -> Joint:
        """Like :meth:`joint`, for columns by their index in the schema. Hidden columns are allowed."""
        from countless.estimator.answers.distributions.joint import joint

        schema, seed, region = self._model.schema, self._model.seed, self.question.region
        return joint(schema, self._runtimes, region, self.total, places, groups, seed, self._observed)

    def distribution(
        self, column: str | Sequence[str], *, bins: BinsWanted | None = None, sort: str = "rows"
    ) -> Distribution:
        """Count the rows of every value of a column.

        Args:
            column: As in :meth:`Estimator.distribution`.
            bins: As in :meth:`Estimator.distribution`.
            sort: As in :meth:`Estimator.distribution`.

        Returns:
            The values and the rows of each.

        >>> est.prepare("age > 80").distribution("sex").to_dicts()[0]["sex"]
        'Male'
        """
        from countless.estimator.answers.distributions.distribution import distribution

        started = self._started()
        found = self.joint(names_of(column))
        return distribution(self._model.schema, found, self._model.calibration, bins, sort, started)

    def distributions(self, columns: Sequence[str], *, bins: BinsWanted | None = None) -> list[Distribution]:
        """The distribution of each of several columns.

        Args:
            columns: As in :meth:`Estimator.distributions`.
            bins: As in :meth:`Estimator.distribution`.

        Returns:
            One distribution for each column.

        >>> len(est.prepare("age > 80").distributions(["sex", "income"]))
        2
        """
        from countless.estimator.answers.distributions.marginals import distributions

        model, region, total = self._model, self.question.region, self.total
        places, seed = self._places(columns), self._model.seed
        return distributions(
            model.schema, self._runtimes, region, total, places, model.calibration, bins, seed, self._observed
        )

    def sample(self, count: int = 10, *, seed: int | None = None, stored: bool = True) -> Sample:
        """Draw rows that satisfy the condition.

        Args:
            count: As in :meth:`Estimator.sample`.
            seed: As in :meth:`Estimator.sample`.
            stored: As in :meth:`Estimator.sample`.

        Returns:
            The rows.

        >>> len(est.prepare("age > 80").sample(2))
        2
        """
        count, seed = whole(count, "the number of rows to draw", 1), self._model.checked_seed(seed)
        question, evidence = self.question, self._model.evidence
        on_text = any(box.texts for box in question.region.boxes)
        if not (stored and on_text and evidence is not None):
            return self._drawn_by_model(count, seed)
        from countless.estimator.rows.stored_rows import stored_before_drawn

        model = self._model
        return stored_before_drawn(
            model.schema,
            self._runtimes,
            evidence,
            question,
            count,
            seed,
            lambda missing: self._drawn_by_model(missing, seed),
        )

    def _drawn_by_model(self, count: int, seed: int) -> Sample:
        """Synthetic rows that satisfy the condition."""
        from countless.estimator.rows.sampling import samples

        question = self.question
        if not self._runtimes.texts and any(box.texts for box in question.region.boxes):
            raise NoTextModelError("rows of a pattern are drawn from")
        if question.region is not EVERY_ROW:
            density, _ = self._density()
            if is_certain(question, density) and round(density.value * self._model.schema.rows) == 0:
                raise NoRowsError(f"no row matches {question.where}: there is nothing to draw")
        return samples(self._model.schema, self._runtimes, self._drawing(seed), count, seed)

    def _drawing(self, seed: int) -> SampleSource:
        """What rows are drawn of."""
        from countless.estimator.rows.sampling import WIDER, SampleSource
        from countless.query.rewrites.derived import without_derived
        from countless.query.row_check import RowCheck

        if self._where is None:
            return SampleSource(EVERY_ROW)
        clause, model = self._read, self._model
        found = self._counted.once("drawing", lambda: model.compiler.compile_for_drawing(clause))
        if not found.region.boxes and not self.question.certain:
            raise NoRowsError(f"none of the values that the model knows satisfies {self.where}: {WIDER}")
        masses: list[float] = []
        if len(found.region.boxes) > 1:
            (density,) = densities(self._runtimes, [found.region], MODEL_METHOD, None, seed)
            masses = [answer.density for answer in density.answers]
        condition = without_derived(clause.condition, model.schema)
        return SampleSource(found.region, masses, found.cells, RowCheck(model.schema, condition))

    def __repr__(self) -> str:
        return f"<PreparedQuestion {self.where}>"

    def _places(self, columns: Sequence[str]) -> list[int]:
        return [self._model.compiler.column(name) for name in names_of(columns)]

    @property
    def evidence(self) -> Hits | None:
        """Which evidence rows match; None if the model file has no evidence rows.

        >>> est.prepare("age > 80").evidence.count
        148
        """
        evidence = self._model.evidence
        if evidence is None:
            return None
        return self._counted.once("evidence", lambda: Hits.of(evidence.rows, evidence.marks(self.question)))

    @property
    def _observed(self) -> ObservedGroups | None:
        """What the evidence says of groups of the condition's rows, beside the model."""
        from countless.estimator.answers.distributions.joint import ObservedGroups

        hits, model = self.evidence, self._model
        return None if hits is None else ObservedGroups.of(model.schema, hits, self.question, model.calibration)

    def _density(
        self,
        method: str = MODEL_METHOD,
        particles: int | None = None,
        summary: bool = True,
    ) -> tuple[Density, float]:
        """The region's density, and how many milliseconds it took."""
        region, seed = self.question.region, self._model.seed

        def counted() -> tuple[Density, float]:
            started = answer_clock()
            (found,) = densities(self._runtimes if summary else self._bare(), [region], method, particles, seed)
            return found, _since(started)

        return self._counted.once(("density", method, particles, summary), counted)

    def _estimate(self, density: Density, ms: float, method: str, table_rows: int | None = None) -> Estimate:
        model, ms = self._model, self._compile_ms + ms
        return estimate_of(self.question, density, model.calibration, model.schema.rows, method, ms, table_rows)

    def _bare(self) -> Runtimes:
        return self._counted.once("bare", lambda: self._model.runtimes.without_summaries().remembering())

    def _started(self) -> float:
        """When the question would have begun, had it been compiled just now."""
        return answer_clock() - self._compile_ms / 1e3


def only_evidence(question: Question) -> UnsupportedQueryError | None:
    """The error of asking the model alone what only evidence rows can answer."""
    if not question.beyond:
        return None
    return UnsupportedQueryError(
        f"only evidence rows can answer {question.beyond[0]}, but the method uses the model alone: use fused"
    )


def _since(started: float) -> float:
    """Milliseconds."""
    return (answer_clock() - started) * 1e3
