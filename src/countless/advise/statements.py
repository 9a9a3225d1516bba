"""CREATE STATISTICS statements with deterministic names."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from countless.data.columns.types import quote_identifier

LONGEST = 63  # bytes of a name
USUAL, MOST = 100, 10_000  # PostgreSQL's default and largest statistics target


@dataclass(frozen=True)
class Statistics:
    """Extended statistics on columns of a table, the name qualified by its schema."""

    schema: str
    table: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    target: int | None = None

    @property
    def name(self) -> str:
        return f"{quote_identifier(self.schema)}.{quote_identifier(statistics_name(self.table, self.columns))}"

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements to run, in order; ANALYZE comes after all of them."""
        columns = ", ".join(map(quote_identifier, self.columns))
        table = f"{quote_identifier(self.schema)}.{quote_identifier(self.table)}"
        create = f"CREATE STATISTICS IF NOT EXISTS {self.name} ({', '.join(self.kinds)}) ON {columns} FROM {table}"
        if self.target is None:
            return (create,)
        return create, f"ALTER STATISTICS {self.name} SET STATISTICS {self.target}"


def statistics_name(table: str, columns: Sequence[str]) -> str:
    """The name for statistics on ``columns``. A name that is too long ends in a digest.

    >>> statistics_name("orders", ["city", "zip"])
    'countless_orders_city_zip'
    """
    name = "_".join(["countless", table, *columns])
    if len(name.encode()) <= LONGEST:
        return name
    digest = hashlib.blake2b(repr((table, tuple(columns))).encode(), digest_size=6).hexdigest()
    return name.encode()[: LONGEST - len(digest) - 1].decode(errors="ignore") + "_" + digest


def target_for(combinations: int) -> int | None:
    """The statistics target for this number of combinations; None for PostgreSQL's default."""
    if combinations <= USUAL:
        return None
    return combinations if combinations <= MOST else 10 * USUAL
