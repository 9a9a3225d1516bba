"""HTTP errors: the status and the message of a request that fails."""

from __future__ import annotations

from typing import Any

from countless.errors import CountlessError, QueryError


class RefusalError(Exception):
    """A request that is refused, because of the request itself or of how the service was started.

    ``retry_after`` are the seconds after which the client may try again.
    """

    def __init__(self, status: int, kind: str, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.retry_after = retry_after

    @property
    def headers(self) -> dict[str, str]:
        """The additional headers of the response."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return headers


def too_long(seconds: float, clauses: int | None, started: bool) -> RefusalError:
    """The refusal of a question that took longer than ``seconds``; of several clauses, ``clauses`` were answered."""
    if not started:
        why, remedy = "all threads are busy", "ask again later"
    elif clauses is None:
        why, remedy = "it takes longer", "ask for less"
    else:
        why = f"{clauses:,} clauses of it were answered in time"
        remedy = f"ask for at most {max(1, clauses // 2):,} at once"  # half: others may ask at the same time
    return RefusalError(
        408,
        "TimeoutError",
        f"no answer within {seconds:g} s, {why}: {remedy}, or start the service with a longer --timeout",
    )


def late_request(seconds: float) -> RefusalError:
    """The refusal of a request that did not arrive within ``seconds``."""
    return RefusalError(408, "TimeoutError", f"the request did not arrive within {seconds:g} s")


def error_body(error: CountlessError | RefusalError) -> dict[str, Any]:
    """An error as plain data: the first line of its message, its kind, and the range of characters if known."""
    if isinstance(error, RefusalError):
        return {"message": error.message, "kind": error.kind, "span": None}
    span = list(error.span) if isinstance(error, QueryError) and error.span is not None else None
    message = error.message if isinstance(error, QueryError) else str(error)
    return {"message": message.split("\n", 1)[0], "kind": type(error).__name__, "span": span}
