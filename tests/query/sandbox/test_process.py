"""What users make DuckDB compute: limits of memory and time, whatever the statement is."""

from __future__ import annotations

import datetime
import decimal
import multiprocessing
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import pytest
from sqlglot import parse_one

from countless.cancellation import ComputationCancelledError, cancellable
from countless.data.columns.schema import Column, Schema
from countless.data.encoding.table import Table
from countless.data.evidence import EvidenceRows
from countless.data.sources.source import Source
from countless.errors import QueryTooLargeError, UnsupportedQueryError
from countless.query.answer_clock import answer_clock
from countless.query.compile import Compiler
from countless.query.filter_cache import CachedCompiler
from countless.query.parsing.sql import DIALECT
from countless.query.predicate import Predicate
from countless.query.sandbox.functions import DATES, NUMBERS, STRINGS, check_functions
from countless.query.sandbox.process import MOST_TABLES, Sandbox, borrowed, new_owner
from countless.query.select.outer_statement import Outer
from countless.query.select.statement import read_select

SCHEMA = Schema(
    9, (Column("age", "INTEGER", ("1", "2", "30"), True), Column("city", "VARCHAR", ("Bergen", "Oslo"), False))
)
HEAVY_REGEX = "regexp_matches('" + "ab" * 4500 + "', '" + "|".join(["(.?){900}c"] * 30) + "')"
DOUBLED = "SELECT count(*) AS x0, " + ", ".join(f"x{n}+x{n} AS x{n + 1}" for n in range(40)) + " FROM t"


def nested(times: int, outside: str) -> str:
    """``'x'`` in so many copies of ``outside``, each of which makes it longer."""
    written = "'x'"
    for _ in range(times):
        written = outside.format(written)
    return written


@pytest.mark.parametrize(
    "where",
    [
        "city = repeat('x', 3000000000)",
        "age > len(range(300000000))",
        "age > 'x'.repeat(3)",
        "city = \"repeat\"('x', 3000000000)",
        "age + len([1, 2]) = 3",
    ],
)
def test_functions_that_are_not_on_the_list(where: str) -> None:
    compiler = Compiler(SCHEMA)
    with pytest.raises(UnsupportedQueryError, match=r"not among the functions|not computed"):
        compiler.compile(where)
    with pytest.raises(UnsupportedQueryError, match=r"not among the functions|not computed"):
        compiler.compile(Predicate(parse_one(where, dialect=DIALECT)))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the memory of a process")
@pytest.mark.parametrize("outside", ["CAST(CAST(CAST({} AS BLOB) AS BIT) AS VARCHAR)", "hex({})"])
def test_memory_is_bounded(outside: str) -> None:
    """Functions of the list, or casts, may be nested so that each makes the text longer."""
    sandbox = Sandbox(seconds=120, most_bytes=800 * 1024**2)
    with pytest.raises(QueryTooLargeError, match="more memory"):
        sandbox.run(f"SELECT len({nested(40, outside)})")
    assert not sandbox.usable


def test_time_is_bounded_even_where_duckdb_cannot_be_interrupted() -> None:
    sandbox = Sandbox(seconds=0.5)
    assert sandbox.run("SELECT 1") == [[1]]
    started = time.monotonic()
    with pytest.raises(QueryTooLargeError, match="takes DuckDB more than"):
        sandbox.run(f"SELECT {HEAVY_REGEX}")
    assert time.monotonic() - started < 300
    assert not sandbox.usable


def test_what_nobody_waits_for_is_stopped() -> None:
    is_wanted = threading.Event()
    is_wanted.set()
    timer = threading.Timer(0.3, is_wanted.clear)
    timer.start()
    with cancellable(is_wanted.is_set), pytest.raises(ComputationCancelledError):
        Compiler(SCHEMA).compile(HEAVY_REGEX)
    timer.join()
    assert not Compiler(SCHEMA).compile("age % 2 = 3").region.boxes  # the next one has another process


def test_a_process_that_something_else_has_ended_is_replaced() -> None:
    with borrowed() as sandbox:
        sandbox.run("SELECT 1")
    sandbox._process.kill()
    sandbox._process.wait()
    with borrowed() as another:
        assert another is not sandbox
        assert another.run("SELECT 2") == [[2]]


def test_an_error_of_the_statement_leaves_the_process_as_it_is() -> None:
    sandbox = Sandbox()
    with pytest.raises(duckdb.ConversionException, match="Could not convert"):
        sandbox.run("SELECT CAST('x' AS INTEGER)")
    with pytest.raises(QueryTooLargeError, match="too many terms"):
        sandbox.run(f"SELECT {'+'.join('1' * 400)}")
    assert sandbox.usable
    sandbox.close()


def test_values_come_as_they_are() -> None:
    sql = """SELECT 1.50, DATE '2020-01-31', TIMESTAMP '2020-01-31 10:00:00.5', TIME '10:00', INTERVAL 3 DAY, 'é\n"x"',
        1e400::DOUBLE > 0, NULL, 3::HUGEINT * 10 ** 20, '\\x01'::BLOB, '00000000-0000-0000-0000-000000000001'::UUID"""
    with borrowed() as sandbox:
        (row,) = sandbox.run(sql)
    known = duckdb.connect(":memory:").execute(sql).fetchone()
    assert known is not None
    assert tuple(row) == known
    assert [type(value) for value in row] == [type(value) for value in known]
    assert row[:2] == [decimal.Decimal("1.50"), datetime.date(2020, 1, 31)]


def test_names_that_double() -> None:
    assert len(DOUBLED) == 639
    with pytest.raises(QueryTooLargeError, match="10,000 parts"):
        read_select(DOUBLED, SCHEMA)
    with pytest.raises(QueryTooLargeError, match="10,000 parts"):
        read_select(f"SELECT {'+'.join(['count(*)'] * 200)} AS n FROM t HAVING {'+'.join(['n'] * 100)} > 3", SCHEMA)
    statement = read_select("SELECT count(*) AS n, n / 2 AS half, half / 2 AS fourth FROM t ORDER BY fourth", SCHEMA)
    assert Outer(SCHEMA).header(statement).names == ("n", "half", "fourth")


def test_few_tables_are_kept() -> None:
    sandbox, number = Sandbox(), new_owner()
    for index in range(MOST_TABLES + 1):
        sandbox.table(f"t{index}", number, f"CREATE TEMP TABLE t{index} AS SELECT {index} AS n")
        assert sandbox.has("t0", number)  # so it is the one last used
    assert sandbox.has("t0", number)
    assert not sandbox.has("t1", number)
    assert not sandbox.has("t0", new_owner())
    assert sandbox.run("SELECT * FROM t0") == [[0]]
    with pytest.raises(duckdb.CatalogException):
        sandbox.run("SELECT * FROM t1")
    sandbox.close()


def test_two_schemas_do_not_see_each_others_tables() -> None:
    other = Schema(9, (Column("age", "VARCHAR", ("old", "young"), False),))
    compilers = Compiler(SCHEMA), Compiler(other)
    for _ in range(2):
        assert len(compilers[0].compile("age % 2 = 0").region.boxes) == 1
        assert len(compilers[1].compile("lower(age) = 'old'").region.boxes) == 1
        for schema, sql, name in (
            (SCHEMA, "SELECT sum(age) + 1 FROM t", "(sum(age) + 1)"),
            (other, "SELECT count(age)", "count(age)"),
        ):
            outer = Outer(schema)
            assert outer.header(read_select(sql, schema)).names == (name,)


def test_threads_share_the_processes() -> None:
    compiler = Compiler(SCHEMA)
    clauses = [f"age % {number} = 0" for number in range(1, 25)]
    with ThreadPoolExecutor(8) as pool:
        boxes = list(pool.map(lambda where: len(compiler.compile(where).region.boxes), clauses))
    assert boxes == [len(compiler.compile(where).region.boxes) for where in clauses]


def _asked(answers: multiprocessing.Queue[object]) -> None:
    with borrowed() as sandbox:
        answers.put((os.getpid(), sandbox.run("SELECT 42")))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_has_processes_of_its_own() -> None:
    with borrowed() as sandbox:
        sandbox.run("SELECT 1")
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    forked = context.Process(target=_asked, args=(answers,))
    forked.start()
    assert answers.get(timeout=60) == (forked.pid, [[42]])
    forked.join()
    with borrowed() as again:
        assert again is sandbox
        assert again.run("SELECT 43") == [[43]]


@pytest.mark.parametrize("name", sorted(set(" ".join((NUMBERS, STRINGS, DATES)).split())))
def test_a_function_of_the_list_is_still_on_it_when_it_is_written_anew(name: str) -> None:
    """DuckDB gets what sqlglot writes, which may be another function."""
    known = duckdb.connect(":memory:")
    known.execute("CREATE TABLE t (age INTEGER, city VARCHAR, day DATE)")
    for given in (
        "age",
        "city",
        "day",
        "city, 'x'",
        "age, 2",
        "day, 'x'",
        "city, 1, 2",
        "'day', day",
        "'day', day, day",
        "",
    ):
        call = f"{name}({given})"
        try:
            known.execute(f"SELECT {call} FROM t")
        except duckdb.Error:
            continue
        check_functions(parse_one(call, dialect=DIALECT).sql(dialect=DIALECT))


@pytest.mark.parametrize(("depth", "times"), [(20, 8), (20, 64), (3, 2_000)])
def test_replacements_that_grow(depth: int, times: int) -> None:
    value = "'a'"
    for _ in range(depth):
        value = f"replace({value}, 'a', '{'a' * times}')"
    sandbox = Sandbox(seconds=0.5)
    with pytest.raises(QueryTooLargeError, match="more than 10 s, or more memory than it may use"):
        sandbox.run_user_sql(f"SELECT {value} = 'x'")
    assert not sandbox.usable


@pytest.mark.parametrize("whole", [True, False])
def test_what_took_too_long_is_not_tried_in_another_way(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    relation = duckdb.sql("SELECT range AS n, range::VARCHAR AS s FROM range(9)")
    schema = Table.encode(relation).schema
    compiler = Compiler(schema, EvidenceRows.drawn(Source.open(relation), schema, 9, 0) if whole else None)
    real, statements = Sandbox.run, []

    def run(sandbox: Sandbox, sql: str, parameters: Any = None) -> list[Any]:
        if "replace" in sql.lower():
            statements.append(sql)
            sandbox._process.kill()
        return real(sandbox, sql, parameters)

    monkeypatch.setattr(Sandbox, "run", run)
    for clause in ("replace(s, '1', '22') = 'x'", "n > 3 AND replace('a', 'a', 'aa') = 'x'"):
        statements.clear()
        with pytest.raises(QueryTooLargeError, match="more than 10 s"):
            CachedCompiler.of(compiler).compile(clause)
        assert len(statements) == 1, clause


def test_the_start_of_a_process_is_no_part_of_the_time_of_an_answer() -> None:
    clock, real = answer_clock(), time.perf_counter()
    Sandbox().close()
    stood_still = (time.perf_counter() - real) - (answer_clock() - clock)
    assert stood_still > 0


def test_statements_in_turn_stop_at_the_first_error() -> None:
    with borrowed() as sandbox:
        made, rows = sandbox.run_in_turn(
            [("CREATE OR REPLACE TEMP TABLE turn AS SELECT $1 AS a", [7]), ("FROM turn", None)]
        )
        assert (len(made), rows) == (1, [[7]])
        with pytest.raises(duckdb.CatalogException):
            sandbox.run_in_turn(
                [("DROP TABLE turn", None), ("FROM turn", None), ("CREATE TEMP TABLE turn (b INT)", None)]
            )
        with pytest.raises(duckdb.CatalogException):
            sandbox.run("FROM turn")
