"""The record of a request, for its log line and the metrics."""

from __future__ import annotations

import re
import secrets
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from countless.serve.api.requests import QUESTIONS

RECORD = "countless.record"  # its name in a scope
REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
FIXED = frozenset({"/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/models"})
METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS"})
OTHER = "other"


@dataclass
class RequestRecord:
    """A request: its name, its client, and its result.

    ``route`` and ``method`` are from a short list, and ``model`` is one that is served: they are labels of metrics, so
    a client must not be able to invent new ones.
    """

    id: str
    client: str
    method: str
    path: str
    route: str
    model: str | None
    question: str
    error: str | None = None  # the kind of a refusal
    cached: bool | None = None  # whether the answer came from the cache; None if there is none
    clauses: Sequence[str] | None = None


def record_of(scope: Any, client: str, models: Container[str]) -> RequestRecord:
    """The record of a request that has just begun."""
    request_id = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
    is_valid_id = REQUEST_ID.fullmatch(request_id) is not None
    route, model, question = route_of(scope["path"])
    return RequestRecord(
        request_id.decode() if is_valid_id else secrets.token_hex(8),
        client,
        scope["method"] if scope["method"] in METHODS else OTHER,
        quote(scope["path"][:1000]),
        route,
        model if model in models else None,
        question,
    )


def route_of(path: str) -> tuple[str, str | None, str]:
    """The route of a path, the model that it names, and the question.

    >>> route_of("/v1/models/adult/estimate")
    ('/v1/models/{name}/estimate', 'adult', 'estimate')
    >>> route_of("/static/main.js"), route_of("/wp-admin")
    (('/static/{name}', None, ''), ('other', None, ''))
    """
    if path in FIXED:
        return path, None, ""
    match path.split("/")[1:]:
        case ["static", _]:
            return "/static/{name}", None, ""
        case ["v1", "models", name] if name:
            return "/v1/models/{name}", name, ""
        case ["v1", "models", name, question] if name and question in QUESTIONS:
            return f"/v1/models/{{name}}/{question}", name, question
    return OTHER, None, ""
