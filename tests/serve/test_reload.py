"""Hot reload: a replaced model file is served without a pause, and a broken one is not."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from countless import Estimator
from countless.serve.models import Served, load_models
from countless.serve.service import ServiceOptions
from tests.serve.conftest import Client, running

WATCH = 0.02  # seconds between two looks
QUESTION = "age > 40 AND married"


@pytest.fixture
def file(model: Path, tmp_path: Path) -> Path:
    """A model file that may be replaced."""
    return Path(shutil.copy(model, tmp_path / "people.countless"))


@pytest.fixture(scope="module")
def other(estimator: Estimator, people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of twice as many people."""
    return estimator.update(people).save(tmp_path_factory.mktemp("other") / "people.countless")


def replace(file: Path, content: Path | bytes) -> None:
    """Put another file in its place in one step."""
    beside = file.with_suffix(".new")
    beside.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
    os.replace(beside, file)


def rows(client: Client, where: str = QUESTION) -> float:
    (estimates,) = client.ask("estimate", where=where).json["estimates"]
    return float(estimates["rows"])


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def reloads(client: Client, outcome: str = "loaded") -> float:
    return client.service.metrics.reloads.value("people", outcome)


def test_a_replaced_file_is_served(start: Callable[..., Client], file: Path, other: Path) -> None:
    client = start(load_models([str(file)]), watch=WATCH)
    before, version = rows(client), client.get("/v1/models/people").json["version"]
    assert client.get("/v1/models/people").headers["x-model-version"] == version
    assert client.ask("estimate", where=QUESTION).headers["x-cache"] == "hit"
    replace(file, other)
    until(lambda: reloads(client))
    reply = client.ask("estimate", where=QUESTION)
    assert reply.headers["x-cache"] == "miss"  # kept answers were the old model's
    assert reply.json["estimates"][0]["rows"] == Estimator.load(other).estimate(QUESTION).rows > 1.5 * before
    body = client.get("/v1/models/people").json
    assert body["rows"] == 6000
    assert body["version"] == reply.headers["x-model-version"] != version
    assert client.get("/v1/models").json["models"][0]["version"] == body["version"]


def test_the_old_model_is_freed(start: Callable[..., Client], file: Path, other: Path) -> None:
    models = load_models([str(file)])
    old = weakref.ref(models["people"].estimator)
    client = start(models, watch=WATCH)
    models.clear()
    for question in ("estimate", "sample"):
        client.ask(question, where=QUESTION)
        assert client.ask(question, where="agee > 3").status == 422  # its error has frames that know the model
    client.ask("distribution", columns=["age", "city"], where=QUESTION)
    assert len(client.service.cache) == 3
    replace(file, other)
    until(lambda: reloads(client))
    gc.collect()
    until(lambda: old() is None)
    assert len(client.service.cache) == 0
    assert client.service.cache.bytes == 0


@pytest.mark.parametrize("content", [b"", b"PK nothing"])
def test_a_broken_file_is_not_served(
    start: Callable[..., Client], file: Path, other: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    client = start(load_models([str(file)]), watch=WATCH)
    before = rows(client)
    replace(file, content)
    until(lambda: reloads(client, "failed"))
    assert rows(client) == before
    assert client.get("/readyz").status == 200
    assert 'countless_model_reload_failing{model="people"} 1' in client.get("/metrics").content.decode()
    time.sleep(10 * WATCH)
    assert reloads(client, "failed") == 1  # it is not tried again and again
    (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "people: not loaded again, the model of before is served" in line.getMessage()
    replace(file, other)
    until(lambda: reloads(client))
    assert rows(client, "TRUE") == 6000
    assert 'countless_model_reload_failing{model="people"} 0' in client.get("/metrics").content.decode()


def test_a_file_that_is_gone_and_back(start: Callable[..., Client], file: Path) -> None:
    client = start(load_models([str(file)]), watch=WATCH)
    away = file.rename(file.with_suffix(".away"))
    until(lambda: reloads(client, "failed"))
    assert rows(client, "TRUE") == 3000
    away.rename(file)
    until(lambda: client.service.metrics.failing == {"people": False})
    assert reloads(client) == 0  # it is the same file


def test_a_file_that_is_only_touched_is_not_loaded(start: Callable[..., Client], file: Path) -> None:
    client = start(load_models([str(file)]), watch=WATCH)
    client.ask("estimate", where=QUESTION)
    os.utime(file, (1, 1))
    time.sleep(10 * WATCH)
    assert reloads(client) == 0
    assert client.ask("estimate", where=QUESTION).headers["x-cache"] == "hit"


def test_a_file_that_is_being_written_is_left_alone(start: Callable[..., Client], file: Path, other: Path) -> None:
    watch = 0.2
    client = start(load_models([str(file)]), watch=watch)
    content = other.read_bytes()
    with open(file, "wb") as written:
        for at in range(0, len(content), len(content) // 20 + 1):  # it changes between any two looks
            written.write(content[at : at + len(content) // 20 + 1])
            written.flush()
            time.sleep(watch / 4)
    until(lambda: reloads(client))
    assert reloads(client, "failed") == 0
    assert rows(client, "TRUE") == 6000


def test_a_table_that_does_not_fit_the_new_model(
    start: Callable[..., Client], file: Path, people: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = Path(shutil.copy(people, tmp_path / "table.parquet"))
    client = start(load_models([str(file)], [f"people={table}"]), watch=None)
    assert client.ask("check", where="TRUE").json["rows"] == 3000
    table.unlink()
    client.service.reloader.reload()
    until(lambda: reloads(client, "failed"))
    assert "no such file" in caplog.text
    shutil.copy(people, table)
    client.service.reloader.reload()
    until(lambda: reloads(client))
    assert client.ask("check", where="TRUE").json["rows"] == 3000


def test_without_looks_only_an_order_loads(start: Callable[..., Client], file: Path, other: Path) -> None:
    client = start(load_models([str(file)]), watch=None)
    replace(file, other)
    time.sleep(0.1)
    assert rows(client, "TRUE") == 3000
    client.service.reloader.reload()
    until(lambda: reloads(client))
    assert rows(client, "TRUE") == 6000


def test_what_was_asked_before_is_answered_by_the_old_model(
    start: Callable[..., Client], served: dict[str, Served], file: Path
) -> None:
    class Waiting:
        """The old model, which answers late."""

        schema = served["people"].estimator.schema
        info = served["people"].estimator.info
        asked, let = threading.Event(), threading.Event()

        def estimate(self, where: str) -> Any:
            self.asked.set()
            self.let.wait(20)
            return served["people"].estimator.estimate(where)

    waiting: Any = Waiting()
    new = load_models([str(file)])["people"]
    client = start({"people": Served("people", waiting, None, version="old")})
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(client.ask, "estimate", where=QUESTION)
        assert waiting.asked.wait(20)
        client.service.replace(new)
        late = client.ask("estimate", where=QUESTION)  # an equal question, but of another model
        assert late.headers["x-model-version"] == new.version
        assert not early.done()
        waiting.let.set()
        assert early.result().headers["x-model-version"] == "old"
    assert client.ask("estimate", where=QUESTION).content == late.content


def test_answers_stay_right_while_files_are_replaced(file: Path, model: Path, other: Path) -> None:
    """Four clients, five replacements: every answer is one of the two models', whole, and nothing fails."""
    versions = {load_models([str(path)])["people"].version: Estimator.load(path) for path in (model, other)}
    known = {version: each.estimate(QUESTION).rows for version, each in versions.items()}
    stop, wrong = threading.Event(), []

    def ask(client: Client) -> int:
        count = 0
        while not stop.is_set():
            reply = client.ask("estimate", where=QUESTION)
            rows = reply.json["estimates"][0]["rows"] if reply.status == 200 else None
            if rows != known[reply.headers["x-model-version"]]:
                wrong.append(reply)
            count += 1
        return count

    with running(load_models([str(file)]), ServiceOptions(watch=0.01)) as client, ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, client) for _ in range(4)]
        for index in range(5):
            before = reloads(client)
            replace(file, (other, model)[index % 2])
            until(lambda before=before: reloads(client) > before)  # type: ignore[misc]
        stop.set()
        assert sum(each.result() for each in asking) > 5
    assert wrong == []
