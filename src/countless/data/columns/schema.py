"""The schema: a table's columns, their domains, and the positions they occupy in a model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from countless.data.columns.digits import GRID_DIGITS_FROM, radices_of
from countless.data.columns.grid import Grid
from countless.data.columns.printed_values import are_printed, is_type
from countless.data.columns.text import TextColumn
from countless.data.columns.types import stored_type
from countless.errors import ModelFileError
from countless.json_forms import SCHEMA, check_section


@dataclass(frozen=True)
class Column:
    """A column and its domain.

    ``values`` are the distinct values that are not NULL, in DuckDB's order, as DuckDB prints them; casting one
    back to ``type`` gives the value again. The code of ``values[i]`` is ``i``; NULL has the code after the last.

    A column with a ``grid`` has too many values for that: its codes are the grid's cells, in order, and then NULL, and
    ``values`` are only the grid's knots.

    In a model the code is one or more *positions*: ``radices`` has the number of symbols of each, and a code of a
    column with several is written in digits, leading digit first.
    """

    name: str
    type: str
    values: tuple[str, ...]
    has_null: bool
    radices: tuple[int, ...] = ()
    grid: Grid | None = None
    is_text: ClassVar[Literal[False]] = False

    def __post_init__(self) -> None:
        if not self.radices:
            radices = radices_of(self.size) if self.grid is None else radices_of(self.size, GRID_DIGITS_FROM)
            object.__setattr__(self, "radices", radices)

    @property
    def null(self) -> int:
        """The code of NULL, if the column has one, and else how many codes there are."""
        return len(self.values) if self.grid is None else self.grid.cells

    @property
    def size(self) -> int:
        """How many codes there are, NULL included."""
        return self.null + self.has_null

    @property
    def distinct(self) -> int:
        """How many distinct values there are, NULL not included."""
        return len(self.values) if self.grid is None else self.grid.values

    def to_json(self) -> dict[str, Any]:
        """Plain data for the model file."""
        data = {
            "name": self.name,
            "type": self.type,
            "has_null": self.has_null,
            "radices": list(self.radices),
            "values": list(self.values),
        }
        return data if self.grid is None else data | {"grid": self.grid.to_json()}

    @classmethod
    def from_json(cls, data: Any) -> Column:
        """The column that :meth:`to_json` wrote."""
        values = tuple(data["values"])
        grid = Grid.from_json(data["grid"], len(values)) if "grid" in data else None
        return cls(data["name"], data["type"], values, bool(data["has_null"]), tuple(data["radices"]), grid)


@dataclass(frozen=True)
class LeftOut:
    """A column of the table that the model does not hold, and why."""

    name: str
    type: str
    reason: str


@dataclass(frozen=True)
class Schema:
    """What the model knows of the table: its number of rows, its columns, and the columns it left out.

    ``columns`` are all that can be asked about; ``is_text`` tells the two kinds apart. Those that have codes come
    first, with one model for all of them; then text columns, which share another. A column has one index, its place
    among all; among the ``texts`` alone it has the one that :meth:`text_index` gives. ``uuids`` names the columns that
    are UUIDs in the table, and strings in the model. ``signed`` names those with a negative zero or NaN, which have the
    code of the positive one.

    >>> schema = Schema(10, (Column("a", "INTEGER", ("1", "2"), False), Column("b", "DATE", (), True)), ())
    >>> schema.sizes, schema.positions(1)
    ((2, 1), (1,))
    """

    rows: int
    columns: tuple[Column | TextColumn, ...]
    left_out: tuple[LeftOut, ...] = ()
    uuids: tuple[str, ...] = ()
    signed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.columns != (*self.coded, *self.texts):
            raise ValueError("text columns come after the others")

    @cached_property
    def coded(self) -> tuple[Column, ...]:
        """The columns that have codes; their indexes are those among all columns."""
        return tuple(column for column in self.columns if not column.is_text)

    @cached_property
    def texts(self) -> tuple[TextColumn, ...]:
        """The text columns."""
        return tuple(column for column in self.columns if column.is_text)

    def text_index(self, index: int) -> int:
        """The index among the text columns of the column at ``index``."""
        return index - len(self.coded)

    def index_of_text(self, text: int) -> int:
        """The index among all columns of the text column at ``text`` among these."""
        return len(self.coded) + text

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every column that can be asked about, text last."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """Positions per column."""
        return tuple(len(column.radices) for column in self.coded)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Symbols of every position of the model."""
        return tuple(radix for column in self.coded for radix in column.radices)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        starts = [0]
        for column in self.coded:
            starts.append(starts[-1] + len(column.radices))
        return tuple(starts)

    def positions(self, index: int) -> tuple[int, ...]:
        """The positions of the column at ``index``."""
        return tuple(range(self._starts[index], self._starts[index + 1]))

    def column_of(self, position: int) -> int:
        """The index of the column that ``position`` belongs to."""
        return next(index for index in range(len(self.coded)) if position < self._starts[index + 1])

    @cached_property
    def _spelled(self) -> frozenset[str]:
        """Every column's name as the table spells it: who writes one of them means no other column."""
        return frozenset({*self.names, *(column.name for column in self.left_out)})

    @cached_property
    def _index(self) -> dict[str, int]:
        return {column.name: index for index, column in enumerate(self.columns)}

    @cached_property
    def _folded(self) -> dict[str, int]:
        return {column.name.casefold(): index for index, column in reversed(list(enumerate(self.columns)))}

    def find(self, name: str) -> int | None:
        """The index of the column called ``name``: exactly, or else without regard to case, as in DuckDB."""
        if name in self._spelled:
            return self._index.get(name)
        return self._folded.get(name.casefold())

    def find_left_out(self, name: str) -> LeftOut | None:
        """The column called ``name`` among those left out."""
        found = [column for column in self.left_out if column.name.casefold() == name.casefold()]
        return next((column for column in found if column.name == name), found[0] if found else None)

    def to_json(self) -> dict[str, Any]:
        """Plain data for the model file."""
        return {
            "rows": self.rows,
            "columns": [column.to_json() for column in self.coded],
            "texts": [column.to_json() for column in self.texts],
            "left_out": [
                {"name": column.name, "type": column.type, "reason": column.reason} for column in self.left_out
            ],
            "uuids": list(self.uuids),
            "signed": list(self.signed),
        }

    @classmethod
    def from_json(cls, data: Any) -> Schema:
        """The schema that :meth:`to_json` wrote; anything else is a :class:`ModelFileError`."""
        check_section("schema.json", SCHEMA, data)
        schema = cls(
            rows=data["rows"],
            columns=(*map(Column.from_json, data["columns"]), *map(TextColumn.from_json, data["texts"])),
            left_out=tuple(LeftOut(item["name"], item["type"], item["reason"]) for item in data["left_out"]),
            uuids=tuple(data["uuids"]),
            signed=tuple(data.get("signed", ())),
        )
        schema._check()
        return schema

    def _check(self) -> None:
        """Raise a :class:`ModelFileError` where what a file says does not hold together."""
        for kind in (column.type for column in self.columns):
            if stored_type(kind) != kind or not is_type(kind):
                # The type becomes part of SQL: let nothing else in.
                raise ModelFileError(
                    f"the schema has a column of unknown type {kind!r}: upgrade Countless, or fit again"
                )
        if not self.names or any(column.size < 1 for column in self.coded):
            raise _damaged("an empty table or column")
        if len(set(self.names)) < len(self.names):
            raise _damaged("two columns of one name")
        for column in self.coded:
            if not column.size <= math.prod(column.radices) <= 2 * column.size:
                raise _damaged("a column does not fit its positions")
            if not are_printed(column.type, column.values):
                raise _damaged(f'a value of "{column.name}" is not of type {column.type}')


def _damaged(what: str) -> ModelFileError:
    return ModelFileError(f"the schema is damaged ({what}): fit the model again")
