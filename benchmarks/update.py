"""A table gets a fifth more rows, unlike the others: is it enough to update its model, or must it be fitted again?

.venv/bin/python benchmarks/update.py TABLE.parquet --by COLUMN[,COLUMN] --work FOLDER [--budget 900] [--seed 0]

The rows with the greatest values of the columns of --by are the new ones. A model of the others is fitted for --budget
seconds, then updated with the new rows, and one of the whole table is fitted for the same time. All answer the same
random queries about the whole table. The folder of --work keeps finished work. The results are printed, and written as
JSON to docs/results/scaling.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from countless import Estimator, fit, load
from countless.data.sources.source import Source
from countless.estimator.answers.estimate import Estimate, q_error
from countless.evaluation.evaluate import random_workload
from countless.workload import Query
from countless_lab.measurement.machine import machine_facts
from countless_lab.measurement.script import exclude_option, percentiles, script_parser, write_result

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "scaling"
EVIDENCE_ROWS = 20_000  # of the base, in its file


def split(table: Path, by: list[str], share: float, work: Path) -> None:
    """Write the base rows and the new ones to files of their own."""
    order = ", ".join(f'"{name}" DESC' for name in by)
    total = Source.open(table).count()
    count = round(total * share / (1 + share))
    ranked = f"SELECT *, row_number() OVER (ORDER BY {order}) AS rank_ FROM '{table}'"
    for name, condition in (("base", f"rank_ > {count}"), ("new", f"rank_ <= {count}")):
        path = work / f"{name}.parquet"
        if not path.exists():
            duckdb.sql(f"COPY (SELECT * EXCLUDE (rank_) FROM ({ranked}) WHERE {condition}) TO '{path}'")


def made_once(path: Path, make: Callable[[], Estimator]) -> tuple[Estimator, float]:
    """The model at ``path`` and the seconds that it took, made now if it is not there."""
    times = path.with_suffix(".json")
    if not (path.exists() and times.exists()):
        started = time.monotonic()
        make().save(path)
        times.write_text(json.dumps({"seconds": round(time.monotonic() - started, 1)}))
    return load(path), float(json.loads(times.read_text())["seconds"])


def errors(estimates: list[Estimate], queries: list[Query]) -> dict[str, Any]:
    """Quantiles of the q-errors, and how often the error bars hold."""
    q_errors = [q_error(estimate.rows, query.rows) for estimate, query in zip(estimates, queries, strict=True)]
    inside = [e.low <= query.rows <= e.high for e, query in zip(estimates, queries, strict=True)]
    return percentiles(q_errors) | {"coverage": round(float(np.mean(inside)), 3)}


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit, update and ask; return the results as plain data."""
    table, work = arguments.table, arguments.work
    work.mkdir(parents=True, exist_ok=True)
    split(table, arguments.by.split(","), arguments.share, work)
    options: dict[str, Any] = {
        "budget": arguments.budget,
        "exclude": arguments.exclude,
        "seed": arguments.seed,
        "training": {"clock": arguments.clock},
    }
    fit_base = partial(fit, work / "base.parquet", evidence=EVIDENCE_ROWS, **options)
    base, base_seconds = made_once(work / "base.countless", fit_base)
    full, full_seconds = made_once(work / "full.countless", partial(fit, table, **options))
    seeds = [int(seed) for seed in arguments.query_seeds.split(",")]
    queries = [query for seed in seeds for query in random_workload(full.schema, str(table), arguments.queries, seed)]
    clauses = [query.where for query in queries]
    results: dict[str, Any] = {
        "before": errors(base.estimate_many(clauses), queries),
        "before, scaled": errors(base.estimate_many(clauses, table_rows=full.rows), queries),
        "fitted again": errors(full.estimate_many(clauses), queries) | {"seconds": full_seconds},
    }
    for replay in arguments.replay.split(","):
        started = time.monotonic()
        source = work / "base.parquet" if replay == "table" else replay
        effort = {"budget": arguments.update_budget, "learning_rate": arguments.learning_rate}
        updated = base.update(work / "new.parquet", replay=source, seed=arguments.seed, **effort)
        seconds = time.monotonic() - started
        entry = updated.report["updates"][-1]
        results[f"updated, replay of {replay}"] = {
            **errors(updated.estimate_many(clauses), queries),
            "seconds": round(seconds, 1),
            "training_seconds": entry["training_seconds"],
            "epochs": entry["epochs"],
            "bits_before": entry["bits_before"],
            "bits_after": entry["bits_after"],
        }
        entry = results[f"updated, replay of {replay}"]
        entry["p99_ratio"] = round(entry["p99"] / results["fitted again"]["p99"], 3)
        entry["time_share"] = round(seconds / full_seconds, 3)
    return {
        "table": table.stem,
        "by": arguments.by,
        "rows": full.rows,
        "new_rows": full.rows - base.rows,
        "budget": arguments.budget,
        "seed": arguments.seed,
        "query_seeds": seeds,
        "queries": len(queries),
        "base_seconds": base_seconds,
        "machine": machine_facts(),
        "results": results,
    }


def main() -> None:
    """Read the arguments, measure, and write the results."""
    parser = script_parser(__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--by", required=True, help="columns by whose greatest values rows are new")
    parser.add_argument("--work", type=Path, required=True, help="a folder for what is kept")
    parser.add_argument("--share", type=float, default=0.2, help="new rows, as a share of the others")
    parser.add_argument("--budget", type=float, default=900.0, help="seconds of each fit")
    parser.add_argument("--clock", default="wall", help="which time counts for training: wall or processor")
    parser.add_argument("--update-budget", type=float, help="seconds of the update's training")
    parser.add_argument("--learning-rate", type=float, help="of the update")
    exclude_option(parser)
    parser.add_argument(
        "--replay", default="model,evidence,table", help="where old rows come from, one or more of these"
    )
    parser.add_argument("--queries", type=int, default=400, help="of each seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--query-seeds", default="0,1,2,3,4")
    parser.add_argument("--json", type=Path, help="where to write the results, if not in docs/results/scaling")
    arguments = parser.parse_args()
    path = arguments.json or RESULTS / f"update-{arguments.table.stem}.json"
    write_result(measure(arguments), path)


if __name__ == "__main__":
    main()
