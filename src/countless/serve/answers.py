"""The answers to requests as plain data, computed in worker threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from countless.cancellation import check_cancelled
from countless.data.columns.schema import Column, Schema
from countless.data.frame import Frame
from countless.errors import CountlessError, QueryTooLargeError
from countless.estimator.answers.estimate import Estimate
from countless.serve.api import limits
from countless.serve.api.errors import RefusalError, told
from countless.serve.api.requests import (
    CheckRequest,
    DistributionRequest,
    EstimateRequest,
    QueryRequest,
    RequestBody,
    SampleRequest,
)
from countless.serve.cards import card, searched
from countless.serve.float_noise import snap_to_zero
from countless.serve.models import Served, kind_of
from countless.serve.plain_json import cell, to_json
from countless.serve.worker_threads import note_progress

ESTIMATE = ("where", "rows", "low", "high", "level", "selectivity", "exact", "sampled")
FIRST, TOGETHER = 8, 64  # clauses that are answered before it is seen whether someone still waits: few, then more
Answer = Callable[[Served, Any], dict[str, Any]]


def estimate(served: Served, asked: EstimateRequest) -> dict[str, Any]:
    """How many rows match; of several clauses, one that cannot be answered gives its error."""
    if isinstance(asked.where, str):
        return {"estimates": [plain(served.estimator.estimate(asked.where))]}
    found: list[dict[str, Any]] = []
    size = FIRST
    while len(found) < len(asked.where):
        note_progress(len(found))
        check_cancelled()
        found += _estimates(served, asked.where[len(found) : len(found) + size])
        size = min(2 * size, TOGETHER)
    return {"estimates": found}


def distribution(served: Served, asked: DistributionRequest) -> dict[str, Any]:
    """A card for each column."""
    schema = served.estimator.schema
    sought = searched(schema, asked)
    known = [column for name in asked.columns if (column := _column(schema, name)) is not None]
    bins = {column.name: asked.bins for column in known if kind_of(column) in ("number", "time")}
    found = served.estimator.distributions(asked.columns, asked.where, bins=bins)
    cards = [card(column, each, asked.top, sought.get(column.name)) for column, each in zip(known, found, strict=True)]
    return {"total": plain(found[0].total), "cards": cards}


def query(served: Served, asked: QueryRequest) -> dict[str, Any]:
    """The result of a SELECT."""
    found = served.estimator.query(asked.sql, intervals=asked.intervals, least_hits=limits.LEAST_HITS)
    if len(found) > limits.RESULT_ROWS:
        raise QueryTooLargeError(
            f"the result has {len(found):,} rows, and at most {limits.RESULT_ROWS:,} are sent: add a LIMIT"
        )
    return _table(found) | {
        "count": plain(found.count),
        "disagreement": snap_to_zero(found.disagreement),
        "left_out_rows": snap_to_zero(found.left_out_rows),
    }


def sample(served: Served, asked: SampleRequest) -> dict[str, Any]:
    """Rows that the model would write; never a stored one."""
    found = served.estimator.sample(asked.count, where=asked.where, seed=asked.seed, stored=False)
    facts = ("requested", "effective_size", "enumerated")
    return _table(found) | {name: getattr(found, name) for name in facts}


def check(served: Served, asked: CheckRequest) -> dict[str, Any]:
    """How many rows of the table match."""
    if served.table is None:
        raise RefusalError(
            404,
            "NoTableError",
            f'"{served.name}" was started without its table: start the service with --table {served.name}=TABLE',
        )
    return {"rows": served.table.count(asked.where)}


def answered(answer: Answer, served: Served, asked: RequestBody) -> bytes:
    """The answer as JSON, with the milliseconds that it took."""
    started = time.perf_counter()
    found = answer(served, asked)
    found["ms"] = round((time.perf_counter() - started) * 1e3, 2)
    return to_json(found)


def plain(found: Estimate) -> dict[str, Any]:
    """An estimate as plain data."""
    cleared = {name: snap_to_zero(getattr(found, name)) for name in ("rows", "low", "high")}
    share = found.selectivity if cleared["rows"] else 0.0
    told = {name: getattr(found, name) for name in ESTIMATE}
    return told | cleared | {"selectivity": share, "ms": round(found.ms, 2)}


def _estimates(served: Served, clauses: list[str]) -> list[dict[str, Any]]:
    lines = []
    for clause, answer in zip(clauses, served.estimator.answer_many(clauses, threads=1), strict=True):
        if isinstance(answer, CountlessError):
            lines.append({"where": clause, "error": told(answer)})
        else:
            lines.append(plain(answer))
    return lines


def _column(schema: Schema, name: str) -> Column | None:
    place = schema.find(name)
    column = None if place is None else schema.columns[place]
    return None if column is None or column.is_text else column


def _table(found: Frame) -> dict[str, Any]:
    return {
        "columns": [{"name": name, "type": kind} for name, kind in zip(found.names, found.types, strict=True)],
        "rows": [list(map(cell, row)) for row in found.rows],
    }
