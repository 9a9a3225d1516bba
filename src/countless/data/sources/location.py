"""Locations of tables: the database before ``::`` and the table after it."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

from countless.errors import SourceError, SourceOptionError

POSTGRES = re.compile(r"postgres(?:ql)?://")
DATABASES = (".duckdb", ".ddb", ".db")  # how the name of a DuckDB file ends
SEPARATOR = "::"
# What a question may begin with; DuckDB knows one that begins with FROM.
SELECT = re.compile(r"\s*(?:(?:--[^\n]*\n|/\*.*?\*/)\s*)*(?:\(|(?:SELECT|WITH|VALUES|TABLE|FROM)\b)", re.I | re.S)
OF_FILES = re.compile(r"\s*(?:SELECT|WITH|FROM)\s.*['\"]", re.I | re.S)  # a query that names a file in quotes
PART = re.compile(r'"((?:[^"]|"")*)"|([^".]+)')
SHOWN = ("host", "port", "dbname", "user")  # parameters of a URL that are no secret
MOST_LISTED = 20
ESCAPED = "write @ in a password as %40, / as %2F, ? as %3F and # as %23"


@dataclass(frozen=True)
class Location:
    """A database, by path or URL, and what to read of it: a table, the rows of a query, or its only table.

    A query without a ``place`` reads the files that it names, such as ``FROM 'orders.csv'``.
    """

    place: str
    table: str | None = None
    query: str | None = None

    @property
    def is_postgres(self) -> bool:
        return is_postgres(self.place)


def is_postgres(source: object) -> bool:
    """Whether ``source`` is the URL of a PostgreSQL database."""
    return isinstance(source, str) and POSTGRES.match(source) is not None


def locate(source: str, table: str | None = None, query: str | None = None) -> Location | None:
    """The database or query that ``source`` names, or None if it is something else, such as a CSV file.

    >>> locate("shop.duckdb::sales.orders")
    Location(place='shop.duckdb', table='sales.orders', query=None)
    >>> locate("postgresql://[::1]/shop::SELECT a::int FROM t").query
    'SELECT a::int FROM t'
    >>> locate("orders.csv") is None
    True
    >>> locate("SELECT * FROM 'orders.csv'")
    Location(place='', table=None, query="SELECT * FROM 'orders.csv'")
    >>> locate("postgresql://host/shop/").place
    'postgresql://host/shop'
    """
    if is_postgres(source) and _misspelt(source):
        raise SourceError(f"cannot understand the URL {shown(source)}: {ESCAPED}")
    place, found = _split(source)
    if is_postgres(place):
        place = re.sub(r"(://[^/?]*/[^/?]+)/(?=\?|$)", r"\1", place)
    if not is_postgres(place) and not place.lower().endswith(DATABASES):
        return _query_of_files(source, table, query)
    given = [text for text in (table, query, found) if text is not None]
    if len(given) > 1:
        raise SourceOptionError(
            f"{shown(source)}: give one table or one query, by {{table}}, by {{query}}, or after ::"
        )
    if found is not None and SELECT.match(found) and not re.fullmatch(r"\w+", found):
        query = found
    elif found is not None:
        table = found
    if query is not None:
        query = _select(query)
    return Location(place, table, query)


def _query_of_files(source: str, table: str | None, query: str | None) -> Location | None:
    """The query that reads files by their names: ``source`` itself, or ``query``, which then names the file."""
    if table is not None:
        message = f"{{table}} is for databases, and {shown(source)} is not one"
        raise SourceOptionError(f"{message}: give a postgresql:// URL, or a file that ends in {', '.join(DATABASES)}")
    if query is not None:
        if all(quote + source.replace(quote, 2 * quote) + quote not in query for quote in "'\""):
            message = "{query} reads a database, or files that it names, such as FROM 'orders.csv'"
            raise SourceOptionError(f"{message}: it does not name {shown(source)}")
        return Location("", query=_select(query))
    return Location("", query=_select(source)) if OF_FILES.match(source) and not _exists(source) else None


def shown(source: object) -> str:
    """What may be shown of a source: of a URL no password, and of its parameters only those that say where it is.

    >>> shown("postgresql://ann:s3cr%40t@db.example.org/shop?sslmode=require&password=x::orders")
    'postgresql://ann@db.example.org/shop::orders'
    """
    text = os.fspath(source) if isinstance(source, str | os.PathLike) else type(source).__name__
    if not is_postgres(text):
        return str(text)
    place, found = _split(text)
    scheme, rest = place.split("://", 1)
    rest, _, parameters = rest.partition("?")
    authority, slash, path = rest.partition("/")
    ports = re.fullmatch(r"(?:(?:\[[^\]]*\]|[^:,\[\]]*)(?::\d*)?,?)*", authority.rpartition("@")[2])
    if ports is None or _misspelt(text) or "@" in parameters or ("@" not in authority and "@" in text):
        return f"{scheme}://..."  # what may be parts of a password that was not written as %2F
    user, at, host = authority.rpartition("@")
    kept = [
        (name, value) for name, value in parse_qsl(parameters, separator="&", keep_blank_values=True) if name in SHOWN
    ]
    ending = "?" + "&".join(f"{name}={quote(value, safe='/')}" for name, value in kept) if kept else ""
    url = f"{scheme}://{user.split(':')[0]}{at}{host}{slash}{path}{ending}"
    return url if found is None else f"{url}{SEPARATOR}{found}"


def redacted(message: str, place: str) -> str:
    """``message`` without what is secret in the URL ``place`` or in the environment.

    >>> redacted('no entry for "s3cr@t"', "postgresql://ann:s3cr%40t@host/shop")
    'no entry for "***"'
    """
    for secret in sorted(_secrets(place), key=len, reverse=True):
        message = message.replace(secret, "***")
    return message


def gives_password(place: str) -> bool:
    """Whether the URL ``place`` or the environment gives a password.

    >>> gives_password("postgresql://ann:x@host/shop"), gives_password("postgresql://host/shop?password=x")
    (True, True)
    """
    return bool(_secrets(place))


def choose(tables: Sequence[tuple[str, str]], wanted: str | None, place: str, path: Sequence[str]) -> tuple[str, str]:
    """The table, schema and name, that ``wanted`` means; the only one if nothing is wanted.

    An exact name is preferred to one that differs in case, then an earlier schema of ``path``, then others.
    """
    where = shown(place)
    if not tables:
        raise SourceError(f"{where} has no tables that you are allowed to see")
    if wanted is None:
        if len(tables) == 1:
            return tables[0]
        choice = "choose one by {table}, or after ::"
        raise SourceOptionError(f"{where} has {len(tables)} tables: {choice}; {_listed(tables)}")
    parts = identifier(wanted)
    rank = {schema: place for place, schema in enumerate(path)}
    for fold in (str, str.casefold):
        name = tuple(fold(part) for part in parts)
        found = [table for table in tables if tuple(fold(part) for part in table)[-len(name) :] == name]
        if found:
            return min(found, key=lambda table: rank.get(table[0], len(rank)))
    close = difflib.get_close_matches(parts[-1], [name for _, name in tables], 1)
    named = f"{parts[0]}.{close[0]}" if close and len(parts) == 2 and (parts[0], close[0]) in tables else "".join(close)
    hint = f'did you mean "{named}"?' if close else _listed(tables)
    raise SourceError(f'{where} has no table "{wanted}": {hint}')


def identifier(name: str) -> tuple[str, ...]:
    """The parts of a name that may be qualified, and whose parts may stand in double quotes.

    >>> identifier('sales."2020.orders"'), identifier("orders")
    (('sales', '2020.orders'), ('orders',))
    """
    parts: list[str] = []
    end = 0
    while (found := PART.match(name, end)) is not None:
        parts.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        end = found.end()
        if end == len(name) or name[end] != ".":
            break
        end += 1
    if end != len(name) or not 1 <= len(parts) <= 2 or name.endswith("."):
        raise SourceError(f'"{name}" is not the name of a table: write orders, sales.orders or "Odd name"."orders"')
    return tuple(parts)


def _split(source: str) -> tuple[str, str | None]:
    """What stands before and after the first ``::`` that is no part of a file's name or of an address."""
    start = 0
    if is_postgres(source):
        start = source.index("://") + 3
        ends = [place for place in (source.find("/", start), source.find("?", start)) if place >= 0]
        start = min(ends) if ends else max(source.rfind("@"), source.rfind("]"), start)
    elif not any(ending + SEPARATOR in source.lower() for ending in DATABASES) or _exists(source):
        return source, None
    else:
        places = (source.lower().find(ending + SEPARATOR) for ending in DATABASES)
        start = min(place for place in places if place >= 0)
    end = source.find(SEPARATOR, start)
    return (source, None) if end < 0 else (source[:end], source[end + len(SEPARATOR) :])


def _misspelt(url: str) -> bool:
    """Whether what stands before the last @ is not written as it should be, so that parts of it look like the rest.

    >>> [_misspelt(f"postgresql://ann:{password}@host/shop") for password in ("a%40b", "a@b", "a/b", "a#b", "a?b")]
    [False, True, True, True, True]
    >>> _misspelt("postgresql://host/shop?user=ann@example.org::SELECT '@'")
    False
    """
    place, found = _split(url)
    authority, _, path = place.split("://", 1)[1].partition("/")
    if re.search(r"[@?#]", authority.rpartition("@")[0]):
        return True
    database, _, parameters = path.partition("?")
    strange = any("@" in parameter.partition("=")[0] for parameter in parameters.split("&"))
    return strange or "@" in database or (found is not None and "@" in found and not re.match(r'[\s"(]|\w+\s', found))


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # longer than a name can be
        return False


def _select(query: str) -> str:
    """A query that reads, without the semicolon at its end."""
    if not SELECT.match(query):
        raise SourceOptionError("{query} must be a SELECT: nothing else is run on a database")
    return query.strip().rstrip(";").rstrip()


def _secrets(place: str) -> set[str]:
    found = {os.environ.get("PGPASSWORD", "")}
    if is_postgres(place):
        rest, _, parameters = _split(place)[0].split("://", 1)[1].partition("?")
        for text in (rest, place.split("://", 1)[1]):  # as it should be written, and as it should not
            secret = text.rpartition("@")[0].partition(":")[2]
            found |= {secret, *(re.split(r"[@/?#]", secret) if _misspelt(place) else ())}
        for parameter in parameters.split("&"):
            name, _, value = parameter.partition("=")
            if unquote(name).casefold() in ("password", "sslpassword"):
                found.add(value)
        found |= {unquote(secret) for secret in found}
        found |= {quote(secret, safe="") for secret in found}
    return found - {""}


def _listed(tables: Sequence[tuple[str, str]]) -> str:
    names = [f"{schema}.{name}" for schema, name in tables[:MOST_LISTED]]
    more = f" and {len(tables) - MOST_LISTED} more" if len(tables) > MOST_LISTED else ""
    return f"the tables are {', '.join(names)}{more}"
