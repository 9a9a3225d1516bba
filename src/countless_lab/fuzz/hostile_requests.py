"""Hostile requests: clauses, bodies, heads and timings that no ordinary client sends. A seed determines each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MODEL = "small"
QUESTIONS = ("estimate", "pieces", "distribution", "query", "sample", "check")
JSON = "Content-Type: application/json\r\n"


@dataclass(frozen=True)
class HostileRequest:
    """A request, sent in pieces with ``pause`` seconds between them.

    If ``vanishes``, the client does not wait for an answer. If ``is_http``, there must be an answer, and an error must
    be JSON.
    """

    about: str
    pieces: tuple[bytes, ...]
    pause: float = 0.0
    vanishes: bool = False
    is_http: bool = True


CLAUSES: tuple[Callable[[int], str], ...] = (
    lambda size: "(" * size + "age > 3" + ")" * size,
    lambda size: "NOT " * size + "married",
    lambda size: " OR ".join(f"(age = {n} AND day <> {n % 7} AND score > {n % 9})" for n in range(size)),
    lambda size: f"age IN ({', '.join(map(str, range(size)))})",
    lambda size: " AND ".join(f"page LIKE '%{n}%p_{n}%'" for n in range(min(size, 60))),
    lambda size: f"page LIKE '{'%a' * size}'",
    lambda size: f"regexp_matches(page, '{'(a+)+' * min(size, 200)}$')",
    lambda size: f"regexp_matches(page, '(x{{1,{size}}}){{1,{size}}}')",
    lambda size: f"page ILIKE '{'_' * size}'",
    lambda size: f"age > {'9' * size}",
    lambda size: f"score < 1e{size}",
    lambda size: f"city = '{'x' * size}'",
    lambda size: f"city = 'a\x00b{chr(0x10FFFF) * (size % 50)}'",
    lambda size: "age > 3; DROP TABLE t; --",
    lambda size: "age > (SELECT count(*) FROM read_csv('/etc/passwd'))",
    lambda size: "city = current_setting('home_directory') OR getenv('COUNTLESS_TOKEN') = 'x'",
    lambda size: f"len(repeat('x', {size}000000)) > 3",
    lambda size: "city = " + "replace(" * (size % 40) + "city" + ", 'o', 'oooooooo')" * (size % 40),
    lambda size: "CAST(page AS BLOB) = '\\xAA' OR CAST(age AS VARCHAR) LIKE '%1%'",
    lambda size: f"age + {size} * age - day / 0 > score % 0",
    lambda size: "since > DATE '294247-01-10' AND seen < TIMESTAMP '-infinity'",
    lambda size: "day = NULL OR NULL OR 'NaN'::DOUBLE > amount",
    lambda size: f"{'-' * size}age > 3",
    lambda size: "/* " * size + "age > 3",
    lambda size: '"' + "a" * size + '" = 1',
    lambda size: "age BETWEEN 30 AND 3 AND city LIKE ''",
    lambda size: "page SIMILAR TO '" + "(a|b)*" * min(size, 300) + "'",
)
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 2**70, 1.5, -0.0, 1e308, "", "x" * 30_000, [], {}, [[]], [None], {"a": {"b": []}}),
    *("\ud800", "\x00", ["age > 3"] * 1_001, ["x" * 20_001], ["age > 3", 3], {"age": "x"}, [{}] * 5),
)
FIELDS = ("where", "columns", "sql", "count", "seed", "bins", "top", "search", "intervals", "name", "__proto__")
BODIES = (
    *(
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"where": NaN}',
        b'{"where": "TRUE", "where": "FALSE"}',
        b"\xff\xfe{}",
        b"\x00" * 100,
    ),
    *(b"[" * 50_000, b'{"a":' * 20_000, b'{"where": ' + b"9" * 5_000 + b"}", b" " * 1_000_001, b'"' + b"x" * 900_000),
)
HEADS = (
    *(b"GET / HTTP/9.9", b"GET /", b"\x16\x03\x01\x02\x00\x01", b"PRI * HTTP/2.0\r\n\r\nSM", b"GET  / HTTP/1.1"),
    *(b"BREW /v1/models HTTP/1.1\r\nHost: localhost", b"OPTIONS * HTTP/1.1\r\nHost: localhost"),
    *(
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost",
        b"GET /static/..%2f..%2fapp.py HTTP/1.1\r\nHost: localhost",
    ),
    *(b"GET /static/%00 HTTP/1.1\r\nHost: localhost", b"GET /v1/models/%ff%fe HTTP/1.1\r\nHost: localhost"),
    *(b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost", b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: other"),
    *(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5_000 + b"Host: localhost", b"GET / HTTP/1.1\r\nHost: evil.example"),
    *(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5", b"POST / HTTP/1.1\r\nContent-Length: 1e3"),
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: " + b"1.2.3.4, " * 5_000,
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a\x01b\r\nAuthorization: Bearer \xff\xfe",
)


def hostile_request(rng: np.random.Generator) -> HostileRequest:
    """A request of a random kind."""
    kinds = (_clause, _clause, _clause, _field, _body, _head, _vanishing, _dripping, _pipeline)
    return kinds[int(rng.integers(len(kinds)))](rng)


def post(question: str, body: bytes, more: str = JSON) -> bytes:
    """A request with a question."""
    head = f"POST /v1/models/{MODEL}/{question} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _hostile_question(rng: np.random.Generator) -> tuple[str, str, dict[str, Any]]:
    """A question with a hostile clause."""
    size = int(rng.choice([1, 3, 30, 300, 3_000]))
    number = int(rng.integers(len(CLAUSES)))
    clause = CLAUSES[number](size)[:20_001]
    question = str(rng.choice(QUESTIONS))
    bodies: dict[str, dict[str, Any]] = {
        "estimate": {"where": clause if rng.random() < 0.7 else ["TRUE", clause] * int(rng.integers(1, 40))},
        "pieces": {"column": "page", "where": clause},
        "distribution": {"columns": ["age", "city", "seen"], "where": clause, "bins": int(rng.integers(1, 1_001))},
        "query": {"sql": f"SELECT city, count(*), avg(age) FROM t WHERE {clause} GROUP BY 1"[:20_000]},
        "sample": {"count": int(rng.integers(1, 10_001)), "where": clause},
        "check": {"where": clause},
    }
    return question, f"{question} with clause {number} of size {size}", bodies[question]


def _clause(rng: np.random.Generator) -> HostileRequest:
    question, about, body = _hostile_question(rng)
    return HostileRequest(about, (post(question, json.dumps(body).encode()),))


def _field(rng: np.random.Generator) -> HostileRequest:
    question = str(rng.choice(QUESTIONS))
    body: dict[str, Any] = {"where": "age > 3"}
    for name in rng.choice(FIELDS, int(rng.integers(1, 4)), replace=False):
        body[str(name)] = VALUES[int(rng.integers(len(VALUES)))]
    return HostileRequest(f"{question} with fields {sorted(body)}", (post(question, json.dumps(body).encode()),))


def _body(rng: np.random.Generator) -> HostileRequest:
    question, number = str(rng.choice(QUESTIONS)), int(rng.integers(len(BODIES)))
    types = (JSON, "", "Content-Type: text/plain\r\n", "Content-Type: application/json; charset=utf-16\r\n")
    more = types[int(rng.integers(len(types)))]
    return HostileRequest(f"{question} with body {number} as {more.strip()}", (post(question, BODIES[number], more),))


def _head(rng: np.random.Generator) -> HostileRequest:
    number = int(rng.integers(len(HEADS)))
    return HostileRequest(f"head {number}", (HEADS[number] + b"\r\n\r\n",), is_http=False)


def _vanishing(rng: np.random.Generator) -> HostileRequest:
    question, about, body = _hostile_question(rng)
    sent = post(question, json.dumps(body).encode())
    length = int(rng.integers(1, len(sent) + 1)) if rng.random() < 0.5 else len(sent)
    return HostileRequest(f"vanishing, {about}", (sent[:length],), vanishes=True)


def _dripping(rng: np.random.Generator) -> HostileRequest:
    sent = post("estimate", b'{"where": "age > 3"}')
    cuts = sorted(int(cut) for cut in rng.integers(1, len(sent), int(rng.integers(1, 12))))
    pieces = tuple(sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True))
    return HostileRequest(f"in {len(pieces)} drips", pieces, pause=0.03, is_http=False)


def _pipeline(rng: np.random.Generator) -> HostileRequest:
    question, about, body = _hostile_question(rng)
    sent = post(question, json.dumps(body).encode()).replace(b"Connection: close\r\n", b"")
    last = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    return HostileRequest(f"ten at once, {about}", (sent * 10 + last,))
