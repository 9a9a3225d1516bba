"""Thinning in the order of prefixes against thinning in a scattered order: how far sums vary from seed to seed.

.venv/bin/python benchmarks/scattering.py TABLE.parquet MODEL.countless [--queries 60] [--seed 77] [-o results.json]

Of counts (the paper's queries) the relative standard deviation over seeds; of the shares of a column's values (3 to 6
filters) half the mean absolute deviation. Questions that need no thinning are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from countless.arrays import FloatArray
from countless.data.sources.source import Source
from countless.engine.answer import Trace
from countless.engine.columns.trace import traced
from countless.engine.distributions.joint import numbered, with_axes
from countless.estimator.answers.distributions.joint import axes_of
from countless.estimator.estimator import Estimator
from countless.query.compile import Compiler
from countless.region import Box
from countless.workload import paper_clauses, paper_filters

PARTICLES = 512
SEEDS = 12
MOST_VALUES = 100


def main() -> None:
    options = _options()
    model, source = Estimator.load(options.model), Source.open(str(options.table))
    found: dict[str, dict[str, list[float]]] = {name: {"plain": [], "scattered": []} for name in ("counts", "shares")}
    compiler, rng = Compiler(model.schema), np.random.default_rng(options.seed)
    for where in paper_clauses(model.schema, source, options.queries, options.seed):
        (box,) = compiler.compile(where).region.boxes
        _add(found["counts"], model, model._runtimes.hinted(box), None)
    small = [index for index, column in enumerate(model.schema.coded) if column.size <= MOST_VALUES]
    for filters in paper_filters(model.schema, source, options.queries, options.seed, (3, 6)):
        (box,) = compiler.compile(" AND ".join(filters)).region.boxes
        asked = {item.positions for item in box.filters}
        others = [index for index in small if model.schema.positions(index) not in asked]
        _add(found["shares"], model, box, int(rng.choice(others)))
    result = {"table": options.table.name, "particles": PARTICLES, "seeds": SEEDS} | {
        name: {"questions": len(both["plain"])} | {how: _told(values) for how, values in both.items()}
        for name, both in found.items()
    }
    text = json.dumps(result, indent=1)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


def _add(found: dict[str, list[float]], model: Estimator, box: Box, column: int | None) -> None:
    """How far the answers of both ways vary, unless nothing is thinned."""
    axes = [] if column is None else axes_of(model.schema, [column])
    hinted = model._runtimes.hinted(with_axes(box, axes))
    labels = [position for axis in axes for position in axis.positions]
    deviations = {}
    for how in found:
        answers: list[FloatArray] = []
        for seed in range(SEEDS):
            trace = Trace(hinted, labels, expand=False, scattered=how == "scattered")
            rows = traced(model._runtimes.columns, trace, PARTICLES, seed)
            if rows.exact:
                return
            sums = np.bincount(numbered(rows, axes), rows.masses) if axes else np.array([rows.masses.sum()])
            answers.append(np.pad(sums, (0, (axes[0].size if axes else 1) - len(sums))))
        all_seeds = np.array(answers)
        if not all_seeds.sum() > 0:
            return
        if axes:
            shares = all_seeds / all_seeds.sum(axis=1, keepdims=True)
            deviations[how] = float(np.abs(shares - shares.mean(axis=0)).sum(axis=1).mean() / 2)
        else:
            deviations[how] = float(all_seeds.std() / all_seeds.mean())
    for how, value in deviations.items():
        found[how].append(value)


def _told(values: Sequence[float]) -> dict[str, float]:
    return {f"p{place}": round(float(np.percentile(values, place)), 5) for place in (50, 75, 90)}


def _options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
