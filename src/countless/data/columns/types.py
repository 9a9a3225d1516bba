"""Supported DuckDB column types, and how their values are written as SQL literals."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

INTEGERS = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"}
)
FLOATS = frozenset({"FLOAT", "DOUBLE"})
TIMES = frozenset(
    {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"}
)
TEXT = "VARCHAR"
DECIMAL = re.compile(r"DECIMAL\(\d{1,2}, ?\d{1,2}\)")


def stored_type(duckdb_type: str) -> str | None:
    """The type in which a column of ``duckdb_type`` is modelled, or None if it cannot be.

    Enumerations and UUIDs are modelled as the strings they print as.

    >>> stored_type("DECIMAL(10,2)"), stored_type("ENUM('a', 'b')"), stored_type("INTEGER[]")
    ('DECIMAL(10,2)', 'VARCHAR', None)
    """
    if duckdb_type in INTEGERS | FLOATS | TIMES | {TEXT, "BOOLEAN"}:
        return duckdb_type
    if DECIMAL.fullmatch(duckdb_type):
        return duckdb_type
    if duckdb_type == "UUID" or (duckdb_type.startswith("ENUM(") and duckdb_type.endswith(")")):
        return TEXT
    return None


def is_number(kind: str) -> bool:
    """Whether ``kind`` is a type of numbers."""
    return kind in INTEGERS or kind in FLOATS or DECIMAL.fullmatch(kind) is not None


def decimal_digits(kind: str) -> tuple[int, int]:
    """How many digits a DECIMAL has, and how many of them are after the point.

    >>> decimal_digits("DECIMAL(12,4)")
    (12, 4)
    """
    digits, scale = re.findall(r"\d+", kind)
    return int(digits), int(scale)


def sql_literal(text: str, duckdb_type: str) -> str:
    """SQL for the value that DuckDB prints as ``text`` when it has ``duckdb_type``.

    >>> sql_literal("O'Hara", "VARCHAR"), sql_literal("-3", "INTEGER"), sql_literal("2020-01-31", "DATE")
    ("'O''Hara'", '-3', "DATE '2020-01-31'")
    >>> sql_literal("nan", "DOUBLE")
    "CAST('nan' AS DOUBLE)"
    """
    quoted = "'" + text.replace("'", "''") + "'"
    if duckdb_type == TEXT:
        return quoted
    if duckdb_type in INTEGERS or duckdb_type == "BOOLEAN" or DECIMAL.fullmatch(duckdb_type):
        return text
    if duckdb_type in {"DATE", "TIMESTAMP"}:
        return f"{duckdb_type} {quoted}"
    return f"CAST({quoted} AS {duckdb_type})"


def sql_value(name: str, duckdb_type: str) -> str:
    """SQL for a column's value in the type that it is modelled in; strings compare by their characters.

    >>> print(sql_value("n", "INTEGER"), sql_value("s", "VARCHAR"))
    CAST("n" AS INTEGER) CAST("s" AS VARCHAR) COLLATE "binary"
    """
    value = f"CAST({quote_identifier(name)} AS {duckdb_type})"
    return f'{value} COLLATE "binary"' if duckdb_type == TEXT else value  # a table may have another collation


def is_signed(value: str) -> str:
    """SQL that tests for a negative zero or NaN. It equals the positive one, but ``1 / value`` may differ."""
    return f"signbit({value}) AND ({value} = 0 OR isnan({value}))"


def unsigned(text: str, duckdb_type: str) -> str:
    """The text of a value, without the sign of a zero or NaN: DuckDB takes -0.0 and 0.0 for one value.

    >>> unsigned("-0.0", "DOUBLE"), unsigned("-nan", "FLOAT"), unsigned("-0.5", "DOUBLE"), unsigned("-0.0", "VARCHAR")
    ('0.0', 'nan', '-0.5', '-0.0')
    """
    return text[1:] if duckdb_type in FLOATS and text in ("-0.0", "-nan") else text


def sql_texts(texts: Sequence[str]) -> str:
    """SQL for a list of strings, as a single literal: thousands of literals would be slow to parse.

    >>> print(sql_texts(["O'Hara", "Łódź"]))
    CAST(CAST('["O''Hara", "\\u0141\\u00f3d\\u017a"]' AS JSON) AS VARCHAR[])
    """
    listed = json.dumps(list(texts)).replace("'", "''")
    return f"CAST(CAST('{listed}' AS JSON) AS VARCHAR[])"


def quote_identifier(name: str) -> str:
    """``name`` as a quoted SQL identifier.

    >>> print(quote_identifier('5" disk'))
    "5"" disk"
    """
    return '"' + name.replace('"', '""') + '"'
