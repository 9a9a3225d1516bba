"""A contest of two fits of equal length: with and without a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from countless.data.columns.schema import Schema
from countless.data.sources.source import Source
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.evaluation.evaluate import evaluate, random_workload
from countless.workload import Query, template_clauses
from countless_lab.measurement.machine import machine_facts

PLAIN, WORKLOAD = "without", "with the workload"
ASKED, RANDOM = "like the workload", "random"  # the questions that both are asked
FILTERS = (3, 8)
QUANTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}
TEMPLATES_STREAM, WORKLOAD_STREAM, TEST_STREAM = 11, 12, 13  # keep the random numbers of one seed apart


@dataclass(frozen=True)
class WorkloadContestOptions:
    """How much to measure. ``templates`` are sets of 3 to 8 columns, ``queries`` those of the workload."""

    epochs: int | None = None
    templates: int = 10
    queries: int = 200
    asked: int = 500
    seeds: int = 2
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelErrors:
    """The q-errors of one model on one kind of questions."""

    seed: int
    model: str
    questions: str
    q_errors: tuple[float, ...]


def contest(table: str, options: WorkloadContestOptions, say: Callable[[str], None]) -> dict[str, Any]:
    """The result as plain data: quantiles of the q-errors of all seeds together, and of each seed."""
    all_errors = [result for seed in range(options.seeds) for result in _of_seed(table, options, seed, say)]
    return {
        "table": {
            questions: {model: _quantiles(all_errors, model, questions) for model in (PLAIN, WORKLOAD)}
            for questions in (ASKED, RANDOM)
        },
        "seeds": [
            {
                "seed": result.seed,
                "model": result.model,
                "questions": result.questions,
                **_quantiles_of(result.q_errors),
            }
            for result in all_errors
        ],
        "options": asdict(options),
        "machine": machine_facts(),
    }


def _of_seed(
    table: str, options: WorkloadContestOptions, seed: int, say: Callable[[str], None]
) -> Iterator[ModelErrors]:
    def fitted(workload: list[str] | None) -> Estimator:
        say(f"seed {seed}: fitting {PLAIN if workload is None else WORKLOAD}")
        exclude, epochs = options.exclude, options.epochs
        return fit(
            table, exclude=exclude, epochs=epochs, seed=seed, workload=workload, evidence="none", calibrate=False
        )

    source = Source.open(table)
    plain = fitted(None)
    templates = draw_templates(plain.schema, options.templates, seed)
    workload, test_clauses = (
        template_clauses(plain.schema, source, templates, count, _mixed(seed, number))
        for count, number in ((options.queries, WORKLOAD_STREAM), (options.asked, TEST_STREAM))
    )
    questions = {
        ASKED: [Query(where, rows) for where, rows in zip(test_clauses, source.counts(test_clauses), strict=True)],
        RANDOM: random_workload(plain.schema, source, options.asked, seed),
    }
    for model, estimator in ((PLAIN, plain), (WORKLOAD, fitted(workload))):
        for kind, queries in questions.items():
            yield ModelErrors(
                seed,
                model,
                kind,
                tuple(evaluate(partial(estimator.estimate, method="particles"), queries, model).q_errors),
            )


def draw_templates(schema: Schema, count: int, seed: int) -> list[list[int]]:
    """``count`` random sets of columns."""
    rng = np.random.default_rng([seed, TEMPLATES_STREAM])
    columns = len(schema.coded)
    smallest, largest = (min(bound, columns) for bound in FILTERS)
    sizes = rng.integers(smallest, largest + 1, size=count)
    return [sorted(rng.choice(columns, size=size, replace=False).tolist()) for size in sizes]


def _quantiles(results: Sequence[ModelErrors], model: str, questions: str) -> dict[str, float]:
    errors = [result.q_errors for result in results if (result.model, result.questions) == (model, questions)]
    return _quantiles_of(np.concatenate(errors))


def _quantiles_of(errors: Any) -> dict[str, float]:
    mean = {"geometric_mean": float(np.exp(np.mean(np.log(errors))))}
    return mean | {name: float(np.percentile(errors, percent)) for name, percent in QUANTILES.items()}


def _mixed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
