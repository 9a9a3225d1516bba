"""Lists of column names in command-line options: separated by commas, quoted where necessary."""

from __future__ import annotations

import re

NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*(?=,|\Z)|([^,]*))(?:,|\Z)')


def split_names(text: str) -> tuple[str, ...]:
    """The names in a list such as ``a,b``.

    A name stands in double quotes if it has a comma, or a space at an end; a double quote in it is then written twice.

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
    written = name if split_names(name) == (name,) else '"' + name.replace('"', '""') + '"'
    return "--exclude '" + written.replace("'", "'\"'\"'") + "'"
