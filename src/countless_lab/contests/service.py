"""A load test of a service: many concurrent clients, each of which asks again as soon as it has its answer.

The service runs in a process of its own on this machine; the clients share this process. Every answer is compared with
that of the library.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import quote_identifier, sql_literal
from countless.errors import CountlessError
from countless.estimator.estimator import Estimator
from countless_lab.contests.http_connection import HttpConnection
from countless_lab.contests.service_process import HOST, running_service
from countless_lab.measurement.machine import machine_facts

NAME = "model"
FILTERS = (1, 5)
PERCENTILES = (50, 90, 99)
SLOWEST = 60.0  # seconds that an answer may take
ROUNDING = 1e-9  # rows; the service answers 0 for less


@dataclass(frozen=True)
class LoadTestOptions:
    """How much to ask: this many different ``clauses``; the share ``repeated`` of the requests asks the first few.

    Before that, one client asks for the cards of all columns, as the page does, ``refreshes`` times.
    """

    clients: int = 64
    seconds: float = 10.0
    clauses: int = 2_000
    repeated: float = 0.2
    seed: int = 1
    refreshes: int = 50


@dataclass
class ClientResults:
    """Milliseconds of all answers and of those that no cache gave, and the numbers of wrong, refused and lost ones."""

    ms: list[float] = field(default_factory=list)
    computed_ms: list[float] = field(default_factory=list)
    wrong: int = 0
    refused: int = 0
    lost: int = 0


def measure(model: Path, options: LoadTestOptions) -> dict[str, Any]:
    """Start a service of ``model``, ask it for a while, and return the figures."""
    estimator = Estimator.load(model)
    clauses = random_clauses(estimator.schema, options.clauses, options.seed)
    expected = [answer.rows for answer in estimator.estimate_many(clauses)]
    with (
        tempfile.TemporaryDirectory() as folder,
        running_service([f"{NAME}={model.absolute()}"], Path(folder) / "service.log") as service,
    ):
        cards_ms = _refresh(service.port, estimator.schema, clauses[: options.refreshes])
        before = service.memory
        started = time.perf_counter()
        results = asyncio.run(_ask(service.port, clauses, expected, options))
        seconds = time.perf_counter() - started
        after = service.memory
    answered = len(results.ms)
    return {
        "cards": len(estimator.schema.coded),
        "refreshes": len(cards_ms),
        **percentiles_of("cards_ms", cards_ms),
        "clients": options.clients,
        "seconds": round(seconds, 2),
        "clauses": len(clauses),
        "requests": answered + results.refused + results.lost,
        "per_second": round(answered / seconds, 1),
        **percentiles_of("ms", results.ms),
        "kept": answered - len(results.computed_ms),
        **percentiles_of("computed_ms", results.computed_ms),
        "wrong": results.wrong,
        "refused": results.refused,
        "lost": results.lost,
        "memory_mb_start": round(before / 1e6, 1),
        "memory_mb_end": round(after / 1e6, 1),
        "exit_code": service.process.returncode,
        "machine": machine_facts(),
    }


def random_clauses(schema: Schema, count: int, seed: int) -> list[str]:
    """Conjunctions of a few filters on random columns with random values of these columns; no table is needed."""
    if not schema.coded:
        raise CountlessError("the model holds text only, of which no random questions are made: give another model")
    rng = np.random.default_rng(seed)
    most_filters = min(FILTERS[1], len(schema.coded))
    clauses = []
    for _ in range(count):
        indices = rng.choice(len(schema.coded), size=rng.integers(FILTERS[0], most_filters + 1), replace=False)
        clauses.append(" AND ".join(_filter(schema.coded[index], rng) for index in indices))
    return clauses


def percentiles_of(name: str, values: Sequence[float]) -> dict[str, float]:
    """The percentiles of ``values`` as fields of a result; none if there are no values."""
    return {f"{name}_p{p}": round(float(np.percentile(values, p)), 2) for p in PERCENTILES if values}


def _filter(column: Column, rng: np.random.Generator) -> str:
    name = quote_identifier(column.name)
    if not column.values:
        return f"{name} IS NULL"
    value = sql_literal(str(rng.choice(column.values)), column.type)
    operator = "=" if len(column.values) < 10 else str(rng.choice(["<=", ">=", "="]))
    return f"{name} {operator} {value}"


def _refresh(port: int, schema: Schema, clauses: Sequence[str]) -> list[float]:
    """The service's own milliseconds for the cards of all columns under each clause, in one request."""
    connection = HTTPConnection(HOST, port, timeout=SLOWEST)
    columns = [column.name for column in schema.coded]
    milliseconds = []
    for clause in clauses:
        body = json.dumps({"where": clause, "columns": columns})
        connection.request("POST", f"/v1/models/{NAME}/distribution", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        record = json.loads(answer.read())
        if answer.status != HTTPStatus.OK:
            raise CountlessError(f"the cards of {clause} were refused: {record['error']['message']}")
        milliseconds.append(float(record["ms"]))
    connection.close()
    return milliseconds


async def _ask(port: int, clauses: Sequence[str], expected: Sequence[float], options: LoadTestOptions) -> ClientResults:
    results = ClientResults()
    end = time.perf_counter() + options.seconds
    clients = (_client(port, clauses, expected, options, number, end, results) for number in range(options.clients))
    await asyncio.gather(*clients)
    return results


async def _client(
    port: int,
    clauses: Sequence[str],
    expected: Sequence[float],
    options: LoadTestOptions,
    client: int,
    end: float,
    results: ClientResults,
) -> None:
    """One client with one connection, which it opens again if it is lost."""
    rng = np.random.default_rng([options.seed, client])
    connection = HttpConnection(port)
    while time.perf_counter() < end:
        is_repeated = rng.random() < options.repeated
        number = int(rng.integers(min(len(clauses), 20) if is_repeated else len(clauses)))
        try:
            async with asyncio.timeout(SLOWEST):
                await connection.open()
                await _request(connection, clauses[number], expected[number], results)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            results.lost += 1
            await connection.close()
            await asyncio.sleep(0.1)
    await connection.close()


async def _request(connection: HttpConnection, clause: str, expected: float, results: ClientResults) -> None:
    started = time.perf_counter()
    reply = await connection.send(f"/v1/models/{NAME}/estimate", json.dumps({"where": clause}).encode())
    ms = (time.perf_counter() - started) * 1e3
    if reply.status != HTTPStatus.OK:
        results.refused += 1
        return
    results.ms.append(ms)
    if not reply.is_cached:
        results.computed_ms.append(ms)
    results.wrong += abs(json.loads(reply.content)["estimates"][0]["rows"] - expected) >= ROUNDING
