"""A table with text of which only some rows have their strings: those that a fit has time to train on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from countless.data.columns.schema import Schema
from countless.data.encoding.table import Table
from countless.data.progress import ScanProgress
from countless.data.sources.source import Source


def encode_text_sample(
    source: Source,
    schema: Schema,
    rows: int,
    seed: int,
    on_stage: Callable[[str], None] = lambda stage: None,
    on_reading: Callable[[ScanProgress], None] = lambda reading: None,
) -> tuple[Table, Table]:
    """All rows of a table with text, but without their strings; and ``rows`` random rows with theirs, to train on.

    The strings are by far the largest part of such a table, and a fit has no time to read more than some of them.
    """
    table = encode_without_strings(source, schema, on_stage, on_reading)
    on_stage("drawing rows to train on")
    with source.sample_table(rows, seed, schema.names, schema.rows) as some:
        drawn = Table.encode_rows(some, replace(schema, rows=rows), on_stage, on_reading)
    return table, Table(schema, drawn.codes, drawn.strings)


def encode_without_strings(
    source: Source,
    schema: Schema,
    on_stage: Callable[[str], None] = lambda stage: None,
    on_reading: Callable[[ScanProgress], None] = lambda reading: None,
) -> Table:
    """All rows of a table with text, but without their strings."""
    codes: tuple[NDArray[Any], ...] = ()
    if schema.coded:
        codes = Table.encode_rows(source, replace(schema, columns=schema.coded), on_stage, on_reading).codes
    return Table(schema, codes)
