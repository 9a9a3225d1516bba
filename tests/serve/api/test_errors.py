"""Every documented error, once: its status, its kind and the words that help."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from countless import Estimator
from countless.errors import CountlessError
from countless.serve.api import limits
from countless.serve.api.app import REFUSALS
from countless.serve.models import Served, load_models
from tests.serve.conftest import Client

ASKED: dict[str, Callable[[str], dict[str, Any]]] = {
    "estimate": lambda where: {"where": where},
    "distribution": lambda where: {"columns": ["age"], "where": where},
    "pieces": lambda where: {"column": "city", "where": where},
    "query": lambda where: {"sql": f"SELECT count(*) FROM t WHERE {where}"},
    "sample": lambda where: {"where": where},
    "check": lambda where: {"where": where},
}
WRONG = [
    "agee > 3",
    "id > 3",
    "age >",
    "age > 'x'",
    "age > (SELECT 3)",
    "age > ANY (SELECT 3)",
    "sum(age) OVER () > 3",
    "age > score",
    "",
    "age > 30; DROP TABLE t",
]


@pytest.mark.parametrize("where", WRONG)
def test_an_error_of_the_library_has_its_words_and_its_spot(client: Client, estimator: Estimator, where: str) -> None:
    reply = client.ask("estimate", where=where)
    assert reply.status == 422
    with pytest.raises(CountlessError) as known:
        estimator.estimate(where)
    assert reply.error["message"] == str(known.value).splitlines()[0]
    assert reply.error["kind"] == type(known.value).__name__
    span = getattr(known.value, "span", None)
    assert reply.error["span"] == (None if span is None else list(span))


@pytest.mark.parametrize("question", ASKED)
def test_every_question_points_at_the_spot(client: Client, question: str) -> None:
    body = ASKED[question]("agee > 3")
    reply = client.ask(question, **body)
    assert reply.status == 422
    assert reply.error["kind"] == "UnknownColumnError"
    sql = body.get("sql") or body["where"]
    start, end = reply.error["span"]
    assert sql[start:end] == "agee"


@pytest.mark.parametrize(
    ("question", "body", "words"),
    [
        ("estimate", {}, '"where" is missing'),
        ("estimate", {"where": 3}, '"where" must be a string, or a list of strings'),
        ("estimate", {"where": ["TRUE", 3]}, '"where"[1] must be a string'),
        ("estimate", {"where": []}, '"where" must have at least 1 item'),
        ("estimate", {"where": ["TRUE"] * 1_001}, '"where" must have at most 1,000 items'),
        ("estimate", {"where": "x" * 20_001}, '"where" must have at most 20,000 characters'),
        ("estimate", {"where": ["TRUE", "x" * 20_001]}, '"where"[1] must have at most 20,000 characters'),
        ("estimate", {"where": "TRUE", "more": 1}, 'no "more" to ask for: the body may have where'),
        ("distribution", {"columns": []}, '"columns" must have at least 1 item'),
        ("distribution", {"columns": ["age"] * 101}, '"columns" must have at most 100 items'),
        ("distribution", {"columns": ["age"], "bins": 0}, '"bins" must be at least 1'),
        ("distribution", {"columns": ["age"], "top": 1_001}, '"top" must be at most 1,000'),
        ("distribution", {"columns": ["age"], "search": {"age": "3"}}, "no values to search"),
        ("distribution", {"columns": ["age"], "search": {"city": "3"}}, "not among the columns"),
        ("distribution", {"columns": ["cty"]}, 'did you mean "city"?'),
        ("sample", {"count": 10_001}, '"count" must be at most 10,000'),
        ("sample", {"count": 2.5}, '"count" must be a whole number'),
        ("sample", {"count": "3"}, '"count" must be a whole number'),
        ("query", {"sql": "SELECT 1", "intervals": 1}, '"intervals" must be true or false'),
        ("distribution", {"columns": "age"}, '"columns" must be a list'),
        ("distribution", {"columns": ["age"], "search": []}, '"search" must be an object'),
        ("distribution", {"columns": ["age"], "search": {"age": 3}}, '"search"["age"] must be a string'),
        ("sample", {"count": 0}, '"count" must be at least 1'),
        ("sample", {"seed": -1}, '"seed" must be at least 0'),
        ("query", {"sql": "SELECT age FROM t"}, "is not grouped"),
        ("query", {"sql": "DROP TABLE t"}, "SELECT"),
        ("check", {"where": None}, '"where" must be a string'),
    ],
)
def test_a_body_that_is_not_as_it_should_be(client: Client, question: str, body: dict[str, Any], words: str) -> None:
    reply = client.ask(question, **body)
    assert reply.status == 422
    assert words in reply.error["message"]


def test_a_sample_of_nothing(client: Client) -> None:
    reply = client.ask("sample", where="age > 900")
    assert (reply.status, reply.error["kind"]) == (422, "NoRowsError")
    assert "no row matches" in reply.error["message"]


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b'{"where', 400, "the body is not JSON"),
        (b'{"where": "\xff"}', 400, "the body is not UTF-8: byte 11 is no part of a character"),
        (b"[" * 100_000, 400, "the body is nested too deeply"),
        (b'{"where": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "the body is nested too deeply"),
        (b'{"where": ' + b"9" * 5_000 + b"}", 400, "a number in the body has too many digits"),
        (b'{"where": ' + b"9" * 4_000 + b"}", 422, '"where" must be a string'),
        (b"[]", 422, 'the body must be a JSON object such as {"where": "TRUE"}, and is a list'),
        (b'"TRUE"', 422, 'such as {"where": "TRUE"}, and is a string'),
        (b"3", 422, "and is a number"),
        (b"null", 422, "and is empty or null"),
        (b"", 422, "and is empty or null"),
        (b'{"where": "age > \\ud800"}', 422, '"where" '),
    ],
)
def test_a_body_that_is_no_object(client: Client, content: bytes, status: int, words: str) -> None:
    reply = client.post("/v1/models/people/estimate", content)
    assert (reply.status, reply.error["kind"]) == (status, "RequestError")
    assert words in reply.error["message"]


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/jsonp"}])
def test_a_body_that_is_not_called_json(client: Client, headers: dict[str, str]) -> None:
    for body in (b'{"where": "TRUE"}', b"where=TRUE"):
        reply = client.send("POST", "/v1/models/people/estimate", body, headers)
        assert (reply.status, reply.error["kind"]) == (415, "RequestError")
        assert reply.error["message"].startswith("send Content-Type: application/json")
    reply = client.send("POST", "/v1/models/people/check", b'{"where": "TRUE"}', {"Content-Type": "APPLICATION/JSON "})
    assert reply.json["rows"] == 3000


def test_more_rows_than_are_sent(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RESULT_ROWS", 3)
    reply = client.ask("query", sql="SELECT age, count(*) FROM t GROUP BY 1")
    assert reply.status == 422
    assert "add a LIMIT" in reply.error["message"]
    assert reply.error["kind"] == "QueryTooLargeError"


@pytest.mark.parametrize(
    "where",
    [
        "age > len(repeat('x', 3000000000))",
        "age > 'x'.repeat(3)",
        "age > \"repeat\"('x', 3)",
        'age > "!__postfix"(5)',
        'age > "two words"(5)',
        "age > re$peat(5)",
        "age > ☃(5)",
        "city = rpad('x', 3000000000, 'y')",
        "age > len(range(3000000000))",
        "CAST(NULL AS INTEGER[100000]) IS NULL",
        "city = hex(hex(hex('x')))",
        "read_csv('x.csv') = city",
    ],
)
def test_functions_that_make_much_out_of_little(client: Client, where: str) -> None:
    reply = client.ask("estimate", where=where)
    assert (reply.status, reply.error["kind"]) == (422, "UnsupportedQueryError")
    assert any(words in reply.error["message"] for words in ("among the functions", "not computed"))
    good, bad = client.ask("estimate", where=["age > 30", where]).json["estimates"]
    assert "rows" in good
    assert bad["error"] == reply.error


@pytest.mark.parametrize(("value", "letter"), [("city", "o"), ("upper(city)", "O")])
def test_replacements_that_grow(client: Client, value: str, letter: str) -> None:
    for _ in range(20):
        value = f"replace({value}, '{letter}', '{letter * 64}')"
    reply = client.ask("estimate", where=f"age > 3 AND {value} = 'x'")
    assert (reply.status, reply.error["kind"]) == (422, "QueryTooLargeError")
    assert "rows" in client.ask("estimate", where="age > 30 AND upper(city) = 'OSLO'").json["estimates"][0]


@pytest.mark.parametrize(
    "where",
    [
        "lower(city) = 'oslo'",
        'year("since when") = 2020 AND (age > 3)',
        "CAST(score AS DECIMAL(5, 1)) IN (1, 2)",
        "substring(city from 1 for 2) = 'Os'",
        "regexp_matches(city, '^[OR]')",
        "coalesce(city, 'x') LIKE '%o%' AND NOT (age BETWEEN 3 AND 30)",
    ],
)
def test_functions_that_do_not(client: Client, estimator: Estimator, where: str) -> None:
    assert client.ask("estimate", where=where).json["estimates"][0]["rows"] == estimator.estimate(where).rows


@pytest.mark.parametrize(
    "path", ["/nothing", "/static/nothing.js", "/static/..%2fapp.py", "/static/../app.py", "/docs"]
)
def test_nothing_there(client: Client, path: str) -> None:
    reply = client.get(path)
    assert (reply.status, reply.error["kind"]) == (404, "NotFoundError")


def test_a_method_that_is_not_for_it(client: Client) -> None:
    reply = client.post("/v1/models", {})
    assert (reply.status, reply.error["kind"], reply.headers["allow"]) == (405, "MethodError", "GET, HEAD")
    assert reply.error["message"] == "/v1/models is asked with GET or HEAD only"
    reply = client.send("HEAD", "/v1/models/people/estimate", None, {})
    assert (reply.status, reply.headers["allow"], reply.content) == (405, "POST", b"")


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/v1/models", "/v1/models/people", "/static/main.js", "/openapi.json"]
)
def test_the_head_of_an_answer(client: Client, path: str) -> None:
    known, head = client.get(path), client.send("HEAD", path, None, {})
    assert (head.status, head.content) == (200, b"")
    for name in ("content-type", "content-length"):
        assert head.headers[name] == known.headers[name]


@pytest.mark.parametrize("path", ["/healthz/", "/v1/models/", "/v1/models/people/", "/v1/models/people/estimate/"])
def test_a_slash_too_many_is_another_path(client: Client, path: str) -> None:
    for reply in (client.get(path), client.post(path, {"where": "TRUE"})):
        assert (reply.status, reply.error["kind"]) == (404, "NotFoundError")


def test_a_model_that_is_not_there(client: Client) -> None:
    for reply in (client.get("/v1/models/nobody"), client.post("/v1/models/nobody/estimate", {"where": "TRUE"})):
        assert (reply.status, reply.error["kind"]) == (404, "UnknownModelError")
        assert reply.error["message"] == 'no model is called "nobody": the models are people'


def test_no_table_to_count_in(start: Callable[..., Client], model: Path) -> None:
    client = start(load_models([str(model)]))
    assert client.get("/v1/models/people").json["checkable"] is False
    reply = client.ask("check", where="TRUE")
    assert (reply.status, reply.error["kind"]) == (404, "NoTableError")
    assert "--table people=TABLE" in reply.error["message"]


def test_a_table_reaches_no_other_file(served: dict[str, Served], model: Path) -> None:
    table = served["people"].table
    assert table is not None
    with pytest.raises(CountlessError, match="disabled by configuration"):
        table._source.rows(f"SELECT count(*) FROM read_text('{model}')")


def test_a_large_body(client: Client) -> None:
    reply = client.post("/v1/models/people/estimate", b" " * 1_000_001)
    assert (reply.status, reply.error["kind"]) == (413, "BodyError")
    reply = client.post("/v1/models/people/estimate", b'{"where": "TRUE"}'.ljust(1_000_000))
    assert reply.status == 200


def test_a_large_body_that_is_not_announced(client: Client) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)
    chunks = (b"x" * 100_000 for _ in range(30))
    connection.request("POST", "/v1/models/people/estimate", chunks, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_that_does_not_arrive(start: Callable[..., Client]) -> None:
    client = start(seconds=0.2)
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(b"POST /v1/models/people/estimate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        answer = connection.recv(100_000)
    assert answer.startswith(b"HTTP/1.1 408")


def test_a_large_body_that_arrives_too_late(start: Callable[..., Client]) -> None:
    """Its sender hears why it is refused, although he sends more than the service has read by then."""
    client, head = start(seconds=0.2), b"POST /v1/models/people/estimate HTTP/1.1\r\nHost: localhost\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(head + b"Content-Length: 900000\r\n\r\n" + b" " * 1_000)
        time.sleep(0.5)
        connection.sendall(b" " * 899_000)
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 408")
    assert answer.endswith(b"}")


def test_a_body_that_is_larger_than_what_is_read(client: Client) -> None:
    head = b"POST /v1/models/people/estimate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(head)
        connection.sendall(b" " * 9_000_000)
        assert connection.makefile("rb").read().startswith(b"HTTP/1.1 413")


def test_a_head_that_does_not_begin(start: Callable[..., Client]) -> None:
    client = start(seconds=0.2)
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        assert connection.recv(100_000) == b""


def test_a_head_that_does_not_arrive(start: Callable[..., Client]) -> None:
    client = start(seconds=0.2)
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(b"POST /v1/models/people/estimate HTTP/1.1\r\nHost: loc")
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"the request did not arrive within 0.2 s" in answer
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answers = connection.makefile("rb")
        assert answers.readline().startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
        assert answers.read().count(b"HTTP/1.1 408") == 1


class TestToken:
    def test_what_needs_it(self, start: Callable[..., Client]) -> None:
        client = start(token="sesame")
        for path in ("/healthz", "/", "/openapi.json"):
            assert client.get(path).status == 200
        for headers in ({}, {"Authorization": "Bearer open"}, {"Authorization": "Basic sesame"}):
            for reply in (client.get("/v1/models", **headers), client.post("/v1/models/people/check", {}, **headers)):
                assert (reply.status, reply.error["kind"]) == (401, "TokenError")
                assert reply.headers["www-authenticate"] == "Bearer"
        assert "the token is wrong" in client.get("/v1/models", Authorization="Bearer open").error["message"]
        assert client.get("/v1/models", Authorization="Bearer sesame").status == 200
        assert client.get("/v1/models", Authorization="Bearer sesame", Host="example.org").status == 200

    def test_without_one_another_name_of_this_machine_is_refused(
        self, client: Client, start: Callable[..., Client]
    ) -> None:
        for host in ("localhost", "127.0.0.1:80", "[::1]"):
            assert client.get("/v1/models", Host=host).status == 200
        for host in ("example.org", "localhost.example.org:80", ""):
            reply = client.get("/v1/models", Host=host)
            assert (reply.status, reply.error["kind"]) == (403, "HostError")
        assert start(local=False).get("/v1/models", Host="example.org").status == 200


def test_what_goes_wrong_is_logged_and_not_told(
    start: Callable[..., Client], served: dict[str, Served], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        schema = served["people"].estimator.schema
        info = served["people"].estimator.info

        def estimate(self, where: str) -> None:
            raise ZeroDivisionError("secret")

    client = start({"people": Served("people", Broken(), None)})  # type: ignore[arg-type]
    reply = client.ask("estimate", where="TRUE")
    assert reply.status == 500
    assert reply.error["kind"] == "InternalError"
    assert b"secret" not in reply.content
    assert reply.headers["x-content-type-options"] == "nosniff"
    while "secret" not in caplog.text:  # it is written when the answer has been sent
        time.sleep(0.01)
    assert client.get("/healthz").status == 200


def test_headers(client: Client) -> None:
    for path in ("/", "/healthz", "/nothing", "/v1/models"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in client.get(path, Origin="https://example.org").headers
        assert "server" not in headers


def test_pages_from_elsewhere_that_may_ask(start: Callable[..., Client]) -> None:
    client = start(cors=("https://example.org",), token="sesame")
    headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    reply = client.send("OPTIONS", "/v1/models/people/estimate", None, headers)
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == "https://example.org"
    refused = client.get("/v1/models", Origin="https://example.org")
    assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, "https://example.org")
    assert "access-control-allow-origin" not in client.get("/healthz", Origin="https://example.com").headers


def test_a_line_for_each_request(start: Callable[..., Client], capfd: pytest.CaptureFixture[str]) -> None:
    client = start(access_log=True, log_format="json")
    client.ask("estimate", where="TRUE")
    client.ask("estimate", where="TRUE")
    client.get("/nothing?token=secret")
    written = ""
    while written.count("\n") < 3:  # a line is written when the answer has been sent
        written += capfd.readouterr().err
    lines = [json.loads(line) for line in written.splitlines()]
    assert [(line["method"], line["path"], line["status"], line["cached"]) for line in lines] == [
        ("POST", "/v1/models/people/estimate", 200, False),
        ("POST", "/v1/models/people/estimate", 200, True),
        ("GET", "/nothing", 404, False),
    ]


def test_every_status_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "serve.md").read_text(encoding="utf-8")
    for status in (*REFUSALS, 405, 500):
        assert f"| {status} |" in text
