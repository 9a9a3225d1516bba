"""A connection to a service that stays open between requests, for load tests with many clients."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import NamedTuple

from countless_lab.contests.service_process import HOST


class HttpReply(NamedTuple):
    """The answer to a request: its status, its head in lower case, and its body."""

    status: int
    head: str
    content: bytes

    @property
    def is_cached(self) -> bool:
        """Whether the service had the answer in its cache."""
        return "x-cache: hit" in self.head

    @property
    def version(self) -> str:
        """The version of the model that answered; empty if none did."""
        match = re.search(r"x-model-version: (\S+)", self.head)
        return match[1] if match else ""


class HttpConnection:
    """A connection that is opened for the first request, and again if it was closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.reopened = 0

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, unless the connection is open."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(HOST, self._port)
        return self._streams

    async def post(self, path: str, body: bytes, pause: float = 0.0) -> HttpReply:
        """Send a request like :meth:`send`, and once more if the service had closed the idle connection.

        A service may close an idle connection at any time, and every client sends the request again then.
        """
        was_open = self._streams is not None
        try:
            return await self.send(path, body, pause)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            if not was_open or (isinstance(error, asyncio.IncompleteReadError) and error.partial):
                raise
        self.reopened += 1
        await self.close()
        return await self.send(path, body, pause)

    async def send(self, path: str, body: bytes, pause: float = 0.0) -> HttpReply:
        """Send a request, the second half of its body after a ``pause``, and read the answer."""
        reader, writer = await self.open()
        writer.write(_head(path, body) + body[: len(body) // 2])
        if pause:
            with suppress(ConnectionError):
                await writer.drain()
            await asyncio.sleep(pause)
        writer.write(body[len(body) // 2 :])
        with suppress(ConnectionError):  # the service may refuse the request before it has read all of it
            await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = re.search(r"content-length: (\d+)", head)
        content = await reader.readexactly(int(length[1]) if length else 0)
        if "connection: close" in head:
            await self.close()
        return HttpReply(int(head.split()[1]), head, content)

    async def vanish(self, path: str, body: bytes, share: float) -> None:
        """Send a share of a request, and close the connection."""
        _, writer = await self.open()
        request = _head(path, body) + body
        writer.write(request[: max(1, int(2 * share * len(request)))])
        with suppress(ConnectionError):
            await writer.drain()
        await asyncio.sleep(0.01 * share)
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            writer = self._streams[1]
            self._streams = None
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


def _head(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode()
