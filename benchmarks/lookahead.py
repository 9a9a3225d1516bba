"""What looking ahead is worth: particles with and without the hints that counts of pairs give, on the same queries.

.venv/bin/python benchmarks/lookahead.py TABLE.parquet MODEL.countless [QUERIES] > results.json

The sampler's error is the factor between its answer and the model's own, for which a walk with very many hinted
particles stands; both are at least one row. Only queries that a walk of 128 particles does not answer exactly count.
Milliseconds are those of the walk alone, on one thread.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from countless.engine.columns.particle_budget import LEAST, Population
from countless.engine.columns.runtime import Runtime
from countless.estimator.estimator import Estimator
from countless.evaluation.evaluate import random_workload
from countless.region import Box
from countless_lab.measurement.script import percentiles, write_result

REFERENCE = 16_384
BUDGETS = (32, 128, 512, 2048)
QUESTION_SEED = 7_002
SEED = 7


def main() -> None:
    table, model = sys.argv[1:3]
    estimator = Estimator.load(model)
    queries = random_workload(estimator.schema, table, int(sys.argv[3]) if len(sys.argv) > 3 else 500, QUESTION_SEED)
    runtime, counts = estimator._runtimes.columns[0], estimator._runtimes.counts
    if counts is None:
        raise SystemExit("the model has no counts: fit it without --no-summary")
    boxes = [box for query in queries for box in estimator._model.compiler.compile(query.where).region.boxes]
    boxes = [box_counts.box for box_counts in map(counts.of_box, boxes) if box_counts.answer is None]
    first = Population(runtime, boxes, SEED).walk(LEAST)
    sampled = [box for box, answer in zip(boxes, first, strict=True) if not answer.exact]
    reference = np.array([walk(runtime, box, REFERENCE, True)[0] for box in sampled])
    errors = {}
    for budget in BUDGETS:
        for name, hinted in (("plain", False), ("hinted", True)):
            errors[f"{budget}, {name}"] = measured(runtime, sampled, reference, estimator.rows, budget, hinted)
    write_result({"queries": len(queries), "sampled": len(sampled), "particles": errors})


def walk(runtime: Runtime[Any], box: Box, budget: int, hinted: bool) -> tuple[float, float]:
    """The density, and the milliseconds."""
    started = time.perf_counter()
    (answer,) = Population(runtime, [box], SEED, hinted).walk(budget)
    return answer.density, 1e3 * (time.perf_counter() - started)


def measured(
    runtime: Runtime[Any], boxes: list[Box], reference: np.ndarray[Any, Any], rows: int, budget: int, hinted: bool
) -> dict[str, float]:
    """Quantiles of the sampler's error, and the mean time."""
    densities, ms = np.array([walk(runtime, box, budget, hinted) for box in boxes]).T
    logs = np.abs(np.log(np.maximum(densities * rows, 1.0) / np.maximum(reference * rows, 1.0)))
    errors: dict[str, float] = percentiles(logs, digits=9)
    factors = {name: round(float(np.exp(error)), 3) for name, error in errors.items()}
    return {**factors, "mean_ms": round(float(ms.mean()), 2)}


if __name__ == "__main__":
    main()
