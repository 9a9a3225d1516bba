"""CSV files with options for reading them, and signs that a CSV file was read with the wrong ones."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from countless.csv_options import csv_options
from countless.data.columns.types import TEXT, quote_identifier
from countless.errors import OptionError

if TYPE_CHECKING:
    from countless.data.sources.source import Source

SEPARATORS = ";|\t^~"  # rarely part of a column's name
GENERATED_NAME = re.compile(r"column\d+")  # DuckDB's name of a column without one
SAMPLED_ROWS = 2_000  # searched for decimal commas and times
COMMA = r"[-+]?[0-9]{1,3}(\.?[0-9]{3})*,[0-9]+|[-+]?[0-9]+,[0-9]+"  # 3,5 and 1.234,50
WHOLE = r"[-+]?[0-9]+|[-+]?[0-9]{1,3}(\.[0-9]{3})+"
THOUSANDS = r"[-+]?[0-9]{1,3}(,[0-9]{3})+"  # English numbers, such as 1,234
TIME = r"[0-9]{1,4}([./-][0-9]{1,4}){2} [0-9]{1,2}:[0-9]{2}.*"
TIME_FORMATS = [  # that DuckDB does not recognise; the first that fits is suggested
    f"{day} {time}"
    for day in ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%Y.%m.%d")
    for time in ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
]


@dataclass(frozen=True)
class CsvFile:
    """A CSV file and DuckDB's options for reading it. Every function that reads a table takes it.

    Args:
        path: The file, or a glob. Its name may have any ending.
        options: Options of DuckDB's ``read_csv``, such as ``{"delim": ";", "decimal_separator": ","}``.

    Raises:
        OptionError: An unknown option, or a value of a wrong type.

    >>> CsvFile("orders.csv", {"delim": ";"})
    CsvFile(path='orders.csv', options={'delim': ';'})
    """

    path: str | os.PathLike[str]
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", csv_options(self.options))

    def __fspath__(self) -> str:
        return os.fspath(self.path)


def with_csv_options(source: Any, options: Mapping[str, Any] | None) -> Any:
    """The source with these options, if there are any."""
    if not options:
        return source
    if not isinstance(source, str | os.PathLike):
        raise OptionError(f"{{csv}} is for CSV files: give the path of one, not a {type(source).__name__}")
    return CsvFile(source, options)


def csv_arguments(options: Mapping[str, Any]) -> str:
    """The options as further arguments of DuckDB's ``read_csv``.

    >>> csv_arguments({"delim": "'", "header": True, "skip": 2, "nullstr": ["", "NA"]})
    ", delim = '''', header = true, skip = 2, nullstr = ['', 'NA']"
    >>> csv_arguments({"types": {"id": "UUID"}})
    ", types = {'id': 'UUID'}"
    """
    return "".join(f", {name} = {_literal(value)}" for name, value in options.items())


def _literal(value: Any) -> str:
    """The value of an option in SQL."""
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(name)}: {_literal(item)}' for name, item in value.items())}}}"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower()


def csv_warnings(source: Source) -> list[str]:
    """Signs that a CSV file was read with the wrong options, each with the option to use."""
    if hint := wrong_separator(source):
        return [hint]
    strings = [name for name, kind in source.columns() if kind == TEXT]
    return [*_decimal_commas(source, strings), *_unread_times(source, strings)]


def wrong_separator(source: Source) -> str | None:
    """A hint if the names of a CSV file's columns look as if DuckDB did not find the separator.

    If DuckDB found no names, the values of the first row are checked.
    """
    names = [name for name, _ in source.columns()]
    if all(GENERATED_NAME.fullmatch(name) for name in names):
        names = [str(value) for row in source.rows(f"SELECT * FROM {source.table} LIMIT 1") for value in row]
    return separator_hint(names)


def separator_hint(names: Sequence[str]) -> str | None:
    """A hint if half of the names or more contain a separator, so that DuckDB probably did not find it.

    >>> separator_hint(["a;b;c"])
    'one column named "a;b;c": is the separator ";"? Add csv={\\'delim\\': \\';\\'}'
    >>> separator_hint(["a", "b", "c;d"])
    """
    for separator in SEPARATORS + ("," if len(names) == 1 else ""):
        unsplit = [name.replace("\t", "\\t") for name in names if separator in name]
        if 0 < len(names) <= 2 * len(unsplit):
            shown, first = separator.replace("\t", "\\t"), unsplit[0]
            what = f'one column named "{first}"' if len(names) == 1 else f'columns such as "{first}"'
            return f"{what}: is the separator \"{shown}\"? Add csv={{'delim': '{shown}'}}"
    return None


def _decimal_commas(source: Source, names: Sequence[str]) -> list[str]:
    """A warning if columns of strings look like numbers with a decimal comma."""
    if not names:
        return []
    quoted = [quote_identifier(name) for name in names]
    counts = ", ".join(
        f"{_matching(name, f'{COMMA}|{WHOLE}')} = count(nullif(trim({name}), '')) AND {_matching(name, COMMA)} > "
        f"{_matching(name, THOUSANDS)}, count_if(contains({name}, '.')) > 0"
        for name in quoted
    )
    flags = source.rows(f"SELECT {counts} FROM (SELECT {', '.join(quoted)} FROM {source.table} LIMIT {SAMPLED_ROWS})")[
        0
    ]
    commas = [(name, dots) for name, comma, dots in zip(names, flags[::2], flags[1::2], strict=True) if comma]
    if not commas:
        return []
    listed = ", ".join(f'"{name}"' for name, _ in commas)
    verb = (
        "looks like numbers with a decimal comma, but is"
        if len(commas) == 1
        else "look like numbers with a decimal comma, but are"
    )
    thousands = ", 'thousands': '.'" if any(dots for _, dots in commas) else ""
    return [f"{listed} {verb} read as text: add csv={{'decimal_separator': ','{thousands}}}"]


def _unread_times(source: Source, names: Sequence[str]) -> list[str]:
    """A warning for each column of strings that looks like times in a format that DuckDB does not recognise."""
    if not names:
        return []
    quoted = [quote_identifier(name) for name in names]
    rows = f"(SELECT {', '.join(quoted)} FROM {source.table} LIMIT {SAMPLED_ROWS})"
    counts = ", ".join(f"{_matching(name, TIME)} > 0 AND {_matching(name, TIME)} = count({name})" for name in quoted)
    are_times = source.rows(f"SELECT {counts} FROM {rows}")[0]
    return [
        f"\"{name}\" looks like times, but is read as text: add csv={{'timestampformat': '{fitting[0]}'}}"
        + "".join(f", or '{other}' if the day comes first" for other in fitting[1:])
        for name, is_time in zip(names, are_times, strict=True)
        if is_time and (fitting := _time_formats(source, quote_identifier(name), rows))
    ]


def _time_formats(source: Source, name: str, rows: str) -> list[str]:
    """The formats in which every string of a column can be read."""
    counts = ", ".join(
        f"count(try_strptime(trim({name}), '{time_format}')) = count({name})" for time_format in TIME_FORMATS
    )
    fits = source.rows(f"SELECT {counts} FROM {rows}")[0]
    return [time_format for time_format, is_fitting in zip(TIME_FORMATS, fits, strict=True) if is_fitting]


def _matching(name: str, pattern: str) -> str:
    """SQL for the number of strings that match a pattern."""
    return f"count_if(regexp_full_match(trim({name}), '{pattern}'))"
