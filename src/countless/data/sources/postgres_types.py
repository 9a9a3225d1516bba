"""Conversion of PostgreSQL types to DuckDB types: the SELECT expression, the transfer type and the stored type."""

from __future__ import annotations

from dataclasses import dataclass

WIDEST = 38  # digits of DuckDB's decimals
# Ends of time. PostgreSQL's infinities travel as these, since Arrow has none.
DATES = ("4713-01-01 BC", "5874897-12-31")
TIMESTAMPS = ("4713-01-01 00:00:00 BC", "294000-01-01 00:00:00")


@dataclass(frozen=True)
class Passage:
    """One column's way: what PostgreSQL sends and DuckDB takes, each an expression of the column {0}, and its type."""

    sent: str
    taken: str
    kept: str


AS_IT_IS = {
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
DOUBLE = Passage("{0}::float8", "{0}", "DOUBLE")


def passage(kind: str, modifier: int = -1) -> Passage:
    """The way of a column of the type that PostgreSQL calls ``kind``; what DuckDB has no type for comes as text.

    >>> passage("numeric", 655366).kept, passage("numeric").kept, passage("uuid").kept, passage("_int4").kept
    ('DECIMAL(10,2)', 'DOUBLE', 'VARCHAR', 'JSON')
    """
    if kind in AS_IT_IS:
        return Passage("{0}", "{0}", AS_IT_IS[kind])
    match kind:
        case "date":
            return _endless("DATE", DATES)
        case "timestamp":
            return _endless("TIMESTAMP", TIMESTAMPS)
        case "timestamptz":
            return _endless("TIMESTAMP WITH TIME ZONE", (TIMESTAMPS[0] + "+00", TIMESTAMPS[1] + "+00"))
        case "numeric":
            return _numeric(modifier)
        case "money":
            return Passage("{0}::numeric::text", "CAST({0} AS DECIMAL(19,2))", "DECIMAL(19,2)")
        case "inet":
            return Passage("abbrev({0})", "{0}", "VARCHAR")
        case "oid":
            return Passage("{0}::int8", "{0}", "BIGINT")
        case "json" | "jsonb":
            return Passage("{0}::text", "CAST({0} AS JSON)", "JSON")
        case _ if kind.startswith("_"):
            return Passage("to_json({0})::text", "CAST({0} AS JSON)", "JSON")
        case _:
            return Passage("{0}::text", "{0}", "VARCHAR")


def _numeric(modifier: int) -> Passage:
    """Exact where digits are bounded and not too many; there NaN, which no decimal of DuckDB's is, becomes NULL."""
    if modifier < 4:
        return DOUBLE
    digits, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    if digits > WIDEST or scale > digits:
        return DOUBLE
    kept = f"DECIMAL({digits},{scale})"
    return Passage("nullif({0}::text, 'NaN')", f"CAST({{0}} AS {kept})", kept)


def _endless(kept: str, ends: tuple[str, str]) -> Passage:
    """Times of which some may be infinite."""
    first, last = ends
    sent = f"CASE WHEN {{0}} >= '{last}' THEN '{last}' WHEN {{0}} <= '{first}' THEN '{first}' ELSE {{0}} END"
    first_here = first.replace(" BC", " (BC)") if kept == "DATE" else first.replace(" 00:00:00 BC", " (BC) 00:00:00")
    taken = (
        f"CASE {{0}} WHEN CAST('{last}' AS {kept}) THEN CAST('infinity' AS {kept}) "
        f"WHEN CAST('{first_here}' AS {kept}) THEN CAST('-infinity' AS {kept}) ELSE {{0}} END"
    )
    return Passage(sent, taken, kept)
