"""Errors of PostgreSQL and its drivers, as one line with a remedy and without passwords."""

from __future__ import annotations

import re

from countless.data.sources.location import Location, gives_password, redacted, shown
from countless.errors import SourceError

SERVER_MESSAGE = re.compile(r"(?:ERROR|FATAL|PANIC):\s+([^\n]+)")
CONNECTION_LOST = (
    "server closed the connection",
    "terminating connection",
    "connection to the server was lost",
    "SSL SYSCALL",
)
REFUSED = "password authentication failed"
# Part of the message when there is no connection, and what to do.
REMEDIES = (
    (REFUSED, "set PGPASSWORD, or write a line of ~/.pgpass"),
    ("no password supplied", "set PGPASSWORD, or write a line of ~/.pgpass"),
    ("no pg_hba.conf entry", "pg_hba.conf has no entry for this host; ask the administrator"),
    ("could not translate host name", "is the name of the host right?"),
    ("Connection refused", "is the server running, and the port right?"),
    ("No such file or directory", "is a server running here? Name its host in the URL"),
    ("timeout expired", "can this machine reach it?"),
    ("timed out", "can this machine reach it?"),
    ("does not exist", "name another in the URL"),
)
PERMISSION, READ_ONLY, CANCELED = "42501", "25006", "57014"


def connecting(message: str, url: str) -> SourceError:
    """The error when there is no connection. A message about a bad URL is hidden, because it quotes the URL."""
    remedy = next((remedy for piece, remedy in REMEDIES if piece in message), None)
    if remedy is None and not SERVER_MESSAGE.search(message) and "connection to server" not in message:
        syntax = "write postgresql://user@host:port/database, other characters as %40 and the like"
        return SourceError(f"cannot understand the URL {shown(url)}: {syntax}")
    if REFUSED in message and gives_password(url):
        remedy = "the password was refused: is it right, and the user?"
    return SourceError(f"cannot connect to {shown(url)}: {_summary(message, url)}{f'; {remedy}' if remedy else ''}")


def reading(message: str, code: str | None, location: Location) -> SourceError:
    """The error when the rows cannot be read; ``code`` is the SQLSTATE."""
    database, reason = shown(location.database), _summary(message, location.database)
    if any(piece in message for piece in CONNECTION_LOST):
        return SourceError(f"{database} closed the connection during the read ({reason}); try again when it is back")
    if code == PERMISSION or "permission denied" in reason:
        return SourceError(f"{database}: {reason}; ask for the right to SELECT, or connect as another user")
    if code == READ_ONLY or "read-only transaction" in reason or "read-write mode" in reason:
        return SourceError(f"{database}: the query would change something ({reason}); give one that only reads")
    if code == CANCELED or "canceling statement" in reason:
        return SourceError(f"{database}: {reason}; allow the read more time, or read less with --query")
    if location.query is not None:
        return SourceError(f"{database} refuses the query: {reason}")
    return SourceError(f"{database} could not be read: {reason}")


def _summary(message: str, url: str) -> str:
    """The important line of a message, without passwords."""
    if match := SERVER_MESSAGE.search(message):
        line = match[1]
    else:
        line = message.removeprefix("IO: ").removeprefix("[libpq] ").strip().splitlines()[0]
        line = line.partition("Failed to connect: ")[2] or line
    return redacted(line.strip(), url)
