"""Locations of tables in databases: ``database::table`` is parsed, and tables are chosen by name."""

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
DATABASES = (".duckdb", ".ddb", ".db")  # endings of DuckDB files
SEPARATOR = "::"
# The start of a query; in DuckDB one may begin with FROM.
SELECT = re.compile(r"\s*(?:(?:--[^\n]*\n|/\*.*?\*/)\s*)*(?:\(|(?:SELECT|WITH|VALUES|TABLE|FROM)\b)", re.I | re.S)
QUERY_OF_FILES = re.compile(r"\s*(?:SELECT|WITH|FROM)\s.*['\"]", re.I | re.S)  # a query that names a file in quotes
NAME_PART = re.compile(r'"((?:[^"]|"")*)"|([^".]+)')
PUBLIC_PARAMETERS = ("host", "port", "dbname", "user")  # of a URL
MOST_LISTED = 20  # tables in a message
ESCAPED = "write @ in a password as %40, / as %2F, ? as %3F and # as %23"


@dataclass(frozen=True)
class Location:
    """A database, by path or URL, and the table or query to read; without both it is the database's only table.

    A query without a ``database`` reads the files that it names, such as ``FROM 'orders.csv'``.
    """

    database: str
    table: str | None = None
    query: str | None = None

    @property
    def is_postgres(self) -> bool:
        return is_postgres(self.database)


def is_postgres(source: object) -> bool:
    """Whether ``source`` is the URL of a PostgreSQL database."""
    return isinstance(source, str) and POSTGRES.match(source) is not None


def locate(source: str, table: str | None = None, query: str | None = None) -> Location | None:
    """The database or query that ``source`` names, or None if it is something else, such as a CSV file.

    >>> locate("shop.duckdb::sales.orders")
    Location(database='shop.duckdb', table='sales.orders', query=None)
    >>> locate("postgresql://[::1]/shop::SELECT a::int FROM t").query
    'SELECT a::int FROM t'
    >>> locate("orders.csv") is None
    True
    >>> locate("SELECT * FROM 'orders.csv'")
    Location(database='', table=None, query="SELECT * FROM 'orders.csv'")
    >>> locate("postgresql://host/shop/").database
    'postgresql://host/shop'
    """
    if is_postgres(source) and _misspelt(source):
        raise SourceError(f"cannot understand the URL {shown(source)}: {ESCAPED}")
    database, suffix = _split(source)
    if is_postgres(database):
        database = re.sub(r"(://[^/?]*/[^/?]+)/(?=\?|$)", r"\1", database)
    if not is_postgres(database) and not database.lower().endswith(DATABASES):
        return _query_of_files(source, table, query)
    if sum(text is not None for text in (table, query, suffix)) > 1:
        raise SourceOptionError(
            f"{shown(source)}: give one table or one query, by {{table}}, by {{query}}, or after ::"
        )
    if suffix is not None and SELECT.match(suffix) and not re.fullmatch(r"\w+", suffix):
        query = suffix
    elif suffix is not None:
        table = suffix
    if query is not None:
        query = _select(query)
    return Location(database, table, query)


def _query_of_files(source: str, table: str | None, query: str | None) -> Location | None:
    """The query that reads files, if there is one: ``source``, or ``query``, which must name the file ``source``."""
    if table is not None:
        message = f"{{table}} is for databases, and {shown(source)} is not one"
        raise SourceOptionError(f"{message}: give a postgresql:// URL, or a file that ends in {', '.join(DATABASES)}")
    if query is not None:
        if all(quote + source.replace(quote, 2 * quote) + quote not in query for quote in "'\""):
            message = "{query} reads a database, or files that it names, such as FROM 'orders.csv'"
            raise SourceOptionError(f"{message}: it does not name {shown(source)}")
        return Location("", query=_select(query))
    return Location("", query=_select(source)) if QUERY_OF_FILES.match(source) and not _exists(source) else None


def shown(source: object) -> str:
    """A source as messages may show it: a URL without its password, and with public parameters only.

    >>> shown("postgresql://ann:s3cr%40t@db.example.org/shop?sslmode=require&password=x::orders")
    'postgresql://ann@db.example.org/shop::orders'
    """
    text = os.fspath(source) if isinstance(source, str | os.PathLike) else type(source).__name__
    if not is_postgres(text):
        return str(text)
    database, suffix = _split(text)
    scheme, rest = database.split("://", 1)
    rest, _, parameters = rest.partition("?")
    authority, slash, path = rest.partition("/")
    ports = re.fullmatch(r"(?:(?:\[[^\]]*\]|[^:,\[\]]*)(?::\d*)?,?)*", authority.rpartition("@")[2])
    if ports is None or _misspelt(text) or "@" in parameters or ("@" not in authority and "@" in text):
        return f"{scheme}://..."  # the rest may be parts of a password with an unescaped /
    user, at, host = authority.rpartition("@")
    all_parameters = parse_qsl(parameters, separator="&", keep_blank_values=True)
    public = [f"{name}={quote(value, safe='/')}" for name, value in all_parameters if name in PUBLIC_PARAMETERS]
    url = f"{scheme}://{user.split(':')[0]}{at}{host}{slash}{path}{'?' + '&'.join(public) if public else ''}"
    return url if suffix is None else f"{url}{SEPARATOR}{suffix}"


def redacted(message: str, url: str) -> str:
    """``message`` without the passwords of the ``url`` and the environment.

    >>> redacted('no entry for "s3cr@t"', "postgresql://ann:s3cr%40t@host/shop")
    'no entry for "***"'
    """
    for secret in sorted(_secrets(url), key=len, reverse=True):
        message = message.replace(secret, "***")
    return message


def gives_password(url: str) -> bool:
    """Whether the ``url`` or the environment has a password.

    >>> gives_password("postgresql://ann:x@host/shop"), gives_password("postgresql://host/shop?password=x")
    (True, True)
    """
    return bool(_secrets(url))


def choose(
    tables: Sequence[tuple[str, str]], requested: str | None, database: str, search_path: Sequence[str]
) -> tuple[str, str]:
    """The schema and name of the table that is ``requested`` by name; the only table if none is.

    An exact name is preferred to one that differs in case, and then an earlier schema of the ``search_path``.
    """
    where = shown(database)
    if not tables:
        raise SourceError(f"{where} has no tables that you are allowed to see")
    if requested is None:
        if len(tables) == 1:
            return tables[0]
        choice = "choose one by {table}, or after ::"
        raise SourceOptionError(f"{where} has {len(tables)} tables: {choice}; {_listed(tables)}")
    parts = identifier(requested)
    rank = {schema: index for index, schema in enumerate(search_path)}
    for fold in (str, str.casefold):
        name = tuple(fold(part) for part in parts)
        matches = [table for table in tables if tuple(fold(part) for part in table)[-len(name) :] == name]
        if matches:
            return min(matches, key=lambda table: rank.get(table[0], len(rank)))
    close = difflib.get_close_matches(parts[-1], [name for _, name in tables], 1)
    hint = _listed(tables)
    if close:
        is_in_schema = len(parts) == 2 and (parts[0], close[0]) in tables
        suggestion = f"{parts[0]}.{close[0]}" if is_in_schema else close[0]
        hint = f'did you mean "{suggestion}"?'
    raise SourceError(f'{where} has no table "{requested}": {hint}')


def identifier(name: str) -> tuple[str, ...]:
    """The parts of a table's name, which may be qualified by a schema, and may be in double quotes.

    >>> identifier('sales."2020.orders"'), identifier("orders")
    (('sales', '2020.orders'), ('orders',))
    """
    parts: list[str] = []
    end = 0
    while (match := NAME_PART.match(name, end)) is not None:
        parts.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        end = match.end()
        if end == len(name) or name[end] != ".":
            break
        end += 1
    if end != len(name) or not 1 <= len(parts) <= 2 or name.endswith("."):
        raise SourceError(f'"{name}" is not the name of a table: write orders, sales.orders or "Odd name"."orders"')
    return tuple(parts)


def _split(source: str) -> tuple[str, str | None]:
    """The text before and after the first ``::`` that is not part of a file's name or of an address."""
    start = 0
    if is_postgres(source):
        start = source.index("://") + 3
        ends = [index for index in (source.find("/", start), source.find("?", start)) if index >= 0]
        start = min(ends) if ends else max(source.rfind("@"), source.rfind("]"), start)
    elif not any(ending + SEPARATOR in source.lower() for ending in DATABASES) or _exists(source):
        return source, None
    else:
        indexes = (source.lower().find(ending + SEPARATOR) for ending in DATABASES)
        start = min(index for index in indexes if index >= 0)
    end = source.find(SEPARATOR, start)
    return (source, None) if end < 0 else (source[:end], source[end + len(SEPARATOR) :])


def _misspelt(url: str) -> bool:
    """Whether a URL has unescaped characters in its user or password, so that they look like other parts.

    >>> [_misspelt(f"postgresql://ann:{password}@host/shop") for password in ("a%40b", "a@b", "a/b", "a#b", "a?b")]
    [False, True, True, True, True]
    >>> _misspelt("postgresql://host/shop?user=ann@example.org::SELECT '@'")
    False
    """
    location, suffix = _split(url)
    authority, _, path = location.split("://", 1)[1].partition("/")
    if re.search(r"[@?#]", authority.rpartition("@")[0]):
        return True
    database, _, parameters = path.partition("?")
    if "@" in database or any("@" in parameter.partition("=")[0] for parameter in parameters.split("&")):
        return True
    return suffix is not None and "@" in suffix and not re.match(r'[\s"(]|\w+\s', suffix)


def _exists(path: str) -> bool:
    """Whether there is a file at ``path``."""
    try:
        return Path(path).exists()
    except OSError:  # the name is too long
        return False


def _select(query: str) -> str:
    """The query without the semicolon at its end; an error if it is not a SELECT."""
    if not SELECT.match(query):
        raise SourceOptionError("{query} must be a SELECT: nothing else is run on a database")
    return query.strip().rstrip(";").rstrip()


def _secrets(url: str) -> set[str]:
    """The passwords of the ``url`` and the environment, escaped and not."""
    secrets = {os.environ.get("PGPASSWORD", "")}
    if is_postgres(url):
        rest, _, parameters = _split(url)[0].split("://", 1)[1].partition("?")
        for text in (rest, url.split("://", 1)[1]):  # the second if characters of the password are not escaped
            secret = text.rpartition("@")[0].partition(":")[2]
            secrets |= {secret, *(re.split(r"[@/?#]", secret) if _misspelt(url) else ())}
        for parameter in parameters.split("&"):
            name, _, value = parameter.partition("=")
            if unquote(name).casefold() in ("password", "sslpassword"):
                secrets.add(value)
        secrets |= {unquote(secret) for secret in secrets}
        secrets |= {quote(secret, safe="") for secret in secrets}
    return secrets - {""}


def _listed(tables: Sequence[tuple[str, str]]) -> str:
    """The names of tables, for a message."""
    names = [f"{schema}.{name}" for schema, name in tables[:MOST_LISTED]]
    more = f" and {len(tables) - MOST_LISTED} more" if len(tables) > MOST_LISTED else ""
    return f"the tables are {', '.join(names)}{more}"
