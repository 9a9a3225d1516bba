"""Limits for each client: requests a second, and requests at once."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from countless.serve.api.errors import RefusalError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
MAX_CLIENTS = 10_000  # that are remembered; the one that was idle for longest is forgotten
IPV6_PREFIX = 64  # one household or host has all addresses of such a network
UNKNOWN = "unknown"


def client_address(peer: str | None, forwarded: Sequence[str], proxies: Sequence[Network]) -> str:
    """The client of a request: the peer of the connection, or the address that a trusted proxy names.

    Args:
        peer: the address that the connection comes from.
        forwarded: the values of ``X-Forwarded-For``, in their order. Each proxy adds its own peer at the end, so only
            what trusted proxies have added is believed.
        proxies: the networks of trusted proxies.

    >>> near = [ipaddress.ip_network("127.0.0.1")]
    >>> client_address("127.0.0.1", ["6.6.6.6, 192.0.2.7"], near), client_address("192.0.2.9", ["6.6.6.6"], near)
    ('192.0.2.7', '192.0.2.9')
    """
    client = peer or UNKNOWN
    named = [part.strip() for value in forwarded for part in value.split(",")]
    while named and _is_trusted(client, proxies):
        address = _address(named.pop())
        if address is None:
            break
        client = str(address)
    return client


@dataclass
class _Client:
    tokens: float
    updated: float
    running: int = 0


class ClientLimits:
    """Refuses the requests of a client that asks too often, or too much at once.

    Args:
        rate: requests a second that a client may send on average; None for any number.
        burst: how many it may send at once after a pause.
        concurrent: requests that may be unanswered at the same time; None for any number.
        clock: the time in seconds.
    """

    def __init__(
        self,
        rate: float | None = None,
        burst: int | None = None,
        concurrent: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = rate
        self._burst = burst or max(1, math.ceil(2 * rate)) if rate else 0
        self._concurrent = concurrent
        self._clock = clock
        self._clients: OrderedDict[str, _Client] = OrderedDict()

    def __len__(self) -> int:
        return len(self._clients)

    def enter(self, client: str) -> None:
        """Begin a request, which ``leave`` ends; raise an error if the client is over a limit."""
        if self._rate is None and self._concurrent is None:
            return
        state = self._state_of(_group(client))
        if self._concurrent is not None and state.running >= self._concurrent:
            raise RefusalError(
                429,
                "ConcurrencyLimitError",
                f"{state.running:,} of your requests are not answered yet, and no more are taken: wait for one",
                retry_after=1,
            )
        if self._rate is not None:
            self._take(state, self._rate)
        state.running += 1

    def leave(self, client: str) -> None:
        """End a request."""
        state = self._clients.get(_group(client))
        if state is not None and state.running:
            state.running -= 1

    def _take(self, client: _Client, rate: float) -> None:
        now = self._clock()
        client.tokens = min(self._burst, client.tokens + (now - client.updated) * rate)
        client.updated = now
        if client.tokens < 1:
            raise RefusalError(
                429,
                "RateLimitError",
                f"you may send {rate:g} requests a second: ask again later, or several clauses in one request",
                retry_after=max(1, math.ceil((1 - client.tokens) / rate)),
            )
        client.tokens -= 1

    def _state_of(self, group: str) -> _Client:
        client = self._clients.setdefault(group, _Client(self._burst, self._clock()))
        self._clients.move_to_end(group)
        if len(self._clients) > MAX_CLIENTS:
            idle = next((name for name, state in self._clients.items() if not state.running), None)
            if idle is not None and idle != group:
                del self._clients[idle]
        return client


def _group(client: str) -> str:
    """The name of all addresses that count as one client.

    >>> _group("192.0.2.7"), _group("2001:db8::1") == _group("2001:db8::2"), _group("unknown")
    ('192.0.2.7', True, 'unknown')
    """
    address = _address(client)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))
    return client


def _address(text: str) -> Address | None:
    """An address without a port; an IPv4 address that is mapped into IPv6 counts as IPv4."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_trusted(client: str, proxies: Sequence[Network]) -> bool:
    address = _address(client)
    return address is not None and any(address in network for network in proxies)
