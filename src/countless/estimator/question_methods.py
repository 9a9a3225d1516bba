"""The methods of an Estimator that answer questions about its table. Each prepares a question and asks it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from countless.data.columns.schema import Schema
from countless.data.columns.types import TEXT
from countless.engine.memo import Memo
from countless.engine.methods import DEFAULT_METHOD
from countless.errors import CountlessError, QueryTypeError
from countless.estimator.answering_model import AnsweringModel
from countless.estimator.answers.counts import today
from countless.estimator.answers.estimate import Estimate
from countless.estimator.arguments import whole
from countless.estimator.batch import Batch, listed
from countless.estimator.prepared import PreparedQuestion

if TYPE_CHECKING:
    from countless.estimator.answers.aggregates.result import QueryResult
    from countless.estimator.answers.distributions.distribution import BinsWanted, Distribution
    from countless.estimator.answers.distributions.joint import Joint
    from countless.estimator.answers.explain import Explanation
    from countless.estimator.answers.string_pieces import StringPieces
    from countless.estimator.rows.sampling import Sample
    from countless.query.predicate import Where


class QuestionMethods:
    """The questions that an :class:`Estimator` answers."""

    schema: Schema
    _model: AnsweringModel
    _question_cache: Memo | None

    @property
    def rows(self) -> int:
        """Number of rows of the table.

        >>> est.rows
        48842
        """
        return self.schema.rows

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that questions can use.

        >>> est.columns
        ('age', 'education', 'sex', 'hours_per_week', 'income')
        """
        return self.schema.names

    @property
    def orders(self) -> int:
        """Number of column orders that the model has learned. One, unless it was fitted with ``orders``.

        >>> est.orders
        1
        """
        return len(self._model.runtimes.columns)

    def prepare(self, where: Where) -> PreparedQuestion:
        """Compile a condition once, to ask several things about its rows.

        Args:
            where: SQL text, or a predicate made with :func:`countless.col`. ``?``, ``$1`` or ``$name`` are parameters.

        Returns:
            The prepared question. If it has parameters, call it with their values first. That parses no SQL.

        Raises:
            QueryError: The condition cannot be answered. The message underlines the problem.

        >>> question = est.prepare("age > ? AND sex = ?")
        >>> question(35, "Male").estimate().rows
        18658.0
        """
        if self._question_cache is None or not isinstance(where, str):
            return PreparedQuestion(self._model, where)
        return self._question_cache.once(where.strip(), lambda: PreparedQuestion(self._model, where))

    def keep_questions(self, most: int) -> None:
        """Cache prepared questions, so that later calls with the same SQL text do not compile and count it again.

        Args:
            most: Number of questions to keep. The least recently used one is dropped.

        Raises:
            QueryTypeError: ``most`` is not a whole number of at least 1.

        >>> est.keep_questions(100)
        """
        self._question_cache = Memo(whole(most, "the number of questions to keep", 1))

    def estimate(
        self,
        where: Where,
        *,
        method: str = DEFAULT_METHOD,
        particles: int | None = None,
        summary: bool = True,
        table_rows: int | None = None,
    ) -> Estimate:
        """Estimate how many rows match a condition.

        Args:
            where: SQL text, or a predicate made with :func:`countless.col`.
            method: ``fused`` combines evidence rows and the model. The other methods use the model alone:
                ``particles``, ``exact``, ``skipping``, ``progressive``, ``multi-order`` and ``multi-order+skipping``
                (models with several orders), ``naive`` (text).
            particles: Number of particles (or samples) of the model's walk. By default it is chosen.
            summary: Use the exact counts that the file stores. Only ``fused`` and ``particles`` use them.
            table_rows: Current number of rows of the table, if it has changed. The answer and its error bar are scaled
                to it, and are never exact.

        Returns:
            The estimate with its error bar.

        Raises:
            QueryError: The condition cannot be answered. The message underlines the problem.

        >>> estimate = est.estimate("age > 35 AND income = '>50K'")
        >>> estimate.rows, estimate.exact
        (9139.0, True)
        >>> print(est.estimate((countless.col("age") > 35) & (countless.col("sex") == "Male")))
        18,658 rows (exact) where "age" > 35 AND "sex" = 'Male'
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
        """Estimate many conditions at once. This is faster than one by one, with the same answers.

        Args:
            clauses: Conditions, each as in :meth:`estimate`. Those that start with the same filters share work.
            method: As in :meth:`estimate`.
            particles: As in :meth:`estimate`.
            threads: Number of threads; by default one per core.
            seed: Seed of the sampling. With another seed than the default, answers differ by the sampling error.
            summary: As in :meth:`estimate`.
            table_rows: As in :meth:`estimate`.

        Returns:
            One estimate for each condition, in the same order. They are answered in groups; ``ms`` of each is its share
            of its group's time.

        Raises:
            QueryError: One of the conditions cannot be answered. :meth:`answer_many` answers the others.

        >>> [estimate.rows for estimate in est.estimate_many(["age > 35", "sex = 'Male'"])]
        [26496.0, 32650.0]
        """
        batch = Batch(self._model, listed(clauses), particles, threads, seed, summary)
        return [_estimate_or_raise(answer) for answer in batch.estimates(method, today(table_rows))]

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
        """Like :meth:`estimate_many`, but a condition that cannot be answered does not stop the others.

        Args:
            clauses: Conditions, each as in :meth:`estimate`.
            method: As in :meth:`estimate`.
            particles: As in :meth:`estimate`.
            threads: As in :meth:`estimate_many`.
            seed: As in :meth:`estimate_many`.
            summary: As in :meth:`estimate`.
            table_rows: As in :meth:`estimate`.

        Returns:
            For each condition its estimate, or the error of that condition (not raised).

        >>> [type(answer).__name__ for answer in est.answer_many(["age > 35", "size = 3"])]
        ['Estimate', 'UnknownColumnError']
        """
        batch = Batch(self._model, listed(clauses), particles, threads, seed, summary)
        return batch.estimates(method, today(table_rows))

    def explain(self, where: Where, *, method: str = DEFAULT_METHOD, particles: int | None = None) -> Explanation:
        """Answer a condition, and say how: which source, which columns, which values do not occur, how long.

        Args:
            where: As in :meth:`estimate`.
            method: As in :meth:`estimate`.
            particles: As in :meth:`estimate`.

        Returns:
            The explanation. ``print`` it, or read its ``estimate``, ``visited``, ``skipped`` and ``unseen``.

        Raises:
            QueryError: The condition cannot be answered.

        >>> est.explain("education = 'Phd'").unseen
        ("'Phd' does not occur in education",)
        """
        return self.prepare(where).explain(method=method, particles=particles)

    def joint(self, columns: Sequence[str], where: Where | None = None, *, groups: int | None = None) -> Joint:
        """Count the rows of each combination of values, by the values' codes. :meth:`distribution` has the values.

        Args:
            columns: Names of columns that are not text.
            where: A condition as in :meth:`estimate`; None is every row.
            groups: Of the first ``groups`` columns (by default all), rare values get as many particles as frequent
                ones.

        Returns:
            The combinations that occur and the rows of each.

        Raises:
            QueryError: The condition cannot be answered, or a column is unknown, text, or named twice.

        >>> est.joint(["sex"]).rows.tolist()
        [16192.0, 32650.0]
        """
        return self._question(where).joint(columns, groups=groups)

    def distribution(
        self,
        column: str | Sequence[str],
        where: Where | None = None,
        *,
        bins: BinsWanted | None = None,
        sort: str = "rows",
    ) -> Distribution:
        """Count the rows of every value of a column, or of every combination of values of several columns.

        Args:
            column: The name of a column, or a list of names.
            where: A condition as in :meth:`estimate`; None is every row.
            bins: Group numbers and times into about this many bins with round edges, or into bins between given edges.
                For several columns it may be a dictionary by name. A bin includes its left edge; only the last bin
                includes its right edge. Columns that are stored as a grid always have bins.
            sort: ``rows`` puts the most frequent value first, ``value`` sorts by the value. Bins are sorted by value.

        Returns:
            A table: each value with its share of the condition's rows, its rows and their error bar.

        Raises:
            QueryError: The condition cannot be answered, or the column cannot be used this way.

        >>> print(est.distribution("sex", "age > 80"))
        sex      share  rows  low  high
        Male    67.57%   100  100   100
        Female  32.43%    48   48    48
        148 rows where age > 80, 2 values
        """
        return self._question(where).distribution(column, bins=bins, sort=sort)

    def distributions(
        self, columns: Sequence[str], where: Where | None = None, *, bins: BinsWanted | None = None
    ) -> list[Distribution]:
        """The :meth:`distribution` of each of several columns under one condition, which is counted once.

        Args:
            columns: Names of columns.
            where: A condition as in :meth:`estimate`; None is every row.
            bins: As in :meth:`distribution`.

        Returns:
            One distribution for each column, in the same order.

        Raises:
            QueryError: The condition cannot be answered, or a column cannot be used this way.

        >>> [len(distribution) for distribution in est.distributions(["sex", "income"], "age > 80")]
        [2, 2]
        """
        return self._question(where).distributions(columns, bins=bins)

    def pieces(self, column: str, where: Where | None = None, *, top: int = 10, least_hits: int = 1) -> StringPieces:
        """Find the most frequent beginnings and endings of a column's strings, such as directories and file types.

        They are counted in evidence rows. Strings are cut at the first of ``/ \\ @ space . - _`` that at least half of
        them contain. Of paths and URLs, an ending is a file type such as ``.html``. A beginning that more than half of
        the rows have is replaced by its continuations.

        Args:
            column: The name of a column of strings.
            where: A condition as in :meth:`estimate`; None is every row.
            top: Number of beginnings, and of endings, at most.
            least_hits: Show only those with this many evidence rows.

        Returns:
            Beginnings and endings, the most frequent first, each with its rows and their error bar. There are none
            if the strings have no separator, or if the model has no evidence rows.

        Raises:
            QueryError: The condition cannot be answered, or the column is unknown or does not hold strings.

        >>> [piece.text for piece in est.pieces("education", top=2).ends]
        ['-grad', '-college']
        """
        from countless.estimator.answers.string_pieces import string_pieces
        from countless.query.parsing.names import index_of_name

        index = index_of_name(self.schema, column)
        if self.schema.columns[index].type != TEXT:
            raise QueryTypeError(f'"{column}" holds no strings: beginnings and endings are of strings')
        question = self._question(where)
        return string_pieces(question.evidence, index, question.total, whole(top, "top", 1), least_hits)

    def sample(
        self, count: int = 10, *, where: Where | None = None, seed: int | None = None, stored: bool = True
    ) -> Sample:
        """Draw synthetic rows from the model. Only under a condition on text are the first ones rows of the table.

        Args:
            count: Number of rows.
            where: A condition that every row satisfies, as in :meth:`estimate`; None is no condition.
            seed: The same seed gives the same rows.
            stored: Under a condition on text, take evidence rows that match first, and draw only the rest. False draws
                all rows.

        Returns:
            The rows, with the table's types. There can be fewer than ``count``, if most drawn rows fail the condition.

        Raises:
            NoRowsError: No row matches the condition.
            QueryError: The condition cannot be answered, or needs a text model that the file does not have.

        >>> rows = est.sample(3, where="age > 80", seed=1)
        >>> len(rows), all(row["age"] > 80 for row in rows.to_dicts())
        (3, True)
        """
        return self._question(where).sample(count, seed=seed, stored=stored)

    def query(self, sql: str, *, intervals: bool = False, least_hits: int = 1) -> QueryResult:
        """Answer a SELECT with aggregates.

        Args:
            sql: A SELECT with count, sum, avg, stddev, variance, median or quantiles, expressions of these, WHERE,
                GROUP BY of up to three columns, HAVING, ORDER BY and LIMIT. The table may have any name. If the
                model has evidence rows, columns may also be expressions, such as ``hour(ts)``.
            intervals: Add the columns ``name_low`` and ``name_high`` after each aggregate: its error bar.
            least_hits: Of groups by an expression, show only those with this many evidence rows. An expression can put
                a whole row into one value, so a higher number protects single rows.

        Returns:
            A table with the names and types that DuckDB would give it.

        Raises:
            QueryError: The statement cannot be answered. The message underlines the problem.

        >>> print(est.query("SELECT sex, count(*) AS people, median(age) AS age FROM adult GROUP BY sex ORDER BY sex"))
        sex     people  age
        Female   16192   35
        Male     32650   38
        """
        from countless.estimator.answers.aggregates.aggregates import answer_select

        model = self._model
        return answer_select(self._question, model.compiler, model.outer, sql, model.calibration, intervals, least_hits)

    def _question(self, where: Where | None) -> PreparedQuestion:
        """The prepared question for ``where``; None is every row."""
        return PreparedQuestion(self._model) if where is None else self.prepare(where)


def _estimate_or_raise(answer: Estimate | CountlessError) -> Estimate:
    if isinstance(answer, CountlessError):
        raise answer
    return answer
