"""Answers that are kept, shared, waited for, and refused when they take too long."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless import Estimator
from countless.cancellation import ComputationCancelledError, cancellable, check_cancelled
from countless.serve import worker_threads as work
from countless.serve.answer_cache import AnswerCache
from countless.serve.api.errors import RefusalError
from countless.serve.models import Served
from countless.serve.worker_threads import WorkerPool
from tests.serve.conftest import Client
from tests.serve.test_answers import without_times


class Slow:
    """The estimator, which answers when it is let."""

    def __init__(self, estimator: Estimator) -> None:
        self.schema = estimator.schema
        self.info = estimator.info
        self.asked: list[str] = []
        self.let = threading.Event()
        self._estimator = estimator

    def estimate(self, where: str) -> Any:
        self.asked.append(where)
        self.let.wait(20)
        return self._estimator.estimate(where)

    def answer_many(self, clauses: list[str], threads: int) -> Any:
        self.asked += clauses
        self.let.wait(20)
        return self._estimator.answer_many(clauses, threads=threads)


@pytest.fixture
def slow(served: dict[str, Served]) -> Slow:
    return Slow(served["people"].estimator)


def models(slow: Slow) -> dict[str, Served]:
    return {"people": Served("people", slow, None)}  # type: ignore[arg-type]


def wait_for(client: Client) -> None:
    """Until no thread is at work."""
    while client.service.busy:
        time.sleep(0.01)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 60)), max_size=40))
def test_what_is_kept_is_bounded(answers: list[tuple[str, int]]) -> None:
    cache = AnswerCache(3, 100)
    latest: dict[str, bytes] = {}
    for name, size in answers:
        cache.put(name, b"x" * size)
        latest.pop(name, None)
        latest[name] = b"x" * size
        assert len(cache) <= 3
        assert cache.bytes <= 100
        assert cache.get(name) == b"x" * size
    held = {name for name in latest if cache.get(name) is not None}
    assert held == set(list(latest)[len(latest) - len(held) :])
    assert cache.bytes == sum(1 + len(latest[name]) for name in held)


def test_an_answer_too_large_to_keep() -> None:
    cache = AnswerCache(3, 10)
    cache.put("a", b"x")
    cache.put("b", b"x" * 10)
    assert (cache.get("a"), cache.get("b")) == (b"x", None)


def test_equal_requests_get_the_same_answer(start: Callable[..., Client]) -> None:
    client = start()
    first, second = (client.ask("estimate", where="age > 30 AND married AND score < 1") for _ in range(2))
    assert (first.headers["x-cache"], second.headers["x-cache"]) == ("miss", "hit")
    assert first.content == second.content
    assert client.ask("estimate", where="age > 30 AND married AND score < 1.1").headers["x-cache"] == "miss"
    assert client.ask("sample", count=3).content == client.ask("sample", count=3, seed=None).content
    assert client.ask("sample", count=3, seed=1).headers["x-cache"] == "miss"
    assert len(client.service.cache) == 4


def test_counts_in_the_table_and_errors_are_not_kept(start: Callable[..., Client]) -> None:
    client = start()
    for _ in range(2):
        assert client.ask("check", where="TRUE").headers["x-cache"] == "miss"
        assert client.ask("estimate", where="agee > 3").status == 422
    assert len(client.service.cache) == 0


def test_equal_questions_at_once_are_one(start: Callable[..., Client], slow: Slow) -> None:
    client = start(models(slow))
    with ThreadPoolExecutor(8) as pool:
        replies = [pool.submit(client.ask, "estimate", where="age > 40") for _ in range(8)]
        while not slow.asked:
            time.sleep(0.01)
        time.sleep(0.1)
        slow.let.set()
        assert len({reply.result().content for reply in replies}) == 1
    assert slow.asked == ["age > 40"]


def test_64_at_once_are_what_the_library_says(start: Callable[..., Client], estimator: Estimator) -> None:
    clauses = [f"age > {20 + index % 32} AND score < 1.3 AND {'NOT ' * (index > 31)}married" for index in range(64)]
    client = start()
    with ThreadPoolExecutor(64) as pool:
        replies = list(pool.map(lambda where: client.ask("estimate", where=where), clauses))
    for reply, clause in zip(replies, clauses, strict=True):
        (estimates,) = reply.json["estimates"]
        known = estimator.estimate(clause)
        assert (estimates["where"], estimates["rows"], estimates["low"], estimates["high"]) == (
            clause,
            known.rows,
            known.low,
            known.high,
        )


def test_all_kinds_at_once(start: Callable[..., Client], client: Client) -> None:
    requests: list[tuple[str, dict[str, Any]]] = [
        ("estimate", {"where": ["age > 30", "city LIKE '%o%' AND married"]}),
        ("distribution", {"columns": ["age", "city"], "where": "married"}),
        ("query", {"sql": "SELECT city, avg(age) FROM t WHERE married GROUP BY ALL ORDER BY 1"}),
        ("sample", {"count": 5, "seed": 4}),
        ("check", {"where": "lower(city) = 'oslo'"}),
    ]
    known = [without_times(client.ask(question, **body).json) for question, body in requests]
    busy = start(threads=4)
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda item: busy.ask(item[0], **item[1]), requests * 4))
    assert [without_times(reply.json) for reply in replies] == known * 4


def test_an_answer_that_takes_too_long(start: Callable[..., Client], slow: Slow) -> None:
    client = start(models(slow), seconds=0.2, threads=1)
    reply = client.ask("estimate", where="age > 40")
    assert (reply.status, reply.error["kind"]) == (408, "TimeoutError")
    assert "no answer within 0.2 s, it takes longer: ask for less" in reply.error["message"]
    assert client.ask("estimate", where="age > 41").status == 408
    assert client.get("/healthz").status == 200
    slow.let.set()
    wait_for(client)
    assert client.ask("estimate", where="age > 40").headers["x-cache"] == "hit"  # it was worked on, and kept
    assert slow.asked == ["age > 40"]  # the other one never had its turn


def test_a_long_list_that_nobody_waits_for_is_left(start: Callable[..., Client], slow: Slow) -> None:
    client = start(models(slow), seconds=0.2)
    assert client.ask("estimate", where=[f"age > {index}" for index in range(200)]).status == 408
    slow.let.set()
    wait_for(client)
    assert len(slow.asked) == 8
    assert len(client.service.cache) == 0


def test_a_list_that_takes_too_long_is_told_how_many_fit(start: Callable[..., Client], slow: Slow) -> None:
    class Counting(Slow):
        def answer_many(self, clauses: list[str], threads: int) -> Any:
            self.asked += clauses
            if len(self.asked) > 100:
                self.let.wait(20)
            return self._estimator.answer_many(clauses, threads=threads)

    counting = Counting(slow._estimator)
    client = start(models(counting), seconds=1, threads=1)
    clauses = [f"age > {index}" for index in range(200)]
    reply = client.ask("estimate", where=clauses)
    assert reply.status == 408
    assert "56 clauses of it were answered in time: ask for at most 28 at once" in reply.error["message"]
    waiting = client.ask("estimate", where="age > 3")
    assert "all threads are busy: ask again later" in waiting.error["message"]
    counting.let.set()
    wait_for(client)
    counting.asked.clear()
    assert client.ask("estimate", where=clauses[:28]).status == 200


def test_health_tells_of_threads_that_do_not_stop(
    start: Callable[..., Client], slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "STUCK_AFTER", 0.0)
    client = start(models(slow), seconds=0.1, threads=2)
    assert client.get("/healthz").json["status"] == "ok"
    assert client.ask("estimate", where="age > 40").status == 408
    for path in ("/healthz", "/readyz"):
        response = client.get(path)
        assert (response.status, response.json["status"], response.json["stuck"]) == (200, "degraded", 1)
    assert client.ask("estimate", where="age > 41").status == 408
    response = client.get("/readyz")
    assert (response.status, response.error["kind"]) == (503, "StuckError")
    assert "all 2 threads" in response.error["message"]
    assert client.get("/healthz").json["stuck"] == 2  # alive, and not to be asked
    slow.let.set()
    wait_for(client)
    assert client.get("/healthz").json["status"] == "ok"
    assert client.get("/readyz").status == 200


def test_too_many_are_waiting(start: Callable[..., Client], slow: Slow) -> None:
    client = start(models(slow), waiting=1)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.ask, "estimate", where="age > 40")
        while not slow.asked:
            time.sleep(0.01)
        reply = client.ask("estimate", where="age > 41")
        assert (reply.status, reply.error["kind"]) == (429, "TooManyRequestsError")
        slow.let.set()
        assert first.result().status == 200
    assert client.ask("estimate", where="age > 41").status == 200


def test_one_who_gives_up_does_not_spoil_it_for_others() -> None:
    async def both() -> tuple[Any, Any]:
        let = threading.Event()
        hasty, patient = WorkerPool(1, 9, 0.1), WorkerPool(1, 9, 10)
        patient._jobs = hasty._jobs

        def compute() -> bytes:
            let.wait(10)
            return b"done"

        first = asyncio.create_task(hasty.answer("a", compute))
        second = asyncio.create_task(patient.answer("a", compute))
        with pytest.raises(RefusalError):
            await first
        let.set()
        return await second, len(hasty._jobs)

    assert asyncio.run(both())[0] == (b"done", False)


def test_what_nobody_waits_for_is_given_up() -> None:
    """Questions that would never end do not hold the only thread for ever."""

    async def asked() -> tuple[list[int], tuple[bytes, bool]]:
        steps = [0, 0, 0]
        hasty, patient = WorkerPool(1, 9, 0.1), WorkerPool(1, 9, 10)
        patient._pool = hasty._pool

        def endless(place: int) -> bytes:
            while True:
                steps[place] += 1
                time.sleep(0.002)
                check_cancelled()

        for place in range(3):
            with pytest.raises(RefusalError, match="no answer within"):
                await hasty.answer(str(place), partial(endless, place))
        return steps, await patient.answer("another", lambda: b"done")

    steps, found = asyncio.run(asked())
    assert min(steps) > 0
    assert found == (b"done", False)


def test_who_joins_what_is_just_given_up_begins_anew() -> None:
    left = iter([False])

    def compute() -> bytes:
        if next(left, True):
            return b"done"
        raise ComputationCancelledError

    assert asyncio.run(WorkerPool(1, 9, 10).answer("a", compute)) == (b"done", False)


def test_long_answers_of_the_engine_are_given_up(estimator: Estimator) -> None:
    left = iter([True, *[False] * 9])
    with pytest.raises(ComputationCancelledError), cancellable(lambda: next(left)):
        estimator.distributions(["score", "city"], "age > 30 AND married AND score < 1")
    assert estimator.estimate("age > 30 AND married AND score < 1").rows > 0


def test_who_goes_away_is_not_worked_for(start: Callable[..., Client], slow: Slow) -> None:
    """The page does, whenever something else is clicked."""

    class Endless(Slow):
        def estimate(self, where: str) -> Any:
            self.asked.append(where)
            while True:
                time.sleep(0.002)
                check_cancelled()

    endless = Endless(slow._estimator)
    client = start(models(endless), seconds=600)
    body = b'{"where": "TRUE"}'
    head = "POST /v1/models/people/estimate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        while not (endless.asked and client.service.busy):
            time.sleep(0.01)
    wait_for(client)
    assert client.get("/healthz").status == 200
