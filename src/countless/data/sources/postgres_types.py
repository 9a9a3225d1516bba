"""Conversion of PostgreSQL types to DuckDB types: what is sent, how DuckDB converts it, and the type of the column."""

from __future__ import annotations

from dataclasses import dataclass

MOST_DIGITS = 38  # of DuckDB's decimals
# The first and the last time. PostgreSQL's infinities are sent as these, since Arrow has none.
DATES = ("4713-01-01 BC", "5874897-12-31")
TIMESTAMPS = ("4713-01-01 00:00:00 BC", "294000-01-01 00:00:00")


@dataclass(frozen=True)
class TypeConversion:
    """How a column is read: SQL for what PostgreSQL sends and for how DuckDB converts it, and the type in DuckDB.

    Both expressions have {0} for the column.
    """

    sent: str
    converted: str
    type: str


SAME_VALUES = {
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "bool": "BOOLEAN",
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "time": "TIME",
    "bytea": "BLOB",
    "interval": "INTERVAL",
}
DOUBLE = TypeConversion("{0}::float8", "{0}", "DOUBLE")


def type_conversion(kind: str, modifier: int = -1) -> TypeConversion:
    """The conversion of PostgreSQL's type ``kind``. A type that DuckDB lacks becomes text.

    >>> [type_conversion("numeric", modifier).type for modifier in (655366, -1)]
    ['DECIMAL(10,2)', 'DOUBLE']
    >>> type_conversion("uuid").type, type_conversion("_int4").type
    ('VARCHAR', 'JSON')
    """
    if kind in SAME_VALUES:
        return TypeConversion("{0}", "{0}", SAME_VALUES[kind])
    match kind:
        case "date":
            return _maybe_infinite("DATE", DATES)
        case "timestamp":
            return _maybe_infinite("TIMESTAMP", TIMESTAMPS)
        case "timestamptz":
            return _maybe_infinite("TIMESTAMP WITH TIME ZONE", (TIMESTAMPS[0] + "+00", TIMESTAMPS[1] + "+00"))
        case "numeric":
            return _numeric(modifier)
        case "money":
            return TypeConversion("{0}::numeric::text", "CAST({0} AS DECIMAL(19,2))", "DECIMAL(19,2)")
        case "inet":
            return TypeConversion("abbrev({0})", "{0}", "VARCHAR")
        case "oid":
            return TypeConversion("{0}::int8", "{0}", "BIGINT")
        case "json" | "jsonb":
            return TypeConversion("{0}::text", "CAST({0} AS JSON)", "JSON")
        case _ if kind.startswith("_"):
            return TypeConversion("to_json({0})::text", "CAST({0} AS JSON)", "JSON")
        case _:
            return TypeConversion("{0}::text", "{0}", "VARCHAR")


def _numeric(modifier: int) -> TypeConversion:
    """A DECIMAL, without NaN, which becomes NULL; a DOUBLE if the number of digits is unknown or too large."""
    if modifier < 4:
        return DOUBLE
    digits, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    if digits > MOST_DIGITS or scale > digits:
        return DOUBLE
    decimal = f"DECIMAL({digits},{scale})"
    return TypeConversion("nullif({0}::text, 'NaN')", f"CAST({{0}} AS {decimal})", decimal)


def _maybe_infinite(duckdb_type: str, limits: tuple[str, str]) -> TypeConversion:
    """The conversion of times, some of which may be infinite."""
    first, last = limits
    sent = f"CASE WHEN {{0}} >= '{last}' THEN '{last}' WHEN {{0}} <= '{first}' THEN '{first}' ELSE {{0}} END"
    is_date = duckdb_type == "DATE"
    first_in_duckdb = first.replace(" BC", " (BC)") if is_date else first.replace(" 00:00:00 BC", " (BC) 00:00:00")
    converted = (
        f"CASE {{0}} WHEN CAST('{last}' AS {duckdb_type}) THEN CAST('infinity' AS {duckdb_type}) "
        f"WHEN CAST('{first_in_duckdb}' AS {duckdb_type}) THEN CAST('-infinity' AS {duckdb_type}) ELSE {{0}} END"
    )
    return TypeConversion(sent, converted, duckdb_type)
