"""Metrics in Prometheus' text format."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from countless.serve.metrics import REASONS
from countless.serve.models import load_models
from countless.serve.prometheus import Histogram
from tests.serve.conftest import Client

SAMPLE = re.compile(r'([a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? (-?[0-9.e+-]+|\+Inf)')
DOCS = Path(__file__).parents[2] / "docs" / "serve.md"


def scraped(client: Client, **headers: str) -> dict[str, float]:
    """Every sample by its name and labels; each line must be of the format, and each metric must have a type."""
    reply = client.get("/metrics", **headers)
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples, typed = {}, set()
    for line in reply.content.decode().splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert name not in typed
            assert kind in ("counter", "gauge", "histogram")
            typed.add(name)
        elif not line.startswith("# HELP "):
            sample = SAMPLE.fullmatch(line)
            assert sample is not None, line
            assert sample[1] in typed or re.sub("_(bucket|sum|count)$", "", sample[1]) in typed, line
            key = sample[1] + (sample[2] or "")
            assert key not in samples
            samples[key] = float(sample[3])
    return samples


def test_requests_are_counted(start: Callable[..., Client]) -> None:
    client = start()
    for where in ("age > 40", "age > 40", "agee > 40"):
        client.ask("estimate", where=where)
    client.get("/v1/models/nobody")
    for path in ("/wp-admin", "/.env"):
        client.get(path)
    metrics = scraped(client)
    estimate = "/v1/models/{name}/estimate"
    assert metrics[f'countless_requests_total{{method="POST",route="{estimate}",status="200"}}'] == 2
    assert metrics[f'countless_requests_total{{method="POST",route="{estimate}",status="422"}}'] == 1
    assert metrics['countless_requests_total{method="GET",route="/v1/models/{name}",status="404"}'] == 1
    assert metrics['countless_requests_total{method="GET",route="other",status="404"}'] == 2
    assert metrics[f'countless_request_seconds_count{{route="{estimate}"}}'] == 3
    assert metrics[f'countless_request_seconds_bucket{{route="{estimate}",le="+Inf"}}'] == 3
    assert 0 < metrics[f'countless_request_seconds_sum{{route="{estimate}"}}'] < 30
    for cache in ("hit", "miss"):
        assert metrics[f'countless_answers_total{{model="people",question="estimate",cache="{cache}"}}'] == 1
    assert (metrics["countless_cached_answers"], metrics["countless_requests_in_flight"]) == (1, 1)
    again = scraped(client)
    assert again['countless_requests_total{method="GET",route="/metrics",status="200"}'] == 1
    assert all(again[key] >= value for key, value in metrics.items() if re.search("_(total|count|bucket)", key))


def test_models_and_the_process(start: Callable[..., Client], model: Path) -> None:
    metrics = scraped(start(load_models([str(model), f'with "quotes"={model}'])))
    assert metrics['countless_model_rows{model="people"}'] == 3000
    assert metrics['countless_model_rows{model="with \\"quotes\\""}'] == 3000
    assert metrics['countless_model_file_bytes{model="people"}'] == model.stat().st_size
    assert 0 < metrics['countless_model_load_seconds{model="people"}'] < 60
    assert 0 <= metrics['countless_model_age_seconds{model="people"}'] < 60
    assert metrics['countless_model_reload_failing{model="people"}'] == 0
    assert metrics["process_resident_memory_bytes"] > 1e7
    assert metrics["process_open_fds"] > 3
    assert metrics["process_cpu_seconds_total"] > 0
    assert (metrics["countless_threads"], metrics["countless_threads_stuck"]) == (metrics["countless_threads"], 0)


def test_the_token(start: Callable[..., Client]) -> None:
    client = start(token="sesame")
    assert client.get("/metrics").status == 401
    metrics = scraped(client, Authorization="Bearer sesame")
    assert metrics['countless_refused_total{reason="token"}'] == 1
    public = start(token="sesame", public_metrics=True)
    assert 'countless_model_rows{model="people"}' in scraped(public)
    assert public.get("/v1/models").status == 401


def test_what_is_asked_makes_no_metric_of_its_own(start: Callable[..., Client]) -> None:
    client = start()
    sizes = []
    for numbers in (range(2), range(2, 20)):
        for number in numbers:
            client.send(f"X{number}", f"/nothing/{number}", None, {})
            client.post(f"/v1/models/m{number}/estimate", {"where": "TRUE"})
        scraped(client)
        sizes.append(len(scraped(client)))
    assert sizes[0] == sizes[1]
    assert 'model="m1"' not in client.get("/metrics").content.decode()


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3, 99.0])
def test_buckets_hold_all_that_is_below(seconds: float) -> None:
    histogram = Histogram("t", "Times.", (), (0.1, 1.0))
    histogram.observe(seconds)
    assert list(histogram.lines())[2:5] == [
        f't_bucket{{le="0.1"}} {int(seconds <= 0.1)}',
        f't_bucket{{le="1"}} {int(seconds <= 1)}',
        't_bucket{le="+Inf"} 1',
    ]


def test_every_metric_is_documented(client: Client) -> None:
    text = DOCS.read_text(encoding="utf-8")
    for name in set(re.findall(r"# TYPE (\S+)", client.get("/metrics").content.decode())):
        assert f"`{name}" in text, name
    for reason in REASONS.values():
        assert f"`{reason}`" in text, reason
