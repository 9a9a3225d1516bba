"""A soak: many clients of every manner ask a service for a long time, while its model file is replaced under it.

Every answer is compared with the library's, of the model that the answer's version names.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from countless.estimator.estimator import Estimator
from countless.serve.model_file import ModelFile
from countless_lab.contests.service import DUST, NAME, random_clauses
from countless_lab.contests.service_process import HOST, ServiceProcess, running_service
from countless_lab.measurement.machine import machine_facts

PATH = f"/v1/models/{NAME}"
SLOWEST = 60.0  # seconds that an answer may take
CLAUSES = 2_000
SAMPLING = 2.0  # seconds between two looks at the memory
WARM_UP = 0.2  # of the time, after which the memory counts
WINDOW = 0.2  # of the time, at its beginning and end, whose medians are compared
MOST_GROWTH = 0.10
MOST_SAMPLES = 2_000_000  # of latencies
BROKEN = b"PK not a model"
INVALID: tuple[tuple[str, bytes, int], ...] = (
    (f"{PATH}/estimate", b'{"where": "no_such_column > 3"}', 422),
    (f"{PATH}/estimate", b'{"where": 3}', 422),
    (f"{PATH}/estimate", b'{"where": "', 400),
    (f"{PATH}/estimate", b" " * 1_000_001, 413),
    (f"{PATH}/check", b'{"where": "TRUE"}', 404),
    ("/v1/models/nobody/estimate", b'{"where": "TRUE"}', 404),
    (f"{PATH}/nothing", b"{}", 404),
    (f"{PATH}/query", b'{"sql": "SELECT getenv(\'HOME\')"}', 422),
)
MANNERS = {"valid": 0.55, "list": 0.1, "cards": 0.1, "invalid": 0.1, "slow": 0.05, "vanishing": 0.1}


@dataclass(frozen=True)
class SoakOptions:
    """How long, how many, and how often the model file is replaced."""

    minutes: float = 30.0
    clients: int = 64
    replace_every: float = 20.0
    pause: float = 0.4  # seconds that a client waits between two requests, at most
    seed: int = 1


class KnownModel(NamedTuple):
    """A model file, and what the library answers."""

    content: bytes
    rows: Sequence[float]


class SoakReply(NamedTuple):
    """An answer: its status, the version of the model, and its body."""

    status: int
    version: str
    content: bytes


@dataclass
class SoakCounts:
    """What happened: requests by manner, statuses, failures by their kind, milliseconds of valid ones, memory."""

    manners: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    late: int = 0  # refused with 408 or 429: the machine was too busy
    reopened: int = 0  # kept connections that were closed before the next request came: it was sent again
    versions: Counter[str] = field(default_factory=Counter)
    ms: list[float] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    replaced: Counter[str] = field(default_factory=Counter)


def soak(model: Path, options: SoakOptions) -> dict[str, Any]:
    """Ask a service of ``model`` for ``options.minutes``, and tell how it held out."""
    with tempfile.TemporaryDirectory(prefix="countless-soak-") as folder:
        file = Path(folder) / "model.countless"
        first, clauses, known = _known_models(model, Path(folder), options.seed)
        file.write_bytes(first)
        counts = SoakCounts()
        with running_service([f"{NAME}={file}"], Path(folder) / "service.log") as service:
            run = _Run(service, file, clauses, known, options, counts)
            asyncio.run(run.all())
            told, tracebacks = service.metrics(), service.tracebacks()
        if service.process.returncode != 0:
            counts.failures[f"exit code {service.process.returncode}"] += 1
        counts.failures.update({"traceback": tracebacks} if tracebacks else {})
        return _facts(options, counts, told)


def _known_models(model: Path, folder: Path, seed: int) -> tuple[bytes, list[str], dict[str, KnownModel]]:
    """The model, and itself without evidence rows, which answers otherwise: by version, with the answers of both."""
    estimator = Estimator.load(model)
    clauses = random_clauses(estimator.schema, CLAUSES, seed)
    paths = [estimator.save(folder / "first.countless"), estimator.stripped().save(folder / "second.countless")]
    known = {}
    for path in paths:
        rows = [answer.rows for answer in Estimator.load(path).estimate_many(clauses)]
        known[ModelFile(NAME, path).version()] = KnownModel(path.read_bytes(), rows)
    return paths[0].read_bytes(), clauses, known


@dataclass
class _Run:
    service: ServiceProcess
    file: Path
    clauses: list[str]
    known: dict[str, KnownModel]
    options: SoakOptions
    counts: SoakCounts

    async def all(self) -> None:
        """Clients, a hand that replaces the file, and an eye on the memory, until the time is over."""
        self.began = time.monotonic()
        self.end = self.began + 60 * self.options.minutes
        columns = [column.name for column in Estimator.load(self.file).schema.coded][:6]
        await asyncio.gather(
            self._replace(), self._watch(), *(self._client(number, columns) for number in range(self.options.clients))
        )

    async def _watch(self) -> None:
        while time.monotonic() < self.end:
            self.counts.memory.append((time.monotonic() - self.began, self.service.memory))
            await asyncio.sleep(min(SAMPLING, max(0.0, self.end - time.monotonic())))

    async def _replace(self) -> None:
        """Put the other model in place, now and then a broken file, and now and then send SIGHUP."""
        contents, turn = [each.content for each in self.known.values()], 0
        while time.monotonic() + self.options.replace_every < self.end:
            await asyncio.sleep(self.options.replace_every)
            turn += 1
            what = "broken" if turn % 5 == 0 else "hangup" if turn % 7 == 0 else "replaced"
            if what == "hangup":
                self.service.process.send_signal(signal.SIGHUP)
            else:
                beside = self.file.with_suffix(".new")
                beside.write_bytes(BROKEN if what == "broken" else contents[turn % 2])
                os.replace(beside, self.file)
            self.counts.replaced[what] += 1

    async def _client(self, number: int, columns: list[str]) -> None:
        """One client, which asks in one manner after the other, each with a connection of its own or the last one."""
        rng = np.random.default_rng([self.options.seed, number])
        connection = _Connection(self.service.port)
        while time.monotonic() < self.end:
            manner = str(rng.choice(list(MANNERS), p=list(MANNERS.values())))
            self.counts.manners[manner] += 1
            try:
                async with asyncio.timeout(SLOWEST):
                    await self._ask(connection, manner, columns, rng)
            except TimeoutError:
                self.counts.failures["no answer"] += 1
                await connection.close()
            except (OSError, asyncio.IncompleteReadError) as error:
                self.counts.failures[f"lost: {type(error).__name__}"] += 1
                await connection.close()
            await asyncio.sleep(float(rng.random()) * self.options.pause)
        self.counts.reopened += connection.reopened
        await connection.close()

    async def _ask(self, connection: _Connection, manner: str, columns: list[str], rng: np.random.Generator) -> None:
        places = [int(place) for place in rng.integers(len(self.clauses), size=8)]
        if manner == "invalid":
            path, body, status = INVALID[int(rng.integers(len(INVALID)))]
            await connection.close()  # what is left of a refused body may be cut off
            self._expect(await connection.post(path, body), status)
            await connection.close()
            return
        where: Any = [self.clauses[place] for place in places] if manner == "list" else self.clauses[places[0]]
        body = json.dumps({"where": where, "columns": columns} if manner == "cards" else {"where": where}).encode()
        path = f"{PATH}/{'distribution' if manner == 'cards' else 'estimate'}"
        if manner == "vanishing":
            await connection.vanish(path, body, float(rng.random()))
            return
        started = time.perf_counter()
        reply = await connection.post(path, body, pause=0.3 if manner == "slow" else 0.0)
        if len(self.counts.ms) < MOST_SAMPLES and manner != "slow":
            self.counts.ms.append((time.perf_counter() - started) * 1e3)
        if self._expect(reply, 200):
            self._compare(reply, manner, places)

    def _expect(self, reply: SoakReply, status: int) -> bool:
        self.counts.statuses[reply.status] += 1
        if reply.status == status:
            return True
        if reply.status in (408, 429):
            self.counts.late += 1
        else:
            self.counts.failures[f"status {reply.status} instead of {status}"] += 1
        return False

    def _compare(self, reply: SoakReply, manner: str, places: list[int]) -> None:
        self.counts.versions[reply.version] += 1
        answer = json.loads(reply.content)
        found = [answer["total"]] if manner == "cards" else answer["estimates"]
        rows = self.known[reply.version].rows
        asked = places if manner == "list" else places[:1]
        if [place for each, place in zip(found, asked, strict=True) if abs(each["rows"] - rows[place]) >= DUST]:
            self.counts.failures["wrong answer"] += 1


class _Connection:
    """A connection to the service, opened when it is needed and kept."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.reopened = 0

    async def post(self, path: str, body: bytes, pause: float = 0.0) -> SoakReply:
        """Send a request, the last part of its body after a ``pause``, and read the answer.

        A service may close a connection that nobody uses at any time. Then the request is sent again on a new one, as
        every client does.
        """
        was_kept = self._streams is not None
        try:
            return await self._posted(path, body, pause)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            if not was_kept or (isinstance(error, asyncio.IncompleteReadError) and error.partial):
                raise
        self.reopened += 1
        await self.close()
        return await self._posted(path, body, pause)

    async def _posted(self, path: str, body: bytes, pause: float) -> SoakReply:
        reader, writer = await self._open()
        writer.write(_head(path, body) + body[: len(body) // 2])
        if pause:
            with suppress(ConnectionError):
                await writer.drain()
            await asyncio.sleep(pause)
        writer.write(body[len(body) // 2 :])
        with suppress(ConnectionError):  # it was refused before all of it was read
            await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = re.search(r"content-length: (\d+)", head)
        version = re.search(r"x-model-version: (\S+)", head)
        content = await reader.readexactly(int(length[1]) if length else 0)
        if "connection: close" in head:
            await self.close()
        return SoakReply(int(head.split()[1]), version[1] if version else "", content)

    async def vanish(self, path: str, body: bytes, share: float) -> None:
        """Send a share of a request, and hang up."""
        _, writer = await self._open()
        sent = _head(path, body) + body
        writer.write(sent[: max(1, int(2 * share * len(sent)))])
        with suppress(ConnectionError):
            await writer.drain()
        await asyncio.sleep(0.01 * share)
        await self.close()

    async def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            writer = self._streams[1]
            self._streams = None
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(HOST, self._port)
        return self._streams


def _head(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode()


def _facts(options: SoakOptions, counts: SoakCounts, told: dict[str, float]) -> dict[str, Any]:
    first, last, peak = _memory(counts.memory, 60 * options.minutes)
    server_errors = sum(value for name, value in told.items() if re.search(r'requests_total.*status="5', name))
    if server_errors:
        counts.failures["5xx of /metrics"] += int(server_errors)
    if told["countless_questions"] or told["countless_threads_stuck"]:
        counts.failures["questions or threads left over"] += 1
    growth = last / first - 1 if first else 0.0
    return {
        "minutes": options.minutes,
        "clients": options.clients,
        "pause": options.pause,
        "requests": counts.manners.total(),
        "manners": dict(counts.manners),
        "statuses": {str(status): count for status, count in sorted(counts.statuses.items())},
        "failures": dict(counts.failures),
        "late": counts.late,
        "reopened": counts.reopened,
        "models": dict(counts.versions),
        "files": dict(counts.replaced),
        "reloads": {name: value for name, value in told.items() if "reloads_total" in name},
        **{f"ms_p{place}": round(float(np.percentile(counts.ms, place)), 2) for place in (50, 90, 99) if counts.ms},
        "memory_mb_first": round(first / 1e6, 1),
        "memory_mb_last": round(last / 1e6, 1),
        "memory_mb_peak": round(peak / 1e6, 1),
        "memory_growth": round(growth, 4),
        "threads": told["process_threads"],
        "is_level": growth <= MOST_GROWTH,
        "machine": machine_facts(),
    }


def _memory(samples: Sequence[tuple[float, int]], seconds: float) -> tuple[float, float, float]:
    """The median after the warm-up, the median at the end, and the most.

    >>> _memory([(0, 1), (3, 100), (9, 110)], 10)
    (100, 110, 110)
    """
    first = [held for at, held in samples if WARM_UP <= at / seconds <= WARM_UP + WINDOW]
    last = [held for at, held in samples if at / seconds >= 1 - WINDOW]
    every = [held for _, held in samples] or [0]
    return statistics.median(first or every), statistics.median(last or every), max(every)
