"""The memory budget of a fit, and how it is divided among its steps."""

from __future__ import annotations

from dataclasses import dataclass

from countless.settings import LEAST_MEMORY

ALWAYS = 450 * 10**6  # that Python, PyTorch and the model take, whatever the table
DUCKDB_SHARE = 0.5  # of the rest
BLOCK_SHARE = 0.05  # the same; some of them are held at once
CODES_SHARE = 0.5  # the same: a table whose codes take more goes to a folder


@dataclass(frozen=True)
class Memory:
    """The most bytes that a fit should hold."""

    total: int

    @classmethod
    def of_machine(cls, available: int) -> Memory:
        """The bound of a fit on a machine with this many bytes left."""
        return cls(max(LEAST_MEMORY, available))

    def lowered(self, other: Memory | None) -> Memory:
        """The lower of two bounds."""
        return self if other is None or self.total <= other.total else other

    @property
    def codes(self) -> int:
        """What the codes of a table may take, with what training holds for every row."""
        return int((self.total - ALWAYS) * CODES_SHARE)

    @property
    def duckdb(self) -> int:
        """What DuckDB may take; beyond that it uses the disk."""
        return int((self.total - ALWAYS) * DUCKDB_SHARE)

    @property
    def block(self) -> int:
        """The size of what is read, shuffled or written at once."""
        return int((self.total - ALWAYS) * BLOCK_SHARE)


def readable(size: float) -> str:
    """Bytes for a person.

    >>> readable(2_000_000_000), readable(123_456_789)
    ('2GB', '123MB')
    """
    for unit in ("TB", "GB", "MB", "kB"):
        scale = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3}[unit]
        if size >= scale:
            return f"{size / scale:.3g}{unit}"
    return f"{size:.0f} bytes"
