"""A check whether a model still fits its table: its columns and its answers against fresh rows."""

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
from countless.estimator.updating.drift import Drift, Parted, column_drift, evidence_drift, parted, text_drift
from countless.workload import mixed_clauses

SAMPLE, QUERIES, THRESHOLD = 100_000, 200, 0.05
SOME_ROWS = 10  # of the sample: a query with fewer has no q-error worth the name
PAIRS_TOLD = 5
TOLD = 3  # reasons in one line
DEVIATIONS = 3.0  # by which a coverage may fall short of its level, by chance
PLACES = {"p50": 50.0, "p95": 95.0, "p99": 99.0}


@dataclass(frozen=True)
class AnswerAccuracy:
    """Random questions: the share whose truth its error bar holds, of which ``level`` should be, and the q-errors.

    Those ``fitted`` are of the calibration's questions, when the model was fitted or last updated.
    """

    queries: int
    level: float
    coverage: float
    q_errors: dict[str, float | None]
    fitted: dict[str, float | None]

    @property
    def shortfall(self) -> float:
        """How far the coverage is below its level, beyond chance."""
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

    >>> checked = est.check("adult", sample=2_000, queries=10, threshold=0.2)
    >>> checked.ok
    True
    """

    rows: int
    table_rows: int
    sample: int
    threshold: float
    columns: tuple[Drift, ...]
    pairs: tuple[Parted, ...]
    answers: AnswerAccuracy | None

    @property
    def drifted(self) -> tuple[str, ...]:
        """Names of the columns that differ by more than the threshold, the largest difference first.

        >>> est.check("adult", sample=2_000, queries=10, threshold=0.2).drifted
        ()
        """
        far = sorted((found for found in self.columns if found.drift > self.threshold), key=lambda found: -found.drift)
        return tuple(found.column for found in far)

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
        found = []
        if abs(self.growth) > self.threshold:
            found.append(f"{self.table_rows:,} rows instead of {self.rows:,}")
        for name in self.drifted:
            drift = next(item for item in self.columns if item.column == name)
            moved = f"{drift.moved.what}: {drift.moved.model:.1%} in the model, {drift.moved.table:.1%} in the table"
            found.append(f"{name} has drifted by {drift.drift:.1%} ({moved})")
        found += [
            f"{' and '.join(pair.columns)} no longer go together in {pair.drift:.1%} of the rows"
            for pair in self.pairs
            if pair.drift > self.threshold
        ]
        if self.answers is not None and self.answers.shortfall > self.threshold:
            found.append(f"{self.answers.coverage:.0%} of error bars hold instead of {self.answers.level:.0%}")
        return tuple(found)

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
            "columns": [found.to_json() for found in self.columns],
            "pairs": [asdict(pair) for pair in self.pairs],
            "answers": answers,
        }

    def __str__(self) -> str:
        if self.ok:
            return "the model still matches the table"
        reasons = self.reasons
        more = [f"and {len(reasons) - TOLD} more"] if len(reasons) > TOLD else []
        return f"the model no longer matches the table: {'; '.join([*reasons[:TOLD], *more])}"


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
    """The estimator beside the rows of ``table``: :meth:`countless.Estimator.check`."""
    schema = estimator.schema
    source = open_table(table, schema)
    total = source.count()
    if total == 0:
        raise CountlessError("the table has no rows: there is nothing to compare the model with")
    some = source if sample is None or sample >= total else source.sampled(sample, seed)
    columns, pairs = _columns(estimator, runtimes, some, evidence)
    answers = _answers(estimator, some, total, queries, seed) if queries and estimator.calibration.queries else None
    return Check(schema.rows, total, min(total, sample or total), threshold, columns, pairs, answers)


def _columns(
    estimator: Estimator, runtimes: Runtimes, some: Source, evidence: EvidenceRows | None
) -> tuple[tuple[Drift, ...], tuple[Parted, ...]]:
    """Each column compared with the model and with the evidence rows; the larger difference counts."""
    schema = estimator.schema
    every, texts = _recoded(some, schema)
    drifts = [
        column_drift(column, _marginal(estimator, runtimes, index), every[:, index])
        for index, column in enumerate(schema.coded)
    ]
    counted = runtimes.counts
    apart = [] if counted is None else parted(counted.pairs, schema.coded, every, drifts)
    drifts += [
        text_drift(column, runtimes.summaries[index], schema.rows, texts[index])
        for index, column in enumerate(schema.texts)
    ]
    if evidence is not None:
        beside = _beside_evidence(schema, evidence, every, texts)
        drifts = [max(pair, key=lambda drift: drift.drift) for pair in zip(drifts, beside, strict=True)]
    return tuple(drifts), tuple(pair for pair in apart[:PAIRS_TOLD] if pair.drift > 0)


def _recoded(some: Source, schema: Schema) -> tuple[IntArray, list[list[str | None]]]:
    """The codes (rows, columns) of a source, MISSING for NULL, or UNSEEN, and the strings of its text columns."""
    codes, texts = [], [list[str | None]() for _ in schema.texts]
    with Recoded(some, schema) as recoded:
        for rows in recoded.chunks(1 << 16):
            codes.append(rows.codes)
            for own, found in zip(texts, rows.texts, strict=True):
                own.extend(found or ())
    return np.concatenate(codes), texts


def _beside_evidence(
    schema: Schema, evidence: EvidenceRows, every: IntArray, texts: list[list[str | None]]
) -> list[Drift]:
    """How far each column of a table's rows is from the evidence rows."""
    sampled = evidence.rows < schema.rows
    codes, _ = _recoded(evidence.source(), schema)
    drifts = []
    for index, column in enumerate(schema.coded):
        own = np.where(codes[:, index] == MISSING, column.null, codes[:, index])
        held = np.bincount(own, minlength=column.size).astype(np.float64)
        drifts.append(column_drift(column, held, every[:, index], sampled))
    return drifts + [
        evidence_drift(evidence, schema.index_of_text(text), own, sampled) for text, own in enumerate(texts)
    ]


def _marginal(estimator: Estimator, runtimes: Runtimes, index: int) -> FloatArray:
    """The rows of every code of a column: counted, or as the model has them."""
    if runtimes.counts is not None:
        return runtimes.counts.pairs.counts[index].astype(np.float64)
    found = estimator.joint([estimator.schema.coded[index].name])
    rows = np.zeros(estimator.schema.coded[index].size)
    rows[found.codes[:, 0]] = found.rows
    return rows


def _answers(estimator: Estimator, some: Source, total: int, queries: int, seed: int) -> AnswerAccuracy:
    """The accuracy of random questions with literals from the table, answered for its current number of rows."""
    rows = conformed(some, estimator.schema, strict=False)
    clauses = mixed_clauses(estimator.schema, rows, queries, seed)
    counts = rows.counts(clauses)
    sampled = rows.count()
    answers = estimator.estimate_many(clauses, table_rows=total)
    inside = [_holds(answer, count, sampled, total) for answer, count in zip(answers, counts, strict=True)]
    errors = [
        q_error(answer.rows, count * total / sampled)
        for answer, count in zip(answers, counts, strict=True)
        if sampled == total or count >= SOME_ROWS
    ]
    fitted = [q_error(query.estimate, query.rows) for query in estimator.calibration.queries]
    level = estimator.calibration.level
    return AnswerAccuracy(len(answers), level, float(np.mean(inside)), _quantiles(errors), _quantiles(fitted))


def _holds(answer: Estimate, count: int, sampled: int, total: int) -> bool:
    """Whether the error bar holds the truth, or one that a sample with ``count`` such rows may well come from."""
    if sampled == total:
        return answer.low <= count <= answer.high
    chance, factor = 2 * math.sqrt(count + 1), total / sampled
    return answer.low <= factor * (count + chance) and factor * (count - chance) <= answer.high


def _quantiles(errors: list[float]) -> dict[str, float | None]:
    return {name: float(np.percentile(errors, place)) if errors else None for name, place in PLACES.items()}
