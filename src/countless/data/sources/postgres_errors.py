"""Errors of PostgreSQL and its drivers as one line with a remedy and without passwords."""

from __future__ import annotations

import re

from countless.data.sources.location import Location, gives_password, redacted, shown
from countless.errors import SourceError

SAID = re.compile(r"(?:ERROR|FATAL|PANIC):\s+([^\n]+)")
GONE = ("server closed the connection", "terminating connection", "connection to the server was lost", "SSL SYSCALL")
REFUSED = "password authentication failed"
# A piece of what is said when there is no connection, and what to do about it.
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


def connecting(message: str, place: str) -> SourceError:
    """Why there is no connection. Of what the client library says about a URL it quotes too much to be shown."""
    remedy = next((remedy for piece, remedy in REMEDIES if piece in message), None)
    if remedy is None and not SAID.search(message) and "connection to server" not in message:
        wanted = "write postgresql://user@host:port/database, other characters as %40 and the like"
        return SourceError(f"cannot understand the URL {shown(place)}: {wanted}")
    if REFUSED in message and gives_password(place):
        remedy = "the password was refused: is it right, and the user?"
    return SourceError(f"cannot connect to {shown(place)}: {_said(message, place)}{f'; {remedy}' if remedy else ''}")


def reading(message: str, code: str | None, location: Location) -> SourceError:
    """Why the rows cannot be read."""
    place, said = shown(location.place), _said(message, location.place)
    if any(piece in message for piece in GONE):
        return SourceError(f"{place} closed the connection during the read ({said}); try again when it is back")
    if code == PERMISSION or "permission denied" in said:
        return SourceError(f"{place}: {said}; ask for the right to SELECT, or connect as another user")
    if code == READ_ONLY or "read-only transaction" in said or "read-write mode" in said:
        return SourceError(f"{place}: the query would change something ({said}); give one that only reads")
    if code == CANCELED or "canceling statement" in said:
        return SourceError(f"{place}: {said}; allow the read more time, or read less with --query")
    if location.query is not None:
        return SourceError(f"{place} refuses the query: {said}")
    return SourceError(f"{place} could not be read: {said}")


def _said(message: str, place: str) -> str:
    """The heart of a message."""
    found = SAID.search(message)
    heart = found[1] if found else message.removeprefix("IO: ").removeprefix("[libpq] ").strip().splitlines()[0]
    if not found and "Failed to connect: " in heart:
        heart = heart.split("Failed to connect: ", 1)[1]
    return redacted(heart.strip(), place)
