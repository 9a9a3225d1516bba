"""A setting: one field of an options dataclass, with its type, its bounds and its flag on the command line."""

from __future__ import annotations

import dataclasses
import math
import numbers
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Self

from countless.errors import OptionError

Seconds = float | str | timedelta  # a time as callers may give it; a number is in seconds
DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", re.IGNORECASE | re.ASCII)
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?b)", re.IGNORECASE)
UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


@dataclass(frozen=True)
class Setting:
    """The values that a field accepts.

    ``kind`` is a key of :data:`CONVERSIONS`. ``least`` and ``most`` are inclusive bounds, ``above`` and ``below``
    exclusive ones. A setting with a ``help`` text is an option on the command line. Its ``flag`` follows from the
    field's name unless it is given.
    """

    kind: str
    help: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    flag: str = ""
    metavar: str | None = None

    def check(self, name: str, value: Any) -> Any:
        """``value`` in the type of the setting; an :class:`OptionError` that names ``name`` if it does not fit."""
        value = CONVERSIONS[self.kind](name, value)
        if self.choices and value not in self.choices:
            *first, last = self.choices
            raise OptionError(f"{{{name}}} must be {', '.join(first)} or {last}, not {value!r}")
        if self.kind in ("whole", "number", "seconds") and not self._is_within(value):
            raise OptionError(f"{{{name}}} must be {self._bounds()}, not {value!r}")
        return value

    def _is_within(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def _bounds(self) -> str:
        bounds = {"at least": self.least, "more than": self.above, "at most": self.most, "below": self.below}
        return " and ".join(f"{words} {bound}" for words, bound in bounds.items() if bound is not None)


def setting(default: Any, kind: str, help: str = "", **limits: Any) -> Any:  # noqa: A002 (as Click calls it)
    """A dataclass field with a :class:`Setting`."""
    return dataclasses.field(default=default, metadata={"setting": Setting(kind, help, **limits)})


@dataclass(frozen=True)
class Options:
    """A frozen dataclass of settings that checks its fields when it is made."""

    heading: ClassVar[str] = "Options"  # of its flags in --help
    prefix: ClassVar[str] = ""  # of a field's name in errors, if the name alone is ambiguous

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is not None:
                checked = setting_of(field).check(self.prefix + field.name, value)
                object.__setattr__(self, field.name, checked)

    def changed(self, options: Mapping[str, Any]) -> Self:
        """A copy with these values of fields."""
        return dataclasses.replace(self, **options) if options else self

    def to_json(self) -> dict[str, Any]:
        """The options as JSON data."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


def setting_of(field: dataclasses.Field[Any]) -> Setting:
    """The setting of a dataclass field that :func:`setting` made."""
    described: Setting = field.metadata["setting"]
    return described


def names(options: type[Options]) -> tuple[str, ...]:
    """The names of a class's fields."""
    return tuple(field.name for field in dataclasses.fields(options))


def whole(name: str, value: Any) -> int:
    """A whole number; True and False are not accepted."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise OptionError(f"{{{name}}} must be a whole number, not {value!r}") from None


def number(name: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise OptionError(f"{{{name}}} must be a number, not {value!r}")
    plain: Any = value
    return plain if type(plain) in (int, float) else float(value)


def seconds(name: str, value: Any) -> float:
    """A time in seconds: a number of them, a timedelta, or a string with units.

    >>> seconds("budget", 90), seconds("budget", "1h30m"), seconds("budget", timedelta(minutes=5))
    (90, 5400.0, 300.0)
    """
    if isinstance(value, timedelta):
        return value.total_seconds()
    match = DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is not None and any(match.groups()):
        hours, minutes, remainder = (float(part or 0) for part in match.groups())
        return 3600 * hours + 60 * minutes + remainder
    try:
        return number(name, value)
    except OptionError:
        raise OptionError(f"{{{name}}} must be a time such as 90s, 5m or 1h30m, not {value!r}") from None


def text(name: str, value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise OptionError(f"{{{name}}} must be a string, not {value!r}")
    return value


def switch(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise OptionError(f"{{{name}}} must be True or False, not {value!r}")
    return value


def column_names(name: str, value: Any) -> tuple[str, ...]:
    """Names of columns: a string is one name.

    >>> column_names("exclude", "age"), column_names("exclude", ["age", "city"])
    (('age',), ('age', 'city'))
    """
    columns = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (None,)
    if not all(isinstance(column, str) for column in columns):
        raise OptionError(f"{{{name}}} must be the name of a column, or a list of names, not {value!r}")
    return columns


def order(name: str, value: Any) -> str | tuple[str, ...]:
    """A description of an order of columns, or the names of the first ones."""
    return value if isinstance(value, str) else column_names(name, value)


def path(name: str, value: Any) -> Path:
    """A path."""
    if not isinstance(value, str | os.PathLike):
        raise OptionError(f"{{{name}}} must be a path, not {value!r}")
    return Path(value)


def clauses(name: str, value: Any) -> Any:
    """The path of a file of WHERE clauses, or a list of clauses."""
    if not isinstance(value, str | os.PathLike | Iterable):
        raise OptionError(f"{{{name}}} must be a file of WHERE clauses or a list of them, not {value!r}")
    return value


def mapping(name: str, value: Any) -> dict[str, Any]:
    """A dictionary whose keys are strings."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise OptionError(f"{{{name}}} must be a dictionary such as {{'delim': ';'}}, not {value!r}")
    return dict(value)


def types(name: str, value: Any) -> dict[str, str]:
    """Types of columns, by the names of the columns.

    >>> types("types", {"price": " DECIMAL(9,2)"})
    {'price': 'DECIMAL(9,2)'}
    """
    types_by_column: Mapping[Any, Any] = value if isinstance(value, Mapping) else {"": value}
    if not all(isinstance(word, str) and word.strip() for pair in types_by_column.items() for word in pair):
        raise OptionError(
            f"{{{name}}} must name columns and their types, such as id:UUID or {{'id': 'UUID'}}, not {value!r}"
        )
    return {column: kind.strip() for column, kind in types_by_column.items()}


def texts(name: str, value: Any) -> list[str]:
    """A list of strings; a single string becomes a list of one."""
    return [text(name, item) for item in value] if isinstance(value, list | tuple) else [text(name, value)]


def expressions(name: str, value: Any) -> tuple[str, ...]:
    """A tuple of strings; a single string becomes a tuple of one."""
    return tuple(texts(name, value))


def lengths(name: str, value: Any) -> tuple[int, ...]:
    """Ascending whole numbers from 2 on."""
    result = tuple(whole(name, item) for item in value) if isinstance(value, Iterable) else (0,)
    if list(result) != sorted(set(result)) or min(result, default=2) < 2:
        raise OptionError(f"{{{name}}} must be whole numbers that ascend from 2, not {value!r}")
    return result


def memory_size(name: str, value: Any) -> int:
    """An amount of memory in bytes, given as a number of bytes or with a unit.

    >>> memory_size("memory", "2GB"), memory_size("memory", "1.5 GiB"), memory_size("memory", 3_000_000_000)
    (2000000000, 1610612736, 3000000000)
    """
    amount = AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if amount is not None:
        size = int(float(amount[1]) * UNITS[amount[2].lower()])
    elif isinstance(value, str):
        raise OptionError(f"{{{name}}} must be a number and a unit, such as 2GB or 900MB, not {value!r}")
    else:
        size = whole(name, value)
    if size < LEAST_MEMORY:
        raise OptionError(f"{{{name}}} must be at least {LEAST_MEMORY // 10**9}GB, not {value!r}")
    return size


LEAST_MEMORY = 10**9


def rows_to_keep(name: str, value: Any) -> str:
    """A number of rows, a percentage of them, ``all``, ``none`` or ``auto``.

    >>> rows_to_keep("evidence", 50_000), rows_to_keep("evidence", "2.5%"), rows_to_keep("evidence", "All")
    ('50000', '2.5%', 'all')
    """
    rows_text = str(value).strip().lower().replace("_", "").replace(",", "")
    if not isinstance(value, bool) and (rows_text in ("auto", "all", "none") or rows_text.isdecimal()):
        return "none" if rows_text.isdecimal() and int(rows_text) == 0 else rows_text
    if re.fullmatch(r"\d+(\.\d+)?%", rows_text, re.ASCII) and 0 < float(rows_text[:-1]) <= 100:
        return rows_text
    raise OptionError(f"{{{name}}} must be a number of rows, a percentage such as 5%, all or none, not {value!r}")


def stored_size(name: str, value: Any) -> str:
    """The number of bytes of an amount such as ``500kB``, or the word ``none`` or ``auto``, as a string.

    >>> stored_size("text_counts", "500kB"), stored_size("text_counts", 0), stored_size("text_counts", "Auto")
    ('500000', 'none', 'auto')
    """
    size_text = str(value).strip()
    amount = AMOUNT.fullmatch(size_text)
    if size_text.lower() in ("auto", "none"):
        return size_text.lower()
    if isinstance(value, bool) or not (size_text.isdecimal() or amount is not None):
        raise OptionError(f"{{{name}}} must be an amount such as 500kB or 2MB, or none, not {value!r}")
    size = int(float(amount[1]) * UNITS[amount[2].lower()]) if amount is not None else int(size_text)
    return str(size) if size else "none"


CONVERSIONS: dict[str, Callable[[str, Any], Any]] = {
    "whole": whole,
    "number": number,
    "seconds": seconds,
    "text": text,
    "switch": switch,
    "columns": column_names,
    "order": order,
    "path": path,
    "clauses": clauses,
    "mapping": mapping,
    "texts": texts,
    "types": types,
    "expressions": expressions,
    "lengths": lengths,
    "memory": memory_size,
    "rows": rows_to_keep,
    "bytes": stored_size,
}


def _plain(value: Any) -> Any:
    """A field's value as JSON data."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
