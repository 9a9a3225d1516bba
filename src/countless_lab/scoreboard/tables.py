"""The tables that the scoreboard measures, and at which scale."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from countless.data.datasets import EMBEDDED
from countless.errors import DataError


@dataclass(frozen=True)
class ScoreboardScale:
    """How long to train, how many questions to ask, and for how long at most.

    ``seconds`` bounds the answers to one workload, by the model and by each opponent; ``rows`` cuts every table.
    """

    name: str = "full"
    budget: float = 300.0
    seeds: int = 1
    paper_questions: int = 5_000
    questions_per_kind: int = 100
    seconds: float = 120.0
    opponent_seconds: float = 40.0
    rate_seconds: float = 10.0
    rows: int | None = None


FULL = ScoreboardScale()
QUICK = ScoreboardScale(
    "quick",
    budget=60.0,
    seeds=2,
    paper_questions=1_000,
    questions_per_kind=20,
    seconds=30.0,
    opponent_seconds=10.0,
    rate_seconds=5.0,
)


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
            name, entry["source"], tuple(entry.get("exclude", ())), entry.get("rows"), entry["full"], entry["quick"]
        )
        for name, entry in tomllib.loads(text).items()
    }


def choose_tables(names: Sequence[str], quick: bool, data: Path) -> tuple[list[BenchmarkTable], list[str]]:
    """The tables to measure, and the names of those that are not on this machine.

    Without names they are those of the whole run, or of the quick one.
    """
    tables = known_tables()
    for name in names:
        if name not in tables:
            raise DataError(f"unknown table {name!r}: choose from {', '.join(tables)}")
    selected = [tables[name] for name in names] or [
        table for table in tables.values() if (table.quick if quick else table.full)
    ]
    present = [table for table in selected if table.path(data) is not None]
    missing = [table.name for table in selected if table.path(data) is None]
    if names and missing:
        raise DataError(f"no file of the table {missing[0]} in {data}: name the folder that has it with --data")
    if not names and not missing:
        present = [table for table in present if quick or table.full is True]
    return present, missing
