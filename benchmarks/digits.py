"""Digits against one wide softmax, on one table, in equal training time and on the same random queries.

.venv/bin/python benchmarks/digits.py TABLE.parquet SECONDS [COLUMN_TO_EXCLUDE ...] > results.json
"""

from __future__ import annotations

import json
import sys

from countless.data.columns import digits
from countless.estimator.fitting.fit import fit
from countless.evaluation.evaluate import evaluate, random_workload

SEED = 77


def main() -> None:
    table, seconds, *exclude = sys.argv[1:]
    results = {}
    queries = None
    for name, digits_from in (("digits", digits.DIGITS_FROM), ("one softmax", sys.maxsize)):
        digits.DIGITS_FROM = digits_from
        estimator = fit(table, budget=float(seconds), exclude=exclude)
        queries = queries or random_workload(estimator.schema, table, 1000, SEED)
        measured = evaluate(estimator.estimate, queries, "particles").to_json()
        training = {key: estimator.report[key] for key in ("epochs", "rows_per_second", "parameters")}
        results[name] = {**training, **measured}
    json.dump(results, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
