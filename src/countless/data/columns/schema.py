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

    A column with a ``grid`` has too many values for that: its codes are the grid's cells, in order, and then NULL.
    ``values`` are then only the grid's knots.

    In a model a column takes one or more *positions*. ``radices`` has the number of symbols of each position; if there
    are several, they hold the digits of the code, leading digit first.
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
        """The values, in a form in which all are searched at once."""
        return StringTable(self.values)

    @property
    def null(self) -> int:
        """The code of NULL; in a column without NULL, the number of codes."""
        return len(self.values) if self.grid is None else self.grid.cells

    @property
    def size(self) -> int:
        """Number of codes, NULL included."""
        return self.null + self.has_null

    @property
    def distinct(self) -> int:
        """Number of distinct values, NULL not included."""
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
    """What the model knows about the table: its number of rows, its columns, and the columns that were left out.

    ``columns`` are those that conditions may name. Columns with codes come first, and share one model; text columns
    follow (``is_text``), and share another. The index of a column is its index in ``columns``; :meth:`text_index` gives
    its index among the ``texts`` alone. ``uuids`` names the columns that are UUIDs in the table and strings in the
    model. ``signed`` names those with a negative zero or NaN, which have the code of the positive one.

    ``calendar`` has parts of timestamps. They are :attr:`hidden` columns of the model: users do not see them, their
    positions are the last, and their indexes follow those of ``columns``. ``derived`` are the columns that are computed
    from other columns of the table, and how. ``csv`` has the options that a CSV file was read with.

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
            raise ValueError("text columns must come last")

    @cached_property
    def coded(self) -> tuple[Column, ...]:
        """The columns that have codes; their indexes here are those in ``columns``."""
        return tuple(column for column in self.columns if not column.is_text)

    @cached_property
    def texts(self) -> tuple[TextColumn, ...]:
        """The text columns."""
        return tuple(column for column in self.columns if column.is_text)

    def text_index(self, index: int) -> int:
        """The index in ``texts`` of the column at ``index``."""
        return index - len(self.coded)

    def index_of_text(self, text_index: int) -> int:
        """The index in ``columns`` of the text column at ``text_index``."""
        return len(self.coded) + text_index

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of every column that conditions may name, text columns last."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def hidden(self) -> tuple[Column, ...]:
        """The calendar parts as columns."""
        return tuple(Column(part.label, "BIGINT", part.values, part.has_null) for part in self.calendar)

    @cached_property
    def modelled(self) -> tuple[Column, ...]:
        """The columns that have positions in the model, in this order: those with codes, then hidden ones."""
        return (*self.coded, *self.hidden)

    def modelled_index(self, index: int) -> int:
        """The index in ``modelled`` of the column at ``index``, which is not text."""
        return index if index < len(self.coded) else index - len(self.texts)

    def column(self, index: int) -> Column | TextColumn:
        """The column at ``index``, which may be hidden."""
        return self.columns[index] if index < len(self.columns) else self.coded_column(index)

    def coded_column(self, index: int) -> Column:
        """The column at ``index``, which is not text, but may be hidden."""
        return self.modelled[self.modelled_index(index)]

    def calendar_part(self, index: int) -> CalendarPart | None:
        """The calendar part at ``index``, if that is a hidden column; else None."""
        part_index = index - len(self.columns)
        return self.calendar[part_index] if part_index >= 0 else None

    def calendar_of(self, index: int) -> dict[str, int]:
        """The calendar parts of the column at ``index``: the index of each hidden column, by the part's name."""
        first = len(self.columns)
        return {part.part: hidden for hidden, part in enumerate(self.calendar, first) if part.of == index}

    def base_of(self, derived: Derived) -> int | None:
        """The index of the only column that ``derived`` is computed from, if that has a code per value; else None."""
        index = self.find(derived.columns[0]) if len(derived.columns) == 1 else None
        return index if index is not None and index < len(self.coded) and self.coded[index].grid is None else None

    @cached_property
    def following(self) -> dict[int, Derived]:
        """The derived columns, by index, that can be computed from other columns of the model."""
        by_index = {self.find(derived.name): derived for derived in self.derived}
        return {
            index: derived
            for index, derived in by_index.items()
            if index is not None and all(self.find(name) is not None for name in derived.columns)
        }

    def are_apart(self, spans: Iterable[tuple[int, ...]]) -> bool:
        """Whether filters on the columns with these positions can be compiled independently of each other.

        A column in digits and its calendar parts cannot, nor can two of its parts: the column's values determine both.
        The same holds for a column with a code for each value, and the columns derived from it.
        """
        if not self.calendar and not self.derived:
            return True
        bases = {self.find(derived.name): self.base_of(derived) for derived in self.derived}
        first_hidden = len(self.coded)
        filtered = set()  # the base columns of the filters
        for index in (self.column_of(span[0]) for span in spans):
            base = self.calendar[index - first_hidden].of if index >= first_hidden else bases.get(index)
            base = index if base is None else base
            if base in filtered and self.coded[base].grid is None:
                return False
            filtered.add(base)
        return True

    def with_calendar(self) -> Schema:
        """This schema with the calendar parts of every timestamp that is stored in digits or as a grid."""
        parts = (
            part
            for index, column in enumerate(self.coded)
            if column.type in CALENDAR_TYPES and (column.grid is not None or len(column.radices) > 1)
            for part in calendar_parts(index, column.name, column.type, column.values, column.has_null)
        )
        return replace(self, calendar=tuple(parts))

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """Number of positions of each modelled column."""
        return tuple(len(column.radices) for column in self.modelled)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of symbols of each position."""
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
        """Number of positions before those of hidden columns."""
        return sum(self.groups[: len(self.coded)])

    def positions(self, index: int) -> tuple[int, ...]:
        """The positions of the column at ``index``."""
        return self.spans[self.modelled_index(index)]

    def column_of(self, position: int) -> int:
        """The index in ``modelled`` of the column that ``position`` belongs to."""
        return next(index for index, span in enumerate(self.spans) if position <= span[-1])

    @cached_property
    def _exact_names(self) -> frozenset[str]:
        """Every column's name in the table's spelling: it refers to this column only, whatever its case."""
        return frozenset({*self.names, *(column.name for column in self.left_out)})

    @cached_property
    def _index(self) -> dict[str, int]:
        return {column.name: index for index, column in enumerate(self.columns)}

    @cached_property
    def _folded(self) -> dict[str, int]:
        return {column.name.casefold(): index for index, column in reversed(list(enumerate(self.columns)))}

    def find(self, name: str) -> int | None:
        """The index of the column called ``name``: exactly, or else without regard to case, as in DuckDB."""
        if name in self._exact_names:
            return self._index.get(name)
        return self._folded.get(name.casefold())

    def find_left_out(self, name: str) -> LeftOut | None:
        """The column called ``name`` among those left out: exactly, or else without regard to case."""
        matches = [column for column in self.left_out if column.name.casefold() == name.casefold()]
        return next((column for column in matches if column.name == name), matches[0] if matches else None)

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
        """The calendar part that a file describes; a :class:`ModelFileError` if it does not fit its column."""
        least, greatest = PARTS.get(data["part"], (0, -1))
        if data["of"] >= len(self.coded) or not least <= data["first"] <= data["last"] <= greatest:
            raise _damaged("a calendar part does not fit its column")
        column = self.coded[data["of"]]
        if column.type not in CALENDAR_TYPES:
            raise _damaged(f'"{column.name}" has calendar parts, but no dates')
        return CalendarPart(name=column.name, **data)

    def _check(self) -> None:
        """Raise a :class:`ModelFileError` if the parts of the schema contradict each other."""
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
    """The CSV options in a model file; a :class:`ModelFileError` if one is unknown or has a wrong value."""
    try:
        options = csv_options(data)
    except OptionError as error:
        raise _damaged(f"CSV options: {error.shown(lambda name: name)}") from None
    if options != data:
        raise _damaged("CSV options that no fit would store")
    return options


def _damaged(what: str) -> ModelFileError:
    return ModelFileError(f"the schema is damaged ({what}): fit the model again")
