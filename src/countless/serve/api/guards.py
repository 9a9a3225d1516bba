"""Middleware of the service: checks around every request and every response."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Container, MutableMapping, Sequence
from typing import Any

from countless.serve.api import limits
from countless.serve.api.access_log import AccessLog
from countless.serve.api.client_limits import ClientLimits, Network, client_address
from countless.serve.api.errors import RefusalError, error_body, late_request
from countless.serve.api.request_record import RECORD, RequestRecord, record_of
from countless.serve.metrics import ServiceMetrics
from countless.serve.plain_json import to_json
from countless.serve.service import ServiceOptions

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
# A connection that is closed with unread data is reset, and the refusal is lost. So a part of the body is still read:
DRAINED = 8 * limits.BODY_BYTES  # of a body that is too large
LINGER = 2.0  # seconds, of a request that was refused
LIMITED = "/v1/"  # paths that need the token and count for a client's limits; the page is public
METRICS = "/metrics"  # it names the models, so it needs the token too, unless the options say otherwise
CLIENT_GONE = 499  # logged for a client that disconnected before its answer
FAILURE = RefusalError(500, "InternalError", "something went wrong: the service's log says what")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")

logger = logging.getLogger(__name__)


class Instrumented:
    """Adds the security headers, counts and logs every request, and logs errors without sending their details.

    ``metrics`` counts, and ``log`` gets a line for each request if there is one. Requests from ``proxies`` may name
    their client.
    """

    def __init__(
        self,
        inner: Application,
        models: Container[str],
        metrics: ServiceMetrics,
        proxies: Sequence[Network] = (),
        log: AccessLog | None = None,
    ) -> None:
        self._inner = inner
        self._models = models
        self._metrics = metrics
        self._proxies = proxies
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        started = time.perf_counter()
        record = record_of(scope, self._client(scope), self._models)
        headers = (*HEADERS, (b"x-request-id", record.id.encode()))
        status, sent = 0, 0

        async def sending(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *headers]}
            sent += len(message.get("body", b""))
            await send(message)

        self._metrics.in_flight += 1
        try:
            await self._inner({**scope, RECORD: record}, receive, sending)
        except Exception:
            logger.exception("%s %s failed, request %s", record.method, record.route, record.id)
            record.error = FAILURE.kind
            if not status:
                await refuse(sending, FAILURE)
        finally:
            seconds = time.perf_counter() - started
            self._metrics.in_flight -= 1
            self._metrics.ended(record, status or CLIENT_GONE, seconds)
            if self._log is not None:
                self._log.write(record, status or CLIENT_GONE, sent, seconds * 1e3)

    def _client(self, scope: Scope) -> str:
        peer = scope.get("client")
        forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        return client_address(peer[0] if peer else None, forwarded, self._proxies)


class Guarded:
    """Refuses requests that are not allowed, and reads the body of the others, with limits on size and time.

    With a token, requests below /v1/ must have it. Without one, their Host must be this machine, if the options say so:
    that stops DNS rebinding, where a foreign page gives this address a name of its own.
    """

    def __init__(self, inner: Application, options: ServiceOptions, per_client: ClientLimits) -> None:
        self._inner = inner
        self._token = options.token
        self._local = options.local and options.token is None
        self._seconds = options.seconds
        self._per_client = per_client
        self._protected = (LIMITED,) if options.public_metrics else (LIMITED, METRICS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        record: RequestRecord = scope[RECORD]
        is_limited = scope["path"].startswith(LIMITED)
        try:
            if is_limited:
                self._per_client.enter(record.client)
        except RefusalError as refusal:
            record.error = refusal.kind
            await refuse(send, refusal)
            return
        try:
            await self._admitted(scope, receive, send)
        finally:
            if is_limited:
                self._per_client.leave(record.client)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, incoming = dict(scope["headers"]), _Incoming(receive)
        try:
            self._check(scope, headers)
            body = await self._body(headers, incoming.next)
        except RefusalError as refusal:
            scope[RECORD].error = refusal.kind
            await refuse(send, refusal, incoming)
            return
        is_body_sent = False

        async def receiving() -> Message:
            nonlocal is_body_sent
            if is_body_sent:
                return await receive()
            is_body_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        method = "GET" if scope["method"] == "HEAD" else scope["method"]  # the server leaves the body of a HEAD out
        await self._inner({**scope, "method": method}, receiving, send)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        if self._local and _host(headers.get(b"host", b"")) not in LOCAL_HOSTS:
            raise RefusalError(403, "HostError", "this service is for its own machine: ask for it as localhost")
        if self._token is None or not scope["path"].startswith(self._protected):
            return
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            raise RefusalError(401, "TokenError", "this needs the service's token: send Authorization: Bearer TOKEN")
        if not hmac.compare_digest(token.strip(), self._token.encode()):
            raise RefusalError(401, "TokenError", "the token is wrong: send the one that the service was started with")

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        body, length = bytearray(), 0
        try:
            async with asyncio.timeout(self._seconds):
                more = _announced_length(headers) <= DRAINED
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RefusalError(CLIENT_GONE, "GoneError", "the client has disconnected")
                    length += len(message.get("body", b""))
                    more = message.get("more_body", False) and length <= DRAINED
                    if length <= limits.BODY_BYTES:
                        body += message.get("body", b"")
        except TimeoutError:
            raise late_request(self._seconds) from None
        if max(length, _announced_length(headers)) > limits.BODY_BYTES:
            raise RefusalError(
                413, "BodyError", f"the body has more than {limits.BODY_BYTES:,} bytes: ask for less at once"
            )
        return bytes(body)


class _Incoming:
    """The body of a request while it arrives."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    async def next(self) -> Message:
        """The next part of the body."""
        message = await self._receive()
        self._ended = not message.get("more_body", False)
        return message

    async def drop_rest(self) -> None:
        """Read and drop the rest of the body."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while not self._ended:
                    await self.next()


async def refuse(send: Send, refusal: RefusalError, incoming: _Incoming | None = None) -> None:
    """Send a refusal. If the request is still ``incoming`` and will not be read, the connection is closed."""
    body = to_json({"error": error_body(refusal)})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    closes = refusal.status in (408, 413)
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": closes})
    if closes:
        if incoming is not None:
            await incoming.drop_rest()
        await send({"type": "http.response.body", "body": b""})


def _announced_length(headers: dict[bytes, bytes]) -> int:
    """The Content-Length of a request, or 0."""
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _host(header: bytes) -> str:
    """The host of a Host header, without its port.

    >>> _host(b"localhost:80"), _host(b"[::1]:80"), _host(b"[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    host = header.decode("latin-1").lower()
    return host if host.endswith("]") else host.rpartition(":")[0] or host
