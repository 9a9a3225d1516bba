"""Names of databases and of their tables, and secrets that are shown to nobody."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.data.sources.location import Location, choose, identifier, locate, redacted, shown
from countless.data.sources.postgres_errors import connecting, reading
from countless.errors import SourceError

SECRETS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="*"), min_size=12, max_size=20
).filter(lambda secret: secret[:6] not in "postgresql")  # which the messages say


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a.duckdb", Location("a.duckdb")),
        ("dir/A.DB", Location("dir/A.DB")),
        ("a.ddb::t", Location("a.ddb", "t")),
        ("A.DuckDB::s.t", Location("A.DuckDB", "s.t")),
        ("a.db::SELECT 1::int AS n;", Location("a.db", None, "SELECT 1::int AS n")),
        ("a.db::selected", Location("a.db", "selected")),
        ("a.db::values", Location("a.db", "values")),
        ("postgres://h/d", Location("postgres://h/d")),
        ("postgresql://u:a%3A@h/d?x=1::s.t", Location("postgresql://u:a%3A@h/d?x=1", "s.t")),
        ("postgresql://u:a::b@h::t", Location("postgresql://u:a::b@h", "t")),
        ("postgresql://[::1]:5432/d", Location("postgresql://[::1]:5432/d")),
        ("postgresql://[::1]::t", Location("postgresql://[::1]", "t")),
        ("postgresql://", Location("postgresql://")),
        ("rows.csv", None),
        ("a::b.csv", None),
        ("mysql://h/d", None),
    ],
)
def test_databases_are_told_from_files(source: str, expected: Location | None) -> None:
    assert locate(source) == expected


def test_a_file_whose_name_has_colons_is_a_file(tmp_path: Path) -> None:
    odd = tmp_path / "a.db::b.csv"
    odd.write_text("x\n1\n")
    assert locate(str(odd)) is None


def test_one_table_or_one_query() -> None:
    assert locate("a.db", table="t") == Location("a.db", "t")
    assert locate("a.db", query=" SELECT 1 ; ") == Location("a.db", None, "SELECT 1")
    for options in ({"table": "t", "query": "SELECT 1"}, {"table": "t"}, {"query": "SELECT 1"}):
        with pytest.raises(SourceError, match="one table or one query"):
            locate("a.db::u", **options)
    with pytest.raises(SourceError, match=r"^table is for databases"):
        locate("rows.csv", table="t")


def test_a_query_may_name_files(tmp_path: Path) -> None:
    query = "SELECT * FROM 'rows.csv'"
    assert locate(query) == locate("rows.csv", query=f"{query};") == Location("", None, query)
    assert locate("with x as (from 'a.csv') from x", None, None) is not None
    for file in ("from here.csv", "values.csv", "table.csv", "select 'a'.csv"):
        (tmp_path / file).write_text("x\n1\n")
        assert locate(str(tmp_path / file)) is None
    with pytest.raises(SourceError, match=r"files that it names, such as .*: it does not name rows\.csv"):
        locate("rows.csv", query="SELECT * FROM 'other.csv'")


@pytest.mark.parametrize(
    "query", ["DELETE FROM t", "", "selec 1", "-- SELECT\nDROP TABLE t", "ATTACH 'x'", "selection"]
)
def test_only_a_select_is_a_query(query: str) -> None:
    with pytest.raises(SourceError, match="must be a SELECT"):
        locate("a.db", query=query)


@pytest.mark.parametrize("query", ["/* a */ -- b\nselect 1", "(SELECT 1)", "WITH x AS (SELECT 1) FROM x", "FROM t"])
def test_a_select_has_many_forms(query: str) -> None:
    assert locate("a.db", query=query) == Location("a.db", None, query)


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a.b.c", '"a', 'a"b', 'a."b'])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(SourceError, match="is not the name of a table"):
        identifier(name)


def test_tables_are_chosen_by_name() -> None:
    tables = [("main", "a"), ("main", "Orders"), ("x", "a"), ("x", "b.c")]
    assert choose(tables, "a", "f.db", ["main"]) == ("main", "a")
    assert choose(tables, "a", "f.db", ["x", "main"]) == ("x", "a")
    assert choose(tables, "X.A", "f.db", ["main"]) == ("x", "a")
    assert choose(tables, "orders", "f.db", ["main"]) == ("main", "Orders")
    assert choose(tables, 'x."b.c"', "f.db", ["main"]) == ("x", "b.c")
    assert choose(tables[:1], None, "f.db", ["main"]) == ("main", "a")
    with pytest.raises(SourceError, match=r'no table "orders2": did you mean "Orders"\?'):
        choose(tables, "orders2", "f.db", ["main"])
    with pytest.raises(SourceError, match=r'no table "main.orders2": did you mean "main\.Orders"\?'):
        choose(tables, "main.orders2", "f.db", ["main"])
    with pytest.raises(SourceError, match=r"4 tables: choose one by table, or after ::; the tables are main\.a, "):
        choose(tables, None, "f.db", ["main"])
    with pytest.raises(SourceError, match="and 5 more"):
        choose([("main", f"t{number}") for number in range(25)], None, "f.db", ["main"])
    with pytest.raises(SourceError, match="has no tables"):
        choose([], None, "f.db", ["main"])


@given(SECRETS)
def test_a_password_is_never_shown(secret: str) -> None:
    encoded = quote(secret, safe="")
    for url in (
        f"postgresql://ann:{encoded}@host/shop",
        f"postgresql://ann:{encoded}@host:5432/shop::orders",
        f"postgresql://host/shop?user=ann&password={encoded}",
        f"postgresql://host/shop?sslpassword={encoded}&password={encoded}::SELECT 1",
        f"postgresql://ann:{secret}@host/shop",  # as it must not be written
    ):
        said = f'FATAL: no user with "{encoded}" or "{secret}" at {url}'
        messages = [
            shown(url),
            redacted(said, url),
            str(connecting(said, url)),
            str(connecting(f'unexpected spaces found in "{secret[:6]}"', url)),
            str(reading(f"ERROR:  {said}", None, Location(url))),
        ]
        assert not any(part in line for part in (secret, encoded) for line in messages)
        assert secret[:6] not in messages[3].replace(shown(url), "")


def test_what_is_shown_of_a_url() -> None:
    assert shown("postgresql://ann:x@h1:5432,h2/shop?host=/tmp/a%20b&sslmode=require") == (
        "postgresql://ann@h1:5432,h2/shop?host=/tmp/a%20b"
    )
    assert shown("postgresql://ann:x@host/shop/") == "postgresql://ann@host/shop/"
    assert shown("postgresql://ann:a/b@host/shop") == "postgresql://..."
    assert shown("postgresql://ann:a?b@host/shop") == "postgresql://..."
    assert shown(Path("a.db")) == "a.db"
    assert shown(object()) == "object"


def test_a_password_of_the_environment_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    assert redacted("hunter2 is no key", "postgresql://host/shop") == "*** is no key"


@pytest.mark.parametrize(
    "password", ["S3cr3t!p@ss", "S3cr3t/p@ss", "S3cr3t#pass", "S3cr3t?pass", "S3cr3t@p/ss", "1/b::pass"]
)
@pytest.mark.parametrize("ending", ["/shop", ":54987/shop::orders", "/shop?sslmode=require"])
def test_a_password_that_is_not_escaped_is_refused_at_once(password: str, ending: str) -> None:
    url = f"postgresql://ann:{password}@127.0.0.1{ending}"
    with pytest.raises(SourceError, match="write @ in a password as %40") as caught:
        locate(url)
    said = str(connecting(f'could not translate host name "{password.split("@")[-1]}@127.0.0.1" to address', url))
    for message in (str(caught.value), said):
        assert "ss" not in message.replace("password", "").replace("address", "")
        assert "S3c" not in message


def test_an_at_elsewhere_is_no_password() -> None:
    for url in ("postgresql://ann@h/d?user=a@b", "postgresql://h/d::SELECT '@'", 'postgresql://u:p@h/d::"a@b"'):
        assert locate(url) is not None
    assert shown("postgresql://ann@h/d::SELECT '@'") == "postgresql://ann@h/d::SELECT '@'"


def test_a_slash_after_the_database_is_forgiven() -> None:
    for ending in ("", "?sslmode=require"):
        assert locate(f"postgresql://h/d/{ending}::t") == Location(f"postgresql://h/d{ending}", "t")
    assert locate("postgresql://h/?host=/tmp/") == Location("postgresql://h/?host=/tmp/")


def test_a_password_that_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    message = 'FATAL:  password authentication failed for user "ann"'
    monkeypatch.delenv("PGPASSWORD", raising=False)
    assert "set PGPASSWORD" in str(connecting(message, "postgresql://ann@h/d"))
    shown = str(connecting(message, "postgresql://ann:wrong@h/d"))
    assert "the password was refused" in shown
    assert "PGPASSWORD" not in shown
    monkeypatch.setenv("PGPASSWORD", "wrong")
    assert "PGPASSWORD" not in str(connecting(message, "postgresql://ann@h/d"))
