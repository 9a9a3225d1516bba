"""Log lines: one for each request, without secrets."""

from __future__ import annotations

import json
import logging
import re
import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest

from countless.serve.api.access_log import JsonFormatter, TextFormatter
from tests.serve.conftest import Client

FIELDS = {
    *("time", "level", "id", "client", "method", "route", "path", "model"),
    *("status", "error", "bytes", "cached", "ms"),
}
PERSONAL = "city = 'Oslo' AND age = 44"


def written(capfd: pytest.CaptureFixture[str], lines: int) -> list[str]:
    """What was logged; a line is written when its answer has been sent."""
    text = ""
    while text.count("\n") < lines:
        text += capfd.readouterr().err
    return text.splitlines()


def test_the_fields(start: Callable[..., Client], capfd: pytest.CaptureFixture[str]) -> None:
    client = start(access_log=True, log_format="json", token="sesame")
    headers = {"Authorization": "Bearer sesame", "X-Request-Id": "proxy-17"}
    known = client.post("/v1/models/people/estimate", {"where": PERSONAL}, **headers)
    client.post("/v1/models/people/estimate", {"where": "agee > 3"}, Authorization="Bearer sesame")
    client.get("/v1/models", Authorization="Bearer guessed")
    lines = written(capfd, 3)
    first, second, third = map(json.loads, lines)
    assert set(first) == FIELDS
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["time"])
    assert (first["id"], known.headers["x-request-id"]) == ("proxy-17", "proxy-17")
    assert (first["client"], first["method"], first["status"]) == ("127.0.0.1", "POST", 200)
    assert (first["route"], first["model"]) == ("/v1/models/{name}/estimate", "people")
    assert (first["bytes"], first["error"]) == (len(known.content), None)
    assert (second["status"], second["error"]) == (422, "UnknownColumnError")
    assert len({first["id"], second["id"], third["id"]}) == 3
    assert (third["status"], third["error"]) == (401, "TokenError")
    for secret in ("sesame", "guessed", "Oslo", "agee"):
        assert secret not in "".join(lines)


def test_clauses_only_if_they_are_wanted(start: Callable[..., Client], capfd: pytest.CaptureFixture[str]) -> None:
    client = start(access_log=True, log_format="json", log_clauses=True)
    client.ask("estimate", where=PERSONAL)
    client.ask("estimate", where=["TRUE"] * 12)
    client.ask("query", sql="SELECT count(*) FROM t")
    client.ask("estimate", where="x" * 5000)
    bodys = [json.loads(line) for line in written(capfd, 4)]
    assert (bodys[0]["clauses"], bodys[0]["clauses_total"]) == ([PERSONAL], 1)
    assert (len(bodys[1]["clauses"]), bodys[1]["clauses_total"]) == (10, 12)
    assert bodys[2]["clauses"] == ["SELECT count(*) FROM t"]
    assert len(bodys[3]["clauses"][0]) == 1000


def test_lines_for_people(start: Callable[..., Client], capfd: pytest.CaptureFixture[str]) -> None:
    client = start(access_log=True, log_clauses=True)
    client.ask("estimate", where="TRUE\n2026-01-01 fake line")
    client.get("/nothing%0a2026-01-01%20fake")
    first, second = written(capfd, 2)  # and no more: no part of a request makes a line of its own
    assert re.fullmatch(
        r"\S+Z 127\.0\.0\.1 POST /v1/models/people/estimate 422 [\d.]+ms \d+B QuerySyntaxError id=[0-9a-f]{16} "
        r'"TRUE\\n2026-01-01 fake line"',
        first,
    )
    assert "GET /nothing%0A2026-01-01%20fake 404" in second


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "a\tb", "é", "<script>"])
def test_a_strange_request_id_is_replaced(client: Client, given: str) -> None:
    request_id = client.get("/healthz", **{"X-Request-Id": given}).headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{16}", request_id)


def test_one_who_vanishes_is_logged(start: Callable[..., Client], capfd: pytest.CaptureFixture[str]) -> None:
    client = start(access_log=True, log_format="json", seconds=20)
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(b"POST /v1/models/people/estimate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        while not client.service.metrics.in_flight:
            pass
    (line,) = map(json.loads, written(capfd, 1))
    assert (line["status"], line["route"]) == (499, "/v1/models/{name}/estimate")


def record(message: str, error: bool = False) -> logging.LogRecord:
    try:
        raise ValueError("inner")
    except ValueError:
        info: Any = sys.exc_info() if error else None
        return logging.LogRecord("countless.serve", logging.ERROR, "", 0, message, (), info)


def test_other_lines_have_the_same_format() -> None:
    line = json.loads(JsonFormatter().format(record("it\nfailed", error=True)))
    assert (line["level"], line["logger"], line["message"]) == ("error", "countless.serve", "it\nfailed")
    assert "ValueError: inner" in line["traceback"]
    assert "\n" not in JsonFormatter().format(record("it\nfailed", error=True))
    assert TextFormatter().format(record("it failed")).endswith("Z error: it failed")
