"""Any table becomes codes that stand for its values in their order, or an error that says what to do."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pandas as pd
import pytest

from countless.data.source import Source, connect
from countless.data.table import Table
from countless.data.types import quote_identifier, stored_type
from countless.errors import DataError, SourceError
from countless.options import EncodeOptions
from tests.exact import column_codes

# Values of every type, as SQL that DuckDB casts to it.
VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "0", "127"],
    "SMALLINT": ["-32768", "32767"],
    "INTEGER": ["-2147483648", "0", "2147483647"],
    "BIGINT": ["-9223372036854775808", "-1", "9223372036854775807"],
    "HUGEINT": ["'-170141183460469231731687303715884105728'", "0", "'170141183460469231731687303715884105727'"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["0", "65535"],
    "UINTEGER": ["0", "4294967295"],
    "UBIGINT": ["0", "9223372036854775808", "18446744073709551615"],
    "UHUGEINT": ["0", "'340282366920938463463374607431768211455'"],
    "BIGNUM": ["0", "'123456789012345678901234567890123456789012345678901234567890'"],
    "FLOAT": ["'-inf'", "'-0.0'", "'0.0'", "'1e-45'", "'3.4028235e38'", "'inf'", "'nan'", "0.1"],
    "DOUBLE": ["'-inf'", "'-0.0'", "'0.0'", "'5e-324'", "'1.7976931348623157e308'", "'inf'", "'nan'", "0.1"],
    "DECIMAL(4,1)": ["'-999.9'", "'0.0'", "'999.9'"],
    "DECIMAL(9,9)": ["'-0.999999999'", "'0.000000001'"],
    "DECIMAL(18,18)": ["'-0.999999999999999999'", "'0.000000000000000001'"],
    "DECIMAL(19,3)": ["'-9999999999999999.999'", "'1.5'"],
    "DECIMAL(38,0)": ["'-99999999999999999999999999999999999999'", "0", "'99999999999999999999999999999999999999'"],
    "DECIMAL(38,37)": ["'-9.9999999999999999999999999999999999999'", "'0.1'"],
    "VARCHAR": [
        "''",
        "' '",
        "chr(0)",
        "'a' || chr(0) || 'b'",
        "'a' || chr(0) || 'c'",
        "chr(0) || chr(0)",
        "'é'",
        "'e' || chr(769)",
        "chr(65279) || 'x'",
        "chr(1114111)",
        "'O''Hara \"\" \\n \\u0000 %_'",
        "chr(10) || chr(13) || chr(9)",
        "'Order 159 of customer 10'",
        "'Order 179 of customer 12'",
        "repeat('long ', 2000)",
        "'NULL'",
        "'nan'",
    ],
    "BLOB": ["'\\x00\\xFF'::BLOB", "''::BLOB"],
    "BIT": ["'0'::BIT", "'0101'::BIT"],
    "DATE": ["'-infinity'", "'5877642-06-25 (BC)'", "'1970-01-01'", "'5881580-07-10'", "'infinity'"],
    "TIME": ["'00:00:00'", "'23:59:59.999999'", "'24:00:00'"],
    "TIME WITH TIME ZONE": ["'00:00:00+15:59'", "'24:00:00-15:59'"],
    "TIME_NS": ["'00:00:00'", "'23:59:59.999999999'"],
    "TIMESTAMP": ["'-infinity'", "'290309-12-22 (BC) 00:00:00'", "'1969-12-31 23:59:59.999999'", "'infinity'"],
    "TIMESTAMP_S": ["'-infinity'", "'1969-12-31 23:59:59'", "'2262-05-01 00:00:00'", "'infinity'"],
    "TIMESTAMP_MS": ["'-infinity'", "'1969-12-31 23:59:59.999'", "'2262-05-01 00:00:00'", "'infinity'"],
    "TIMESTAMP_NS": ["'-infinity'", "'1969-12-31 23:59:59.999999999'", "'2262-04-11 23:47:16.8'", "'infinity'"],
    "TIMESTAMP WITH TIME ZONE": ["'-infinity'", "'1883-11-18 12:00:00+00:53:28'", "'infinity'"],
    "INTERVAL": ["INTERVAL 30 DAY", "INTERVAL 1 MONTH"],
    "UUID": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "ENUM('b', 'a', '', 'é')": ["'a'", "'b'", "''", "'é'"],
    "JSON": ["'{\"a\": 1}'", "'null'"],
    "INTEGER[]": ["[1, NULL]", "[]"],
    "INTEGER[2]": ["[1, 2]", "[3, NULL]"],
    "STRUCT(a INTEGER, b VARCHAR)": ["{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': NULL}"],
    "MAP(VARCHAR, INTEGER)": ["MAP {'a': 1}", "MAP {}"],
    "UNION(n INTEGER, s VARCHAR)": ["union_value(n := 1)", "union_value(s := 'x')"],
}  # fmt: skip
NAMES = ["a", 'say "when"', "naïve ☃", "select", "'", " ", "a\tb", "e\u0301", "é", "{x}", "$1", "%s", "x" * 200]


def column_of(kind: str, rng: random.Random) -> str:
    """SQL for a value of this type in row ``range``: some of its awkward values, or many, with NULLs, some or all."""
    values = VALUES[kind]
    chosen = rng.sample(values, rng.randint(1, len(values)))
    listed = ", ".join(f"CAST({one} AS {kind})" for one in chosen)
    value = f"[{listed}][1 + (hash(range, {rng.random()}) % {len(chosen)})::BIGINT]"
    nulls = rng.choice([0, 0, 1, 50, 100])
    return f"CASE WHEN hash(range, {rng.random()}) % 100 >= {nulls} THEN {value} END"


def made(select: str) -> Source:
    """A table of DuckDB's with these rows."""
    connection = connect()
    connection.execute(f"CREATE TABLE made AS {select}")
    return Source.open(connection.table("made"))


def check(source: Source, table: Table) -> None:
    """The codes stand for the values, in their order, and NULL has its own."""
    for column, codes in zip(table.schema.columns, column_codes(table), strict=True):
        value = f"CAST({quote_identifier(column.name)} AS {column.type})"
        texts = [text for (text,) in source.rows(f"SELECT CAST({value} AS VARCHAR) FROM {source.table}")]
        code_of = dict(zip(texts, codes.tolist(), strict=True))
        assert [code_of[text] for text in texts] == codes.tolist()
        assert code_of.pop(None, column.null) == column.null
        inner = f"SELECT DISTINCT CAST({value} AS VARCHAR) AS text FROM {source.table} WHERE {value} IS NOT NULL"
        line = source.rows(f"SELECT text FROM ({inner}) ORDER BY CAST(text AS {column.type})")
        along = [code_of[text] for (text,) in line]
        assert along == sorted(along)
        if column.grid is None:
            zeros = {text for text in code_of if re.fullmatch(r"-?0\.0", text)}
            assert {column.values[code] for text, code in code_of.items() if text not in zeros} == set(code_of) - zeros
            assert len(set(code_of.values())) == len(column.values) == len(code_of) - (len(zeros) == 2)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("limit", [100_000, 2])
def test_every_type(kind: str, limit: int) -> None:
    listed = ", ".join(f"(CAST({value} AS {kind}))" for value in [*VALUES[kind], "NULL"])
    for rows in (f"(VALUES {listed}) AS t(v)", f"(VALUES {listed}) AS t(v), range(200)"):
        source = made(f"SELECT v, 1 AS one FROM {rows}")
        table = Table.encode(source, EncodeOptions(max_distinct=limit, no_text=("v",)))
        check(source, table)
        supported = stored_type(kind) is not None
        assert [column.name for column in table.schema.left_out] == ([] if supported else ["v"])


@pytest.mark.parametrize("seed", range(25))
def test_random_tables(seed: int) -> None:
    rng = random.Random(seed)
    rows = rng.choice([1, 2, 30, 400, 3_000])
    names = rng.sample(NAMES, rng.randint(1, len(NAMES)))
    kinds = [rng.choice(list(VALUES)) for _ in names]
    selected = ", ".join(
        f"{column_of(kind, rng)} AS {quote_identifier(name)}" for name, kind in zip(names, kinds, strict=True)
    )
    source = made(f"SELECT {selected} FROM range({rows})")
    strings = [name for name, kind in zip(names, kinds, strict=True) if stored_type(kind) == "VARCHAR"]
    text = tuple(rng.sample(strings, rng.randint(0, len(strings))))
    limit = rng.choice([2, 5, 100_000])
    excluded: set[str] = set()
    while (
        told := refused(source, EncodeOptions(None, tuple(excluded), limit, tuple(set(text) - excluded)))
    ) is not None:
        if "no column is left to model" in told:
            return
        named = [name for name in names if f'"{name}"' in told]
        assert named, told
        assert "--exclude" in told
        assert not excluded & set(named)  # to leave it out helps
        excluded.add(named[0])


def refused(source: Source, options: EncodeOptions) -> str | None:
    """What is told of the table if it cannot be encoded; else its codes are right."""
    try:
        table = Table.encode(source, options)
    except DataError as error:
        return str(error)
    check(source, table)
    return None


def test_many_columns() -> None:
    kinds = [kind for kind in VALUES if stored_type(kind) is not None]
    rng = random.Random(0)
    selected = ", ".join(f"{column_of(kinds[index % len(kinds)], rng)} AS c{index}" for index in range(300))
    table = Table.encode(made(f"SELECT {selected} FROM range(50)"))
    assert len(table.schema.columns) == 300
    assert [counts.sum() for counts in table.counts] == [50] * 300


def test_names_that_differ_in_case() -> None:
    frame = pd.DataFrame({"a": [1, 2], "A": ["x", "y"], "É": [1.5, 2.5], "é": [True, False], "ß": [1, 1], "SS": [2, 3]})
    source = Source.open(frame)
    check(source, Table.encode(source))


@pytest.mark.parametrize("content", [b"a,b\n1,\xff\xfe\n2,x\n", b"a,b\n" + 9_000 * b"1,x\n" + b"1,caf\xe9\n"])
def test_a_csv_that_is_no_utf8(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"cannot read .*latin.csv: .* on Line: .*iconv") as error:
        Table.encode(path)
    assert "\n" not in str(error.value)
    path.write_bytes(content.decode("latin1").encode())  # as the message says
    assert Table.encode(path).schema.find("b") == 1


def test_a_collation_does_not_merge_strings() -> None:
    connection = connect()
    connection.execute("CREATE TABLE made (v VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO made VALUES ('a'), ('A'), ('b'), (NULL)")
    source = Source.open(connection.table("made"))
    check(source, Table.encode(source))
