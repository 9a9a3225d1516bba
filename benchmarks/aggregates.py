"""Aggregates from a model beside DuckDB's from the table: random GROUP BY statements, by the size of their groups.

.venv/bin/python benchmarks/aggregates.py TABLE.parquet MODEL.countless [--queries 200] [--seed 0] [-o results.json]

A statement groups by one or two columns, has up to three filters, and asks for count, avg, sum and median of a numeric
column. Errors are relative to the truth. A group is of the class of its true rows. ``relative_error_estimated`` leaves
out what was counted, not estimated. ``bars`` is the share of groups whose error bar holds the truth; of count, avg and
sum, only of those that were not counted.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import is_number, quote_identifier
from countless.data.sources.source import Source
from countless.estimator.estimator import Estimator
from countless.workload import mixed_clauses
from countless_lab.measurement.script import percentiles, table_and_model, write_result

CLASSES = {">=1%": 0.01, "0.1-1%": 0.001, "<0.1%": 0.0}  # of the table's rows, at least
MOST_VALUES = 200  # of a column to group by
FILTERS = (1, 3)
UNFILTERED = 4  # one statement in so many has no WHERE
AGGREGATES = ("count", "avg", "sum", "median")


@dataclass
class Tally:
    """How well one class of groups is answered."""

    present: int = 0
    missed: int = 0
    errors: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    estimated: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    held: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))

    def to_json(self) -> dict[str, Any]:
        return {
            "groups_found": self.present,
            "groups_missed": self.missed,
            "relative_error": {name: summary(errors) for name, errors in self.errors.items()},
            "relative_error_estimated": {name: summary(errors) for name, errors in self.estimated.items()},
            "bars": {name: round(float(np.mean(inside)), 3) for name, inside in self.held.items()},
        }


@dataclass(frozen=True)
class Statement:
    """SQL with a place for the table's name, and how many columns it groups by."""

    sql: str
    keys: int


def main() -> None:
    options = table_and_model(__doc__, queries=200).parse_args()
    source, estimator = Source.open(str(options.table)), Estimator.load(options.model)
    drawn = statements(estimator.schema, source, options.queries, options.seed)
    write_result(measured(estimator, source, drawn), options.output)


def statements(schema: Schema, source: Source, count: int, seed: int) -> list[Statement]:
    """Random statements about the table."""
    rng = np.random.default_rng(seed)
    keys = [column for column in schema.coded if column.grid is None and column.distinct <= MOST_VALUES]
    numbers = [column for column in schema.coded if is_number(column.type) and column.distinct > 2]
    clauses = mixed_clauses(schema, source, count, seed, FILTERS)
    drawn = []
    for number, clause in enumerate(clauses):
        grouped: list[Column] = rng.choice(np.array(keys, dtype=object), rng.integers(1, 3), replace=False).tolist()
        by = ", ".join(quote_identifier(column.name) for column in grouped)
        measured = quote_identifier(numbers[int(rng.integers(len(numbers)))].name)
        where = "" if number % UNFILTERED == 0 else f"WHERE {clause}"
        aggregates = f'count(*) AS "count", avg({measured}) AS "avg", sum({measured}) AS "sum"'
        sql = f'SELECT {by}, {aggregates}, median({measured}) AS "median" FROM {{table}} {where} GROUP BY {by}'
        drawn.append(Statement(sql, len(grouped)))
    return drawn


def measured(estimator: Estimator, source: Source, statements: Sequence[Statement]) -> dict[str, Any]:
    """Errors by class of group, and times."""
    tallies = {name: Tally() for name in CLASSES}
    ours, theirs, disagreements, invented, left_out = [], [], [], 0, 0.0
    for statement in statements:
        result = estimator.query(statement.sql.replace("{table}", "t"))
        ours.append(result.ms)
        disagreements.append(result.disagreement)
        left_out += result.left_out_rows
        bars = estimator.query(statement.sql.replace("{table}", "t"), intervals=True).to_dicts()
        started = time.perf_counter()
        truth = source.rows(statement.sql.replace("{table}", source.table))
        theirs.append(1e3 * (time.perf_counter() - started))
        groups = {tuple(map(str, list(row.values())[: statement.keys])): row for row in bars}
        for row in truth:
            key, values = row[: statement.keys], dict(zip(AGGREGATES, row[statement.keys :], strict=True))
            share = values["count"] / estimator.rows
            tally = tallies[next(name for name, min_share in CLASSES.items() if share >= min_share)]
            compare(tally, groups.pop(tuple(map(str, key)), None), values)
        invented += len(groups)
    return {
        "queries": len(statements),
        "groups": {name: tally.to_json() for name, tally in tallies.items()},
        "groups_without_rows": invented,
        "left_out_rows_mean": round(left_out / len(statements), 2),
        "disagreement": summary(disagreements),
        "ms": summary(ours),
        "ms_duckdb": summary(theirs),
    }


def compare(tally: Tally, estimate: dict[str, Any] | None, truth: dict[str, Any]) -> None:
    """Add one group's errors to its class."""
    if estimate is None:
        tally.missed += 1
        return
    tally.present += 1
    for name in AGGREGATES:
        if estimate[name] is None or truth[name] is None:
            continue
        value, true = float(estimate[name]), float(truth[name])
        counted = estimate[f"{name}_low"] == estimate[f"{name}_high"]
        if math.isfinite(true) and true != 0:
            tally.errors[name].append(abs(value - true) / abs(true))
            if not counted:
                tally.estimated[name].append(tally.errors[name][-1])
        if name != "median" and counted:
            continue
        tally.held[name].append(
            float(estimate[f"{name}_low"]) <= true + 1e-9 and true - 1e-9 <= float(estimate[f"{name}_high"])
        )


def summary(values: Sequence[float]) -> Any:
    """The median and the 90th percentile."""
    return percentiles(values, (50, 90), digits=4) if values else {}


if __name__ == "__main__":
    main()
