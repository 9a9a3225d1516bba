"""How many particles? Fixed numbers, and numbers chosen between bounds by a target, on the same queries of one table.

.venv/bin/python benchmarks/budget.py TABLE.parquet MODEL.countless [QUERIES] > results.json

The sampler's error is the factor between its answer and that of a walk with very many particles; milliseconds are
those of the walk alone, on one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from countless.engine.answer import Answer
from countless.engine.columns import particle_budget as budget
from countless.engine.columns.runtime import Runtime
from countless.estimator.answers.estimate import q_error
from countless.estimator.estimator import Estimator
from countless.evaluation.evaluate import random_workload
from countless.region import Box
from countless.workload import Query
from countless_lab.measurement.script import percentiles, write_result

REFERENCE = 8_000
FIXED = (64, 256, 512)
ADAPTIVE = (
    (64, 512, 0.05),
    (64, 512, 0.1),
    (64, 512, 0.2),
    (64, 512, 0.4),
    (64, 1024, 0.2),
    (32, 512, 0.2),
)  # least, most, target
SEED = 7


def main() -> None:
    table, model = sys.argv[1:3]
    estimator = Estimator.load(model)
    queries = random_workload(estimator.schema, table, int(sys.argv[3]) if len(sys.argv) > 3 else 3000, 0)
    runtime = estimator._runtimes.columns[0]
    pairs = [(query, box) for query in queries for box in estimator._model.compiler.compile(query.where).region.boxes]
    answers = budget.fixed(runtime, [box for _, box in pairs], REFERENCE, 999)
    reference = [answer.density for answer in answers]
    results = {}
    for count in FIXED:
        walk = partial(_fixed, runtime, count)
        results[str(count)] = measured(walk, pairs, reference, estimator.rows)
    for fewest, most, target in ADAPTIVE:
        budget.LEAST, budget.MOST, budget.TARGET = fewest, most, target
        adaptive = measured(lambda box: budget.adaptive(runtime, [box], SEED)[0], pairs, reference, estimator.rows)
        results[f"{fewest} to {most}, target {target:.0%}"] = adaptive
    write_result({"queries": len(queries), "budgets": results})


def _fixed(runtime: Runtime[Any], count: int, box: Box) -> Answer:
    return budget.fixed(runtime, [box], count, SEED)[0]


def measured(
    walk: Callable[[Box], Answer], pairs: list[tuple[Query, Box]], reference: list[float], rows: int
) -> dict[str, Any]:
    """Errors and times over all boxes."""
    answers, seconds = [], []
    for _, box in pairs:
        started = time.perf_counter()
        answers.append(walk(box))
        seconds.append(time.perf_counter() - started)
    sampler = [q_error(a.density * rows, truth * rows) for a, truth in zip(answers, reference, strict=True)]
    errors = [q_error(a.density * rows, query.rows) for a, (query, _) in zip(answers, pairs, strict=True)]
    percents = (99, 99.9, 100)
    return {
        "exact": round(float(np.mean([answer.exact for answer in answers])), 3),
        "sampler": percentiles(sampler, percents),
        "q_error": percentiles(errors, percents, 2),
        "ms_mean": round(1e3 * float(np.mean(seconds)), 3),
        "ms_p99": round(1e3 * float(np.percentile(seconds, 99)), 2),
    }


if __name__ == "__main__":
    main()
