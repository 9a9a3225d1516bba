"""Plain data as JSON that every language reads the same way."""

from __future__ import annotations

import json
import math
from typing import Any

SAFE_INTEGER = 2**53 - 1  # languages whose numbers are doubles round larger ones


def to_json(data: Any) -> bytes:
    """JSON in UTF-8, without blanks."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str).encode()


def cell(value: Any) -> Any:
    """A value of a table for JSON: one that JSON cannot hold, or that other languages would round, becomes text.

    >>> cell(float("inf")), cell(2**60), cell(True), cell(None), cell(1.5)
    ('inf', '1152921504606846976', True, None, 1.5)
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and abs(value) > SAFE_INTEGER:
        return str(value)
    return value


def finite(data: Any) -> Any:
    """Plain data, with numbers that JSON cannot hold as text."""
    if isinstance(data, dict):
        return {name: finite(value) for name, value in data.items()}
    return list(map(finite, data)) if isinstance(data, list | tuple) else cell(data)
