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
from countless.estimator.answering_model import AnsweringModel
from countless.estimator.answers.counts import known_queries
from countless.estimator.answers.evidence import Evidence
from countless.estimator.arguments import names_of, whole
from countless.estimator.batch import Batch
from countless.estimator.calibration.conformal import Calibration, CalibrationQuery
from countless.estimator.calibration.posterior import with_tail
from countless.estimator.loading import evidence_of, made_ready, schema_of
from countless.estimator.plugins import load_plugins
from countless.estimator.question_methods import QuestionMethods
from countless.settings import Seconds

if TYPE_CHECKING:
    from countless.data.frame import Frame
    from countless.estimator.fitting.learning import Listener
    from countless.estimator.rows.completed import Completed
    from countless.estimator.rows.likelihood import Watch
    from countless.estimator.updating.check import Check


class Estimator(QuestionMethods):
    """A fitted model of a table. It answers questions about the table without reading it.

    :func:`countless.fit` and :func:`countless.load` make one. The same question always gets the same answer. Threads
    may share an estimator.

    Args:
        schema: The columns and their values.
        sections: Weights, counts and rows, as the model file stores them.
        calibration: Questions with known counts, from which error bars are made; None makes an estimator without
            calibrated error bars.
        report: Facts about the fit.
        library: Version of Countless that fitted the model.

    In the examples, ``est`` is a small model of five columns of the embedded table:

    >>> columns = ["age", "education", "sex", "hours_per_week", "income"]
    >>> est = countless.fit("adult", columns=columns, epochs=1)  # doctest: +SKIP
    >>> est.estimate("age > 35 AND income = '>50K'").rows
    9139.0
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
        self._question_cache = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Estimator:
        """Read a model file.

        Args:
            path: The ``.countless`` file.

        Returns:
            The estimator that was saved there. It needs neither the table nor PyTorch.

        Raises:
            ModelFileError: The file is missing, damaged, not a model file, or written by a newer version.

        >>> path = est.save("adult.countless")
        >>> countless.load(path)
        <Estimator of 48,842 rows, 5 columns>
        """
        return cls._from_contents(store.read(path))

    @classmethod
    def _from_contents(cls, contents: store.Contents) -> Estimator:
        schema, calibration = schema_of(contents.schema), Calibration.from_json(contents.calibration)
        return cls(schema, contents.sections, calibration, contents.report, contents.library)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model file. An existing file is replaced in one step, so it is never half written.

        The file holds values and rows of the table: treat it like the data, or save the :meth:`stripped` model.

        Args:
            path: The file to write, usually ``name.countless``.

        Returns:
            The path that was written.

        Raises:
            ModelFileError: The file cannot be written.

        >>> est.save("adult.countless").name
        'adult.countless'
        """
        store.write(path, self._contents())
        return Path(path)

    def __reduce__(self) -> tuple[Callable[[bytes], Estimator], tuple[bytes]]:
        """Copy and pickle an estimator as the bytes of its model file."""
        return _from_bytes, (store.to_bytes(self._contents()),)

    def _contents(self) -> store.Contents:
        return store.Contents(
            self.schema.to_json(), self._sections, self.calibration.to_json(), self.report, self.library
        )

    def stripped(self) -> Estimator:
        """The same model without rows of the table, for people who may not see them.

        It has no evidence rows, no calibration questions (they contain values of random rows) and no digests of the
        table. The error bars stay. After an :meth:`update`, call :meth:`calibrate`.

        Returns:
            A new estimator. It still holds the distinct values of its columns, and its counts.

        >>> est.stripped().info()["evidence"] is None
        True
        """
        from countless.estimator.stripping import stripped

        return stripped(self, self._sections)

    def calibrated(self, calibration: Calibration) -> Estimator:
        """The same estimator with error bars from another calibration.

        Args:
            calibration: Questions with known counts, or what was learned from them.

        Returns:
            A new estimator. :meth:`calibrate` makes one from a table.

        >>> est.calibrated(est.calibration).calibration.level
        0.9
        """
        evidence = self._model.evidence
        if evidence is not None:
            calibration = with_tail(calibration, evidence.rows.rows, self.rows)
        return Estimator(self.schema, self._sections, calibration, self.report, self.library)

    def calibration_queries(self, clauses: Sequence[str], truths: Sequence[int]) -> list[CalibrationQuery]:
        """Questions with known counts, together with the model's answers, for a calibration.

        Args:
            clauses: WHERE clauses.
            truths: The true number of rows of each.

        Returns:
            One item for each clause, without clauses that the model answers exactly.

        Raises:
            QueryError: One of the clauses cannot be answered.

        >>> est.calibration_queries(["sex = 'Male'"], [32650])  # this count is exact
        []
        """
        densities = Batch(self._model, clauses).densities()
        return known_queries(densities, truths, self.rows, self._model.evidence)

    def log_prob(self, rows: Any) -> FloatArray:
        """The log-likelihood of rows.

        Args:
            rows: A table as :func:`countless.fit` takes it, a dictionary, or a list of dictionaries with the same keys.
                Columns that are missing are left out of the probability. NULL is a value like others.

        Returns:
            For each row the natural logarithm of its probability. A row with a value that the table does not have (NULL
            in a column without NULLs too) has minus infinity.

        Raises:
            DataError: The rows cannot be read, or have no column of the model.
            UnsupportedQueryError: A text column is among them, and the model has no text model.

        >>> est.log_prob([{"sex": "Male"}, {"sex": "unknown"}]).round(1).tolist()
        [-0.4, -inf]
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
        """Fill in missing values: NULLs, and columns of the model that the rows lack.

        Args:
            rows: As in :meth:`log_prob`. In a list of dictionaries, a missing key is a missing value.
            columns: Names of the columns to fill in; by default all.
            draws: Draw values at random, consistent with each other. By default each missing value becomes the most
                likely one. Text can only be drawn.
            seed: The same seed draws the same values.
            watch: Called with the number of rows done and the number of all rows.

        Returns:
            The completed table, and which cells were filled in, with their probabilities.

        Raises:
            DataError: The rows cannot be read, or a column cannot be filled in.
            UnsupportedQueryError: Text is to be drawn, and the model has no text model.

        >>> est.complete({"age": 90, "income": "<=50K", "education": "HS-grad", "hours_per_week": 40}).row["sex"]
        'Male'
        """
        from countless.estimator.rows.completion import CompletionOptions, complete

        names = None if columns is None else tuple(names_of(columns))
        options = CompletionOptions(names, draws, self._model.checked_seed(seed))
        return complete(self.schema, self._runtimes, rows, options, watch)

    def anomalies(self, rows: Any, top: int = 20, *, watch: Watch | None = None) -> Frame:
        """Find the rows that are the least likely under the model.

        Args:
            rows: As in :meth:`log_prob`.
            top: Number of rows to return.
            watch: Called with the number of rows done and the number of all rows.

        Returns:
            A table, the least likely row first: the row's number (from 0), its log-probability, the column that makes
            it unlikely, the value there and its probability given the other columns, and the expected value with its
            probability.

        Raises:
            DataError: The rows cannot be read, or have no column of the model.
            UnsupportedQueryError: A text column is among them, and the model has no text model.

        >>> unlikely = est.anomalies([{"age": 30, "sex": "Male"}, {"age": 90, "sex": "Male"}], top=1)
        >>> unlikely.to_dicts()[0]["row"], unlikely.to_dicts()[0]["column"]
        (1, 'age')
        """
        from countless.estimator.rows.anomalies import anomalies

        return anomalies(self.schema, self._runtimes, rows, whole(top, "the number of rows to return", 1), watch)

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
        """Learn rows that were added to the table.

        Exact counts stay exact, and evidence rows stay a uniform sample. Old rows are trained on together with the new
        ones, so that they are not forgotten. Ctrl-C ends training early.

        Args:
            rows: Only the new rows, with every column of the model. Other columns are ignored.
            replay: Where old rows come from: ``"evidence"`` (the rows in the file; the default if there are any),
                ``"model"`` (synthetic rows), or the old table.
            epochs: Passes over old and new rows.
            budget: Time to train, such as ``"90s"``; by default an eighth of the fit's time.
            learning_rate: Peak learning rate; by default a quarter of the fit's.
            seed: Seed of everything random.
            listener: Receives progress; by default it is logged.

        Returns:
            A new estimator of the grown table. This one is not changed.

        Raises:
            DataError: The rows cannot be read, lack a column, or have other types.
            OptionError: An argument has a wrong type or value.
            TrainingError: This kind of model cannot be updated.

        >>> row = {"age": 30, "education": "HS-grad", "sex": "Male", "hours_per_week": 40, "income": "<=50K"}
        >>> est.update([row] * 100, epochs=1).rows
        48942
        """
        from countless.estimator.updating.relearning import RelearningOptions
        from countless.estimator.updating.update import update

        options = RelearningOptions(epochs, budget, learning_rate, seed)
        return update(self, self._sections, self._runtimes, rows, replay, options, listener)

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
        """Train a finished model further, on the table that it was fitted on.

        Weights that do not improve are not kept. Ctrl-C ends training early.

        Args:
            table: The table of the fit. It must not have changed.
            budget: Time for reading, training and error bars; by default ``"5m"``, or no limit with ``epochs``.
            epochs: More passes over the table.
            learning_rate: Peak learning rate; by default half of the fit's.
            workload: WHERE clauses that will likely be asked, as in :func:`countless.fit`.
            checkpoint: The checkpoint file of the fit, or the ``MODEL.training`` of ``countless fit``. It has the
                weights in full precision and the optimizer's state, and is written again. Without it, training starts
                from the stored weights.
            listener: Receives progress; by default it is logged.

        Returns:
            A new estimator. This one is not changed.

        Raises:
            DataError: The table has changed, or cannot be read.
            OptionError: An argument has a wrong type or value.
            TrainingError: The checkpoint is of another model, or the model has no network.

        >>> est.train("adult", epochs=1)  # doctest: +SKIP
        <Estimator of 48,842 rows, 5 columns>
        """
        from countless.estimator.updating.more_training import more_training
        from countless.options import MoreTrainingOptions

        options = MoreTrainingOptions(budget, epochs, learning_rate, workload)
        checkpoint_path = None if checkpoint is None else Path(checkpoint)
        return more_training(self, self._sections, self._runtimes, table, options, checkpoint_path, listener)

    def calibrate(self, table: Any, *, seed: int = 0, listener: Listener | None = None) -> Estimator:
        """Make new error bars, from random questions about the table.

        Args:
            table: The table that the model was fitted on, with the rows of later updates.
            seed: Seed of the questions.
            listener: Receives progress; by default it is logged.

        Returns:
            A new estimator with the same model. This one is not changed.

        Raises:
            DataError: The table cannot be read, has no rows, or lacks a column.

        >>> est.calibrate("adult", seed=1)  # doctest: +SKIP
        <Estimator of 48,842 rows, 5 columns>
        """
        from countless.estimator.fitting.calibrating import recalibrated
        from countless.estimator.fitting.fit import LoggingListener

        return recalibrated(self, table, whole(seed, "the seed", 0), listener or LoggingListener())

    def check(
        self, table: Any, *, sample: int | None = 100_000, queries: int = 200, threshold: float = 0.05, seed: int = 0
    ) -> Check:
        """Compare the model with its table, to see whether the table has changed too much.

        Args:
            table: The table as it is now.
            sample: Number of rows to compare; None compares all.
            queries: Number of random questions to compare.
            threshold: The share of rows by which a column, a pair of columns or the number of rows may differ.
            seed: Seed of the sample and the questions.

        Returns:
            The result. ``ok`` says whether everything is within the threshold, ``reasons`` what is not.

        Raises:
            DataError: The table cannot be read, or lacks a column.

        >>> est.check("adult", sample=2_000, queries=10).growth
        0.0
        """
        from countless.estimator.updating.check import check

        seed = self._model.checked_seed(seed)
        rows = evidence_of(self.schema, self._sections)
        return check(self, self._runtimes, rows, table, sample=sample, queries=queries, threshold=threshold, seed=seed)

    def info(self) -> dict[str, Any]:
        """What the model file holds: columns, sizes, exact counts, evidence rows, error bars, training.

        Returns:
            A dictionary that can be written as JSON.

        >>> est.info()["rows"]
        48842
        """
        from countless.estimator.calibration.coverage import describe_intervals
        from countless.estimator.info import describe_contents, without_history

        contents = describe_contents(self.schema, self._sections, self._runtimes)
        evidence = self._model.evidence
        interval = describe_intervals(self.calibration, self.rows, None if evidence is None else evidence.rows.rows)
        return contents | {"interval": interval, "training": without_history(self.report), "library": self.library}

    def __repr__(self) -> str:
        return f"<Estimator of {self.rows:,} rows, {len(self.columns)} columns>"


def _from_bytes(data: bytes) -> Estimator:
    """The estimator that was pickled as these bytes, perhaps in another process."""
    load_plugins()  # the model may be of a kind that a plugin brings
    return Estimator._from_contents(store.from_bytes(data))
