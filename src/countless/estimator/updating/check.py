"""The check whether a model still matches its table: compares columns and answers with rows of the table."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.data.columns.schema import Schema
from countless.data.encoding.recoding import MISSING, Recoded
from countless.data.encoding.schema_growth import conformed
from countless.data.evidence import EvidenceRows
from countless.data.sources.source import Source
from countless.engine.runtimes import Runtimes
from countless.errors import CountlessError
from countless.estimator.answers.estimate import Estimate, q_error
from countless.estimator.estimator import Estimator
from countless.estimator.model_table import open_table
from countless.estimator.updating.drift import Drift, PairDrift, column_drift, evidence_drift, pair_drifts, text_drift
from countless.workload import mixed_clauses

SAMPLE, QUERIES, THRESHOLD = 100_000, 200, 0.05
LEAST_ROWS = 10  # rows of the sample that a query needs to have a q-error
MAX_PAIRS = 5  # pairs of columns in the result
MAX_REASONS = 3  # reasons in one line
DEVIATIONS = 3.0  # standard deviations by which the coverage may be below its level by chance
PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0}


@dataclass(frozen=True)
class AnswerAccuracy:
    """How accurate the answers to random questions are.

    ``coverage`` is the share of questions whose true count is within the error bar; it should be ``level``. ``fitted``
    are the q-errors of the calibration's questions, when the model was fitted or last updated.
    """

    queries: int
    level: float
    coverage: float
    q_errors: dict[str, float | None]
    fitted: dict[str, float | None]

    @property
    def shortfall(self) -> float:
        """How far the coverage is below its level, more than by chance."""
        chance = DEVIATIONS * math.sqrt(self.level * (1 - self.level) / self.queries)
        return max(0.0, self.level - self.coverage - chance)


@dataclass(frozen=True)
class Check:
    """How a model compares with its table as it is now. Every difference is a share of the rows.

    Attributes:
        rows: Number of rows that the model knows.
        table_rows: Number of rows of the table now.
        sample: Number of rows that were compared.
        threshold: The largest difference that is accepted.
        columns: The difference of each column.
        pairs: The pairs of columns whose relation has changed most.
        answers: How accurate the answers to random questions are; None if none were asked.

    >>> result = est.check("adult", sample=2_000, queries=10, threshold=0.2)
    >>> result.ok
    True
    """

    rows: int
    table_rows: int
    sample: int
    threshold: float
    columns: tuple[Drift, ...]
    pairs: tuple[PairDrift, ...]
    answers: AnswerAccuracy | None

    @property
    def drifted(self) -> tuple[str, ...]:
        """Names of the columns that differ by more than the threshold, the largest difference first.

        >>> est.check("adult", sample=2_000, queries=10, threshold=0.2).drifted
        ()
        """
        drifts = [column for column in self.columns if column.drift > self.threshold]
        return tuple(drift.column for drift in sorted(drifts, key=lambda drift: -drift.drift))

    @property
    def growth(self) -> float:
        """How many more rows the table has, as a share; negative if it has fewer.

        >>> est.check("adult", sample=2_000, queries=10, threshold=0.2).growth
        0.0
        """
        return self.table_rows / self.rows - 1

    @property
    def reasons(self) -> tuple[str, ...]:
        """One sentence for each difference that is larger than the threshold.

        >>> est.check("adult", sample=2_000, queries=10, threshold=0.2).reasons
        ()
        """
        reasons = []
        if abs(self.growth) > self.threshold:
            reasons.append(f"{self.table_rows:,} rows instead of {self.rows:,}")
        for name in self.drifted:
            drift = next(column for column in self.columns if column.column == name)
            moved = f"{drift.moved.what}: {drift.moved.model:.1%} in the model, {drift.moved.table:.1%} in the table"
            reasons.append(f"{name} has drifted by {drift.drift:.1%} ({moved})")
        reasons += [
            f"{' and '.join(pair.columns)} no longer go together in {pair.drift:.1%} of the rows"
            for pair in self.pairs
            if pair.drift > self.threshold
        ]
        if self.answers is not None and self.answers.shortfall > self.threshold:
            reasons.append(f"{self.answers.coverage:.0%} of error bars hold instead of {self.answers.level:.0%}")
        return tuple(reasons)

    @property
    def ok(self) -> bool:
        """Whether no difference is larger than the threshold.

        >>> est.check("adult", sample=2_000, queries=10, threshold=0.2).ok
        True
        """
        return not self.reasons

    def to_json(self) -> dict[str, Any]:
        """The result as a dictionary that can be written as JSON.

        Returns:
            The fields, with ``ok``, ``reasons`` and ``drifted``.

        >>> est.check("adult", sample=2_000, queries=10, threshold=0.2).to_json()["ok"]
        True
        """
        answers = None if self.answers is None else {**asdict(self.answers), "shortfall": self.answers.shortfall}
        return {
            "ok": self.ok,
            "reasons": list(self.reasons),
            "rows": self.rows,
            "table_rows": self.table_rows,
            "sample": self.sample,
            "threshold": self.threshold,
            "drifted": list(self.drifted),
            "columns": [column.to_json() for column in self.columns],
            "pairs": [asdict(pair) for pair in self.pairs],
            "answers": answers,
        }

    def __str__(self) -> str:
        if self.ok:
            return "the model still matches the table"
        reasons = self.reasons
        more = [f"and {len(reasons) - MAX_REASONS} more"] if len(reasons) > MAX_REASONS else []
        return f"the model no longer matches the table: {'; '.join([*reasons[:MAX_REASONS], *more])}"


def check(
    estimator: Estimator,
    runtimes: Runtimes,
    evidence: EvidenceRows | None,
    table: Any,
    *,
    sample: int | None,
    queries: int,
    threshold: float,
    seed: int,
) -> Check:
    """Compare the estimator with the rows of ``table``: :meth:`countless.Estimator.check`."""
    schema = estimator.schema
    source = open_table(table, schema)
    total = source.count()
    if total == 0:
        raise CountlessError("the table has no rows: there is nothing to compare the model with")
    rows = source if sample is None or sample >= total else source.sampled(sample, seed)
    columns, pairs = _columns(estimator, runtimes, rows, evidence)
    answers = _answers(estimator, rows, total, queries, seed) if queries and estimator.calibration.queries else None
    return Check(schema.rows, total, min(total, sample or total), threshold, columns, pairs, answers)


def _columns(
    estimator: Estimator, runtimes: Runtimes, source: Source, evidence: EvidenceRows | None
) -> tuple[tuple[Drift, ...], tuple[PairDrift, ...]]:
    """The drift of each column from the model and from the evidence rows, whichever is larger; and of pairs."""
    schema = estimator.schema
    codes, texts = _recoded(source, schema)
    drifts = [
        column_drift(column, _marginal(estimator, runtimes, index), codes[:, index])
        for index, column in enumerate(schema.coded)
    ]
    counts = runtimes.counts
    pairs = [] if counts is None else pair_drifts(counts.pairs, schema.coded, codes, drifts)
    drifts += [
        text_drift(column, runtimes.summaries[index], schema.rows, texts[index])
        for index, column in enumerate(schema.texts)
    ]
    if evidence is not None:
        evidence_drifts = _evidence_drifts(schema, evidence, codes, texts)
        drifts = [max(pair, key=lambda drift: drift.drift) for pair in zip(drifts, evidence_drifts, strict=True)]
    return tuple(drifts), tuple(pair for pair in pairs[:MAX_PAIRS] if pair.drift > 0)


def _recoded(source: Source, schema: Schema) -> tuple[IntArray, list[list[str | None]]]:
    """The codes of a source (rows, columns), MISSING for NULL or UNSEEN, and the strings of its text columns."""
    codes, texts = [], [list[str | None]() for _ in schema.texts]
    with Recoded(source, schema) as recoded:
        for rows in recoded.chunks(1 << 16):
            codes.append(rows.codes)
            for strings, chunk_strings in zip(texts, rows.texts, strict=True):
                strings.extend(chunk_strings or ())
    return np.concatenate(codes), texts


def _evidence_drifts(
    schema: Schema, evidence: EvidenceRows, codes: IntArray, texts: list[list[str | None]]
) -> list[Drift]:
    """The drift of each column of a table's rows from the evidence rows."""
    sampled = evidence.rows < schema.rows
    evidence_codes, _ = _recoded(evidence.source(), schema)
    drifts = []
    for index, column in enumerate(schema.coded):
        column_codes = np.where(evidence_codes[:, index] == MISSING, column.null, evidence_codes[:, index])
        evidence_counts = np.bincount(column_codes, minlength=column.size).astype(np.float64)
        drifts.append(column_drift(column, evidence_counts, codes[:, index], sampled))
    return drifts + [
        evidence_drift(evidence, schema.index_of_text(text), column_codes, sampled)
        for text, column_codes in enumerate(texts)
    ]


def _marginal(estimator: Estimator, runtimes: Runtimes, index: int) -> FloatArray:
    """The rows of each code of a column: exact counts, or estimates of the model."""
    if runtimes.counts is not None:
        return runtimes.counts.pairs.counts[index].astype(np.float64)
    joint = estimator.joint([estimator.schema.coded[index].name])
    rows = np.zeros(estimator.schema.coded[index].size)
    rows[joint.codes[:, 0]] = joint.rows
    return rows


def _answers(estimator: Estimator, source: Source, total: int, queries: int, seed: int) -> AnswerAccuracy:
    """The accuracy of answers to random questions, with literals from the table and for its current number of rows."""
    rows = conformed(source, estimator.schema, strict=False)
    clauses = mixed_clauses(estimator.schema, rows, queries, seed)
    counts = rows.counts(clauses)
    sampled = rows.count()
    answers = estimator.estimate_many(clauses, table_rows=total)
    is_inside = [_holds(answer, count, sampled, total) for answer, count in zip(answers, counts, strict=True)]
    errors = [
        q_error(answer.rows, count * total / sampled)
        for answer, count in zip(answers, counts, strict=True)
        if sampled == total or count >= LEAST_ROWS
    ]
    fitted = [q_error(query.estimate, query.rows) for query in estimator.calibration.queries]
    level = estimator.calibration.level
    return AnswerAccuracy(len(answers), level, float(np.mean(is_inside)), _quantiles(errors), _quantiles(fitted))


def _holds(answer: Estimate, count: int, sampled: int, total: int) -> bool:
    """Whether the error bar includes the true count, or in a sample, a true count that is plausible by chance."""
    if sampled == total:
        return answer.low <= count <= answer.high
    chance, factor = 2 * math.sqrt(count + 1), total / sampled
    return answer.low <= factor * (count + chance) and factor * (count - chance) <= answer.high


def _quantiles(errors: list[float]) -> dict[str, float | None]:
    return {name: float(np.percentile(errors, percent)) if errors else None for name, percent in PERCENTILES.items()}
