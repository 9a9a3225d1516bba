"""How much memory a fit may take, and how it is shared out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from countless.errors import DataError

AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?b)", re.IGNORECASE)
UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
LEAST = 10**9
ALWAYS = 450 * 10**6  # that Python, PyTorch and the model take, whatever the table
DUCKDB_SHARE = 0.5  # of the rest
BLOCK_SHARE = 0.05  # the same; some of them are held at once
CODES_SHARE = 0.5  # the same: a table whose codes take more goes to a folder


@dataclass(frozen=True)
class Memory:
    """The most bytes that a fit should hold.

    >>> Memory.read("2GB").total, Memory.read("1.5 GiB").total
    (2000000000, 1610612736)
    """

    total: int

    def __post_init__(self) -> None:
        if self.total < LEAST:
            raise DataError(f"--memory {readable(self.total)} is too little: give at least {readable(LEAST)}")

    @classmethod
    def read(cls, amount: str | int) -> Memory:
        """An amount with its unit, such as 2GB, or a number of bytes."""
        if isinstance(amount, int):
            return cls(amount)
        found = AMOUNT.fullmatch(amount.strip())
        if found is None:
            raise DataError(
                f"--memory {amount!r} is no amount of memory: give a number and a unit, such as 2GB or 900MB"
            )
        return cls(int(float(found[1]) * UNITS[found[2].lower()]))

    @classmethod
    def of_machine(cls, available: int) -> Memory:
        """The bound of a fit on a machine with so many bytes left."""
        return cls(max(LEAST, available))

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
