"""Evidence for questions, found by DuckDB: what the estimator's own counting must find too."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pytest

from countless.data.columns.types import quote_identifier
from countless.data.evidence import EvidenceRows, Hits
from countless.data.sources.source import connect
from countless.estimator.answers.estimate import Estimate
from countless.estimator.answers.group_fusion import model_errors, reach_of
from countless.estimator.calibration.conformal import Shape
from countless.estimator.estimator import Estimator
from countless.estimator.loading import evidence_of
from countless.estimator.prepared import PreparedQuestion


def decoded(rows: EvidenceRows) -> duckdb.DuckDBPyConnection:
    """The evidence rows as the table t, with their places."""
    connection = connect()
    parts = [f"unnest(range({rows.rows})) AS __place"]
    values: list[Any] = []
    for column, codes in zip(rows.schema.coded, rows.codes, strict=True):
        texts = [*column.values, None]
        values.append([texts[code] for code in codes.tolist()])
        parts.append(f"unnest(CAST(${len(values)} AS VARCHAR[])::{column.type}[]) AS {quote_identifier(column.name)}")
    connection.execute(f"CREATE TABLE t AS SELECT {', '.join(parts)}", values)
    return connection


def with_evidence(monkeypatch: pytest.MonkeyPatch, estimator: Estimator) -> None:
    """Questions to ``estimator`` have the hits of its evidence, and totals that are fused with them."""
    rows = evidence_of(estimator.schema, estimator._sections)
    assert rows is not None
    connection, memo, of_model = decoded(rows), {}, PreparedQuestion.total.fget
    assert of_model is not None

    def evidence(question: PreparedQuestion) -> Hits:
        if question.where not in memo:
            found = connection.execute(f"SELECT __place FROM t WHERE {question.where}").fetchnumpy()["__place"]
            marks = np.zeros(rows.rows, dtype=np.bool_)
            marks[found] = True
            memo[question.where] = Hits(rows, marks, int(marks.sum()))
        return memo[question.where]

    def total(question: PreparedQuestion) -> Estimate:
        estimate = of_model(question)
        hits, part = evidence(question).count, rows.rows / estimator.rows
        if estimate.exact:
            return estimate
        if part == 1:
            return replace(estimate, rows=float(hits), low=float(hits), high=float(hits), exact=True)
        shape = Shape.of(question.question.region)
        strength = float(model_errors(estimator.calibration, np.array([estimate.rows]), shape)[0]) ** -2
        prior = max(estimate.rows, 0.5)
        if abs(hits - part * prior) > 4 * math.sqrt(part * prior + (part * prior) ** 2 / strength):
            strength = 0.25
        mean = (strength + hits) / (strength / prior + part)
        reach = reach_of(estimate.level) / math.sqrt(strength + hits)
        return replace(
            estimate,
            rows=max(mean, hits),
            low=max(mean * math.exp(-reach), hits),
            high=max(mean, hits) * math.exp(reach),
            selectivity=max(mean, hits) / estimator.rows,
        )

    monkeypatch.setattr(PreparedQuestion, "evidence", property(evidence))
    monkeypatch.setattr(PreparedQuestion, "total", property(total))
