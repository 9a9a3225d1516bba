"""Errors that are one column's name it, and the option that leaves it out works."""

from __future__ import annotations

import shlex
from pathlib import Path

import pyarrow as pa
import pytest

import countless
from countless.cli.parameters.options import Names
from countless.data.columns.names import exclude_option, split_names
from countless.data.encoding.table import Table
from countless.data.sources.connection import first_line
from countless.data.sources.source import Source, connect
from countless.errors import CountlessError, DataError, SourceError
from countless.options import EncodeOptions
from countless_lab.fuzz.values import NAMES

TINY = countless.Network(hidden=8, blocks=0, embedding=4)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_can_be_excluded(name: str) -> None:
    _, typed = shlex.split(exclude_option(name))
    assert split_names(typed) == (name,)
    assert Names().convert(typed, None, None) == (name,)
    assert split_names(f'first,"{name.replace(chr(34), 2 * chr(34))}" , last') == ("first", name, "last")


def test_a_value_that_is_not_of_the_type_that_the_file_seemed_to_have(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_bytes(b"it's,b\n" + 30_000 * b"1,2\n" + b"x,3\n")
    with pytest.raises(DataError, match=r'column "it\'s" cannot be read .*"x" to .*: leave it out with') as error:
        countless.fit(path, epochs=1, network=TINY, calibrate=False)
    assert str(error.value).endswith(exclude_option("it's"))
    assert countless.fit(path, exclude="it's", epochs=1, network=TINY, calibrate=False).rows == 30_001


@pytest.mark.parametrize("numbers", [[2**127 - 1, 5], [-(2**127), 5]])  # an internal error of DuckDB's, the second
def test_decimals_that_are_too_large(numbers: list[int]) -> None:
    data = b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
    odd = pa.Array.from_buffers(pa.decimal128(38, 0), 2, [None, pa.py_buffer(data)])
    table = pa.table({"fine": [1, 2], "odd": odd})
    with pytest.raises(CountlessError, match=r'"odd".*leave (it|the column) out with --exclude \'odd\''):
        countless.fit(table, epochs=1, network=TINY)
    assert countless.fit(table, exclude="odd", epochs=1, network=TINY).columns == ("fine",)
    with pytest.raises(CountlessError, match="odd"):
        countless.fit(table.select(["odd"]), epochs=1, network=TINY)


def test_a_file_that_is_to_blame_names_no_column(tmp_path: Path) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(b"a,b\n" + 30_000 * b"1,x\n" + b"1,\xff\n")
    with pytest.raises(SourceError, match=r"not utf-8.*iconv") as error:
        countless.fit(path, epochs=1, network=TINY, calibrate=False)
    assert "--exclude" not in str(error.value)


def test_excluded_columns_are_not_read() -> None:
    connection = connect()
    connection.execute("CREATE VIEW made AS SELECT 1 AS a, CAST('x' || range AS INTEGER) AS b FROM range(3)")
    source = Source.open(connection.table("made"))
    with pytest.raises(SourceError, match="Could not convert"):
        Table.encode(source)
    assert Table.encode(source, EncodeOptions(exclude=("b",))).rows == 3


def test_what_is_wrong_in_a_line_with_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(b'a,b,c\n1,"x\n\n\t",\xff\xfe\n')
    with pytest.raises(SourceError, match=r"CSV Error on Line: \d+: .*not utf-8.* iconv -c -f UTF-8"):
        Table.encode(path)


def test_the_reason_comes_after_the_line() -> None:
    clause = 'Error: CSV Error on Line: 3\nOriginal Line: 1,"x\n\n\t",2\nToo many columns.\n\nPossible Solution: a\n'
    assert first_line(ValueError(clause)) == "Error: CSV Error on Line: 3: Too many columns."
