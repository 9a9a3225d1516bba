"""The service: its options, its models, and the threads that ask them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Request, Response

from countless.serve import answers
from countless.serve.answer_cache import Kept
from countless.serve.api import limits, requests
from countless.serve.api.access_log import LogFormat
from countless.serve.api.client_limits import Network
from countless.serve.api.errors import RefusalError
from countless.serve.api.request_record import RECORD, RequestRecord
from countless.serve.metrics import Load, ServiceMetrics
from countless.serve.models import Served
from countless.serve.reload import INTERVAL, ModelReloader
from countless.serve.worker_threads import Work

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
    """Models, and the threads that ask them. Counting in tables has a thread of its own, and is not kept."""

    def __init__(self, models: Mapping[str, Served], options: ServiceOptions) -> None:
        self.models = dict(models)
        self.kept = Kept(limits.KEPT_ANSWERS, limits.KEPT_BYTES)
        self.metrics = ServiceMetrics()
        self.reloader = ModelReloader(self.models, self.replace, self.metrics, options.watch)
        self.is_stopping = False
        threads = options.threads or os.cpu_count() or 1
        self._engine = Work(threads, options.waiting, options.seconds, self.kept)
        self._tables = Work(1, options.waiting, options.seconds)
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
        return Load(threads, self.stuck, questions, len(self.kept), self.kept.bytes)

    def require_ready(self) -> None:
        """An error if no question should be sent here: the service is about to stop, or no thread is left."""
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
        """Put a model in the place of the one with its name: who asks from now on asks the new one."""
        before = self.models[served.name]
        self.models[served.name] = served
        self.kept.forget(_questions_of(before))

    def start(self) -> None:
        """Begin to look after the model files."""
        self.reloader.start()

    def close(self) -> None:
        """Begin nothing more."""
        self.is_stopping = True
        self._engine.close()
        self._tables.close()
        self.reloader.stop()

    def facts(self, name: str) -> Response:
        """All about the model called ``name``."""
        served = self.served(name)
        return Response(served.facts_json, media_type=JSON, headers={VERSION_HEADER: served.version})

    def served(self, name: str) -> Served:
        """The model called ``name``."""
        if name not in self.models:
            raise RefusalError(
                404, "UnknownModelError", f'no model is called "{name}": the models are {", ".join(self.models)}'
            )
        return self.models[name]

    async def ask(self, request: Request, name: str, answer: answers.Answer, asked: requests.RequestBody) -> Response:
        """What the model called ``name`` answers, unless who made the ``request`` has gone."""
        record: RequestRecord = request.scope[RECORD]
        record.clauses = asked.clauses() if self._log_clauses else None
        served = self.served(name)
        work = self._tables if answer is answers.check else self._engine
        key = f"{_questions_of(served)}{answer.__name__}\n{asked.model_dump_json()}"
        left = asyncio.ensure_future(_left(request))
        try:
            body, record.cached = await work.answer(key, lambda: answers.answered(answer, served, asked), left)
        finally:
            left.cancel()
        cache = "hit" if record.cached else "miss"
        return Response(body, media_type=JSON, headers={"X-Cache": cache, VERSION_HEADER: served.version})


def _questions_of(served: Served) -> str:
    """How the keys of all questions to a model begin."""
    return f"{served.serial}\n"


async def _left(request: Request) -> None:
    """Wait until nobody is there to be answered."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
