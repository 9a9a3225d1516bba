"""Error messages for invalid request bodies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from countless.serve.api.errors import RefusalError
from countless.serve.api.requests import QUESTIONS, RequestBody

KIND = "RequestError"
JSON = "application/json"
NAMES = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}
# Messages by pydantic's name of the error, with the numbers that it gives.
WORDS = {
    "missing": "is missing",
    "string_type": "must be a string",
    "string_too_long": "must have at most {max_length:,} characters",
    "string_unicode": "holds half of a character: send UTF-8, and escapes of both halves",
    "string_sub_type": "must be a string",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "too_short": "must have at least {min_length:,} item, and has none",
    "too_long": "must have at most {max_length:,} items",
    "greater_than_equal": "must be at least {ge:,}",
    "less_than_equal": "must be at most {le:,}",
}

EITHER = "must be a string, or a list of strings"


def refusal(question: str, content_type: str | None, body: Any, errors: Sequence[Any]) -> RefusalError:
    """Why a body of a ``question``, such as estimate, is refused, by the first of pydantic's ``errors``."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return RefusalError(400, KIND, f"the body is not JSON: {first['ctx']['error']}; {expected_body(question)}")
    if len(first["loc"]) > 1:
        return RefusalError(422, KIND, _field(QUESTIONS[question], first))
    if body is not None and not is_json(content_type):
        return RefusalError(415, KIND, f"send Content-Type: {JSON}: other bodies are not read")
    received = "empty or null" if body is None else NAMES.get(type(body), "something else")
    return RefusalError(422, KIND, f"{expected_body(question)}, and is {received}")


def unreadable(cause: BaseException | None) -> str:
    """Why a body could not be read, by the error that was raised.

    >>> unreadable(RecursionError())
    'the body is nested too deeply: no question needs more than a list in an object'
    """
    if isinstance(cause, RecursionError):
        return "the body is nested too deeply: no question needs more than a list in an object"
    if isinstance(cause, UnicodeDecodeError):
        return f"the body is not UTF-8: byte {cause.start:,} is no part of a character"
    if isinstance(cause, ValueError) and "digits" in str(cause):
        return "a number in the body has too many digits: write a number in a clause, which is a string"
    return "the body is not JSON in UTF-8"


def expected_body(question: str) -> str:
    """A message that shows what the body of a question looks like.

    >>> print(expected_body("check"))
    the body must be a JSON object such as {"where": "TRUE"}
    """
    return f"the body must be a JSON object such as {json.dumps(QUESTIONS[question].examples()[0])}"


def is_json(content_type: str | None) -> bool:
    """Whether a body of this type is read.

    >>> is_json("application/json; charset=utf-8"), is_json("application/problem+json"), is_json("text/plain")
    (True, True, False)
    """
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind == JSON or (kind.startswith("application/") and kind.endswith("+json"))


def _field(kind: type[RequestBody], error: Any) -> str:
    path = [part for part in error["loc"][1:] if part not in ("clause", "list")]
    name = f'"{path[0]}"' + "".join(f"[{json.dumps(part)}]" for part in path[1:])
    if error["type"] == "extra_forbidden":
        fields = ", ".join(kind.model_fields)
        return f"there is no {name} to ask for: the body may have {fields}"
    words = EITHER if error["loc"][-1] == "clause" and error["type"] == "string_type" else WORDS.get(error["type"])
    return f"{name} {words.format(**error.get('ctx', {}))}" if words else f"{name}: {error['msg']}"
