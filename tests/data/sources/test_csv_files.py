"""CSV files with options: they reach DuckDB, wrong ones are errors, and a file that was read wrongly is noticed."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from countless.csv_options import CSV_OPTIONS, csv_options
from countless.data.encoding.table import Table
from countless.data.sources.csv_files import CsvFile, csv_warnings, with_csv_options
from countless.data.sources.fingerprints import table_digest
from countless.data.sources.source import Source
from countless.errors import OptionError, SourceError
from countless.query.compile import Compiler
from countless.workload import count_codes

SEMICOLONS = "id;price;name\n" + "".join(f"{row};{row % 7},{row % 10};x{row % 5}\n" for row in range(50))


def opened(path: Path, text: str | bytes, **options: Any) -> Source:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return Source.open(CsvFile(path, options) if options else path)


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (SEMICOLONS, {"decimal_separator": ","}, (50, 6.8)),
        (SEMICOLONS.replace(";", "^"), {"delim": "^", "decimal_separator": ","}, (50, 6.8)),
        (SEMICOLONS.replace(";", "||"), {"sep": "||", "decimal_separator": ","}, (50, 6.8)),
        ("Export of today\n" + SEMICOLONS, {"skip": 1, "decimal_separator": ",", "header": True}, (50, 6.8)),
        ("id,price\n1,1000\n2,NA\n3,-\n4,\n", {"nullstr": ["NA", "-", ""]}, (1, 1000)),
        ("id;price\n1;1.234,5\n2;2.000.000,25\n", {"decimal_separator": ",", "thousands": "."}, (2, 2000000.25)),
        ("id;price\n1;é\n2;à\n".encode("latin-1"), {"encoding": "latin-1", "delim": ";"}, (2, "é")),
        ("id,price\n1,'a,b'\n2,c\n", {"quote": "'"}, (2, "c")),
        ("id,price\n1,05\n2,06\n", {"all_varchar": True}, (2, "06")),
        ("id,price\n1,05\n2,06\n", {"types": {"price": "VARCHAR"}}, (2, "06")),
    ],
)
def test_options_reach_duckdb(
    tmp_path: Path, text: str | bytes, options: dict[str, Any], expected: tuple[int, object]
) -> None:
    source = opened(tmp_path / "rows.csv", text, **options)
    assert source.rows(f"SELECT count(price), max(price) FROM {source.table}") == [expected]


@pytest.mark.parametrize("name", ["rows.txt", "rows.dat", "rows"])
def test_with_options_any_ending_is_csv(tmp_path: Path, name: str) -> None:
    assert [column for column, _ in opened(tmp_path / name, SEMICOLONS, delim=";").columns()] == ["id", "price", "name"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ";"}, "csv has no option 'delimiter': did you mean 'delim'? The options are delim, sep, quote"),
        ({"dezimal": ","}, "did you mean 'decimal_separator'? The options are"),
        ({"magic": 1}, "csv has no option 'magic': The options are delim, sep"),
        ({"header": "yes"}, "csv.header must be True or False, not 'yes'"),
        ({"skip": -1}, "csv.skip must be at least 0, not -1"),
        ({"delim": 3}, "csv.delim must be a string, not 3"),
        ({"nullstr": [1]}, "csv.nullstr must be a string, not 1"),
        ({"types": "id"}, "csv.types must name columns and their types, such as id:UUID or {'id': 'UUID'}, not 'id'"),
        ({"types": {"id": 1}}, "csv.types must name columns and their types"),
        ({"encoding": "cp1252"}, "csv.encoding must be utf-8, utf-16 or latin-1, not 'cp1252'"),
        ({"sep": ";", "delim": ";"}, "csv.sep and csv.delim mean the same"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        CsvFile("rows.csv", options)
    assert message in str(caught.value)


def test_every_option_is_one_of_duckdb(tmp_path: Path) -> None:
    values: dict[str, Any] = {"text": "x", "switch": True, "whole": 1, "texts": "x", "types": {"a": "UUID"}}
    special = {"encoding": "utf-8", "decimal_separator": ",", "thousands": " ", "dateformat": "%Y", "quote": '"'}
    (tmp_path / "rows.csv").write_text("a\n1\n2\n")
    for name, setting in CSV_OPTIONS.items():
        options = csv_options({name: special.get(name, values[setting.kind])})
        message = ""
        try:
            Source.open(CsvFile(tmp_path / "rows.csv", options))
        except SourceError as error:  # the file does not go with every option
            message = str(error)
        assert "Invalid named parameter" not in message, name


def test_uuids_of_a_csv_file_are_uuids_if_their_type_is_given(tmp_path: Path) -> None:
    text = "id\n" + "".join(f"{uuid.UUID(int=row)}\n" for row in range(9))
    clause = "{00000000-0000-0000-0000-000000000007}"  # as DuckDB reads it, not as it prints it
    for options, hits in (({}, 0), ({"types": {"id": "UUID"}}, 1)):
        table = Table.encode(opened(tmp_path / "rows.csv", text, **options))
        assert count_codes(table, Compiler(table.schema).compile(f"id = '{clause}'").region) == hits


def test_options_are_for_csv_files_only(tmp_path: Path, people: Path) -> None:
    with pytest.raises(OptionError, match=r"csv is for CSV files, and .*people.parquet is not one"):
        Source.open(CsvFile(people, {"delim": ";"}))
    with pytest.raises(OptionError, match=r"csv is for CSV files, and .*shop.duckdb is not one"):
        Source.open(CsvFile(tmp_path / "shop.duckdb", {"delim": ";"}))
    with pytest.raises(OptionError, match="give the path of one, not a DataFrame"):
        with_csv_options(pd.DataFrame({"a": [1]}), {"delim": ";"})


def test_another_option_makes_another_table(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    plain, varchar = opened(path, SEMICOLONS), opened(path, SEMICOLONS, all_varchar=True)
    assert plain.fingerprint() != varchar.fingerprint()
    assert table_digest(path) != table_digest(CsvFile(path, {"all_varchar": True}))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (SEMICOLONS.replace(",", "."), {"delim": "\\t"}, 'one column named "id;price;name": is the separator ";"? '),
        (SEMICOLONS, {"delim": ",", "header": False}, 'is the separator ";"? '),
        (SEMICOLONS.replace(";", "^"), {}, "is the separator \"^\"? Add csv={'delim': '^'}"),
        (
            SEMICOLONS,
            {},
            '"price" looks like numbers with a decimal comma, but is read as text: add csv={\'decimal_sep',
        ),
        ("a;b\n1.234,5;1,5\n;2\n", {}, "add csv={'decimal_separator': ',', 'thousands': '.'}"),
        (
            "t;n\n31.12.2013 05:00;1\n;2\n01.02.2014 17:30;3\n",
            {},
            "\"t\" looks like times, but is read as text: add csv={'timestampformat': '%d.%m.%Y %H:%M'}",
        ),
        ("t,n\n12/31/2013 5:00 PM,1\n", {}, "add csv={'timestampformat': '%m/%d/%Y %I:%M %p'}"),
        (
            "t,n\n01/02/2013 05:00:00,1\n",
            {"all_varchar": True},
            "'%m/%d/%Y %H:%M:%S'}, or '%d/%m/%Y %H:%M:%S' if the day comes first",
        ),
        ("t;n\n31.12.2013 05:00;1\n", {"timestampformat": "%d.%m.%Y %H:%M"}, ""),
        ("t;n\n31.12.2013 05:00;1\nlater;2\n", {}, ""),
        (SEMICOLONS, {"decimal_separator": ","}, ""),
        ('a,b\n"1,234",x\n"2,345",y\n', {}, ""),
        ('a,b\n"1,2,3",x\n"2,5",y\n', {}, ""),
        ("id,price\n1,2.5\n2,3.5\n", {}, ""),
        ("a\nx\ny\n", {}, ""),
    ],
)
def test_what_looks_wrong(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    warnings = opened(tmp_path / "rows.csv", text, **options).warnings()
    assert message in warnings[0] if message else not warnings


def test_only_csv_files_have_warnings(people: Path, tmp_path: Path) -> None:
    assert Source.open(people).warnings() == []
    assert opened(tmp_path / "rows.txt", "1,5\n2,5\n").warnings() == []
    assert csv_warnings(Source.open(pd.DataFrame({"a;b": ["1,5"]}))) != []


def test_a_query_reads_files(tmp_path: Path, people: Path) -> None:
    (tmp_path / "cities.csv").write_text("city,country\nOslo,Norway\nRome,Italy\n")
    query = f"SELECT p.*, country FROM '{people}' p JOIN '{tmp_path / 'cities.csv'}' USING (city)"
    source, plain = Source.open(query), Source.open(people)
    assert source.count() == plain.rows(f"SELECT count(*) FROM {plain.table} WHERE city IN ('Oslo', 'Rome')")[0][0]
    assert table_digest(query) is None
    with pytest.raises(SourceError, match=r"the query cannot be run: .*nosuch"):
        Source.open("SELECT * FROM 'nosuch.csv'")
