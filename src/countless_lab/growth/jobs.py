"""What is measured in a process of its own: ``python -m countless_lab.growth.jobs NAME``, JSON in and JSON out.

Only what the job itself needs is imported, so that its memory is that of the fit, or of the serving, and nothing else.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import countless
from countless.data.machine import peak_memory
from countless.errors import CountlessError

Facts = dict[str, Any]


class _Stages(countless.Listener):
    """How long every stage of a fit takes."""

    def __init__(self) -> None:
        self.started: dict[str, float] = {}

    def stage(self, name: str) -> None:
        self.started[name] = time.perf_counter()

    def seconds(self) -> dict[str, float]:
        """Seconds by stage, the last of which ends now."""
        ends = [*self.started.values(), time.perf_counter()]
        return {name: round(end - start, 3) for (name, start), end in zip(self.started.items(), ends[1:], strict=True)}


def fit(source: str, model: str, budget: float, seed: int, max_distinct: int, network: dict[str, Any]) -> Facts:
    """Fit a table and write its model file."""
    started = time.perf_counter()
    stages = _Stages()
    estimator = countless.fit(
        source,
        budget=budget,
        seed=seed,
        max_distinct=max_distinct,
        network=countless.Network(**network),
        listener=stages,
    )
    by_stage = stages.seconds()
    estimator.save(model)
    return {
        "seconds": round(time.perf_counter() - started, 3),
        "stages": by_stage,
        "rows_per_second": estimator.report["rows_per_second"],
        "epochs": estimator.report["epochs"],
        "parameters": estimator.report["parameters"],
        "columns": len(estimator.columns),
        "file_bytes": Path(model).stat().st_size,
    }


def serve(model: str, clauses: list[str], repeats: int, batch: int | None) -> Facts:
    """Load a model and answer every clause ``repeats`` times, one by one and, if asked, ``batch`` in a call."""
    started = time.perf_counter()
    estimator = countless.load(model)
    loaded = time.perf_counter()
    estimator.estimate(clauses[0])
    answered = time.perf_counter()
    ms = np.empty((repeats, len(clauses)))
    for again in range(repeats):
        for index, clause in enumerate(clauses):
            ms[again, index] = 1e3 * _seconds(estimator.estimate, clause)
    fastest = ms.min(axis=0)
    facts: Facts = {
        "load_ms": 1e3 * (loaded - started),
        "first_ms": 1e3 * (answered - loaded),
        "latency_ms": {f"p{place}": float(np.percentile(fastest, place)) for place in (50, 90, 99)},
        "queries": len(clauses),
        "loop_per_second": 1e3 * len(clauses) / float(ms.sum(axis=1).min()),
    }
    if batch is not None:
        calls = [clauses[first : first + batch] for first in range(0, len(clauses), batch)]
        totals = [sum(_seconds(estimator.estimate_many, call) for call in calls) for _ in range(repeats)]
        facts["many_per_second"] = len(clauses) / min(totals)
    facts["torch_imported"] = "torch" in sys.modules
    return facts


JOBS: dict[str, Callable[..., Facts]] = {"fit": fit, "serve": serve}


def main(jobs: Mapping[str, Callable[..., Facts]] = JOBS) -> None:
    """Run the job that is named by the first argument, and print what it found, or its error."""
    try:
        facts = jobs[sys.argv[1]](**json.load(sys.stdin))
        facts["peak_bytes"] = peak_memory()
    except CountlessError as error:
        facts = {"error": str(error)}
    except MemoryError:
        facts = {"error": "not enough memory: try a smaller --rows-most, or a larger machine"}
    json.dump(facts, sys.stdout)


def _seconds(answer: Callable[[Any], Any], question: Any) -> float:
    started = time.perf_counter()
    answer(question)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
