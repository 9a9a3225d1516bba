"""Any table becomes codes that stand for its values in their order, or an error that says what to do."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pandas as pd
import pytest

from countless.data.columns.structs import is_struct
from countless.data.columns.types import quote_identifier, stored_type
from countless.data.encoding.table import Table
from countless.data.sources.source import Source, connect
from countless.errors import DataError, SourceError
from countless.options import EncodeOptions
from countless_lab.fuzz.fitting import excluded_by
from countless_lab.fuzz.tables import RELATION, draw_column, draw_table
from countless_lab.fuzz.values import VALUES
from tests.exact import column_codes


def made(select: str) -> Source:
    """A table of DuckDB's with these rows."""
    connection = connect()
    connection.execute(f"CREATE TABLE made AS {select}")
    return Source.open(connection.table("made"))


def check(source: Source, table: Table) -> None:
    """The codes stand for the values, in their order, and NULL has its own."""
    for column, codes in zip(table.schema.coded, column_codes(table), strict=False):  # hidden columns come after
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
        supported = stored_type(kind) is not None or is_struct(kind)
        assert [column.name for column in table.schema.left_out] == ([] if supported else ["v"])


@pytest.mark.parametrize("seed", range(25))
def test_random_tables(seed: int) -> None:
    drawn = draw_table(seed, RELATION)
    source = made(drawn.select)
    excluded: tuple[str, ...] = ()
    while (message := refused(source, EncodeOptions(None, excluded, drawn.max_distinct, drawn.text))) is not None:
        if "no column is left to model" in message:
            return
        named = excluded_by(message)
        assert named, message
        assert f'"{named[0]}"' in message
        assert not set(excluded) & set(named)  # to leave it out helps
        excluded += named


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
    columns = [draw_column(f"c{index}", kinds[index % len(kinds)], rng, 50) for index in range(300)]
    selected = ", ".join(f"{column.value} AS {column.name}" for column in columns)
    table = Table.encode(made(f"SELECT {selected} FROM range(50)"))
    assert len(table.schema.coded) == 300
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
