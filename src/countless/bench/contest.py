"""The contest of all contenders, from a table and a model to one object of figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from countless.bench.machine import machine_facts
from countless.bench.methods import MANY, Contender, contenders
from countless.bench.process import serving, start_up
from countless.bench.speed import (
    Measured,
    Options,
    measure,
    measure_many,
    one_thread,
    ratios,
    sub_predicates,
    throughput,
)
from countless.data.source import Source
from countless.errors import CountlessError
from countless.estimator.estimator import Estimator
from countless.estimator.evaluate import random_workload
from countless.workload import paper_filters

TEN = (10, 10)
PROCESS_QUERIES = 20  # that a serving process answers before its memory is read


class Watch:
    """Hears how the contest goes on; override what you want to show."""

    def counting(self, queries: int) -> None:
        """The true counts are being found."""

    def begins(self, name: str, queries: int) -> None:
        """A contender begins."""

    def answered(self) -> None:
        """It has answered a query."""

    def ends(self, measured: Measured) -> None:
        """It is done."""


def contest(table: str, model: Path, options: Options, watch: Watch) -> dict[str, Any]:
    """Every contender on the same queries, and what they make beside each other, as plain data."""
    estimator = Estimator.load(model)
    chosen = _chosen(contenders(estimator, table), options.methods)
    watch.counting(options.queries * options.seeds)
    queries = [
        query
        for seed in range(options.seeds)
        for query in random_workload(estimator.schema, table, options.queries, seed)
    ]
    measured: dict[str, Measured] = {}
    with one_thread():
        for contender in chosen:
            asked = queries[: options.slow_queries] if contender.slow else queries
            watch.begins(contender.name, len(asked))
            contender.answer(asked[0].where)  # the first answer pays for what is made once
            found = measure(contender, asked, options.repeats if contender.quick else 1, watch.answered)
            measured[contender.name] = found
            watch.ends(found)
        first = queries[: options.queries]
        measured[MANY] = measure_many(estimator, first, options)
        filters = paper_filters(estimator.schema, Source.open(table), options.ten_filter_queries, options.seeds, TEN)
        batches = {
            "random": throughput(estimator, [query.where for query in first], options),
            "sub-predicates": throughput(estimator, [part for f in filters for part in sub_predicates(f)], options),
        }
    clauses = [query.where for query in queries[:PROCESS_QUERIES]]
    return {
        "methods": {name: found.to_json() for name, found in measured.items()},
        "ratios": ratios(measured) | {f"{MANY}/loop, {name}": found["ratio"] for name, found in batches.items()},
        "batches": batches,
        "process": start_up(model, clauses[0]) | serving(model, clauses),
        "machine": machine_facts(),
        "queries": len(queries),
        "seeds": options.seeds,
        "model": {"bytes": model.stat().st_size, "parameters": estimator.info()["parameters"]},
    }


def _chosen(available: list[Contender], names: tuple[str, ...] | None) -> list[Contender]:
    """The first, which the others are compared with, and those that are named."""
    known = [contender.name for contender in available]
    for name in names or ():
        if name not in known:
            raise CountlessError(f"unknown method {name!r}: choose from {', '.join(known)}")
    return [item for item in available if names is None or item is available[0] or item.name in names]
