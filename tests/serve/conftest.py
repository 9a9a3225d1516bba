"""Services of the small model, each at a port of its own on this machine, and someone who asks them."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from countless.serve.models import Served, load_models
from countless.serve.server import listen, make_server
from countless.serve.service import Service, ServiceOptions
from tests.serve.browsers import started

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> Any:
        return self.json["error"]


@dataclass
class Client:
    """Asks a service; every request has a connection of its own."""

    port: int
    service: Service
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, None, headers)

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send("POST", path, content, {"Content-Type": "application/json", **headers})

    def ask(self, question: str, **body: Any) -> Reply:
        return self.post(f"/v1/models/people/{question}", body)

    def send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, self.headers | headers)
            response = connection.getresponse()
            return Reply(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        finally:
            connection.close()


@contextmanager
def running(models: dict[str, Served], options: ServiceOptions) -> Iterator[Client]:
    """A service in a thread, which is stopped at the end."""
    listening = listen("127.0.0.1", 0)
    service = Service(models, options)
    server = make_server(service, options)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        yield Client(listening.getsockname()[1], service)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture(scope="session")
def served(model: Path, people: Path) -> dict[str, Served]:
    """The small model with its table."""
    return load_models([str(model)], [f"people={people}"])


@pytest.fixture(scope="session")
def client(served: dict[str, Served]) -> Iterator[Client]:
    """A service with its defaults, that all tests share."""
    with running(served, ServiceOptions()) as running_client:
        yield running_client


@pytest.fixture
def start(served: dict[str, Served]) -> Iterator[Callable[..., Client]]:
    """Starts a service of one's own."""
    with ExitStack() as stack:
        yield lambda models=served, **options: stack.enter_context(running(models, ServiceOptions(**options)))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser, or a reason why there is none."""
    with started() as started_browser:
        yield started_browser
