"""The Estimator: a fitted model that answers questions about its table."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countless import store
from countless._version import __version__
from countless.arrays import FloatArray
from countless.data.columns.schema import Schema
from countless.engine.memo import Memo
from countless.errors import CountlessError
from countless.estimator.answers.counts import known_queries, today
from countless.estimator.answers.estimate import Estimate
from countless.estimator.answers.evidence import Evidence
from countless.estimator.arguments import names_of, whole
from countless.estimator.batch import Batch, listed
from countless.estimator.calibration.conformal import Calibration, CalibrationQuery
from countless.estimator.calibration.posterior import with_tail
from countless.estimator.loading import evidence_of, made_ready, schema_of
from countless.estimator.plugins import load_plugins
from countless.estimator.prepared import DEFAULT_METHOD, AnsweringModel, PreparedQuestion
from countless.settings import Seconds

if TYPE_CHECKING:
    from countless.data.frame import Frame
    from countless.estimator.answers.distribution import BinsWanted, Distribution
    from countless.estimator.answers.explain import Explanation
    from countless.estimator.answers.joint import Joint
    from countless.estimator.answers.result import QueryResult
    from countless.estimator.fitting.learning import Listener
    from countless.estimator.rows.completed import Completed
    from countless.estimator.rows.likelihood import Watch
    from countless.estimator.rows.sampling import Sample
    from countless.estimator.updating.check import Check
    from countless.query.predicate import Where


class Estimator:
    """Answers "how many rows match?" from a model, without the table. Made by :func:`countless.fit` or ``load``.

    The same question always gets the same answer, and an estimator may be shared by threads.
    """

    def __init__(
        self,
        schema: Schema,
        sections: store.Sections,
        calibration: Calibration | None = None,
        report: dict[str, Any] | None = None,
        library: str = __version__,
    ) -> None:
        self.schema = schema
        self.calibration = calibration or Calibration(())
        self.report = report or {}
        self.library = library
        self._sections = sections
        self._runtimes = made_ready(schema, sections)
        rows = evidence_of(schema, sections)
        evidence = None if rows is None else Evidence(schema, rows)
        self._seed = zlib.crc32(repr((schema.rows, schema.sizes)).encode())
        self._model = AnsweringModel(schema, self._runtimes, self.calibration, self._seed, evidence)
        self._questions: Memo | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Estimator:
        """The estimator in the model file at ``path``."""
        return cls._made(store.read(path))

    @classmethod
    def _made(cls, contents: store.Contents) -> Estimator:
        schema, calibration = schema_of(contents.schema), Calibration.from_json(contents.calibration)
        return cls(schema, contents.sections, calibration, contents.report, contents.library)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model file, atomically. It holds every distinct value of the fitted columns, or a grid's knots."""
        store.write(path, self._contents())
        return Path(path)

    def __reduce__(self) -> tuple[Callable[[bytes], Estimator], tuple[bytes]]:
        """A copy, and a pickle for another process, are made from what the model file would hold."""
        return _from_bytes, (store.to_bytes(self._contents()),)

    def _contents(self) -> store.Contents:
        return store.Contents(
            self.schema.to_json(), self._sections, self.calibration.to_json(), self.report, self.library
        )

    def stripped(self) -> Estimator:
        """The same model for others to have: without rows of the table, and without values that no answer needs.

        Left out are the evidence rows, the questions of the calibration as they were asked, which have values of
        random rows in them, and the digests of the table and of updates. The error bars stay; an update has to be
        followed by :meth:`calibrate`.
        """
        from countless.estimator.stripping import stripped

        return stripped(self, self._sections)

    def calibrated(self, calibration: Calibration) -> Estimator:
        """The same estimator with error bars from ``calibration``."""
        evidence = self._model.evidence
        if evidence is not None:
            calibration = with_tail(calibration, evidence.rows.rows, self.rows)
        return Estimator(self.schema, self._sections, calibration, self.report, self.library)

    def calibration_queries(self, clauses: Sequence[str], truths: Sequence[int]) -> list[CalibrationQuery]:
        """Questions whose truth is known, and what the model makes of them; without those that it knows for certain."""
        found = Batch(self._model, clauses).densities()
        return known_queries(found, truths, self.rows, self._model.evidence)

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self.schema.rows

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that can be asked about."""
        return self.schema.names

    @property
    def orders(self) -> int:
        """How many orders of its columns the model knows; they share a number of particles."""
        return len(self._runtimes.columns)

    def prepare(self, where: Where) -> PreparedQuestion:
        """A question about the rows that ``where`` keeps: compiled and counted once, however much is asked of it.

        With parameters in the places of values, ``est.prepare("age > ? AND sex = $2")``, it is called with values
        first, ``question(35, "Male")``; that reads no SQL.
        """
        if self._questions is None or not isinstance(where, str):
            return PreparedQuestion.of(self._model, where)
        return self._questions.once(where.strip(), lambda: PreparedQuestion.of(self._model, where))

    def keep_questions(self, most: int) -> None:
        """Keep the ``most`` latest questions in SQL: calls with the same condition share its compiling and counting."""
        self._questions = Memo(whole(most, "the number of questions to keep", 1))

    def estimate(
        self,
        where: Where,
        *,
        method: str = DEFAULT_METHOD,
        particles: int | None = None,
        summary: bool = True,
        table_rows: int | None = None,
    ) -> Estimate:
        """The number of rows that ``where`` keeps: SQL text, or a predicate made with :func:`countless.col`.

        ``method`` is ``fused``, evidence rows and the model together. The others are the model alone: ``particles``,
        one of the paper's (``skipping``, ``progressive``, and of models that know several orders ``multi-order`` and
        ``multi-order+skipping``), or ``exact``; for text also ``naive``. ``particles`` fixes
        how many prefixes (or samples) it may hold. ``summary=False`` leaves the counts that are stored with the model
        alone; only ``particles`` uses them. ``table_rows`` is how many rows the table has by now: the answer and its
        error bar are scaled to it, and none is exact then.
        """
        return self.prepare(where).estimate(method=method, particles=particles, summary=summary, table_rows=table_rows)

    def estimate_many(
        self,
        clauses: Iterable[Where],
        *,
        method: str = DEFAULT_METHOD,
        particles: int | None = None,
        threads: int | None = None,
        seed: int | None = None,
        summary: bool = True,
        table_rows: int | None = None,
    ) -> list[Estimate]:
        """One estimate for each of ``clauses``, in their order: the same as one by one, but much sooner.

        Clauses that begin alike share that work, and it is spread over ``threads`` (all cores if None). ``ms`` of each
        estimate is its share of the time. Another ``seed`` than the model's own gives answers that differ from those of
        one by one: by how much tells what sampling adds.
        """
        batch = Batch(self._model, listed(clauses), particles, threads, seed, summary)
        return [_raised(answer) for answer in batch.estimates(method, today(table_rows))]

    def answer_many(
        self,
        clauses: Iterable[Where],
        *,
        method: str = DEFAULT_METHOD,
        particles: int | None = None,
        threads: int | None = None,
        seed: int | None = None,
        summary: bool = True,
        table_rows: int | None = None,
    ) -> list[Estimate | CountlessError]:
        """As :meth:`estimate_many`, but a clause that cannot be answered gives its error; the others are answered."""
        batch = Batch(self._model, listed(clauses), particles, threads, seed, summary)
        return batch.estimates(method, today(table_rows))

    def explain(self, where: Where, *, method: str = DEFAULT_METHOD, particles: int | None = None) -> Explanation:
        """How ``where`` is answered: columns visited and skipped, exact or sampled, unseen literals, time by stage."""
        return self.prepare(where).explain(method=method, particles=particles)

    def joint(self, columns: Sequence[str], where: Where | None = None, *, groups: int | None = None) -> Joint:
        """How the rows that ``where`` keeps are spread over the values of ``columns``, which are not text.

        The values of the first ``groups`` columns (all, if None) are told apart with the same care, however rare they
        are; those of the others as far as they matter within each.
        """
        return self._asked(where).joint(columns, groups=groups)

    def distribution(
        self,
        column: str | Sequence[str],
        where: Where | None = None,
        *,
        bins: BinsWanted | None = None,
        sort: str = "rows",
    ) -> Distribution:
        """Every value of ``column`` with its share of the rows that ``where`` keeps; of two columns, every pair.

        ``bins`` puts numbers and times into about so many bins with round edges, or into those between given edges;
        with several columns it may be a mapping by name. A column whose values are too many to be stored one by one is
        always in bins. A bin begins with its left edge and ends before the right one, which only the last bin includes.
        Shares are of all rows of the condition, those outside given edges too. Values come by falling ``rows``, or by
        ``value``, as bins do.
        """
        return self._asked(where).distribution(column, bins=bins, sort=sort)

    def distributions(
        self, columns: Sequence[str], where: Where | None = None, *, bins: BinsWanted | None = None
    ) -> list[Distribution]:
        """The :meth:`distribution` of each of ``columns``, one by one, under one condition, counted once."""
        return self._asked(where).distributions(columns, bins=bins)

    def sample(
        self, count: int = 10, *, where: Where | None = None, seed: int | None = None, stored: bool = True
    ) -> Sample:
        """Rows that the model would write, each drawn by its probability; with ``where``, among those that it keeps.

        Each satisfies ``where``. If rows fail it again and again there are fewer than ``count``, the ``requested``
        ones. Numbers and times of a grid are any within a cell that look like the table's. The same
        ``seed`` gives the same rows. Under a condition on text, evidence rows of it come first: ``stored`` rows of the
        table, as they are. The model adds the rest if it can. With ``stored=False`` it writes all.
        """
        return self._asked(where).sample(count, seed=seed, stored=stored)

    def query(self, sql: str, *, intervals: bool = False, least_hits: int = 1) -> QueryResult:
        """The result of a SELECT with aggregates, answered from the model: a table with DuckDB's names and types.

        It may have count, sum, avg, stddev, variance, median and quantiles of columns, expressions of these, a WHERE,
        GROUP BY up to three columns, HAVING, ORDER BY and LIMIT. If the model has evidence rows, columns may also be
        expressions, such as ``hour(ts)``. With ``intervals``, the columns ``name_low`` and ``name_high`` after each
        aggregate are the ends of its error bar.

        An expression can put a whole row into one value. So of expressions only what at least ``least_hits`` evidence
        rows share is told; smaller groups are left out.
        """
        from countless.estimator.answers.aggregates import answered

        model = self._model
        return answered(self._asked, model.compiler, model.outer, sql, self.calibration, intervals, least_hits)

    def log_prob(self, rows: Any) -> FloatArray:
        """The natural logarithm of the probability of each row, as the model has it.

        ``rows`` are a table, as :func:`countless.fit` takes it, a dictionary, or a list of them, with the same keys.
        Columns that are not there are left out of the probability; NULL is a value like others. What the table never
        had, NULL in a column without NULLs included, is impossible: minus infinity.
        """
        from countless.estimator.rows.likelihood import log_prob

        return log_prob(self.schema, self._runtimes, rows)

    def complete(
        self,
        rows: Any,
        *,
        columns: str | Iterable[str] | None = None,
        draws: bool = False,
        seed: int | None = None,
        watch: Watch | None = None,
    ) -> Completed:
        """The rows with what is missing filled in: NULL, and columns of the model that they lack; texts only by draws.

        Each missing value becomes the most likely one, given all that is present in its row; with ``draws`` they are
        drawn together, and the same ``seed`` draws the same. ``columns`` are those to fill in, all by default. In a
        list of dictionaries, a key that a row lacks is missing there too.
        """
        from countless.estimator.rows.completion import CompletionOptions, complete

        wanted = None if columns is None else tuple(names_of(columns))
        options = CompletionOptions(wanted, draws, self._model.checked_seed(seed))
        return complete(self.schema, self._runtimes, rows, options, watch)

    def anomalies(self, rows: Any, top: int = 20, *, watch: Watch | None = None) -> Frame:
        """The ``top`` rows that are the least likely, the least likely first.

        A line tells the row, counted from 0, its log-probability, the column to blame, the value that the row has
        there, how likely that is given all others, and the value that is expected instead, with its probability.
        """
        from countless.estimator.rows.anomalies import anomalies

        return anomalies(self.schema, self._runtimes, rows, whole(top, "the number of rows to tell", 1), watch)

    def update(
        self,
        rows: Any,
        *,
        replay: Any = None,
        epochs: int | None = None,
        budget: Seconds | None = None,
        learning_rate: float | None = None,
        seed: int = 0,
        listener: Listener | None = None,
    ) -> Estimator:
        """The estimator of a table that got these ``rows`` more; this one stays as it is.

        ``rows`` are only the new ones, with every column of the model; other columns are passed over. They are learned
        along with old rows, in the shares that both have in the table, so that these are not forgotten: the
        evidence rows of its file (``replay="evidence"``, the default where there are any), rows that the model itself
        draws (``"model"``), or the old table. Evidence rows stay a uniform sample of the table. What is counted exactly
        stays exact. ``budget`` (``"90s"``) is by default an eighth of the fit's time. Ctrl-C ends training early.
        """
        from countless.estimator.updating.relearning import RelearningOptions
        from countless.estimator.updating.update import update

        effort = RelearningOptions(epochs, budget, learning_rate, seed)
        return update(self, self._sections, self._runtimes, rows, replay, effort, listener)

    def train(
        self,
        table: Any,
        *,
        budget: Seconds | None = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        workload: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        listener: Listener | None = None,
    ) -> Estimator:
        """The estimator after further training on ``table``, which it was fitted on; this one stays as it is.

        A table that has changed is a :class:`DataError`. Weights that did not get better are kept as they were, and
        Ctrl-C ends training early. ``budget``, by default ``"5m"``, is for everything, error bars included.
        ``checkpoint`` is the file of that name of the fit, or ``MODEL.training`` that ``countless fit`` keeps: weights
        in full precision and Adam's moments, written anew. Without it, training starts from the weights as stored.
        """
        from countless.estimator.updating.more_training import more_training
        from countless.options import MoreTrainingOptions

        effort = MoreTrainingOptions(budget, epochs, learning_rate, workload)
        place = None if checkpoint is None else Path(checkpoint)
        return more_training(self, self._sections, self._runtimes, table, effort, place, listener)

    def calibrate(self, table: Any, *, seed: int = 0, listener: Listener | None = None) -> Estimator:
        """The same model with new error bars, from random questions about ``table``, which it was fitted on."""
        from countless.estimator.calibration.recalibration import recalibrated

        return recalibrated(self, table, whole(seed, "the seed", 0), listener)

    def check(
        self, table: Any, *, sample: int | None = 100_000, queries: int = 200, threshold: float = 0.05, seed: int = 0
    ) -> Check:
        """Whether the model is still true of ``table``: of a ``sample`` of its rows, or of all of them if None.

        Past the ``threshold``, a share of rows, a column has drifted, or the table has grown.
        """
        from countless.estimator.updating.check import check

        seed = self._model.checked_seed(seed)
        rows = evidence_of(self.schema, self._sections)
        return check(self, self._runtimes, rows, table, sample=sample, queries=queries, threshold=threshold, seed=seed)

    def info(self) -> dict[str, Any]:
        """What the model holds, as plain data."""
        from countless.estimator.info import held_facts, without_history

        held = held_facts(self.schema, self._sections, self._runtimes)
        training = without_history(self.report)
        return held | {"interval": self.calibration.facts(self.rows), "training": training, "library": self.library}

    def __repr__(self) -> str:
        return f"<Estimator of {self.rows:,} rows, {len(self.columns)} columns>"

    def _asked(self, where: Where | None) -> PreparedQuestion:
        """The question that ``where`` asks; None is every row."""
        return PreparedQuestion.of_every_row(self._model) if where is None else self.prepare(where)


def _raised(answer: Estimate | CountlessError) -> Estimate:
    if isinstance(answer, CountlessError):
        raise answer
    return answer


def _from_bytes(data: bytes) -> Estimator:
    """The estimator that was pickled as these bytes, perhaps in another process."""
    load_plugins()  # whose kinds of models it may have
    return Estimator._made(store.from_bytes(data))
