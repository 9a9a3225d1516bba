"""A soak test: many clients ask a service for a long time, well-behaved or not, while its model file is replaced.

Every answer is compared with that of the library, for the model that the answer's version names.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from countless.estimator.estimator import Estimator
from countless.serve.model_file import ModelFile
from countless_lab.contests.http_connection import HttpConnection, HttpReply
from countless_lab.contests.service import NAME, ROUNDING, SLOWEST, percentiles_of, random_clauses
from countless_lab.contests.service_process import ServiceProcess, running_service
from countless_lab.measurement.machine import machine_facts

PATH = f"/v1/models/{NAME}"
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


class ModelAnswers(NamedTuple):
    """The content of a model file, and the library's answers to all clauses."""

    content: bytes
    rows: Sequence[float]


@dataclass
class SoakCounts:
    """Counts of a run: requests by manner, statuses, failures by kind, milliseconds of answers, memory over time."""

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
        first, clauses, models = _models_with_answers(model, Path(folder), options.seed)
        file.write_bytes(first)
        counts = SoakCounts()
        with running_service([f"{NAME}={file}"], Path(folder) / "service.log") as service:
            run = _Run(service, file, clauses, models, options, counts)
            asyncio.run(run.all())
            metrics, tracebacks = service.metrics(), service.tracebacks()
        if service.process.returncode != 0:
            counts.failures[f"exit code {service.process.returncode}"] += 1
        counts.failures.update({"traceback": tracebacks} if tracebacks else {})
        return _result(options, counts, metrics)


def _models_with_answers(model: Path, folder: Path, seed: int) -> tuple[bytes, list[str], dict[str, ModelAnswers]]:
    """A model and its copy without evidence rows, which answers differently: by version, with their answers."""
    estimator = Estimator.load(model)
    clauses = random_clauses(estimator.schema, CLAUSES, seed)
    paths = [estimator.save(folder / "first.countless"), estimator.stripped().save(folder / "second.countless")]
    models = {}
    for path in paths:
        rows = [answer.rows for answer in Estimator.load(path).estimate_many(clauses)]
        models[ModelFile(NAME, path).version()] = ModelAnswers(path.read_bytes(), rows)
    return paths[0].read_bytes(), clauses, models


@dataclass
class _Run:
    service: ServiceProcess
    file: Path
    clauses: list[str]
    models: dict[str, ModelAnswers]
    options: SoakOptions
    counts: SoakCounts

    async def all(self) -> None:
        """Run the clients, replace the file and record the memory until the time is over."""
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
        """Replace the file by the other model, sometimes by a broken file, and sometimes send SIGHUP instead."""
        contents, turn = [model.content for model in self.models.values()], 0
        while time.monotonic() + self.options.replace_every < self.end:
            await asyncio.sleep(self.options.replace_every)
            turn += 1
            action = "broken" if turn % 5 == 0 else "hangup" if turn % 7 == 0 else "replaced"
            if action == "hangup":
                self.service.process.send_signal(signal.SIGHUP)
            else:
                beside = self.file.with_suffix(".new")
                beside.write_bytes(BROKEN if action == "broken" else contents[turn % 2])
                os.replace(beside, self.file)
            self.counts.replaced[action] += 1

    async def _client(self, number: int, columns: list[str]) -> None:
        """One client, which makes requests of random manners on one connection."""
        rng = np.random.default_rng([self.options.seed, number])
        connection = HttpConnection(self.service.port)
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

    async def _ask(self, connection: HttpConnection, manner: str, columns: list[str], rng: np.random.Generator) -> None:
        numbers = [int(number) for number in rng.integers(len(self.clauses), size=8)]
        if manner == "invalid":
            path, body, status = INVALID[int(rng.integers(len(INVALID)))]
            await connection.close()  # the service closes a connection whose body it refused
            self._expect(await connection.post(path, body), status)
            await connection.close()
            return
        where: Any = [self.clauses[number] for number in numbers] if manner == "list" else self.clauses[numbers[0]]
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
            self._compare(reply, manner, numbers)

    def _expect(self, reply: HttpReply, status: int) -> bool:
        self.counts.statuses[reply.status] += 1
        if reply.status == status:
            return True
        if reply.status in (408, 429):
            self.counts.late += 1
        else:
            self.counts.failures[f"status {reply.status} instead of {status}"] += 1
        return False

    def _compare(self, reply: HttpReply, manner: str, numbers: list[int]) -> None:
        self.counts.versions[reply.version] += 1
        answer = json.loads(reply.content)
        estimates = [answer["total"]] if manner == "cards" else answer["estimates"]
        rows = self.models[reply.version].rows
        expected = [rows[number] for number in (numbers if manner == "list" else numbers[:1])]
        pairs = zip(estimates, expected, strict=True)
        if any(abs(estimate["rows"] - true_rows) >= ROUNDING for estimate, true_rows in pairs):
            self.counts.failures["wrong answer"] += 1


def _result(options: SoakOptions, counts: SoakCounts, metrics: dict[str, float]) -> dict[str, Any]:
    first, last, peak = _memory(counts.memory, 60 * options.minutes)
    server_errors = sum(value for name, value in metrics.items() if re.search(r'requests_total.*status="5', name))
    if server_errors:
        counts.failures["5xx of /metrics"] += int(server_errors)
    if metrics["countless_questions"] or metrics["countless_threads_stuck"]:
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
        "reloads": {name: value for name, value in metrics.items() if "reloads_total" in name},
        **percentiles_of("ms", counts.ms),
        "memory_mb_first": round(first / 1e6, 1),
        "memory_mb_last": round(last / 1e6, 1),
        "memory_mb_peak": round(peak / 1e6, 1),
        "memory_growth": round(growth, 4),
        "threads": metrics["process_threads"],
        "is_level": growth <= MOST_GROWTH,
        "machine": machine_facts(),
    }


def _memory(samples: Sequence[tuple[float, int]], seconds: float) -> tuple[float, float, float]:
    """The median after the warm-up, the median at the end, and the most.

    >>> _memory([(0, 1), (3, 100), (9, 110)], 10)
    (100, 110, 110)
    """
    first = [memory for at, memory in samples if WARM_UP <= at / seconds <= WARM_UP + WINDOW]
    last = [memory for at, memory in samples if at / seconds >= 1 - WINDOW]
    all_samples = [memory for _, memory in samples] or [0]
    return statistics.median(first or all_samples), statistics.median(last or all_samples), max(all_samples)
