"""The memory budget of a fit, and how it is divided among its steps."""

from __future__ import annotations

from dataclasses import dataclass

from countless.settings import LEAST_MEMORY

FIXED = 450 * 10**6  # bytes that Python, PyTorch and the model take, whatever the table
# Shares of the rest:
DUCKDB_SHARE = 0.5
BLOCK_SHARE = 0.05  # several blocks are in memory at once
CODES_SHARE = 0.5  # larger codes are written to a folder


@dataclass(frozen=True)
class Memory:
    """The number of bytes that a fit may use."""

    total: int

    @classmethod
    def of_machine(cls, available: int) -> Memory:
        """The limit of a fit on a machine with this many bytes available."""
        return cls(max(LEAST_MEMORY, available))

    def lowered(self, other: Memory | None) -> Memory:
        """The lower of two limits."""
        return self if other is None or self.total <= other.total else other

    @property
    def codes(self) -> int:
        """Bytes for the codes of a table, together with what training stores per row."""
        return int((self.total - FIXED) * CODES_SHARE)

    @property
    def duckdb(self) -> int:
        """Bytes for DuckDB, which spills to disk beyond that."""
        return int((self.total - FIXED) * DUCKDB_SHARE)

    @property
    def block(self) -> int:
        """Bytes of a block that is read, shuffled or written at once."""
        return int((self.total - FIXED) * BLOCK_SHARE)


def readable(size: float) -> str:
    """A number of bytes for people.

    >>> readable(2_000_000_000), readable(123_456_789)
    ('2GB', '123MB')
    """
    for unit in ("TB", "GB", "MB", "kB"):
        scale = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3}[unit]
        if size >= scale:
            return f"{size / scale:.3g}{unit}"
    return f"{size:.0f} bytes"
