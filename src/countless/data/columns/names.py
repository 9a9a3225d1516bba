"""Lists of column names in options: parsing, quoting, and messages about names that no column has."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*(?=,|\Z)|([^,]*))(?:,|\Z)')


def split_names(text: str) -> tuple[str, ...]:
    """The names in a list such as ``a,b``.

    A name with a comma, or a space at an end, is put in double quotes; a double quote inside is written twice.

    >>> split_names('age, "income, net",," "')
    ('age', 'income, net', ' ')
    >>> split_names('say "when"'), split_names('"a ""b"" c"'), split_names("")
    (('say "when"',), ('a "b" c',), ())
    """
    names, start = [], 0
    while start < len(text):
        match = NAME.match(text, start)
        assert match is not None  # a name without quotes is anything up to a comma
        quoted, plain = match.groups()
        name = plain.strip() if quoted is None else quoted.replace('""', '"')
        names += [name] if name else []
        start = match.end()
    return tuple(names)


def exclude_option(name: str) -> str:
    """The option that leaves a column out, as it is typed in a shell.

    >>> print(exclude_option("age"), exclude_option("a,b"), exclude_option("it's"))
    --exclude 'age' --exclude '"a,b"' --exclude 'it'"'"'s'
    """
    item = name if split_names(name) == (name,) else '"' + name.replace('"', '""') + '"'
    return "--exclude '" + item.replace("'", "'\"'\"'") + "'"


def unknown_columns(names: Sequence[str], available: Sequence[str]) -> str:
    """The message about an option that ``names`` columns that are not ``available``.

    >>> unknown_columns(["idd"], ["id", "score"])
    'names an unknown column "idd": did you mean "id"?'
    >>> unknown_columns(["idd", "x"], ["id", "score"])
    'names unknown columns: "idd" (did you mean "id"?), "x"; the columns are id, score'
    """
    structs = dict.fromkeys(column.partition(".")[0] for column in available if "." in column)
    close_matches = {name: difflib.get_close_matches(name, [*structs, *available], 1) for name in names}
    listed = f"the columns are {', '.join(available)}"
    if len(names) == 1:
        close = close_matches[names[0]]
        hint = f'did you mean "{close[0]}"?' if close else listed
        return f'names an unknown column "{names[0]}": {hint}'
    suggestions = ", ".join(
        f'"{name}"' + (f' (did you mean "{close[0]}"?)' if close else "") for name, close in close_matches.items()
    )
    return f"names unknown columns: {suggestions}" + ("" if all(close_matches.values()) else f"; {listed}")
