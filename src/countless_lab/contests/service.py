"""How a service holds out: many clients at once, each of which asks as soon as it has its answer.

The service is a process of its own on this machine, started and stopped here; the clients share this process. Every
answer is compared with the library's, which was asked before.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
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
from countless_lab.contests.service_process import HOST, running_service
from countless_lab.measurement.machine import machine_facts

NAME = "model"
FILTERS = (1, 5)
PERCENTILES = (50, 90, 99)
SLOWEST = 60.0  # seconds that an answer may take
DUST = 1e-9  # rows; the service takes less for none


@dataclass(frozen=True)
class LoadTestOptions:
    """How much to ask. This many different ``clauses`` are asked; a share of ``repeated`` requests asks the first few.

    Before, one client asks for the cards of all columns, as the page does: this many ``refreshes``.
    """

    clients: int = 64
    seconds: float = 10.0
    clauses: int = 2_000
    repeated: float = 0.2
    seed: int = 1
    refreshes: int = 50


@dataclass
class Heard:
    """What the clients got: milliseconds of all answers and of computed ones, and what was wrong, refused or lost."""

    ms: list[float] = field(default_factory=list)
    computed_ms: list[float] = field(default_factory=list)
    wrong: int = 0
    refused: int = 0
    lost: int = 0


def measure(model: Path, options: LoadTestOptions) -> dict[str, Any]:
    """Ask a service of ``model`` for a while."""
    estimator = Estimator.load(model)
    clauses = random_clauses(estimator.schema, options.clauses, options.seed)
    known = [answer.rows for answer in estimator.estimate_many(clauses)]
    with (
        tempfile.TemporaryDirectory() as folder,
        running_service([f"{NAME}={model.absolute()}"], Path(folder) / "service.log") as service,
    ):
        cards_ms = _refresh(service.port, estimator.schema, clauses[: options.refreshes])
        before = service.memory
        started = time.perf_counter()
        heard = asyncio.run(_ask(service.port, clauses, known, options))
        seconds = time.perf_counter() - started
        after = service.memory
    answered = len(heard.ms)
    return {
        "cards": len(estimator.schema.coded),
        "refreshes": len(cards_ms),
        **_percentiles("cards_ms", cards_ms),
        "clients": options.clients,
        "seconds": round(seconds, 2),
        "clauses": len(clauses),
        "requests": answered + heard.refused + heard.lost,
        "per_second": round(answered / seconds, 1),
        **_percentiles("ms", heard.ms),
        "kept": answered - len(heard.computed_ms),
        **_percentiles("computed_ms", heard.computed_ms),
        "wrong": heard.wrong,
        "refused": heard.refused,
        "lost": heard.lost,
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
    most = min(FILTERS[1], len(schema.coded))
    clauses = []
    for _ in range(count):
        chosen = rng.choice(len(schema.coded), size=rng.integers(FILTERS[0], most + 1), replace=False)
        clauses.append(" AND ".join(_filter(schema.coded[index], rng) for index in chosen))
    return clauses


def _percentiles(name: str, values: Sequence[float]) -> dict[str, float]:
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


async def _ask(port: int, clauses: Sequence[str], known: Sequence[float], options: LoadTestOptions) -> Heard:
    heard = Heard()
    end = time.perf_counter() + options.seconds
    clients = (_client(port, clauses, known, options, number, end, heard) for number in range(options.clients))
    await asyncio.gather(*clients)
    return heard


async def _client(
    port: int,
    clauses: Sequence[str],
    known: Sequence[float],
    options: LoadTestOptions,
    client: int,
    end: float,
    heard: Heard,
) -> None:
    """One client with one connection, which it opens again if it is lost."""
    rng = np.random.default_rng([options.seed, client])
    while time.perf_counter() < end:
        try:
            reader, writer = await asyncio.open_connection(HOST, port)
        except OSError:
            heard.lost += 1
            await asyncio.sleep(0.1)
            continue
        try:
            while time.perf_counter() < end:
                often = rng.random() < options.repeated
                number = int(rng.integers(min(len(clauses), 20) if often else len(clauses)))
                async with asyncio.timeout(SLOWEST):
                    await _request(reader, writer, clauses[number], known[number], heard)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            heard.lost += 1
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def _request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, clause: str, known: float, heard: Heard
) -> None:
    body = json.dumps({"where": clause}).encode()
    head = (
        f"POST /v1/models/{NAME}/estimate HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    started = time.perf_counter()
    writer.write(head.encode() + body)
    answer = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = re.search(rb"content-length: (\d+)", answer)
    content = await reader.readexactly(int(length[1]) if length else 0)
    ms = (time.perf_counter() - started) * 1e3
    if not answer.startswith(b"http/1.1 200"):
        heard.refused += 1
        return
    heard.ms.append(ms)
    if b"x-cache: hit" not in answer:
        heard.computed_ms.append(ms)
    heard.wrong += abs(json.loads(content)["estimates"][0]["rows"] - known) >= DUST
