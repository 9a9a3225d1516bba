"""The registry of baselines by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from countless.cached_property import cached_property
from countless.data.columns.schema import Schema
from countless.data.encoding.table import Table
from countless.data.sources.file_formats import with_default_options
from countless.data.sources.source import Source
from countless.errors import CountlessError, DataError
from countless.evaluation.baselines.base import Baseline
from countless.evaluation.baselines.duckdb_guess import DuckDbGuess
from countless.evaluation.baselines.independence import Independence
from countless.evaluation.baselines.row_sample import RowSample
from countless.evaluation.baselines.sample_scan import SampleScan
from countless.evaluation.baselines.scan import Scan
from countless.options import EncodeOptions
from countless.query.rewrites.derivation import derive

if TYPE_CHECKING:
    from countless.evaluation.baselines.postgres.planner import LoadedTable

SHARE = 0.01  # of the rows that a sample has


@dataclass
class Material:
    """What baselines are made from: a table and the schema of its model. Shared intermediate results are made once."""

    table: Any
    schema: Schema
    share: float = SHARE
    tell: Callable[[str], None] = field(default=lambda stage: None)

    def __post_init__(self) -> None:
        self.table = with_default_options(self.table, self.schema.csv)
        if self.schema.derived:
            self.table = derive(Source.open(self.table), self.schema.derived)

    @cached_property
    def encoded(self) -> Table:
        """The model's columns as codes. Text columns are in the schema, but not read."""
        names = tuple(column.name for column in self.schema.coded)
        self.tell("encoding the table")
        table = Table.encode(Source.open(self.table), EncodeOptions(columns=names, no_text=names))
        return Table(replace(table.schema, columns=(*table.schema.columns, *self.schema.texts)), table.codes)

    @cached_property
    def loaded(self) -> LoadedTable:
        """The model's columns in a PostgreSQL server."""
        from countless.evaluation.baselines.postgres.planner import LoadedTable

        return LoadedTable(self.table, self.schema.names, self.tell)

    def close(self) -> None:
        """Stop the server, if there is one."""
        if "loaded" in self.__dict__:
            self.loaded.close()

    def __enter__(self) -> Material:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _independence(material: Material) -> Baseline:
    if not material.schema.coded:
        raise DataError("the method 'independence' is not for text columns, and the model has no others")
    return Independence(material.encoded)


def _row_sample(material: Material) -> Baseline:
    if material.schema.texts:
        return SampleScan(material.table, material.share)
    return RowSample(material.encoded, material.share)


def _postgres(material: Material) -> Baseline:
    from countless.evaluation.baselines.postgres.planner import Postgres

    return Postgres(material.loaded)


def _postgres_extended(material: Material) -> Baseline:
    from countless.evaluation.baselines.postgres.planner import PostgresExtended

    return PostgresExtended(material.loaded)


BASELINES: dict[str, Callable[[Material], Baseline]] = {
    "independence": _independence,
    "row-sample": _row_sample,
    "duckdb-guess": lambda material: DuckDbGuess(material.table),
    "postgres": _postgres,
    "postgres-extended": _postgres_extended,
    "scan": lambda material: Scan(material.table),
}
FRACTION = re.compile(r"row-sample-(\d+(?:\.\d+)?)%")


def make(name: str, material: Material) -> Baseline:
    """The baseline of this name. A name such as ``row-sample-0.1%`` gives the share of sampled rows."""
    share = _share(name)
    if share is None:
        return BASELINES[name](material)
    return SampleScan(material.table, share) if material.schema.texts else RowSample(material.encoded, share)


def check(names: Iterable[str]) -> tuple[str, ...]:
    """The distinct names. Raises an error for an unknown one.

    >>> check(["scan", "row-sample-0.1%"])
    ('scan', 'row-sample-0.1%')
    """
    distinct = tuple(dict.fromkeys(names))
    for name in distinct:
        if name not in BASELINES and _share(name) is None:
            raise CountlessError(
                f"unknown baseline {name!r}: choose from {', '.join(BASELINES)}, or a share such as row-sample-0.1%"
            )
    return distinct


def _share(name: str) -> float | None:
    """The share in the name of a row sample; None for any other name."""
    match = FRACTION.fullmatch(name)
    share = float(match[1]) / 100 if match else 0.0
    return share if 0 < share <= 1 else None
