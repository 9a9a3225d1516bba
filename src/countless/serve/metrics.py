"""The service's metrics for Prometheus: its requests, its models and its process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from countless._version import __version__
from countless.serve.api.request_record import RequestRecord
from countless.serve.models import Served
from countless.serve.prometheus import Counter, Histogram, gauge_lines, gauges_lines, metric_lines

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# The label of a refused request, by the kind of its error.
REASONS = {
    "TooManyRequestsError": "busy",
    "RateLimitError": "rate",
    "ConcurrencyLimitError": "concurrency",
    "TokenError": "token",
    "HostError": "host",
    "TimeoutError": "timeout",
    "BodyError": "size",
}
LOADED, FAILED = "loaded", "failed"


class Load(NamedTuple):
    """How busy the service is now."""

    threads: int
    stuck: int
    questions: int  # that are worked on or wait
    cached: int
    cached_bytes: int


class ServiceMetrics:
    """Counts of requests, answers and reloads since the start."""

    def __init__(self) -> None:
        self.requests = Counter("countless_requests_total", "Requests.", ("method", "route", "status"))
        self.seconds = Histogram(
            "countless_request_seconds", "Time from a request's head to its answer's end.", ("route",), SECONDS
        )
        self.refused = Counter("countless_refused_total", "Requests that were not worked on.", ("reason",))
        self.answers = Counter(
            "countless_answers_total",
            "Answers, computed (miss) or kept from before (hit).",
            ("model", "question", "cache"),
        )
        self.reloads = Counter(
            "countless_model_reloads_total", "Loads of a model file after the start.", ("model", "outcome")
        )
        self.failing: dict[str, bool] = {}  # whether the latest load of each model failed
        self.in_flight = 0
        self._started = time.time()

    def ended(self, record: RequestRecord, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.add(record.method, record.route, str(status))
        self.seconds.observe(seconds, record.route)
        if record.error in REASONS:
            self.refused.add(REASONS[record.error])
        if record.cached is not None and record.model is not None:
            self.answers.add(record.model, record.question, "hit" if record.cached else "miss")

    def reloaded(self, model: str, outcome: str) -> None:
        """Count a load."""
        self.reloads.add(model, outcome)
        self.failing[model] = outcome == FAILED

    def text(self, models: Mapping[str, Served], load: Load) -> str:
        """All metrics in Prometheus' text format."""
        families = (
            metric_lines("countless_info", "gauge", "The version.", ("version",), [((__version__,), 1)]),
            self.requests.lines(),
            self.seconds.lines(),
            gauge_lines("countless_requests_in_flight", "Requests that are not answered yet.", self.in_flight),
            self.refused.lines(),
            self.answers.lines(),
            _load_lines(load),
            self._model_lines(models),
            _process_lines(self._started),
        )
        return "\n".join(chain.from_iterable(families)) + "\n"

    def _model_lines(self, models: Mapping[str, Served]) -> Iterator[str]:
        def gauges(name: str, summary: str, values: Mapping[str, float]) -> Iterable[str]:
            return gauges_lines(f"countless_model_{name}", summary, "model", values)

        served, stamps = models.items(), {name: model.stamp for name, model in models.items() if model.stamp}
        yield from gauges("rows", "Rows of the table.", {name: model.line["rows"] for name, model in served})
        yield from gauges("file_bytes", "Size of the file.", {name: stamp.size for name, stamp in stamps.items()})
        yield from gauges(
            "file_modified_timestamp_seconds",
            "When the served file was written.",
            {name: stamp.modified_ns / 1e9 for name, stamp in stamps.items()},
        )
        yield from gauges(
            "loaded_timestamp_seconds", "When it was loaded.", {name: model.loaded_at for name, model in served}
        )
        yield from gauges("age_seconds", "Time since.", {name: time.time() - model.loaded_at for name, model in served})
        yield from gauges(
            "load_seconds", "How long the load took.", {name: model.load_seconds for name, model in served}
        )
        yield from gauges(
            "reload_failing",
            "1 if the latest load failed, so that an older file is served.",
            {name: float(self.failing.get(name, False)) for name in models},
        )
        yield from self.reloads.lines()


def _load_lines(load: Load) -> Iterator[str]:
    yield from gauge_lines("countless_threads", "Threads that compute answers.", load.threads)
    yield from gauge_lines(
        "countless_threads_stuck", "Threads that still work on questions that were given up.", load.stuck
    )
    yield from gauge_lines("countless_questions", "Questions that are worked on or wait.", load.questions)
    yield from gauge_lines("countless_cached_answers", "Answers that are kept.", load.cached)
    yield from gauge_lines("countless_cached_bytes", "Their size.", load.cached_bytes)


def _process_lines(started: float) -> Iterator[str]:
    times = os.times()
    cpu = times.user + times.system
    yield from metric_lines("process_cpu_seconds_total", "counter", "Processor time of this process.", (), [((), cpu)])
    yield from gauge_lines("process_start_time_seconds", "When it started.", started)
    yield from gauge_lines("process_resident_memory_bytes", "Memory of this process.", resident_bytes())
    yield from gauge_lines("process_open_fds", "Open files and connections.", _open_files())
    yield from gauge_lines("process_threads", "Threads of Python.", threading.active_count())


def resident_bytes() -> int | None:
    """The memory of this process; None if the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _open_files() -> int | None:
    try:
        return len(list(Path("/proc/self/fd").iterdir()))
    except OSError:
        return None
