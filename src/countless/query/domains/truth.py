"""The truth of a predicate on one column, value by value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Codes = Any  # a set of a column's values: a BoolArray over its codes, or the Language of a text column


@dataclass(frozen=True, eq=False)
class Truth:
    """For each value, and NULL if it occurs: is a predicate true, is it false? If neither, it is NULL."""

    true: Codes
    false: Codes
