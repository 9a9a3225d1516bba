"""Distributions of one column: how long beside one count, and how near to the truth.

.venv/bin/python benchmarks/distribution.py TABLE.parquet MODEL.countless [--queries 200] [--seed 0] [-o results.json]

Every question has 3 to 6 of the paper's filters and asks for the values of another column, one of at most 100. The time
is the least of some repeats, of the count of the same condition and of the distribution, in turn. Beside the truth
stand shares: half the sum of their absolute differences (0 if all are right, 1 if nothing is), for conditions of at
least 100 rows, and the same of the shares that the column has in the whole table.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source
from countless.estimator.estimator import Estimator
from countless.workload import paper_filters

MOST_VALUES = 100
FILTERS = (3, 6)
REPEATS = 7
ENOUGH = 100  # rows of a condition whose shares are compared
PLACES = (50, 90, 99, 100)


def main() -> None:
    options = _options()
    model, source = Estimator.load(options.model), Source.open(str(options.table))
    rng = np.random.default_rng(options.seed)
    small = [column for column in model.schema.coded if column.grid is None and column.size <= MOST_VALUES]
    counts, spreads, ratios, disagreements, distances, marginal = [], [], [], [], [], []
    for filters in paper_filters(model.schema, source, options.queries, options.seed, FILTERS):
        where = " AND ".join(filters)
        others = [column for column in small if quote_identifier(column.name) not in where]
        column = others[int(rng.integers(len(others)))]
        count, spread = _least(partial(model.estimate, where), partial(model.distribution, column.name, where))
        counts.append(count)
        spreads.append(spread)
        ratios.append(spread / count)
        found = model.distribution(column.name, where)
        disagreements.append(abs(found.disagreement))
        truth = _shares(source, column.name, column.type, where)
        if truth.pop("rows") >= ENOUGH:
            distances.append(_distance(truth, {str(row[0]): row[1] for row in found}))
            marginal.append(_distance(truth, {str(row[0]): row[1] for row in model.distribution(column.name)}))
    result = {
        "table": options.table.name,
        "queries": options.queries,
        "seed": options.seed,
        "count_ms": _told(counts),
        "distribution_ms": _told(spreads),
        "ratio": _told(ratios),
        "disagreement": _told(disagreements),
        "compared": len(distances),
        "distance": _told(distances),
        "distance_of_the_whole_tables_shares": _told(marginal),
    }
    text = json.dumps(result, indent=1)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


def _least(*asks: Callable[[], object]) -> list[float]:
    """The least milliseconds of each, asked in turn."""
    found = [np.inf] * len(asks)
    for _ in range(REPEATS):
        for place, ask in enumerate(asks):
            started = time.perf_counter()
            ask()
            found[place] = min(found[place], (time.perf_counter() - started) * 1e3)
    return found


def _shares(source: Source, name: str, kind: str, where: str) -> dict[str, float]:
    """The true share of every value, and the rows of the condition."""
    value = f"CAST({quote_identifier(name)} AS {kind})"
    found = source.rows(f"SELECT {value}, count(*) FROM {source.table} WHERE {where} GROUP BY 1")
    total = sum(count for _, count in found)
    return {str(text): count / total for text, count in found} | {"rows": total}


def _distance(one: dict[str, float], other: dict[str, float]) -> float:
    return sum(abs(one.get(value, 0.0) - other.get(value, 0.0)) for value in one.keys() | other.keys()) / 2


def _told(values: Sequence[float]) -> dict[str, float]:
    return {f"p{place}": round(float(np.percentile(values, place)), 4) for place in PLACES}


def _options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
