"""A contest of all ways to count strings that match a pattern, on the same questions, in one process.

The questions are those of the paper (does a string contain this piece of 3 to 5 characters?) and a mix of patterns of
many kinds. Anchored patterns are timed, and so is one sample with and without a cache.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from countless.data.sources.source import Source
from countless.engine.paper.text import draw, naive
from countless.engine.text.automaton_steps import SymbolAutomaton
from countless.engine.text.runtime import TextRuntime
from countless.errors import DataError
from countless.estimator.estimator import Estimator
from countless.evaluation.baselines.duckdb_guess import DuckDbGuess
from countless.evaluation.baselines.sample_scan import SampleScan
from countless.evaluation.baselines.scan import Scan
from countless.evaluation.evaluate import Evaluation, evaluate, random_workload
from countless.workload import Query
from countless_lab.measurement.contenders import Contender, ContestListener, measure, one_thread
from countless_lab.measurement.machine import machine_facts

OFF, ON = "particles", "particles + summary"
ANCHORED = ("prefix", "equality")
REPEATS = 5


@dataclass(frozen=True)
class TextContestOptions:
    """How much to measure."""

    queries: int = 1000
    slow_queries: int = 100
    mix_queries: int = 1100
    samples: int = 1000
    repeats: int = 3
    seed: int = 0


def contest(table: str, model: Any, options: TextContestOptions, watch: ContestListener) -> dict[str, Any]:
    """The result of the contest, as plain data."""
    estimator = Estimator.load(model)
    if not estimator.schema.texts:
        raise DataError(f"{model} has no text column: fit one with countless fit TABLE --text COLUMN")
    watch.counting(options.queries + options.mix_queries)
    source = Source.open(table)
    queries = random_workload(estimator.schema, source, options.queries, options.seed, "contains")
    mix = random_workload(estimator.schema, source, options.mix_queries, options.seed, "mix")
    with one_thread():
        contenders = _contenders(estimator, table, options)
        measured = {}
        for contender in contenders:
            asked_queries = queries[: options.slow_queries] if contender.slow else queries
            watch.begins(contender.name, len(asked_queries))
            repeats = options.repeats if contender.quick else 1
            measured[contender.name] = measure(contender, asked_queries, repeats, watch.answered)
            watch.ends(measured[contender.name])
        by_class = {name: _mixed(contenders, name, mix) for name in (OFF, ON, "row-sample-1%", "duckdb-guess")}
        anchored = [query for query in mix if query.kind in ANCHORED]
        quick = measure(_named(contenders, OFF), anchored, options.repeats, lambda: None)
        samples = per_sample(estimator._runtimes.texts[0], options.seed)
    skipping = float(np.median(measured[f"skipping-{options.samples}"].ms)) / options.samples
    samples |= {"skipping_ms": skipping, "skipping_ratio": samples["naive_without_cache_ms"] / skipping}
    return {
        "contains": {
            **{name: evaluation.to_json() for name, evaluation in measured.items()},
            **{
                f"{name}, first {options.slow_queries}": measured[name].first(options.slow_queries).to_json()
                for name in (OFF, ON, "row-sample-1%")
            },
        },
        "ratios": {
            f"{name}/{OFF}": float(np.median(evaluation.ms) / np.median(measured[OFF].first(len(evaluation.ms)).ms))
            for name, evaluation in measured.items()
            if name != OFF
        },
        "mix": {name: evaluation.to_json()["by_class"] for name, evaluation in by_class.items()},
        "absent": {name: _absent(evaluation) for name, evaluation in by_class.items()},
        "anchored_ms": {"p50": float(np.median(quick.ms)), "p99": float(np.percentile(quick.ms, 99))},
        "per_sample": samples,
        "options": vars(options),
        "machine": machine_facts(),
        "training": estimator.info()["training"],
        "texts": estimator.info()["texts"],
        "text_model": estimator.info()["text_model"],
    }


def per_sample(runtime: TextRuntime, seed: int, samples: int = 256, fewer: int = 50) -> dict[str, float]:
    """Milliseconds for drawing a string from the model: as ``naive`` draws it, and without a cache.

    Without a cache all strings are read again from their beginning for each character, so ``fewer`` are drawn.
    """
    every = SymbolAutomaton.of_every_string(runtime.spec)
    cached, plain = [], []
    for _ in range(REPEATS):
        started = time.perf_counter()
        naive(runtime.tree(), every, samples, np.random.default_rng(seed))
        cached.append(1e3 * (time.perf_counter() - started) / samples)
        started = time.perf_counter()
        _naive_without_cache(runtime, fewer, np.random.default_rng(seed))
        plain.append(1e3 * (time.perf_counter() - started) / fewer)
    return {"naive_ms": min(cached), "naive_without_cache_ms": min(plain), "ratio": min(plain) / min(cached)}


def _naive_without_cache(runtime: TextRuntime, samples: int, rng: np.random.Generator) -> None:
    strings = np.zeros((samples, 0), dtype=np.int64)
    following = np.repeat(runtime.tree().starts, samples, axis=0)
    for length in range(1, runtime.spec.length + 1):
        symbols = draw(following, rng)
        strings = np.column_stack([strings, symbols])[symbols <= runtime.spec.unknown]
        if not len(strings):
            break
        tree = runtime.tree()
        nodes = np.arange(tree.size, tree.size + strings.size).reshape(strings.shape)
        parents = np.column_stack([np.zeros(len(strings), dtype=np.int64), nodes[:, :-1]])
        following = tree.extend(parents.ravel(), strings.ravel()).reshape(len(strings), length, -1)[:, -1]


def _contenders(estimator: Estimator, table: str, options: TextContestOptions) -> list[Contender]:
    def sampler(method: str) -> Contender:
        name = f"{method}-{options.samples}"
        return Contender(
            name, lambda where: estimator.estimate(where, method=method, particles=options.samples), slow=True
        )

    return [
        Contender(OFF, lambda where: estimator.estimate(where, method="particles", summary=False), quick=True),
        Contender(ON, partial(estimator.estimate, method="particles"), quick=True),
        sampler("skipping"),
        sampler("progressive"),
        sampler("naive"),
        Contender("row-sample-1%", SampleScan(table).estimate),
        Contender("duckdb-guess", DuckDbGuess(table).estimate),
        Contender("duckdb", Scan(table).estimate, slow=True),
    ]


def _named(contenders: Sequence[Contender], name: str) -> Contender:
    return next(contender for contender in contenders if contender.name == name)


def _mixed(contenders: Sequence[Contender], name: str, mix: Sequence[Query]) -> Evaluation:
    return evaluate(_named(contenders, name).answer, mix, name)


def _absent(evaluation: Evaluation) -> dict[str, float]:
    """The estimates of the questions whose true count is 0."""
    rows = [e.rows for query, e in zip(evaluation.queries, evaluation.estimates, strict=True) if query.rows == 0] or [
        0.0
    ]
    return {
        "queries": len(rows),
        "p50": float(np.median(rows)),
        "p99": float(np.percentile(rows, 99)),
        "max": max(rows),
    }
