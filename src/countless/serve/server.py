"""The server process of the service: it listens until it is stopped."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from countless.errors import CountlessError
from countless.serve.api.app import make_app
from countless.serve.api.errors import error_body, late_request
from countless.serve.models import Served
from countless.serve.plain_json import to_json
from countless.serve.service import Service, ServiceOptions

SIGNALS = (signal.SIGTERM, signal.SIGINT)
RELOAD = getattr(signal, "SIGHUP", None)  # Windows has none
STANDARD_STREAMS = (0, 1, 2)
INTERRUPTED = 130
BACKLOG = 1024  # connections that wait to be taken


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's algorithm off only if the protocol is named; otherwise the end of an answer is delayed.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise CountlessError(f"cannot listen at {host}:{port}: {reason}; choose another --host or --port") from None
    return listening


def address(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


class Ended(NamedTuple):
    """How the service ended: its exit code, and whether a thread is still at work for a request that was refused."""

    code: int
    busy: bool


def run(
    models: Mapping[str, Served], listening: socket.socket, options: ServiceOptions, ready: Callable[[], None]
) -> Ended:
    """Serve until SIGTERM or Ctrl-C, then finish the requests that are open. SIGHUP loads the model files again.

    ``ready`` is called once requests are answered.
    """
    service = Service(models, options)
    server = make_server(service, options)
    server.ready = ready
    received: list[int] = []  # uvicorn raises a signal again when it has shut down

    def stop(number: int, frame: object) -> None:
        received.append(number)
        server.should_exit = True  # the signal may come before uvicorn handles signals itself

    terminals = _terminals()

    def hang_up(number: int, frame: object) -> None:
        if terminals == _terminals():
            service.reloader.reload()
        else:  # the terminal was closed, so nobody could end the service
            server.should_exit = True

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    if RELOAD is not None and signal.getsignal(RELOAD) != signal.SIG_IGN:  # nohup wants it to be ignored
        before[RELOAD] = signal.signal(RELOAD, hang_up)

    def is_logged(record: logging.LogRecord) -> bool:
        return not server.force_exit  # after a second Ctrl-C it is no news that requests are cut off

    log = logging.getLogger("uvicorn.error")
    log.addFilter(is_logged)
    try:
        server.run(sockets=[listening])
    finally:
        log.removeFilter(is_logged)
        for number, handler in before.items():
            signal.signal(number, handler)
        listening.close()
    return Ended(INTERRUPTED if signal.SIGINT in received else 0, service.busy)


def leave(ended: Ended) -> int:
    """The exit code. If a thread still works on a cancelled request, end the process: Python would wait for it."""
    if ended.busy:
        sys.stderr.flush()
        os._exit(ended.code)
    return ended.code


class HeadTimeoutProtocol(H11Protocol):
    """A connection that is closed if the head of a request takes longer than ``seconds`` to arrive.

    A client that has sent a part of the head gets an error first.
    """

    seconds = 10.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer."""
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Stop the timer once the head of a request is complete."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._start_timer()
        else:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self._close_late)

    def _close_late(self) -> None:
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            body = to_json({"error": error_body(late_request(self.seconds))})
            headers = [
                ("content-type", "application/json"),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            response = h11.Response(status_code=408, headers=headers, reason=b"Request Timeout")
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _terminals() -> list[int]:
    """The standard streams that are a terminal; a closed one does not count."""
    return [stream for stream in STANDARD_STREAMS if os.isatty(stream)]


class HttpServer(uvicorn.Server):
    """A server that calls ``ready``, and that answers for ``drain`` seconds before it stops.

    In that time load balancers see at /readyz that it is stopping.
    """

    ready: Callable[[], None] = staticmethod(lambda: None)
    service: Service
    drain = 0.0
    _ends: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call ``ready``."""
        await super().startup(sockets)
        if self.started:
            self.ready()

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop: only after the drain time."""
        if not await super().on_tick(counter):
            return False
        self.service.is_stopping = True
        if self._ends is None:
            interrupted = signal.SIGINT in self._captured_signals
            self._ends = time.monotonic() + (0.0 if interrupted else self.drain)
        return self.force_exit or time.monotonic() >= self._ends


def make_server(service: Service, options: ServiceOptions) -> HttpServer:
    """The server of a service, not running yet."""
    config = uvicorn.Config(
        make_app(service, options),
        http=type("ConfiguredProtocol", (HeadTimeoutProtocol,), {"seconds": options.seconds}),
        lifespan="on",
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(options.seconds) + 1,
    )
    server = HttpServer(config)
    server.service, server.drain = service, options.drain
    return server
