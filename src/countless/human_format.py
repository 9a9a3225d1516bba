"""Human-readable formatting of numbers, durations and sizes."""

from __future__ import annotations


def plural(count: float, noun: str) -> str:
    """A number and its noun.

    >>> plural(1, "row"), plural(2000, "row"), plural(2.5, "epoch")
    ('1 row', '2,000 rows', '2.5 epochs')
    """
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {noun}" if count == 1 else f"{number} {noun}s"


def factor(value: float) -> str:
    """A q-error or another factor.

    >>> factor(1.234), factor(57.3), factor(12345)
    ('1.23', '57', '12,345')
    """
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def number(value: float) -> str:
    """Three digits or so.

    >>> number(1.0942), number(38.64), number(1150.2), number(0.0091)
    ('1.09', '38.6', '1,150', '0.01')
    """
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(9.4), duration(75), duration(4000)
    ('9s', '1m15s', '1h06m')
    """
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02}s"
    return f"{seconds // 3600}h{seconds % 3600 // 60:02}m"


def size(count: int) -> str:
    """A number of bytes.

    >>> size(512), size(2_600_000)
    ('512 B', '2.6 MB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"
