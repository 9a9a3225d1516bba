"""Struct columns flattened: ``address STRUCT(city VARCHAR, zip INTEGER)`` has ``address.city``, ``address.zip``.

The fields replace the struct. A NULL struct has NULL fields. Names are compared without regard to case, as in DuckDB.
A struct is left as it is if a field would get the name of another column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from countless.data.columns.types import TEXT, quote_identifier, sql_literal

STRUCT = "STRUCT("


class DuckDbType(Protocol):
    """The attributes of a DuckDB type that this module uses."""

    @property
    def id(self) -> str:
        """Its kind, such as ``struct``."""
        ...

    @property
    def children(self) -> Any:
        """Name and type of each field of a struct."""
        ...


@dataclass(frozen=True)
class Field:
    """A column of a flattened table: ``sql`` computes it, and ``depth`` is the number of structs around it."""

    name: str
    sql: str
    type: DuckDbType
    depth: int = 0

    def fields(self) -> list[Field]:
        """The fields of a struct, as columns."""
        return [
            Field(f"{self.name}.{name}", f"struct_extract({self.sql}, {sql_literal(name, TEXT)})", kind, self.depth + 1)
            for name, kind in self.type.children
        ]


@dataclass(frozen=True)
class Flattened:
    """The columns of a flattened table, and the reasons why structs, by name, were left as they are."""

    fields: tuple[Field, ...]
    reasons: dict[str, str]

    def select(self, table: str) -> str:
        """SQL for the rows of ``table``, flattened."""
        columns = ", ".join(f"{field.sql} AS {quote_identifier(field.name)}" for field in self.fields)
        return f"SELECT {columns} FROM {table}"


def is_struct(duckdb_type: str) -> bool:
    """Whether a column of this type has fields.

    >>> is_struct("STRUCT(a INTEGER)"), is_struct("STRUCT(a INTEGER)[]"), is_struct("MAP(VARCHAR, INTEGER)")
    (True, False, False)
    """
    return duckdb_type.startswith(STRUCT) and duckdb_type.endswith(")")


def flatten_structs(columns: Sequence[tuple[str, DuckDbType]], depth: int | None = None) -> Flattened:
    """The columns of a table, with fields in place of structs.

    Args:
        columns: name and type of each column.
        depth: how many levels of structs to flatten; None flattens all.

    >>> import duckdb
    >>> table = duckdb.sql("SELECT 1 AS n, {'city': 'Oslo', 'geo': {'lat': 60}} AS address")
    >>> flattened = flatten_structs(list(zip(table.columns, table.types)), 1)
    >>> [field.name for field in flattened.fields], flattened.reasons
    (['n', 'address.city', 'address.geo'], {'address.geo': 'it is a struct: --flatten 2 makes columns of its fields'})
    """
    fields = [Field(name, quote_identifier(name), kind) for name, kind in columns]
    reasons: dict[str, str] = {}
    level = 0
    while structs := [field for field in fields if field.depth == level and field.type.id == "struct"]:
        if level == depth:
            message = f"it is a struct: --flatten {level + 1} makes columns of its fields"
            reasons |= {struct.name: message for struct in structs}
            break
        fields = _flatten_level(fields, level, reasons)
        level += 1
    return Flattened(tuple(fields), reasons)


def _flatten_level(fields: list[Field], level: int, reasons: dict[str, str]) -> list[Field]:
    """``fields`` with the structs of one level flattened; structs that cannot be are added to ``reasons``."""
    taken = {field.name.casefold() for field in fields}
    flattened: list[Field] = []
    for field in fields:
        if field.depth != level or field.type.id != "struct":
            flattened.append(field)
            continue
        children = field.fields()
        reason = _conflict(field, children, taken)
        if reason is None:
            taken.update(child.name.casefold() for child in children)
            flattened += children
        else:
            reasons[field.name] = reason
            flattened.append(field)
    return flattened


def _conflict(struct: Field, children: list[Field], taken: set[str]) -> str | None:
    """Why the fields ``children`` of a struct cannot be columns; None if they can. ``taken`` are names of columns."""
    earlier: dict[str, str] = {}  # names of fields inside the struct, by the folded name of the column
    for child in children:
        name, folded = child.name[len(struct.name) + 1 :], child.name.casefold()
        if not name:
            return "it is a struct with a field that has no name: give it one"
        if folded in taken:
            return f'its field "{name}" would be called "{child.name}", as another column is: rename one of them'
        if folded in earlier:
            return f'its fields "{earlier[folded]}" and "{name}" differ in case only: rename one of them'
        earlier[folded] = name
    return None if children else "it is a struct without fields"
