"""Options for reading CSV files, under DuckDB's own names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from countless.errors import OptionError
from countless.settings import Setting

PREFIX = "csv."  # of option names in errors
ENCODINGS = ("utf-8", "utf-16", "latin-1")  # DuckDB reads others only with an extension that it would download
CSV_OPTIONS: dict[str, Setting] = {
    "delim": Setting("text"),
    "sep": Setting("text"),
    "quote": Setting("text"),
    "escape": Setting("text"),
    "comment": Setting("text"),
    "header": Setting("switch"),
    "skip": Setting("whole", least=0),
    "decimal_separator": Setting("text"),
    "thousands": Setting("text"),
    "dateformat": Setting("text"),
    "timestampformat": Setting("text"),
    "nullstr": Setting("texts"),
    "encoding": Setting("text", choices=ENCODINGS),
    "types": Setting("types"),
    "all_varchar": Setting("switch"),
    "sample_size": Setting("whole", least=-1),
    "ignore_errors": Setting("switch"),
    "null_padding": Setting("switch"),
    "strict_mode": Setting("switch"),
}
NAMES_ELSEWHERE = {"decimal": "decimal_separator", "separator": "delim", "null": "nullstr", "na_values": "nullstr"}
SWITCHES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def csv_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with checked names and types; ``sep`` becomes ``delim``.

    >>> csv_options({"sep": ";", "header": True, "nullstr": ["", "NA"]})
    {'delim': ';', 'header': True, 'nullstr': ['', 'NA']}

    Raises:
        OptionError: an unknown name, a value of a wrong type, or ``sep`` beside ``delim``.
    """
    checked = {name: _setting(name).check(PREFIX + name, value) for name, value in options.items()}
    if "sep" in checked and "delim" in checked:
        raise OptionError("{csv.sep} and {csv.delim} mean the same: give one of them")
    return {"delim" if name == "sep" else name: value for name, value in checked.items()}


def csv_option_of_text(name: str, text: str) -> Any:
    """The value of an option that is given as text, such as on the command line.

    >>> csv_option_of_text("header", "false"), csv_option_of_text("skip", "3"), csv_option_of_text("quote", "'")
    (False, 3, "'")
    >>> csv_option_of_text("types", "order id:UUID")
    {'order id': 'UUID'}
    """
    setting = _setting(name)
    value: Any = text
    if setting.kind == "switch":
        value = SWITCHES.get(text.strip().lower(), text)
    elif setting.kind == "whole" and text.strip().removeprefix("-").isdecimal():
        value = int(text)
    elif setting.kind == "types" and ":" in text:
        column, _, kind = text.rpartition(":")
        value = {column: kind}
    return setting.check(PREFIX + name, value)


def _setting(name: str) -> Setting:
    if name in CSV_OPTIONS:
        return CSV_OPTIONS[name]
    similar = difflib.get_close_matches(str(name).lower(), [*CSV_OPTIONS, *NAMES_ELSEWHERE], 1)
    hint = f"did you mean {NAMES_ELSEWHERE.get(similar[0], similar[0])!r}? " if similar else ""
    raise OptionError(f"{{csv}} has no option {name!r}: {hint}The options are {', '.join(CSV_OPTIONS)}")
