"""The log: one line for each request, and every other line in the same format."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, Literal

from countless.serve.api.request_record import RequestRecord

LogFormat = Literal["text", "json"]
MAX_CLAUSES = 10  # of a request that are logged
CLAUSE_CHARACTERS = 1_000  # that are logged of each
TIME = "%Y-%m-%dT%H:%M:%S"


class AccessLog:
    """Writes a line about each request to standard error."""

    def __init__(self, form: LogFormat) -> None:
        self._form = form

    def write(self, record: RequestRecord, status: int, sent: int, ms: float) -> None:
        """The line of a request that has ended."""
        line = access_fields(record, status, sent, ms)
        text = json.dumps(line) if self._form == "json" else access_text(line)
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def access_fields(record: RequestRecord, status: int, sent: int, ms: float) -> dict[str, Any]:
    """The fields of a request's line: never the token, and clauses only if the record holds them."""
    fields: dict[str, Any] = {
        "time": _time(time.time()),
        "level": "info",
        "id": record.id,
        "client": record.client,
        "method": record.method,
        "route": record.route,
        "path": record.path,
        "model": record.model,
        "status": status,
        "error": record.error,
        "bytes": sent,
        "cached": bool(record.cached),
        "ms": round(ms, 3),
    }
    if record.clauses is not None:
        fields["clauses"] = [clause[:CLAUSE_CHARACTERS] for clause in record.clauses[:MAX_CLAUSES]]
        fields["clauses_total"] = len(record.clauses)
    return fields


def access_text(fields: dict[str, Any]) -> str:
    """The line for people. Clauses are quoted, so that none can forge a line of the log."""
    words = [fields[name] for name in ("time", "client", "method", "path", "status")]
    words += [f"{fields['ms']:.1f}ms", f"{fields['bytes']}B", *(["cached"] if fields["cached"] else [])]
    words += [fields["error"]] if fields["error"] else []
    words += [f"id={fields['id']}", *map(json.dumps, fields.get("clauses", ()))]
    return " ".join(map(str, words))


class JsonFormatter(logging.Formatter):
    """A record of Python's logging as one line of JSON, its traceback too."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {
            "time": _time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextFormatter(logging.Formatter):
    """A record of Python's logging for people."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and its traceback."""
        text = f"{_time(record.created)} {record.levelname.lower()}: {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def start_logging(form: LogFormat) -> None:
    """Send the log to standard error: information from the service, and warnings from everything else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("countless.serve").setLevel(logging.INFO)


def _time(seconds: float) -> str:
    """A moment in UTC, to the millisecond.

    >>> _time(1.5)
    '1970-01-01T00:00:01.500Z'
    """
    return time.strftime(TIME, time.gmtime(seconds)) + f".{int(seconds % 1 * 1e3):03d}Z"
