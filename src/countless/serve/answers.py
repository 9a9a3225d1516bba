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
from countless.serve.api.errors import RefusalError, error_body
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
FIRST_BATCH, MAX_BATCH = 8, 64  # clauses answered between two checks that the client still waits: few, then more
Answer = Callable[[Served, Any], dict[str, Any]]


def estimate(served: Served, body: EstimateRequest) -> dict[str, Any]:
    """How many rows match. In a list, a clause that cannot be answered gets an error of its own."""
    if isinstance(body.where, str):
        return {"estimates": [plain(served.estimator.estimate(body.where))]}
    estimates: list[dict[str, Any]] = []
    size = FIRST_BATCH
    while len(estimates) < len(body.where):
        note_progress(len(estimates))
        check_cancelled()
        estimates += _estimates(served, body.where[len(estimates) : len(estimates) + size])
        size = min(2 * size, MAX_BATCH)
    return {"estimates": estimates}


def distribution(served: Served, body: DistributionRequest) -> dict[str, Any]:
    """A card for each column."""
    schema = served.estimator.schema
    searches = searched(schema, body)
    columns = [column for name in body.columns if (column := _column(schema, name)) is not None]
    bins = {column.name: body.bins for column in columns if kind_of(column) in ("number", "time")}
    distributions = served.estimator.distributions(body.columns, body.where, bins=bins)
    cards = [
        card(column, values, body.top, searches.get(column.name))
        for column, values in zip(columns, distributions, strict=True)
    ]
    return {"total": plain(distributions[0].total), "cards": cards}


def query(served: Served, body: QueryRequest) -> dict[str, Any]:
    """The result of a SELECT."""
    result = served.estimator.query(body.sql, intervals=body.intervals, least_hits=limits.LEAST_HITS)
    if len(result) > limits.RESULT_ROWS:
        raise QueryTooLargeError(
            f"the result has {len(result):,} rows, and at most {limits.RESULT_ROWS:,} are sent: add a LIMIT"
        )
    return _table(result) | {
        "count": plain(result.count),
        "disagreement": snap_to_zero(result.disagreement),
        "left_out_rows": snap_to_zero(result.left_out_rows),
    }


def sample(served: Served, body: SampleRequest) -> dict[str, Any]:
    """Rows that the model would write; never a stored one."""
    rows = served.estimator.sample(body.count, where=body.where, seed=body.seed, stored=False)
    properties = ("requested", "effective_size", "enumerated")
    return _table(rows) | {name: getattr(rows, name) for name in properties}


def check(served: Served, body: CheckRequest) -> dict[str, Any]:
    """How many rows of the table match."""
    if served.table is None:
        raise RefusalError(
            404,
            "NoTableError",
            f'"{served.name}" was started without its table: start the service with --table {served.name}=TABLE',
        )
    return {"rows": served.table.count(body.where)}


def answer_json(answer: Answer, served: Served, body: RequestBody) -> bytes:
    """Compute an answer as JSON, with the milliseconds that it took."""
    started = time.perf_counter()
    reply = answer(served, body)
    reply["ms"] = round((time.perf_counter() - started) * 1e3, 2)
    return to_json(reply)


def plain(estimate: Estimate) -> dict[str, Any]:
    """An estimate as plain data."""
    cleaned = {name: snap_to_zero(getattr(estimate, name)) for name in ("rows", "low", "high")}
    share = estimate.selectivity if cleaned["rows"] else 0.0
    fields = {name: getattr(estimate, name) for name in ESTIMATE}
    return fields | cleaned | {"selectivity": share, "ms": round(estimate.ms, 2)}


def _estimates(served: Served, clauses: list[str]) -> list[dict[str, Any]]:
    replies = []
    for clause, answer in zip(clauses, served.estimator.answer_many(clauses, threads=1), strict=True):
        if isinstance(answer, CountlessError):
            replies.append({"where": clause, "error": error_body(answer)})
        else:
            replies.append(plain(answer))
    return replies


def _column(schema: Schema, name: str) -> Column | None:
    index = schema.find(name)
    column = None if index is None else schema.columns[index]
    return None if column is None or column.is_text else column


def _table(frame: Frame) -> dict[str, Any]:
    return {
        "columns": [{"name": name, "type": kind} for name, kind in zip(frame.names, frame.types, strict=True)],
        "rows": [list(map(cell, row)) for row in frame.rows],
    }
