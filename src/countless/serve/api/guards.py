"""Middleware of the service: checks around every request and every response."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from countless.serve.answers import to_json
from countless.serve.api import limits
from countless.serve.api.errors import RefusalError, told

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
DRAINED = 8 * limits.BODY_BYTES  # of a body that is too large so much is read, so that its sender hears why
PROTECTED = "/v1/"  # what lies below needs the token; the page asks for it, and has nothing to hide
FAILURE = RefusalError(500, "InternalError", "something went wrong: the service's log tells what")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")

logger = logging.getLogger(__name__)


class Wrapped:
    """Sets the security headers, and sees to it that what goes wrong is logged, and told to nobody else.

    With ``access_log`` it writes a line of JSON about each request to standard error.
    """

    def __init__(self, inner: Application, access_log: bool = False) -> None:
        self._inner = inner
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        started = time.perf_counter()
        status, sent, cached = 0, 0, False

        async def sending(message: Message) -> None:
            nonlocal status, sent, cached
            if message["type"] == "http.response.start":
                status = message["status"]
                cached = (b"x-cache", b"hit") in message["headers"]
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            sent += len(message.get("body", b""))
            await send(message)
            if self._access_log and message["type"] == "http.response.body" and not message.get("more_body"):
                _log(scope, status, sent, cached, (time.perf_counter() - started) * 1e3)

        try:
            await self._inner(scope, receive, sending)
        except Exception:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            if not status:
                await refuse(sending, FAILURE)


class Guarded:
    """Refuses requests that may not be asked, and reads the body of the others, up to a bound in size and time.

    ``token`` is what a request must bring. ``local`` says that requests must be for this machine by name: no page from
    elsewhere can then pretend, by a name of its own for this address, to be where the service is.
    """

    def __init__(self, inner: Application, token: str | None, local: bool, seconds: float) -> None:
        self._inner = inner
        self._token = token
        self._local = local
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = dict(scope["headers"])
        try:
            self._check(scope, headers)
            body = await self._body(headers, receive)
        except RefusalError as refusal:
            await refuse(send, refusal)
            return
        heard = False

        async def receiving() -> Message:
            nonlocal heard
            if heard:
                return await receive()
            heard = True
            return {"type": "http.request", "body": body, "more_body": False}

        asked = "GET" if scope["method"] == "HEAD" else scope["method"]  # the server leaves the body of a HEAD out
        await self._inner({**scope, "method": asked}, receiving, send)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        if self._local and _host(headers.get(b"host", b"")) not in LOCAL_HOSTS:
            raise RefusalError(403, "HostError", "this service is for its own machine: ask for it as localhost")
        if self._token is None or not scope["path"].startswith(PROTECTED):
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            raise RefusalError(401, "TokenError", "this needs the service's token: send Authorization: Bearer TOKEN")
        if not hmac.compare_digest(given.strip(), self._token.encode()):
            raise RefusalError(401, "TokenError", "the token is wrong: send the one that the service was started with")

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        body, length = bytearray(), 0
        try:
            async with asyncio.timeout(self._seconds):
                more = _length_told(headers) <= DRAINED
                while more:
                    message = await receive()
                    length += len(message.get("body", b""))
                    more = message.get("more_body", False) and length <= DRAINED
                    if length <= limits.BODY_BYTES:
                        body += message.get("body", b"")
        except TimeoutError:
            raise RefusalError(408, "TimeoutError", f"the request did not arrive within {self._seconds:g} s") from None
        if max(length, _length_told(headers)) > limits.BODY_BYTES:
            raise RefusalError(
                413, "BodyError", f"the body has more than {limits.BODY_BYTES:,} bytes: ask for less at once"
            )
        return bytes(body)


async def refuse(send: Send, refusal: RefusalError) -> None:
    """Send a refusal."""
    body = to_json({"error": told(refusal)})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status in (408, 413):
        headers.append((b"connection", b"close"))  # what is left of the request is not read
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _length_told(headers: dict[bytes, bytes]) -> int:
    """How many bytes of body are announced."""
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _host(header: bytes) -> str:
    """The host of a Host header, without its port.

    >>> _host(b"localhost:80"), _host(b"[::1]:80"), _host(b"[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    host = header.decode("latin-1").lower()
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def _log(scope: Scope, status: int, sent: int, cached: bool, ms: float) -> None:
    client = scope.get("client")
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "client": client[0] if client else None,
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "bytes": sent,
        "cached": cached,
        "ms": round(ms, 3),
    }
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()
