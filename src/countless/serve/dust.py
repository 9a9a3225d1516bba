"""What rounding leaves where nothing should be is nothing."""

from __future__ import annotations

LEAST = 1e-9  # a number nearer to zero is taken for it


def clear(number: float) -> float:
    """The number, or zero if it is so small that it is dust.

    >>> clear(2.2e-16), clear(-3e-12), clear(0.01), clear(12.0)
    (0.0, 0.0, 0.01, 12.0)
    """
    return number if abs(number) >= LEAST else 0.0
