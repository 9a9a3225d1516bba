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
        model: The model that answers the question.
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
        self._cache = Memo()
        self._where = where
        self._question: Question | None = None
        if where is None:
            self._question = Question("TRUE", EVERY_ROW)
        else:
            self._question = self._compile_by_pieces(where)
        if self._question is None and not self._clause.parameters:
            self._question = model.compiler.compile(self._clause)
        self._runtimes = model.runtimes.remembering()
        self._compile_ms = _ms_since(started)

    def _compile_by_pieces(self, where: Where | Clause) -> Question | None:
        """The question, compiled filter by filter; None if the condition must be compiled whole."""
        if isinstance(where, str):
            return self._model.filters.by_pieces(where)
        from countless.query.parameters import Clause

        if isinstance(where, Clause) and where.source is not None and not where.parameters:
            return self._model.filters.by_pieces(where.text)
        return None

    @property
    def _clause(self) -> Clause:
        """The parsed condition. It is parsed at the first access."""
        from countless.query.parameters import Clause

        where = self._where
        assert where is not None
        if isinstance(where, Clause):
            return where
        return self._cache.once("clause", lambda: self._model.compiler.read(where))

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
        return PreparedQuestion(self._model, self._clause.bound(values, named), started)

    @property
    def where(self) -> str:
        """The condition as SQL, with the values of its parameters once they are bound.

        >>> est.prepare("age > ?")(80).where
        'age > 80'
        """
        return self._clause.text if self._question is None else self._question.where

    @property
    def question(self) -> Question:
        """The compiled condition, for use with the engine.

        >>> len(est.prepare("age > 80 OR sex = 'Male'").question.comparisons)
        2
        """
        if self._question is None:
            raise self._clause.unbound()
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
        _, estimate = self._answer(self._model.method(method), particles, summary, today(table_rows))
        return estimate

    def _answer(
        self, method: str, particles: int | None, summary: bool, table_rows: int | None
    ) -> tuple[Density | None, Estimate]:
        """The model's density, if the model was asked, and the estimate."""
        key = ("estimate", method, particles, summary, table_rows)
        if uses_evidence(method):
            fusion, prior, ms = self._fuse(particles, summary)
            ms += self._compile_ms
            return prior, self._cache.once(key, lambda: fusion.estimate(prior, method, ms, table_rows))
        if error := only_evidence(self.question):
            raise error
        density, ms = self._density(method, particles, summary)
        ms += self._compile_ms
        calibration, rows = self._model.calibration, self._model.schema.rows
        estimate = self._cache.once(
            key, lambda: estimate_of(self.question, density, calibration, rows, method, ms, table_rows)
        )
        return density, estimate

    def _fuse(self, particles: int | None, summary: bool) -> tuple[Fusion, Density | None, float]:
        """The hits among evidence rows, the model's density if it was asked, and the milliseconds that both took."""

        def compute() -> tuple[Fusion, Density | None, float]:
            started = answer_clock()
            runtimes = self._runtimes_for(summary)
            fusion = self._model.fusion(runtimes, self.question)
            (prior,) = prior_densities(runtimes, [fusion], particles, self._model.seed)
            return fusion, prior, _ms_since(started)

        return self._cache.once(("fused", particles, summary), compute)

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
        density, estimate = self._answer(method, particles, True, None)
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
        indexes = self._column_indexes(columns)
        if repeated := [index for index in indexes if indexes.count(index) > 1]:
            raise QueryTypeError(f'"{self._model.schema.names[repeated[0]]}" is named twice: name each column once')
        return self.joint_of(indexes, len(indexes) if groups is None else groups)

    def joint_of(self, indexes: Sequence[int], groups: int) -> Joint:
        """Like :meth:`joint`, for columns given by their indexes in the schema. Hidden columns are allowed."""
        from countless.estimator.answers.distributions.joint import joint

        schema, seed, region = self._model.schema, self._model.seed, self.question.region
        return joint(schema, self._runtimes, region, self.total, indexes, groups, seed, self._observed_groups)

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

        started = self._adjusted_start()
        joint = self.joint(names_of(column))
        return distribution(self._model.schema, joint, self._model.calibration, bins, sort, started)

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
        indexes, seed = self._column_indexes(columns), self._model.seed
        return distributions(
            model.schema, self._runtimes, region, total, indexes, model.calibration, bins, seed, self._observed_groups
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
        question, model = self.question, self._model
        has_text_filter = any(box.texts for box in question.region.boxes)
        if not (stored and has_text_filter and model.evidence is not None):
            return self._draw_by_model(count, seed)
        from countless.estimator.rows.stored_rows import stored_before_drawn

        return stored_before_drawn(
            model.schema,
            self._runtimes,
            model.evidence,
            question,
            count,
            seed,
            lambda missing: self._draw_by_model(missing, seed),
        )

    def _draw_by_model(self, count: int, seed: int) -> Sample:
        """Synthetic rows that satisfy the condition."""
        from countless.estimator.rows.sampling import samples

        question = self.question
        if not self._runtimes.texts and any(box.texts for box in question.region.boxes):
            raise NoTextModelError("rows of a pattern are drawn from")
        if question.region is not EVERY_ROW:
            density, _ = self._density()
            if is_certain(question, density) and round(density.value * self._model.schema.rows) == 0:
                raise NoRowsError(f"no row matches {question.where}: there is nothing to draw")
        return samples(self._model.schema, self._runtimes, self._sample_source(seed), count, seed)

    def _sample_source(self, seed: int) -> SampleSource:
        """The region that rows are drawn from, and the check that a drawn row must pass."""
        from countless.estimator.rows.sampling import WIDER, SampleSource
        from countless.query.rewrites.derived import without_derived
        from countless.query.row_check import RowCheck

        if self._where is None:
            return SampleSource(EVERY_ROW)
        clause, model = self._clause, self._model
        drawing = self._cache.once("drawing", lambda: model.compiler.compile_for_drawing(clause))
        if not drawing.region.boxes and not self.question.certain:
            raise NoRowsError(f"none of the values that the model knows satisfies {self.where}: {WIDER}")
        masses: list[float] = []
        if len(drawing.region.boxes) > 1:
            (density,) = densities(self._runtimes, [drawing.region], MODEL_METHOD, None, seed)
            masses = [answer.density for answer in density.answers]
        condition = without_derived(clause.condition, model.schema)
        return SampleSource(drawing.region, masses, drawing.cells, RowCheck(model.schema, condition))

    def __repr__(self) -> str:
        return f"<PreparedQuestion {self.where}>"

    def _column_indexes(self, columns: Sequence[str]) -> list[int]:
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
        return self._cache.once("evidence", lambda: Hits.of(evidence.rows, evidence.matches(self.question)))

    @property
    def _observed_groups(self) -> ObservedGroups | None:
        """The evidence about groups of the condition's rows; None without evidence rows."""
        from countless.estimator.answers.distributions.joint import ObservedGroups

        hits, model = self.evidence, self._model
        return None if hits is None else ObservedGroups.of(model.schema, hits, self.question, model.calibration)

    def _density(
        self, method: str = MODEL_METHOD, particles: int | None = None, summary: bool = True
    ) -> tuple[Density, float]:
        """The region's density by the model, and the milliseconds that it took."""
        region, seed = self.question.region, self._model.seed

        def compute() -> tuple[Density, float]:
            started = answer_clock()
            (density,) = densities(self._runtimes_for(summary), [region], method, particles, seed)
            return density, _ms_since(started)

        return self._cache.once(("density", method, particles, summary), compute)

    def _runtimes_for(self, summary: bool) -> Runtimes:
        """The networks, with the exact counts of the file or without."""
        if summary:
            return self._runtimes
        return self._cache.once("no summaries", lambda: self._model.runtimes.without_summaries().remembering())

    def _adjusted_start(self) -> float:
        """The start time of an answer: now, minus the time that compiling took."""
        return answer_clock() - self._compile_ms / 1e3


def only_evidence(question: Question) -> UnsupportedQueryError | None:
    """The error for a method without evidence, if only evidence rows can answer a filter; None otherwise."""
    if not question.beyond:
        return None
    return UnsupportedQueryError(
        f"only evidence rows can answer {question.beyond[0]}, but the method uses the model alone: use fused"
    )


def _ms_since(started: float) -> float:
    """Milliseconds since ``started``, by the answer clock."""
    return (answer_clock() - started) * 1e3
