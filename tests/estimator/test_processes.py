"""An estimator in other processes: copied by a fork while threads ask it, by pickle, and by spawned workers."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import countless
from countless.cached_property import cached_property
from countless.data.sources.source import connect
from countless.errors import QueryError, UnknownColumnError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.options import TextNetwork

PATIENCE = 60.0  # seconds; a child that hangs would not be done after hours
BY_DUCKDB = "lower(city) LIKE '%o%' AND age % 7 = 3"  # what DuckDB must judge

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Estimator:
    """A model of strings and a column beside them."""
    path = tmp_path_factory.mktemp("texts") / "pages.parquet"
    connect().execute(
        f"COPY (SELECT range % 7 AS day, 'p' || hash(range) % 300 || '.org' AS page FROM range(600)) TO '{path}'"
    )
    small = TextNetwork(width=16, blocks=1, heads=2, inner=32, buckets=64)
    return fit(path, text=["page"], epochs=1, text_network=small, calibrate=False, evidence="none")


def answered(estimator: Estimator, where: str) -> float:
    """At the top of the module, so that another process finds it."""
    return estimator.estimate(where).rows


@contextmanager
def asking(estimator: Estimator, ask: Callable[[Estimator], object], threads: int) -> Iterator[None]:
    """Meanwhile, some threads ask without a pause."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            ask(estimator)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        over.set()
        for worker in workers:
            worker.join()


def forked(work: Callable[[], bool], leave: Callable[[int], object] = os._exit) -> bool:
    """Whether a forked child finds ``work`` true in time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks beside threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            leave(code)
    ended = time.monotonic() + PATIENCE
    while time.monotonic() < ended:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@needs_fork
def test_a_fork_while_threads_ask(estimator: Estimator) -> None:
    expected = answered(estimator, BY_DUCKDB)
    with asking(estimator, lambda model: model.estimate(BY_DUCKDB), 3):
        for _ in range(12):
            assert forked(lambda: answered(estimator, BY_DUCKDB) == expected)


@needs_fork
def test_a_fork_while_threads_ask_for_aggregates(estimator: Estimator) -> None:
    sql = "SELECT city, count(*) FROM people GROUP BY city ORDER BY city"
    expected = estimator.query(sql).rows
    with asking(estimator, lambda model: model.query(sql), 2):
        for _ in range(6):
            assert forked(lambda: estimator.query(sql).rows == expected)


@needs_fork
def test_a_fork_while_another_thread_computes_a_property() -> None:
    """functools.cached_property of Python 3.11 holds a lock meanwhile, which a child would wait for."""

    class Slow:
        @cached_property
        def number(self) -> int:
            if threading.current_thread() is not threading.main_thread():
                inside.set()
                over.wait(PATIENCE)
            return 7

    inside, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: Slow().number)
    thread.start()
    try:
        assert inside.wait(PATIENCE)
        assert forked(lambda: Slow().number == 7)
    finally:
        over.set()
        thread.join()


def test_no_property_of_the_library_has_a_lock() -> None:
    sources = Path(countless.__file__).parent.rglob("*.py")
    assert [path.name for path in sources if "functools import cached_property" in path.read_text("utf-8")] == []


@needs_fork
def test_a_child_of_a_child_and_the_parent_go_on_to_answer(estimator: Estimator) -> None:
    expected = answered(estimator, BY_DUCKDB)

    def child() -> bool:
        return forked(lambda: answered(estimator, BY_DUCKDB) == expected) and (
            answered(estimator, BY_DUCKDB) == expected
        )

    assert forked(child)
    assert answered(estimator, BY_DUCKDB) == expected


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_pool_that_forks(estimator: Estimator) -> None:
    expected = answered(estimator, BY_DUCKDB)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        answers = pool.starmap_async(answered, [(estimator, BY_DUCKDB)] * 4).get(PATIENCE)
    assert answers == [expected] * 4


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_answers_alike(copied: Callable[[Estimator], Estimator], estimator: Estimator, texts: Estimator) -> None:
    for model, clauses in (
        (estimator, ("age > 30", BY_DUCKDB, "\"since when\" > DATE '2020-01-10' OR score = 1")),
        (texts, ("page LIKE '%1%'", "day = 3 AND page LIKE 'p2%'")),
    ):
        twin = copied(model)
        assert twin is not model
        for where in clauses:
            mine, its = model.estimate(where), twin.estimate(where)
            assert (its.rows, its.low, its.high) == (mine.rows, mine.low, mine.high)
        assert twin.info() == model.info()


def test_a_pickle_holds_a_model_file(estimator: Estimator, tmp_path: Path) -> None:
    _, (data,) = estimator.__reduce__()
    assert data == estimator.save(tmp_path / "x.countless").read_bytes()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_spawned_workers(estimator: Estimator, texts: Estimator) -> None:
    questions = [(estimator, BY_DUCKDB), (texts, "page LIKE '%1%' AND day < 3")]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(answered, model, where) for model, where in questions]
        assert [each.result(PATIENCE) for each in futures] == [answered(*each) for each in questions]
        with pytest.raises(UnknownColumnError, match="colour") as caught:
            pool.submit(answered, estimator, "colour = 1").result(PATIENCE)
    assert isinstance(caught.value, QueryError)
    assert caught.value.span == (0, 6)


@needs_fork
def test_a_child_leaves_in_the_ordinary_way(model: Path) -> None:
    """What the parent's DuckDB left in the child's memory must not stop it from ending."""
    code = (
        "import os, sys; from countless import load\n"
        f"model = load({str(model)!r}); first = model.estimate({BY_DUCKDB!r}).rows\n"
        "child = os.fork()\n"
        f"assert model.estimate({BY_DUCKDB!r}).rows == first\n"
        "sys.exit(0 if child == 0 else os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    ended = subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
