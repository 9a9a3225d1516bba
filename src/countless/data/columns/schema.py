"""The schema: a table's columns, their domains, and the positions they occupy in a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal

from countless.automata.string_table import StringTable
from countless.cached_property import cached_property
from countless.csv_options import csv_options
from countless.data.columns.calendar import CALENDAR_TYPES, PARTS, CalendarPart, calendar_parts
from countless.data.columns.derived import Derived
from countless.data.columns.digits import GRID_DIGITS_FROM, radices_of
from countless.data.columns.grids.grid import Grid
from countless.data.columns.printed_values import are_printed, is_type
from countless.data.columns.strings.text import TextColumn
from countless.data.columns.types import stored_type
from countless.errors import ModelFileError, OptionError
from countless.json_forms import SCHEMA, check_section, fields_in, plain


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

    @cached_property
    def strings(self) -> StringTable:
        """The values, to be searched together."""
        return StringTable(self.values)

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

    ``columns`` are all that can be asked about; ``is_text`` distinguishes the two kinds. Those that have codes come
    first, with one model for all of them; then text columns, which share another. A column has one index, its place
    among all; among the ``texts`` alone it has the one that :meth:`text_index` gives. ``uuids`` names the columns that
    are UUIDs in the table, and strings in the model. ``signed`` names those with a negative zero or NaN, which have the
    code of the positive one.

    ``calendar`` has parts of timestamps. They are :attr:`hidden` columns of the model: their positions are the last,
    users do not see them, and their indexes follow those of all columns. ``derived`` are the columns that are computed
    from others of the table, and how. ``csv`` are the options that the table was read with, if it is a CSV file.

    >>> schema = Schema(10, (Column("a", "INTEGER", ("1", "2"), False), Column("b", "DATE", (), True)), ())
    >>> schema.sizes, schema.positions(1)
    ((2, 1), (1,))
    """

    rows: int
    columns: tuple[Column | TextColumn, ...]
    left_out: tuple[LeftOut, ...] = ()
    uuids: tuple[str, ...] = ()
    signed: tuple[str, ...] = ()
    calendar: tuple[CalendarPart, ...] = ()
    derived: tuple[Derived, ...] = ()
    csv: Mapping[str, Any] = field(default_factory=dict, hash=False)

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
    def hidden(self) -> tuple[Column, ...]:
        """The calendar parts as columns."""
        return tuple(Column(part.label, "BIGINT", part.values, part.has_null) for part in self.calendar)

    @cached_property
    def modelled(self) -> tuple[Column, ...]:
        """The columns that have positions in the model, in their order: those that have codes, and hidden ones."""
        return (*self.coded, *self.hidden)

    def place(self, index: int) -> int:
        """The place among the modelled columns of the column at ``index``, which is not text."""
        return index if index < len(self.coded) else index - len(self.texts)

    def column(self, index: int) -> Column | TextColumn:
        """The column at ``index``, which may be hidden."""
        return self.columns[index] if index < len(self.columns) else self.coded_column(index)

    def coded_column(self, index: int) -> Column:
        """The column at ``index``, which is not text, but may be hidden."""
        return self.modelled[self.place(index)]

    def calendar_part(self, index: int) -> CalendarPart | None:
        """The calendar part that the column at ``index`` is, if it is hidden."""
        hidden = index - len(self.columns)
        return self.calendar[hidden] if hidden >= 0 else None

    def calendar_of(self, index: int) -> dict[str, int]:
        """The parts of the column at ``index``, and the index of each."""
        return {part.part: len(self.columns) + k for k, part in enumerate(self.calendar) if part.of == index}

    def base_of(self, derived: Derived) -> int | None:
        """The index of the one column that a column is derived from, if it has a code for each value; else None."""
        index = self.find(derived.columns[0]) if len(derived.columns) == 1 else None
        return index if index is not None and index < len(self.coded) and self.coded[index].grid is None else None

    @cached_property
    def following(self) -> dict[int, Derived]:
        """The derived columns, by their index, that follow from other columns of the model."""
        found = {self.find(item.name): item for item in self.derived}
        return {
            index: item
            for index, item in found.items()
            if index is not None and all(self.find(name) is not None for name in item.columns)
        }

    def are_apart(self, spans: Iterable[tuple[int, ...]]) -> bool:
        """Whether columns with these positions can be filtered each on its own.

        A column in digits and its calendar parts cannot, nor can two of its parts: its values tell more. The same holds
        for a column with a code for each value, and what is derived from it.
        """
        if not self.calendar and not self.derived:
            return True
        derived = {self.find(item.name): self.base_of(item) for item in self.derived}
        first, found = len(self.coded), set()
        for place in (self.column_of(own[0]) for own in spans):
            owner = self.calendar[place - first].of if place >= first else derived.get(place)
            owner = place if owner is None else owner
            if owner in found and self.coded[owner].grid is None:
                return False
            found.add(owner)
        return True

    def with_calendar(self) -> Schema:
        """The same with the calendar parts of every timestamp that is stored in digits or as a grid."""
        found = (
            part
            for index, column in enumerate(self.coded)
            if column.type in CALENDAR_TYPES and (column.grid is not None or len(column.radices) > 1)
            for part in calendar_parts(index, column.name, column.type, column.values, column.has_null)
        )
        return replace(self, calendar=tuple(found))

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """Positions per modelled column."""
        return tuple(len(column.radices) for column in self.modelled)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Symbols of every position of the model."""
        return tuple(radix for column in self.modelled for radix in column.radices)

    @cached_property
    def spans(self) -> tuple[tuple[int, ...], ...]:
        """The positions of each modelled column."""
        starts = [0]
        for column in self.modelled:
            starts.append(starts[-1] + len(column.radices))
        return tuple(tuple(range(start, end)) for start, end in pairwise(starts))

    @property
    def visible(self) -> int:
        """How many positions come before those of hidden columns."""
        return sum(self.groups[: len(self.coded)])

    def positions(self, index: int) -> tuple[int, ...]:
        """The positions of the column at ``index``."""
        return self.spans[self.place(index)]

    def column_of(self, position: int) -> int:
        """The place among the modelled columns of the one that ``position`` belongs to."""
        return next(index for index, own in enumerate(self.spans) if position <= own[-1])

    @cached_property
    def _spelled(self) -> frozenset[str]:
        """Every column's name as the table spells it: such a name means this column and no other."""
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
            "left_out": plain(self.left_out),
            "uuids": list(self.uuids),
            "signed": list(self.signed),
            **({"calendar": [part.to_json() for part in self.calendar]} if self.calendar else {}),
            **({"derived": plain(self.derived)} if self.derived else {}),
            **({"csv": dict(self.csv)} if self.csv else {}),
        }

    @classmethod
    def from_json(cls, data: Any) -> Schema:
        """The schema that :meth:`to_json` wrote; anything else is a :class:`ModelFileError`."""
        check_section("schema.json", SCHEMA, data)
        schema = cls(
            rows=data["rows"],
            columns=(*map(Column.from_json, data["columns"]), *map(TextColumn.from_json, data["texts"])),
            left_out=tuple(LeftOut(**fields_in(LeftOut, item)) for item in data["left_out"]),
            uuids=tuple(data["uuids"]),
            signed=tuple(data.get("signed", ())),
            derived=tuple(Derived(**fields_in(Derived, item)) for item in data.get("derived", ())),
            csv=_csv_options(data.get("csv", {})),
        )
        schema._check()
        return replace(schema, calendar=tuple(schema._calendar_part(part) for part in data.get("calendar", ())))

    def _calendar_part(self, data: Any) -> CalendarPart:
        """The part that a file describes, if it fits its column."""
        least, greatest = PARTS.get(data["part"], (0, -1))
        if data["of"] >= len(self.coded) or not least <= data["first"] <= data["last"] <= greatest:
            raise _damaged("a calendar part does not fit its column")
        column = self.coded[data["of"]]
        if column.type not in CALENDAR_TYPES:
            raise _damaged(f'"{column.name}" has calendar parts, but no dates')
        return CalendarPart(name=column.name, **data)

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


def _csv_options(data: dict[str, Any]) -> dict[str, Any]:
    """The options for reading a CSV file that a model file holds, if all are known ones with values of their kinds."""
    try:
        found = csv_options(data)
    except OptionError as error:
        raise _damaged(f"CSV options: {error.shown(lambda name: name)}") from None
    if found != data:
        raise _damaged("CSV options that no fit would store")
    return found


def _damaged(what: str) -> ModelFileError:
    return ModelFileError(f"the schema is damaged ({what}): fit the model again")
