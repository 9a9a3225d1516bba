"""A real PostgreSQL: it holds the same rows, its planner is asked, and nothing of it stays behind."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from countless.data.sources.source import Source, connect
from countless.errors import DataError, MissingExtraError, ServerError, UnknownColumnError, UnsupportedQueryError
from countless.estimator.answers.estimate import q_error
from countless.evaluation.baselines.postgres import server as servers
from countless.evaluation.baselines.postgres.dialect import translate
from countless.evaluation.baselines.postgres.groups import related_groups
from countless.evaluation.baselines.postgres.planner import LoadedTable, Postgres, PostgresExtended
from countless.evaluation.baselines.postgres.server import PrivatePostgresServer
from tests.evaluation.baselines.servers import need_postgres

# b follows from a, and d nearly from c; the rest are types, NULLs and odd names.
TEXTS = r"""['', 'a', 'B', 'łódź', '50%', 'it''s "so"', 'x' || chr(10) || 'y', '\.', 'b\c']"""
LONG = "a name of more than the sixty-three bytes that a name in PostgreSQL may have"
TYPES = f"""
SELECT
    (range % 40)::INTEGER AS a,
    (range % 40 // 2)::UTINYINT AS b,
    (hash(range) % 1000)::UINTEGER AS c,
    (hash(range) % 1000 // 10)::HUGEINT AS d,
    hash(range, 9) AS e,
    CASE WHEN range % 7 > 0 THEN {TEXTS}[1 + range % 9] END AS "Odd ""name",
    range % 3 = 0 AS ctid,
    CASE range % 50 WHEN 0 THEN 'nan' WHEN 1 THEN 'inf' ELSE range / 8 END::DOUBLE AS f,
    (range % 10 / 10)::FLOAT AS "select",
    DATE '2020-01-01' + (range % 40)::INTEGER AS "Tag",
    TIMESTAMP '2020-01-01 10:00:00' + INTERVAL (range) MINUTE AS t,
    (TIMESTAMP '2020-01-01 10:00:00.25' + INTERVAL (range % 60) SECOND)::TIMESTAMP_NS AS ns,
    (TIMESTAMP '2020-01-01 10:00:00' + INTERVAL (range) HOUR)::TIMESTAMPTZ AS z,
    TIME '10:00:00' + INTERVAL (range % 60) MINUTE AS "time",
    (range % 70 / 4)::DECIMAL(6, 2) AS m,
    ['lo', 'hi'][1 + range % 2]::ENUM('lo', 'hi') AS level,
    CASE WHEN range % 4 > 0 THEN repeat('long ', 20) || range % 5 END AS "{LONG}"
FROM range(2000)
"""
CLAUSES = (
    "TRUE",
    "a = 3 AND b = 1",
    "A >= 20 OR not B < 5",
    "c IN (5, 50, 500) OR d BETWEEN 3 AND 7",
    "e > 9223372036854775808",
    "d = CAST('7' AS HUGEINT)",
    '"Odd ""name" = \'\'',
    '"oDD ""NAME" IS NULL',
    '"Odd ""name" >= \'B\' AND "Odd ""name" < \'b\'',
    '"Odd ""name" LIKE \'%\\%\'',
    'contains("Odd ""name", \'%\')',
    'starts_with("Odd ""name", \'it\'\'s\') OR ends_with("Odd ""name", \'y\')',
    'upper("Odd ""name") = \'ŁÓDŹ\'',
    'regexp_matches("Odd ""name", \'^[a-z]\')',
    "ctid",
    "NOT ctid AND a % 2 = 0",
    "f = CAST('nan' AS DOUBLE) OR f = 3.5",
    "f > 200",
    "\"select\" = CAST('0.3' AS FLOAT)",
    "Tag <= DATE '2020-01-10' + INTERVAL 2 DAY",
    "t > TIMESTAMP '2020-01-01 20:00:00'",
    "ns >= CAST('2020-01-01 10:00:30.25' AS TIMESTAMP_NS)",
    "z < CAST('2020-01-03 00:00:00+00' AS TIMESTAMP WITH TIME ZONE)",
    "\"time\" = CAST('10:07:00' AS TIME)",
    "m <= 4.25",
    "level = 'hi'",
    f"\"{LONG}\" LIKE '%3'",
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("types") / "types.parquet"
    connect().execute(f"COPY ({TYPES}) TO '{path}'")
    return path


@pytest.fixture(scope="module")
def loaded(file: Path) -> Iterator[LoadedTable]:
    need_postgres()
    table = LoadedTable(file)
    yield table
    table.close()


@pytest.fixture(scope="module")
def planner(loaded: LoadedTable) -> Iterator[Postgres]:
    planner = Postgres(loaded)
    yield planner
    planner.close()


@pytest.fixture(scope="module")
def extended(loaded: LoadedTable) -> Iterator[PostgresExtended]:
    planner = PostgresExtended(loaded)
    yield planner
    planner.close()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The directories that servers are given from now on."""
    folders: list[Path] = []
    make = tempfile.mkdtemp

    def remember(*args: Any, **options: Any) -> str:
        folders.append(Path(make(*args, **options)))
        return str(folders[-1])

    monkeypatch.setattr("countless.evaluation.baselines.postgres.server.tempfile.mkdtemp", remember)
    return folders


class TestPlanner:
    def test_it_holds_the_same_rows_and_reads_the_same_clauses(self, loaded: LoadedTable, file: Path) -> None:
        with loaded.server.connect() as connection:
            counts = [
                connection.execute(f"SELECT count(*) FROM loaded WHERE {translate(where, loaded.names)}".encode())
                for where in CLAUSES
            ]
        assert [cursor.fetchall()[0][0] for cursor in counts] == Source.open(file).counts(CLAUSES)

    @pytest.mark.parametrize("where", CLAUSES)
    def test_an_estimate_is_a_number_of_rows(self, planner: Postgres, where: str) -> None:
        answer = planner.estimate(where)
        assert 1 <= answer.rows <= 2000
        assert (answer.low, answer.high, answer.method) == (0, 2000, "postgres")
        assert answer.where == where

    def test_a_single_column_is_nearly_right(self, planner: Postgres) -> None:
        assert planner.estimate("a = 3").rows == pytest.approx(50, rel=0.1)
        assert planner.estimate('"Odd ""name" IS NULL').rows == pytest.approx(286, rel=0.1)
        assert planner.estimate("TRUE").rows == 2000

    def test_extended_statistics_know_that_columns_depend(self, planner: Postgres, extended: PostgresExtended) -> None:
        for where, truth in (("a = 8 AND b = 4", 50), ("a = 8 AND b = 5", 0), ("c <= 100 AND d <= 10", 200)):
            assert q_error(extended.estimate(where).rows, truth) <= q_error(planner.estimate(where).rows, truth)
        assert planner.estimate("a = 8 AND b = 4").rows < 10
        assert extended.estimate("a = 8 AND b = 4").rows == pytest.approx(50, rel=0.2)
        assert extended.estimate("a = 8").method == "postgres-extended"

    def test_what_is_kept(self, planner: Postgres, extended: PostgresExtended, file: Path) -> None:
        assert 1_000 < planner.bytes < extended.bytes < 1_000_000
        assert planner.rows == extended.rows == 2000

    @pytest.mark.parametrize(
        ("where", "error", "phrase"),
        [
            ("nowhere = 3", UnknownColumnError, 'no column "nowhere"'),
            ("levenshtein(level, 'lo') > 1", UnsupportedQueryError, "PostgreSQL does not understand the clause"),
            ("a = 'x'", UnsupportedQueryError, "invalid input syntax"),
        ],
    )
    def test_errors(self, planner: Postgres, where: str, error: type[Exception], phrase: str) -> None:
        with pytest.raises(error, match=phrase):
            planner.estimate(where)
        assert planner.estimate("a = 3").rows > 0  # the connection is as good as before

    def test_the_same_of_a_relation_and_of_chosen_columns(self) -> None:
        need_postgres()
        relation = connect().sql("SELECT range AS n, 'x' AS t, [1] AS l FROM range(10)")
        loaded = LoadedTable(relation, ["N", "l"])
        assert loaded.names == ["n"]
        planner = Postgres(loaded)
        assert planner.estimate("n < 5").rows == 5
        planner.close()
        loaded.close()

    def test_what_postgres_cannot_hold(self, made: list[Path]) -> None:
        need_postgres()
        with pytest.raises(DataError, match=r"PostgreSQL cannot hold this table: .*0x00"):
            LoadedTable(connect().sql("SELECT 'a' || chr(0) AS t"))
        assert made
        assert not any(directory.exists() for directory in made)


class TestServer:
    def test_it_goes_away(self) -> None:
        need_postgres()
        with PrivatePostgresServer() as server:
            assert server.directory.exists()
            with server.connect() as connection:
                assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert not server.directory.exists()
        server.close()

    def test_it_goes_away_when_it_is_interrupted(self, monkeypatch: pytest.MonkeyPatch, made: list[Path]) -> None:
        need_postgres()
        monkeypatch.setattr(servers, "time", SimpleNamespace(monotonic=_interrupt))  # not everybody's clock
        with pytest.raises(KeyboardInterrupt):
            PrivatePostgresServer()
        assert [directory.exists() for directory in made][-1:] == [False]

    def test_it_goes_away_when_nobody_holds_it(self) -> None:
        need_postgres()
        server = PrivatePostgresServer()
        directory = server.directory
        del server
        gc.collect()  # the driver's errors while it was not yet up know of it
        assert not directory.exists()

    def test_it_goes_away_when_its_process_is_killed(self) -> None:
        need_postgres()
        program = (
            "from countless.evaluation.baselines.postgres.server import PrivatePostgresServer\n"
            "server = PrivatePostgresServer()\n"
            "connection = server.connect()\n"
            "pid = connection.execute('SELECT pg_backend_pid()').fetchone()[0]\n"
            "print(server.directory, pid, flush=True)\n"
            "input()"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        directory, backend = process.stdout.readline().split()
        assert Path(directory).exists()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        deadline = time.monotonic() + 20
        while (Path(directory).exists() or _runs(int(backend))) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not Path(directory).exists()
        assert not _runs(int(backend))

    def test_without_binaries(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(servers, "INSTALLED", tmp_path)
        monkeypatch.setattr("shutil.which", lambda name: None)
        with pytest.raises(ServerError, match="apt-get install postgresql"):
            PrivatePostgresServer()

    def test_the_newest_version_is_taken(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        for version in ("9.6", "15", "13"):
            _programs(tmp_path / version / "bin", "true")
        monkeypatch.setattr(servers, "INSTALLED", tmp_path)
        assert servers.find_binaries() == tmp_path / "15" / "bin"

    def test_one_that_does_not_start(self, monkeypatch: pytest.MonkeyPatch, made: list[Path]) -> None:
        pytest.importorskip("psycopg")
        # Not in a directory of pytest's, which the server's user cannot enter.
        directory = Path(tempfile.mkdtemp(prefix="no-postgres-", dir="/tmp"))
        made.clear()
        directory.chmod(0o755)
        _programs(directory / "15" / "bin", "echo 'initdb: error: no space left'; exit 1")
        monkeypatch.setattr(servers, "INSTALLED", directory)
        try:
            with pytest.raises(ServerError, match=r"did not start .*no space left.*apt-get install postgresql"):
                PrivatePostgresServer()
        finally:
            shutil.rmtree(directory)
        assert [directory.exists() for directory in made] == [False]

    def test_without_the_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'countless\[postgres\]'"):
            PrivatePostgresServer()


def test_related_columns_are_grouped() -> None:
    table = connect().sql(TYPES.replace("range(2000)", "range(5000)"))
    names = ["a", "b", "c", "d", "e"]
    assert related_groups(Source.open(table), names, 2) == [(0, 1), (2, 3)]
    assert related_groups(Source.open(table), names, 1) == []


def _programs(directory: Path, script: str) -> None:
    """An ``initdb`` and a ``postgres`` that do nothing of the kind."""
    directory.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        (directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (directory / name).chmod(0o755)


def _interrupt() -> float:
    raise KeyboardInterrupt


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
