"""What learning gaps inside strings is worth: questions about a beginning, and a piece anywhere after it.

    .venv/bin/python benchmarks/gaps.py TABLE.parquet COLUMN MODEL [MODEL ...] > gaps.json

Fit one model with ``--text-masking prefix`` and one with ``--text-masking spans``.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np

from countless.data.columns.types import quote_identifier, sql_literal
from countless.data.sources.source import Source
from countless.estimator.estimator import Estimator
from countless.evaluation.evaluate import evaluate
from countless.workload import Query
from countless_lab.measurement.script import write_result

QUERIES = 200
BEGINNING, PIECE = (8, 24), (3, 5)  # characters
SEED = 11


def main() -> None:
    table, column, *models = sys.argv[1:]
    source = Source.open(table)
    queries = questions(source, quote_identifier(column))
    by_masking = {}
    for model in models:
        estimator = Estimator.load(model)
        results = evaluate(partial(estimator.estimate, summary=False), queries, "particles").to_json()
        gaps = [text["model"].get("gaps", False) for text in estimator.info()["texts"]]
        by_masking["spans" if any(gaps) else "prefix"] = {**results, "training": estimator.info()["training"]}
    write_result(by_masking)


def questions(source: Source, name: str) -> list[Query]:
    """``LIKE 'beginning%piece%'``, both from the same random row."""
    rng = np.random.default_rng(SEED)
    rows = source.rows(
        f"SELECT {name} FROM {source.table} WHERE length({name}) > 40 ORDER BY hash({name}) LIMIT {QUERIES}"
    )
    clauses = []
    for (text,) in rows:
        begins = int(rng.integers(*BEGINNING))
        length = int(rng.integers(PIECE[0], PIECE[1] + 1))
        first = int(rng.integers(begins, len(text) - length + 1))
        pattern = f"{text[:begins]}%{text[first : first + length]}%"
        if not set("_\\") & set(pattern):
            clauses.append(f"{name} LIKE {sql_literal(pattern, 'VARCHAR')}")
    return [Query(where, count) for where, count in zip(clauses, source.counts(clauses), strict=True)]


if __name__ == "__main__":
    main()
