"""Rows of a real PostgreSQL, as the same rows come from a file; and every way in which that fails."""

from __future__ import annotations

import datetime
import os
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countless.data.encoding.table import Table
from countless.data.sources.source import Source, connect
from countless.errors import MissingExtraError, SourceError
from countless.evaluation.baselines.postgres.server import PrivatePostgresServer

TYPES = """
CREATE TYPE odd.mood AS ENUM ('sad', 'ok');
CREATE DOMAIN odd.pos AS int4 CHECK (value > 0);
CREATE TABLE odd.kinds AS SELECT
    1::int2 AS a, 3::odd.pos AS b, 'z'::char(4) AS c, 'y'::varchar(5) AS d, 1.25::numeric(10, 2) AS e,
    1.25::numeric AS f, 1234::numeric(2, -2) AS g, 'sad'::odd.mood AS h,
    '9467af8a-08c2-46af-86e1-df09973676cd'::uuid AS i, '{"a": 1}'::jsonb AS j, array[[1, 2], [3, 4]] AS k,
    inet '1.2.3.4' AS l, '\\x00'::bytea AS m, interval '1 day' AS n, '12'::money AS o, 4000000000::oid AS p,
    point '(1,2)' AS q, timestamptz '2020-01-01 12:00+2' AS r, time '24:00' AS s, 'NaN'::float8 AS t,
    'NaN'::numeric(5, 2) AS u, date 'infinity' AS v, timestamp '-infinity' AS w, timestamptz 'infinity' AS x,
    array['a'] AS "Odd ""name", 'x' AS "A"
"""
EXPECTED = [
    ("a", "SMALLINT", "1"),
    ("b", "INTEGER", "3"),
    ("c", "VARCHAR", "z"),
    ("d", "VARCHAR", "y"),
    ("e", "DECIMAL(10,2)", "1.25"),
    ("f", "DOUBLE", "1.25"),
    ("g", "DOUBLE", "1200.0"),
    ("h", "VARCHAR", "sad"),
    ("i", "VARCHAR", "9467af8a-08c2-46af-86e1-df09973676cd"),
    ("j", "JSON", '{"a": 1}'),
    ("k", "JSON", "[[1,2],[3,4]]"),
    ("l", "VARCHAR", "1.2.3.4"),
    ("m", "BLOB", "\\x00"),
    ("n", "INTERVAL", "1 day"),
    ("o", "DECIMAL(19,2)", "12.00"),
    ("p", "BIGINT", "4000000000"),
    ("q", "VARCHAR", "(1,2)"),
    ("r", "TIMESTAMP WITH TIME ZONE", "2020-01-01 10:00:00+00"),
    ("s", "TIME", "24:00:00"),
    ("t", "DOUBLE", "nan"),
    ("u", "DECIMAL(5,2)", None),
    ("v", "DATE", "infinity"),
    ("w", "TIMESTAMP", "-infinity"),
    ("x", "TIMESTAMP WITH TIME ZONE", "infinity"),
    ('Odd "name', "JSON", '["a"]'),
    ("A_1", "VARCHAR", "x"),
]
SECRET = "s3cr@t/50% ::"
LOCKED = "locked"

whole = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
VALUES = {
    "BIGINT": whole,
    "DOUBLE": st.one_of(st.none(), st.floats()),
    "VARCHAR": st.one_of(st.none(), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))),
    "DATE": st.one_of(st.none(), st.dates()),
    "TIMESTAMP": st.one_of(st.none(), st.datetimes()),
    "TIME": st.one_of(st.none(), st.times()),
    "BOOLEAN": st.one_of(st.none(), st.booleans()),
    "DECIMAL(20,4)": st.one_of(st.none(), st.decimals(-(10**15), 10**15, places=4)),
}
POSTGRES = {"DOUBLE": "float8", "VARCHAR": "text", "DECIMAL(20,4)": "numeric(20,4)"}


@pytest.fixture(scope="module", autouse=True)
def odd(server: PrivatePostgresServer) -> Iterator[None]:
    """A schema of odd things, and a role that needs a password."""
    with server.connect() as connection:
        connection.execute("CREATE SCHEMA odd; CREATE SEQUENCE odd.counter")
        connection.execute(TYPES)
        connection.execute("CREATE TABLE odd.people AS TABLE public.people LIMIT 3")
        connection.execute(f"CREATE ROLE {LOCKED} LOGIN PASSWORD '{SECRET}'")
        rules = server.directory / "data" / "pg_hba.conf"
        rules.write_text(f"local all {LOCKED} scram-sha-256\n{rules.read_text()}")
        connection.execute("SELECT pg_reload_conf()")
        yield
        connection.execute(f"DROP SCHEMA odd CASCADE; DROP ROLE {LOCKED}")


def test_the_same_codes_as_from_parquet(server: PrivatePostgresServer, people: Path) -> None:
    from_file = Table.encode(people)
    for source in (
        Source.open(server.url, table="people"),
        Source.open(f"{server.url}::public.people"),
        Source.open(server.url, query="SELECT * FROM people;"),
    ):
        assert Table.encode(source).fingerprint == from_file.fingerprint


def test_every_kind_of_column(server: PrivatePostgresServer) -> None:
    source = Source.open(server.url, table="odd.kinds")
    values = source.rows(f"SELECT columns(*)::VARCHAR FROM {source.table}")[0]
    columns = [(name, kind, value) for (name, kind), value in zip(source.columns(), values, strict=True)]
    assert columns == EXPECTED
    assert {column.name for column in Table.encode(source).schema.left_out} == {"j", "k", "m", "n", 'Odd "name'}


def test_names_that_occur_twice(server: PrivatePostgresServer) -> None:
    source = Source.open(server.url, query='SELECT 1, 2, 3 AS "A", 4 AS a -- the last')
    assert [name for name, _ in source.columns()] == ["?column?", "?column?_1", "A", "a_1"]
    assert source.rows(f"FROM {source.table}") == [(1, 2, 3, 4)]


def test_no_rows(server: PrivatePostgresServer) -> None:
    assert Source.open(server.url, query="SELECT * FROM people WHERE false").count() == 0


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(*VALUES.values()), min_size=1, max_size=8))
def test_values_are_those_that_duckdb_has(server: PrivatePostgresServer, rows: list[tuple[object, ...]]) -> None:
    with server.connect() as connection:
        names = [f"c{index}" for index in range(len(VALUES))]
        columns = ", ".join(f"{name} {POSTGRES.get(kind, kind)}" for name, kind in zip(names, VALUES, strict=True))
        connection.execute(f"DROP TABLE IF EXISTS odd.drawn; CREATE TABLE odd.drawn ({columns})")
        places = ", ".join(["%s"] * len(VALUES))
        connection.cursor().executemany(f"INSERT INTO odd.drawn VALUES ({places})", rows)
    duckdb_connection = connect()
    duckdb_connection.execute(
        f"CREATE TABLE drawn ({', '.join(f'{n} {k}' for n, k in zip(names, VALUES, strict=True))})"
    )
    duckdb_connection.executemany(f"INSERT INTO drawn VALUES ({', '.join('?' * len(VALUES))})", rows)
    expected = duckdb_connection.execute("SELECT columns(*)::VARCHAR FROM drawn").fetchall()
    source = Source.open(server.url, table="odd.drawn")
    assert source.columns() == list(zip(names, VALUES, strict=True))
    assert source.rows(f"SELECT columns(*)::VARCHAR FROM {source.table}") == expected


def test_what_does_not_fit_goes_to_the_folder_for_temporary_files(
    server: PrivatePostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = Source.open(server.url, table="people")
    assert source.rows("SELECT current_setting('temp_directory')") == [(str(tmp_path / source.name),)]


def test_how_far_it_is(server: PrivatePostgresServer) -> None:
    heard: list[tuple[int, int | None]] = []
    Source.open(server.url, table="people", loading=lambda done, expected: heard.append((done, expected)))
    assert heard == [(0, 3000), (3000, 3000)]


def test_the_database_is_only_read_in_one_snapshot(server: PrivatePostgresServer) -> None:
    source = Source.open(
        server.url,
        query="SELECT current_setting('transaction_read_only') a, current_setting('transaction_isolation') b",
    )
    assert source.rows(f"FROM {source.table}") == [("on", "repeatable read")]


def failing(message: str, source: str, **options: Any) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        Source.open(source, **options)
    assert "\n" not in str(caught.value)
    for secret in (SECRET, quote(SECRET, safe="")):
        assert secret not in "".join(traceback.format_exception(caught.value, chain=True))


def test_errors_name_the_remedy(server: PrivatePostgresServer) -> None:
    url = server.url
    for message, options in (
        (r"has \d tables: choose one by table, or after ::; the tables are odd\..*, public\.people", {}),
        ('has no table "peopel": did you mean "people"', {"table": "peopel"}),
        ('refuses the query: relation "nope" does not exist', {"query": "SELECT * FROM nope"}),
        ("refuses the query: division by zero", {"query": "SELECT 1 / 0"}),
        ("refuses the query: syntax error", {"query": "SELECT 1) x; DROP TABLE people; --"}),
        ("must be a SELECT", {"query": "DELETE FROM people"}),
        ("data-modifying", {"query": "WITH x AS (DELETE FROM people RETURNING *) SELECT * FROM x"}),
        ("would change something", {"query": "SELECT set_config('transaction_read_only', 'off', true)"}),
        ("would change something", {"query": "SELECT nextval('odd.counter')"}),
        ("the result has no columns", {"query": "SELECT FROM people"}),
    ):
        failing(message, url, **options)
    failing('database "nowhere" does not exist; name another', url.replace("/postgres?", "/nowhere?"))
    failing("Connection refused; is the server running", f"postgresql://ann:{quote(SECRET, safe='')}@127.0.0.1:1/shop")
    failing("cannot understand the URL postgresql://ann@host/shop:", "postgresql://ann:a b@host/shop")
    failing("cannot understand the URL", "postgresql://host/shop?secret=1")
    failing("is a server running here", "postgresql:///shop?host=/nonexistent")


def test_passwords_open_but_are_not_told(server: PrivatePostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    bare = server.url.replace("countless@", f"{LOCKED}@")
    opening = server.url.replace("countless@", f"{LOCKED}:{quote(SECRET, safe='')}@")
    failing("no password supplied; set PGPASSWORD", bare)
    failing("password authentication failed.*; the password was refused", opening.replace("@/", "x@/"))
    failing("permission denied for table people; ask for the right", f"{opening}::public.people")
    failing("permission denied", bare + f"&password={quote(SECRET, safe='')}", table="public.people")
    failing("refuses the query", opening, query=f"SELECT '{SECRET}'::int")
    assert Source.open(opening, query="SELECT 1 AS a").count() == 1
    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert Source.open(bare, query="SELECT 1 AS a").count() == 1


def test_a_server_that_goes_away(server: PrivatePostgresServer) -> None:
    ended = "SELECT pg_terminate_backend(pg_backend_pid()), x FROM generate_series(1, 10) x"
    failing("closed the connection during the read", server.url, query=ended)


def test_the_driver_may_be_missing(server: PrivatePostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'countless\[postgres\]'"):
        Source.open(server.url, table="people")


def test_ctrl_c_stops_a_query_that_takes_long(server: PrivatePostgresServer) -> None:
    def running() -> int:
        with server.connect() as connection:
            clause = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%pg_sleep(1000)%'"
            row = connection.execute(clause).fetchone()
        assert row is not None
        return int(row[0])

    def interrupt() -> None:
        while not running():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            Source.open(server.url, query="SELECT pg_sleep(1000)")
    finally:
        signal.signal(signal.SIGINT, before)
    thread.join()
    deadline = time.monotonic() + 10
    while running() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running() == 0


def test_decimals_are_exact(server: PrivatePostgresServer) -> None:
    source = Source.open(
        server.url, query="SELECT 12345678901234567890.12::numeric(22, 2) AS a, date '2020-02-29' AS b"
    )
    assert source.rows(f"FROM {source.table}") == [(Decimal("12345678901234567890.12"), datetime.date(2020, 2, 29))]
