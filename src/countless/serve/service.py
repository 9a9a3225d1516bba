"""The service: its options, its models, and the threads that compute answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Request, Response

from countless.serve import answers
from countless.serve.answer_cache import AnswerCache
from countless.serve.api import limits, requests
from countless.serve.api.access_log import LogFormat
from countless.serve.api.client_limits import Network
from countless.serve.api.errors import RefusalError
from countless.serve.api.request_record import RECORD, RequestRecord
from countless.serve.metrics import Load, ServiceMetrics
from countless.serve.models import Served
from countless.serve.reload import INTERVAL, ModelReloader
from countless.serve.worker_threads import WorkerPool

JSON = "application/json"
VERSION_HEADER = "X-Model-Version"


@dataclass(frozen=True)
class ServiceOptions:
    """How the service behaves.

    ``local`` says that without a token requests must be for this machine by name. ``watch`` are the seconds between
    two looks at the model files, None for no looks. ``drain`` are the seconds in which it still answers after SIGTERM.
    """

    token: str | None = None
    local: bool = True
    seconds: float = 10.0
    threads: int | None = None
    waiting: int = limits.WAITING
    cors: tuple[str, ...] = ()
    access_log: bool = False
    log_format: LogFormat = "text"
    log_clauses: bool = False
    public_metrics: bool = False
    client_rate: float | None = None
    client_burst: int | None = None
    client_concurrent: int | None = None
    proxies: tuple[Network, ...] = ()
    watch: float | None = INTERVAL
    drain: float = 0.0


class Service:
    """Models, and the threads that compute answers. Counts in tables have a thread of their own and no cache."""

    def __init__(self, models: Mapping[str, Served], options: ServiceOptions) -> None:
        self.models = dict(models)
        self.cache = AnswerCache(limits.KEPT_ANSWERS, limits.KEPT_BYTES)
        self.metrics = ServiceMetrics()
        self.reloader = ModelReloader(self.models, self.replace, self.metrics, options.watch)
        self.is_stopping = False
        threads = options.threads or os.cpu_count() or 1
        self._engine = WorkerPool(threads, options.waiting, options.seconds, self.cache)
        self._tables = WorkerPool(1, options.waiting, options.seconds)
        self._log_clauses = options.log_clauses

    @property
    def busy(self) -> bool:
        """Whether a thread is at work."""
        return self._engine.busy or self._tables.busy

    @property
    def stuck(self) -> int:
        """How many threads still work on questions that were given up."""
        return self._engine.stuck + self._tables.stuck

    @property
    def load(self) -> Load:
        """How busy the service is."""
        works = (self._engine, self._tables)
        threads, questions = sum(work.threads for work in works), sum(work.questions for work in works)
        return Load(threads, self.stuck, questions, len(self.cache), self.cache.bytes)

    def require_ready(self) -> None:
        """Raise an error if no question should be sent here: the service is stopping, or all threads are stuck."""
        if self.is_stopping:
            raise RefusalError(503, "StoppingError", "the service is stopping: ask another one")
        if self._engine.all_stuck:
            raise RefusalError(
                503,
                "StuckError",
                f"all {self._engine.threads} threads still work on questions that were given up: "
                "start the service again if this lasts",
            )

    def replace(self, served: Served) -> None:
        """Replace the model of the same name: later questions go to the new one."""
        before = self.models[served.name]
        self.models[served.name] = served
        self.cache.forget(_questions_of(before))

    def start(self) -> None:
        """Start to watch the model files."""
        self.reloader.start()

    def close(self) -> None:
        """Stop: no more question is started."""
        self.is_stopping = True
        self._engine.close()
        self._tables.close()
        self.reloader.stop()

    def properties(self, name: str) -> Response:
        """All properties of the model called ``name``."""
        served = self.served(name)
        return Response(served.properties_json, media_type=JSON, headers={VERSION_HEADER: served.version})

    def served(self, name: str) -> Served:
        """The model called ``name``."""
        if name not in self.models:
            raise RefusalError(
                404, "UnknownModelError", f'no model is called "{name}": the models are {", ".join(self.models)}'
            )
        return self.models[name]

    async def ask(self, request: Request, name: str, answer: answers.Answer, body: requests.RequestBody) -> Response:
        """The answer of the model called ``name``. It is cancelled when the client of ``request`` disconnects."""
        record: RequestRecord = request.scope[RECORD]
        record.clauses = body.clauses() if self._log_clauses else None
        served = self.served(name)
        work = self._tables if answer is answers.check else self._engine
        key = f"{_questions_of(served)}{answer.__name__}\n{body.model_dump_json()}"
        disconnect = asyncio.ensure_future(_disconnected(request))
        try:
            content, record.cached = await work.answer(
                key, lambda: answers.answer_json(answer, served, body), disconnect
            )
        finally:
            disconnect.cancel()
        cache = "hit" if record.cached else "miss"
        return Response(content, media_type=JSON, headers={"X-Cache": cache, VERSION_HEADER: served.version})


def _questions_of(served: Served) -> str:
    """The prefix of the cache keys of all questions to a model."""
    return f"{served.serial}\n"


async def _disconnected(request: Request) -> None:
    """Wait until the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
