"""Texts that pass for values of a type are those that DuckDB prints, and it reads them again."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from countless.data.columns.printed_values import are_printed
from countless.data.columns.types import FLOATS, INTEGERS, TIMES
from countless.data.sources.source import connect

EXTREMES = {
    **dict.fromkeys(INTEGERS, ("0",)),
    "TINYINT": ("-128", "127"),
    "UHUGEINT": ("0", str(2**128 - 1)),
    "HUGEINT": (str(-(2**127)), str(2**127 - 1)),
    "DOUBLE": ("1.7976931348623157e308", "-5e-324", "nan", "inf", "-inf", "0.1", "1e20", "123456789012345680.0"),
    "FLOAT": ("3.4028235e38", "1e-45", "nan", "-inf", "0.1", "16777216"),
    "BOOLEAN": ("true", "false"),
    "DECIMAL(38,38)": ("0.5", "-0.00000000000000000000000000000000000001"),
    "DECIMAL(18,3)": ("-999999999999999.999", "0"),
    "DECIMAL(4,0)": ("9999", "-1"),
    "DATE": ("2020-02-29", "0001-01-01", "5877642-06-25 (BC)", "5881580-07-10", "infinity", "-infinity"),
    "TIME": ("00:00:00", "23:59:59.999999", "24:00:00"),
    **dict.fromkeys(TIMES - {"DATE", "TIME"}, ("2020-01-31 12:34:56", "1970-01-01 00:00:00", "2262-04-11 23:47:16")),
    "TIMESTAMP": ("2020-01-31 12:34:56.123456", "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54", "infinity"),
    "TIMESTAMP_NS": ("2020-01-31 12:34:56.123456789",),
    "VARCHAR": ("", "x\x00y", "Łódź"),
}
KINDS = sorted({*INTEGERS, *FLOATS, *TIMES, *EXTREMES})


@pytest.mark.parametrize("kind", sorted(EXTREMES))
def test_what_duckdb_prints(kind: str) -> None:
    sql = f"SELECT CAST(CAST(unnest($1::VARCHAR[]) AS {kind}) AS VARCHAR)"
    printed = [row[0] for row in connect().execute(sql, [list(EXTREMES[kind])]).fetchall()]
    assert are_printed(kind, printed), printed


@pytest.mark.parametrize("kind", KINDS)
def test_many_texts_pass_if_each_does(kind: str) -> None:
    texts = [text for each in EXTREMES.values() for text in each] + ["", "1\n2", "2020-02-30", "-1", "256", "1e400"]
    alone = [are_printed(kind, [text]) for text in texts]
    good = [text for text, passes in zip(texts, alone, strict=True) if passes]
    assert are_printed(kind, good)
    for text, passes in zip(texts, alone, strict=True):
        assert are_printed(kind, [*good, text, *good]) == passes


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(alphabet="0123456789-+.:e infaty()BCtrueUTZ/", max_size=20))
@example(text="300000-01-01")
@example(text="2300-01-01 00:00:00")
@example(text="300000-01-01 (BC) 00:00:00")
@settings(deadline=None, max_examples=30)
def test_what_passes_can_be_read_again(kind: str, text: str) -> None:
    if not are_printed(kind, [text]):
        return
    try:
        connect().execute(f"SELECT CAST($1 AS {kind})", [text])
    except duckdb.Error as error:
        raise AssertionError(f"{text!r} passes for {kind}") from error


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("INTEGER", ""),
        ("INTEGER", "2147483648"),
        ("INTEGER", "1\n"),
        ("INTEGER", "\u0661"),
        ("UTINYINT", "-1"),
        ("DOUBLE", "1e999"),
        ("FLOAT", "1e39"),
        ("DOUBLE", "0x10"),
        ("DECIMAL(4,2)", "100.00"),
        ("DECIMAL(4,2)", "1.234"),
        ("DECIMAL(4,2)", "."),
        ("DATE", "2021-02-29"),
        ("TIME", "25:00:00"),
        ("TIMESTAMP", "2021-01-01 10:61:00"),
        ("BOOLEAN", "True"),
        ("UUID", "x"),
    ],
)
def test_what_it_never_prints(kind: str, text: str) -> None:
    assert not are_printed(kind, [text])
