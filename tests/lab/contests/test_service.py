"""``countless bench serve``: a service under load, and whether it is right."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import pytest

from countless import Estimator
from countless_lab.contests.service import ClientResults, LoadTestOptions, _client, random_clauses
from tests.cli.test_cli import Run, run

__all__ = ["run"]


def test_it_asks_and_compares(run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "serve.json"
    result = run("bench", "serve", model, "--clients", 8, "--seconds", "0.5", "--clauses", 50, "-o", out, "--json")
    assert result.code == 0, result.err
    record = json.loads(result.out.splitlines()[-1])
    assert record == json.loads(out.read_text(encoding="utf-8"))
    assert record["requests"] > 8
    assert (record["cards"], record["refreshes"]) == (5, 50)
    assert 0 < record["cards_ms_p50"] <= record["cards_ms_p99"]
    assert (record["wrong"], record["refused"], record["lost"], record["exit_code"]) == (0, 0, 0, 0)
    assert record["kept"] > 0
    assert "computed_ms_p50" in record
    assert record["ms_p50"] <= record["ms_p99"]
    assert record["memory_mb_start"] > 1


def test_a_service_that_does_not_start(run: Run, tmp_path: Path) -> None:
    result = run("bench", "serve", tmp_path / "no.countless")
    assert result.code == 1
    assert "no such model file" in result.err


def test_questions_can_be_answered(estimator: Estimator) -> None:
    clauses = random_clauses(estimator.schema, 200, 1)
    assert len(set(clauses)) > 150
    assert len(estimator.estimate_many(clauses)) == 200
    assert clauses == random_clauses(estimator.schema, 200, 1)


@pytest.mark.parametrize(
    ("answer", "wrong", "refused", "lost"),
    [
        (b'HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\n{"estimates":[{"rows":4}]}', True, False, False),
        (b"HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\n{}", False, True, False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", False, False, True),
    ],
)
def test_what_is_wrong_is_counted(answer: bytes, wrong: bool, refused: bool, lost: bool) -> None:
    replying: set[asyncio.Task[None] | None] = set()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replying.add(asyncio.current_task())
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"}")
            writer.write(answer)
            await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def asked() -> ClientResults:
        results = ClientResults()
        async with await asyncio.start_server(reply, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            end = asyncio.get_running_loop().time() + 0.1
            await _client(port, ["TRUE"], [3.0], LoadTestOptions(), 0, end, results)
            await asyncio.gather(*filter(None, replying))
        return results

    results = asyncio.run(asked())
    assert bool(results.wrong) == wrong
    assert bool(results.refused) == refused
    assert results.lost > 0 or not lost
