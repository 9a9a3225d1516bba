"""Distributions of one column: how long beside one count, and how near to the truth.

.venv/bin/python benchmarks/distribution.py TABLE.parquet MODEL.countless [--queries 200] [--seed 0] [-o results.json]

Every question has 3 to 6 of the paper's filters and asks for the values of another column, one of at most 100. The time
is the least of some repeats, of the count of the same condition and of the distribution, in turn. Beside the truth
stand shares: half the sum of their absolute differences (0 if all are right, 1 if nothing is), for conditions of at
least 100 rows, and the same of the shares that the column has in the whole table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source
from countless.estimator.estimator import Estimator
from countless.workload import paper_filters
from countless_lab.measurement.script import table_and_model, write_result

MOST_VALUES = 100
FILTERS = (3, 6)
REPEATS = 7
ENOUGH = 100  # rows of a condition whose shares are compared
PERCENTS = (50, 90, 99, 100)


def main() -> None:
    options = table_and_model(__doc__, queries=200).parse_args()
    model, source = Estimator.load(options.model), Source.open(str(options.table))
    rng = np.random.default_rng(options.seed)
    small = [column for column in model.schema.coded if column.grid is None and column.size <= MOST_VALUES]
    counts, distributions, ratios, disagreements, distances, marginal = [], [], [], [], [], []
    for filters in paper_filters(model.schema, source, options.queries, options.seed, FILTERS):
        where = " AND ".join(filters)
        candidates = [column for column in small if quote_identifier(column.name) not in where]
        column = candidates[int(rng.integers(len(candidates)))]
        count, distribution = _fastest(partial(model.estimate, where), partial(model.distribution, column.name, where))
        counts.append(count)
        distributions.append(distribution)
        ratios.append(distribution / count)
        answer = model.distribution(column.name, where)
        disagreements.append(abs(answer.disagreement))
        truth = _shares(source, column.name, column.type, where)
        if truth.pop("rows") >= ENOUGH:
            distances.append(_distance(truth, {str(row[0]): row[1] for row in answer}))
            marginal.append(_distance(truth, {str(row[0]): row[1] for row in model.distribution(column.name)}))
    result = {
        "table": options.table.name,
        "queries": options.queries,
        "seed": options.seed,
        "count_ms": _percentiles(counts),
        "distribution_ms": _percentiles(distributions),
        "ratio": _percentiles(ratios),
        "disagreement": _percentiles(disagreements),
        "compared": len(distances),
        "distance": _percentiles(distances),
        "distance_of_the_whole_tables_shares": _percentiles(marginal),
    }
    write_result(result, options.output)


def _fastest(*asks: Callable[[], object]) -> list[float]:
    """The least milliseconds of each, asked in turn."""
    times = [np.inf] * len(asks)
    for _ in range(REPEATS):
        for number, ask in enumerate(asks):
            started = time.perf_counter()
            ask()
            times[number] = min(times[number], (time.perf_counter() - started) * 1e3)
    return times


def _shares(source: Source, name: str, kind: str, where: str) -> dict[str, float]:
    """The true share of every value, and the rows of the condition."""
    value = f"CAST({quote_identifier(name)} AS {kind})"
    counts = source.rows(f"SELECT {value}, count(*) FROM {source.table} WHERE {where} GROUP BY 1")
    total = sum(count for _, count in counts)
    return {str(text): count / total for text, count in counts} | {"rows": total}


def _distance(shares: dict[str, float], other_shares: dict[str, float]) -> float:
    return (
        sum(abs(shares.get(value, 0.0) - other_shares.get(value, 0.0)) for value in shares.keys() | other_shares.keys())
        / 2
    )


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    return {f"p{percent}": round(float(np.percentile(values, percent)), 4) for percent in PERCENTS}


if __name__ == "__main__":
    main()
