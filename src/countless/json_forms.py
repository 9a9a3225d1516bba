"""Validation of the JSON sections of a model file: their keys, types and bounds.

A *form* describes one JSON value. Keys that a form does not name may have any value, so that newer files with more keys
can still be read. Whether sections match each other is checked where they are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Protocol

from countless.errors import ModelFileError

MOST_ROWS = 1 << 53  # of a table: a float cannot represent every larger count
LARGEST = (1 << 31) - 1  # bound of sizes of networks, lengths, and numbers of stored items
MOST_POSITIONS = 1 << 16  # of a model
MOST_ORDERS = 1 << 10  # of a model's columns: the engine has a copy of the weights for each
MOST_BLOCKS = 1 << 12  # of a network
MOST_SHOWN = 60  # characters of a bad value in an error message


class Form(Protocol):
    """Describes a JSON value."""

    def problem(self, value: Any, path: str) -> str | None:
        """What is wrong with the ``value`` at ``path`` of a section; None if it is right."""
        ...


@dataclass(frozen=True)
class Boolean:
    """True or false."""

    def problem(self, value: Any, path: str) -> str | None:
        return None if type(value) is bool else _mismatch(path, value, "true or false")


@dataclass(frozen=True)
class Whole:
    """A whole number between bounds."""

    least: int = 0
    most: int = LARGEST

    def problem(self, value: Any, path: str) -> str | None:
        if type(value) is int and self.least <= value <= self.most:
            return None
        return _mismatch(path, value, f"a whole number from {self.least} to {self.most}")


@dataclass(frozen=True)
class Number:
    """A number between bounds. If not ``finite``, it may be NaN or infinite, such as the loss of a failed training."""

    least: float = -1e300
    most: float = 1e300
    finite: bool = True

    def problem(self, value: Any, path: str) -> str | None:
        if type(value) in (int, float) and self.least <= value <= self.most:  # NaN is in no range
            return None
        if type(value) is float and not self.finite and not math.isfinite(value):
            return None
        return _mismatch(path, value, f"a number from {self.least:g} to {self.most:g}")


@dataclass(frozen=True)
class String:
    """A string that ``pattern`` matches completely."""

    pattern: str = ".*"

    def problem(self, value: Any, path: str) -> str | None:
        if type(value) is str and (self.pattern == ".*" or re.fullmatch(self.pattern, value)):
            return None
        return _mismatch(path, value, "a string" if self.pattern == ".*" else f"a string such as {self.pattern}")


@dataclass(frozen=True)
class OrNull:
    """A value, or null."""

    form: Form

    def problem(self, value: Any, path: str) -> str | None:
        return None if value is None else self.form.problem(value, path)


@dataclass(frozen=True)
class ListOf:
    """A list of values of one form."""

    form: Form
    least: int = 0
    most: int = LARGEST

    def problem(self, value: Any, path: str) -> str | None:
        if type(value) is not list or not self.least <= len(value) <= self.most:
            return _mismatch(path, value, f"a list of {self.least} to {self.most} items")
        # A fast path for the values of a column, which may be millions.
        if self.form == String() and set(map(type, value)) <= {str}:
            return None
        check, item_path = self.form.problem, f"{path}[]"
        return next((problem for item in value if (problem := check(item, item_path)) is not None), None)


@dataclass(frozen=True)
class Pair:
    """A list of two values, each of its own form."""

    first: Form
    second: Form

    def problem(self, value: Any, path: str) -> str | None:
        if type(value) is not list or len(value) != 2:
            return _mismatch(path, value, "a pair")
        return self.first.problem(value[0], f"{path}[0]") or self.second.problem(value[1], f"{path}[1]")


@dataclass(frozen=True)
class MappingOf:
    """An object whose keys are names, with values of one form."""

    form: Form

    def problem(self, value: Any, path: str) -> str | None:
        if type(value) is not dict:
            return _mismatch(path, value, "an object")
        problems = (self.form.problem(item, f"{path}.{_short(key)}") for key, item in value.items())
        return next((problem for problem in problems if problem is not None), None)


@dataclass(frozen=True)
class Record:
    """An object with required keys, and others that are allowed."""

    needed: Mapping[str, Form] = field(default_factory=dict)
    allowed: Mapping[str, Form] = field(default_factory=dict)

    def problem(self, value: Any, path: str) -> str | None:
        if type(value) is not dict:
            return _mismatch(path, value, "an object")
        if missing := [key for key in self.needed if key not in value]:
            return f"{path} lacks {missing[0]!r}"
        forms = {**self.needed, **self.allowed}
        problems = (forms[key].problem(item, f"{path}.{key}") for key, item in value.items() if key in forms)
        return next((problem for problem in problems if problem is not None), None)


ROWS, COUNT, SIZE = Whole(1, MOST_ROWS), Whole(0, MOST_ROWS), Whole(1)
NAMED = {"name": String(), "type": String()}

MANIFEST = Record({"format": Whole(), "library": String(), "sections": MappingOf(Whole())})
_NAMES = ListOf(String(r"[\w.-]+"), most=1 << 16)
SECTION_NAMES = Record({"networks": _NAMES, "summaries": _NAMES, "rows": _NAMES})

_FRACTION = r"[1-9][0-9]{0,39}(/[1-9][0-9]{0,39})?"
GRID = Record(
    {
        "starts": ListOf(Whole(), least=1),
        "shares": ListOf(Number(0, 1), least=1),
        "distinct": ListOf(Whole(1, MOST_ROWS), least=1),
    },
    {"granularity": Record({"step": String(_FRACTION), "offset": String(rf"0|{_FRACTION}")}), "unique": Boolean()},
)
COLUMN = Record(
    {
        **NAMED,
        "has_null": Boolean(),
        "radices": ListOf(SIZE, least=1, most=8),
        "values": ListOf(String()),
    },
    {"grid": GRID},
)
TEXT_COLUMN = Record(
    {
        **NAMED,
        "characters": String(),
        "frequencies": ListOf(Whole(1, 1 << 62)),
        "rare": ListOf(Pair(String(), Whole(1, 1 << 62))),
        "length": SIZE,
        "has_null": Boolean(),
        "distinct": COUNT,
        "estimated": Boolean(),
        "cut": COUNT,
        "beyond": Number(0, MOST_ROWS),
    }
)
CALENDAR_PART = Record({"of": Whole(0), "part": String(), "first": Whole(0), "last": Whole(0), "has_null": Boolean()})
DERIVED = Record({"name": String(), "sql": String(), "columns": ListOf(String(), least=1)})
SCHEMA = Record(
    {
        "rows": ROWS,
        "columns": ListOf(COLUMN, most=MOST_POSITIONS),
        "texts": ListOf(TEXT_COLUMN),
        "left_out": ListOf(Record({**NAMED, "reason": String()})),
        "uuids": ListOf(String()),
    },
    {
        "signed": ListOf(String()),
        "calendar": ListOf(CALENDAR_PART, most=MOST_POSITIONS),
        "derived": ListOf(DERIVED, most=MOST_POSITIONS),
        "csv": Record(),  # the options are checked where they are read
    },
)

NETWORK = Record({"kind": String()})  # of any kind; its other keys are checked when the runtime is made
COLUMNS_NETWORK = Record(
    {
        "kind": String(),
        "sizes": ListOf(Whole(), most=MOST_POSITIONS),
        "hidden": Whole(),
        "blocks": Whole(0, MOST_BLOCKS),
        "embedding": Whole(),
        "orders": ListOf(ListOf(Whole(), most=MOST_POSITIONS), least=1, most=MOST_ORDERS),
        "groups": ListOf(Whole(), most=MOST_POSITIONS),
    },
    {"units": ListOf(Whole(), most=MOST_POSITIONS), "parts": Whole()},
)
TEXT_NETWORK = Record(
    {
        "kind": String(),
        "alphabets": ListOf(ListOf(Whole()), least=1, most=MOST_POSITIONS),
        "lengths": ListOf(SIZE, least=1, most=MOST_POSITIONS),
        "width": SIZE,
        "blocks": Whole(1, MOST_BLOCKS),
        "heads": SIZE,
        "inner": SIZE,
        "grams": ListOf(Whole(2, 64), most=64),
        "buckets": SIZE,
        "context": ListOf(SIZE, most=MOST_POSITIONS),
        "context_width": SIZE,
        "gaps": Boolean(),
    }
)

_QUERIES: dict[str, Form] = {
    "where": String(),
    "rows": COUNT,
    "estimates": Number(0, MOST_ROWS),
    "filters": Whole(),
    "single": Whole(),
    "union": Whole(0, 1),
    "vague": Whole(0, 1),
    "steps": Whole(),
    "hits": COUNT,
}
CALIBRATION = Record(
    {"level": Number(1e-9, 1 - 1e-9), "tail": Number(0, 0.5), **{name: ListOf(form) for name, form in _QUERIES.items()}}
)

_BITS = OrNull(Number(finite=False))  # not finite if the training diverged
_OPTIONS = Record(
    {}, {"batch": OrNull(SIZE), "learning_rate": OrNull(Number(0, 1e9)), "masking": String(), "clock": String()}
)
_TRAINED: dict[str, Form] = {
    "unit": String(),
    "epochs": Number(0),
    "seconds": Number(0, 1e12),
    "train_bits": _BITS,
    "masked_bits": _BITS,
    "unmasked_bits": _BITS,
    "held_out_rows": COUNT,
    "interrupted": Boolean(),
    "options": _OPTIONS,
}
_UPDATE = Record(
    {"when": String(), "rows": COUNT},
    {"unit": String(), "bits_before": MappingOf(_BITS), "bits_after": MappingOf(_BITS), "interrupted": Boolean()},
)
REPORT = Record(
    {},
    {
        **_TRAINED,
        "evidence": String(),
        "text": Record({"columns": ListOf(String())}, _TRAINED),
        "workload": Record({"queries": COUNT, "column_sets": COUNT}),
        "updates": ListOf(_UPDATE),
    },
)


def plain(value: Any) -> Any:
    """A dataclass as JSON data: an object of its fields, with lists for tuples.

    >>> plain(Whole(1, 2)), plain((1, ("a",)))
    ({'least': 1, 'most': 2}, [1, ['a']])
    """
    if is_dataclass(value):
        return {attribute.name: plain(getattr(value, attribute.name)) for attribute in fields(value)}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def fields_in(kind: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments to make a dataclass of this ``kind`` again from what :func:`plain` made of it."""
    return {attribute.name: _with_tuples(data[attribute.name]) for attribute in fields(kind) if attribute.name in data}


def _with_tuples(value: Any) -> Any:
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def check_section(name: str, form: Form, value: Any) -> None:
    """Raise a :class:`ModelFileError` if ``value``, the section called ``name``, does not have this form."""
    problem = form.problem(value, name)
    if problem is not None:
        raise ModelFileError(f"the model file is damaged: {problem}; copy it again or fit it again")


def _mismatch(path: str, value: Any, expected: str) -> str:
    return f"{path} is {_short(value)}, not {expected}"


def _short(value: Any) -> str:
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'object'} of {len(value)}"
    if isinstance(value, int) and not -MOST_ROWS <= value <= MOST_ROWS:
        return "a huge number"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."
