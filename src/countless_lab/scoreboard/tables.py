"""The tables that the scoreboard measures, and where they are."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from countless.data.datasets import EMBEDDED
from countless.errors import DataError


@dataclass(frozen=True)
class BenchmarkTable:
    """A table by name, its source, the columns to leave out, and how many of its rows to use (None: all)."""

    name: str
    source: str
    exclude: tuple[str, ...]
    rows: int | None
    full: bool | str
    quick: bool

    def path(self, data: Path) -> Path | None:
        """The table's file, if this machine has it."""
        if self.source in EMBEDDED:
            return EMBEDDED[self.source]()
        path = data / self.source
        return path if path.is_file() else None


def known_tables() -> dict[str, BenchmarkTable]:
    """All tables by name.

    >>> known_tables()["adult"].exclude
    ('fnlwgt',)
    """
    text = Path(__file__).with_name("tables.toml").read_text(encoding="utf-8")
    return {
        name: BenchmarkTable(
            name, facts["source"], tuple(facts.get("exclude", ())), facts.get("rows"), facts["full"], facts["quick"]
        )
        for name, facts in tomllib.loads(text).items()
    }


def choose_tables(names: Sequence[str], quick: bool, data: Path) -> tuple[list[BenchmarkTable], list[str]]:
    """The tables to measure, and the names of those that are not on this machine.

    Without names they are those of the whole run, or of the quick one.
    """
    known = known_tables()
    for name in names:
        if name not in known:
            raise DataError(f"unknown table {name!r}: choose from {', '.join(known)}")
    wanted = [known[name] for name in names] or [
        table for table in known.values() if (table.quick if quick else table.full)
    ]
    present = [table for table in wanted if table.path(data) is not None]
    missing = [table.name for table in wanted if table.path(data) is None]
    if names and missing:
        raise DataError(f"no file of the table {missing[0]} in {data}: name the folder that has it with --data")
    if not names and not missing:
        present = [table for table in present if quick or table.full is True]
    return present, missing
