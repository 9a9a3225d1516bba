"""Limits by client: how often, how much at once, and who the client is."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from countless.serve.api import client_limits
from countless.serve.api.client_limits import ClientLimits, client_address
from countless.serve.api.errors import RefusalError
from countless.serve.models import Served
from tests.serve.conftest import Client
from tests.serve.test_worker_threads import Slow, models, slow

__all__ = ["slow"]
NEAR = ipaddress.ip_network("127.0.0.1/32")
ASKED = {"where": "age > 40 AND married"}
PATH = "/v1/models/people/estimate"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_rate_with_a_burst() -> None:
    clock = Clock()
    limits = ClientLimits(rate=2, burst=3, clock=clock)
    for _ in range(3):
        limits.enter("a")
    with pytest.raises(RefusalError) as refused:
        limits.enter("a")
    assert (refused.value.status, refused.value.retry_after) == (429, 1)
    limits.enter("b")  # another client has a rate of its own
    clock.now += 0.5
    limits.enter("a")
    with pytest.raises(RefusalError):
        limits.enter("a")
    clock.now += 3600
    for _ in range(3):
        limits.enter("a")
    with pytest.raises(RefusalError):
        limits.enter("a")  # a long pause is worth no more than the burst


def test_a_slow_rate_tells_when_to_come_back() -> None:
    limits = ClientLimits(rate=0.1, burst=1, clock=Clock())
    limits.enter("a")
    with pytest.raises(RefusalError) as refused:
        limits.enter("a")
    assert refused.value.headers == {"Retry-After": "10"}


def test_requests_at_once() -> None:
    limits = ClientLimits(concurrent=2)
    limits.enter("a")
    limits.enter("a")
    with pytest.raises(RefusalError, match="2 of your requests are not answered yet"):
        limits.enter("a")
    limits.leave("a")
    limits.enter("a")


def test_a_network_of_ipv6_is_one_client() -> None:
    limits = ClientLimits(rate=1, burst=1, clock=Clock())
    limits.enter("2001:db8::1")
    with pytest.raises(RefusalError):
        limits.enter("2001:db8::2:3")
    limits.enter("2001:db8:0:1::1")
    limits.enter("192.0.2.1")
    with pytest.raises(RefusalError):
        limits.enter("192.0.2.1")


def test_many_clients_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_limits, "MAX_CLIENTS", 10)
    limits = ClientLimits(rate=1, burst=1, clock=Clock())
    limits.enter("at work")
    for number in range(100):
        limits.enter(f"192.0.2.{number}")
        limits.leave(f"192.0.2.{number}")
    assert len(limits) == 10
    with pytest.raises(RefusalError):
        limits.enter("at work")  # who is not finished is not forgotten


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["192.0.2.7"], "192.0.2.7"),
        ("127.0.0.1", ["6.6.6.6, 192.0.2.7"], "192.0.2.7"),  # what the client itself wrote is not believed
        ("127.0.0.1", ["6.6.6.6", "192.0.2.7, 127.0.0.1"], "192.0.2.7"),
        ("127.0.0.1", ["nonsense"], "127.0.0.1"),
        ("127.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("::ffff:127.0.0.1", ["192.0.2.7"], "192.0.2.7"),
        ("192.0.2.9", ["6.6.6.6"], "192.0.2.9"),  # no trusted proxy
        (None, ["6.6.6.6"], "unknown"),
    ],
)
def test_who_the_client_is(peer: str | None, forwarded: list[str], client: str) -> None:
    assert client_address(peer, forwarded, [NEAR]) == client


def test_the_service_refuses_one_that_asks_too_often(start: Callable[..., Client]) -> None:
    client = start(client_rate=0.001, client_burst=3)
    assert [client.get("/v1/models").status for _ in range(4)] == [200, 200, 200, 429]
    reply = client.post(PATH, ASKED)
    assert (reply.status, reply.error["kind"], reply.headers["retry-after"]) == (429, "RateLimitError", "1000")
    assert "you may send 0.001 requests a second" in reply.error["message"]
    for path in ("/", "/healthz", "/readyz", "/metrics", "/static/main.js"):
        assert client.get(path).status == 200
    assert 'countless_refused_total{reason="rate"} 2' in client.get("/metrics").content.decode()


def test_wrong_tokens_count(start: Callable[..., Client]) -> None:
    client = start(client_rate=0.001, client_burst=2, token="sesame")
    assert [client.get("/v1/models", Authorization="Bearer x").status for _ in range(3)] == [401, 401, 429]
    assert client.get("/v1/models", Authorization="Bearer sesame").status == 429


def test_clients_behind_a_proxy(start: Callable[..., Client]) -> None:
    client = start(client_rate=0.001, client_burst=1, proxies=(NEAR,))
    for address in ("192.0.2.1", "192.0.2.2"):
        headers = {"X-Forwarded-For": f"6.6.6.6, {address}"}
        assert [client.send("GET", "/v1/models", None, headers).status for _ in range(2)] == [200, 429]
    trusting_nobody = start(client_rate=0.001, client_burst=1)
    for address, status in (("192.0.2.1", 200), ("192.0.2.2", 429)):
        assert trusting_nobody.send("GET", "/v1/models", None, {"X-Forwarded-For": address}).status == status


def test_the_service_refuses_too_much_at_once(start: Callable[..., Client], slow: Slow) -> None:
    client = start(models(slow), client_concurrent=1)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.ask, "estimate", where="age > 40")
        while not slow.asked:
            pass
        reply = client.ask("estimate", where="age > 41")
        assert (reply.status, reply.error["kind"], reply.headers["retry-after"]) == (429, "ConcurrencyLimitError", "1")
        slow.let.set()
        assert first.result().status == 200
    assert client.ask("estimate", where="age > 41").status == 200


def test_a_client_that_vanishes_gives_its_place_back(start: Callable[..., Client], served: dict[str, Served]) -> None:
    client = start(client_concurrent=1, seconds=20)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
            connection.sendall(f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{{".encode())
            while not client.service.metrics.in_flight:
                pass
        while client.service.metrics.in_flight:
            pass
        assert client.post(PATH, ASKED).status == 200
