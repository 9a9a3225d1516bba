"""Counters, gauges and histograms in Prometheus' text format.

These few lines replace a dependency: the service needs three kinds of metric, no registry shared by the whole process
and no second web server.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[str, ...]


class Counter:
    """A number for each combination of labels, which only grows. Safe to share by threads.

    >>> asked = Counter("asked_total", "Questions.", ("model",))
    >>> asked.add("adult"); asked.add("adult")
    >>> print("\\n".join(asked.lines()))
    # HELP asked_total Questions.
    # TYPE asked_total counter
    asked_total{model="adult"} 2
    """

    def __init__(self, name: str, summary: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self._summary = summary
        self._labels = tuple(labels)
        self._values: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def add(self, *labels: str, by: float = 1) -> None:
        """Count one more."""
        with self._lock:
            self._values[labels] = self._values.get(labels, 0) + by

    def value(self, *labels: str) -> float:
        """How many there were."""
        return self._values.get(labels, 0)

    def lines(self) -> Iterator[str]:
        """The lines of the text format."""
        with self._lock:
            values = sorted(self._values.items())
        return metric_lines(self.name, "counter", self._summary, self._labels, values)


class Histogram:
    """How many seconds things took, by labels: counts below each bound, their sum and their number."""

    def __init__(self, name: str, summary: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self.name = name
        self._summary = summary
        self._labels = tuple(labels)
        self._bounds = tuple(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def observe(self, seconds: float, *labels: str) -> None:
        """Count one that took so long."""
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
            counts[bisect_left(self._bounds, seconds)] += 1
            self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """The lines of the text format."""
        yield from _head(self.name, "histogram", self._summary)
        with self._lock:
            series = [(labels, list(counts), self._sums[labels]) for labels, counts in sorted(self._counts.items())]
        for labels, counts, total in series:
            below = 0
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                below += count
                yield _sample(f"{self.name}_bucket", (*self._labels, "le"), (*labels, _number(bound)), below)
            yield _sample(f"{self.name}_sum", self._labels, labels, total)
            yield _sample(f"{self.name}_count", self._labels, labels, below)


def gauge_lines(name: str, summary: str, value: float | None) -> Iterator[str]:
    """The lines of one number that is known now; none if it is not known."""
    return metric_lines(name, "gauge", summary, (), [] if value is None else [((), value)])


def gauges_lines(name: str, summary: str, label: str, values: Mapping[str, float]) -> Iterator[str]:
    """The lines of numbers that are known now, each by the value of one label."""
    return metric_lines(name, "gauge", summary, (label,), [((key,), value) for key, value in values.items()])


def metric_lines(
    name: str, kind: str, summary: str, labels: Labels, values: Iterable[tuple[Labels, float]]
) -> Iterator[str]:
    """The lines of a metric; none if it has no values yet."""
    samples = [_sample(name, labels, label_values, value) for label_values, value in values]
    if samples:
        yield from _head(name, kind, summary)
        yield from samples


def _head(name: str, kind: str, summary: str) -> tuple[str, str]:
    return f"# HELP {name} {summary}", f"# TYPE {name} {kind}"


def _sample(name: str, labels: Labels, values: Labels, value: float) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in zip(labels, values, strict=True))
    return f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    r"""A label's value between its quotes.

    >>> print(_escaped('a "b" \\ c'))
    a \"b\" \\ c
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """A number as Prometheus reads it.

    >>> _number(3.0), _number(0.25), _number(float("inf"))
    ('3', '0.25', '+Inf')
    """
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
