"""Back ends of a fit: what encodes the table and trains the networks, on this machine or on a Ray cluster."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from countless.data.columns.schema import Schema
from countless.data.encoding.code_files import is_codes, remove
from countless.data.encoding.memory_bounds import Bounds, bounded
from countless.data.encoding.memory_limit import Memory, readable
from countless.data.encoding.out_of_core import encode_mapped
from countless.data.encoding.table import Table, bytes_in_memory, read_schema
from countless.data.progress import QUIET, Events
from countless.data.sources.source import Source
from countless.options import ReadingOptions, ResourceOptions
from countless.store import COLUMNS, TEXT

if TYPE_CHECKING:
    from countless.train.tasks.recipe import Trainer


TEXT_ROWS_A_SECOND = 10_000  # more than a network can read with two cores
LEAST_TEXT_ROWS = 500_000


class Backend(Protocol):
    """Encodes a table and trains on it, while entered."""

    @property
    def bounds(self) -> Bounds | None:
        """The bounds of memory, if there are any."""
        ...

    @property
    def train(self) -> Trainer:
        """Trains a network on the table that was encoded."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def encode(
        self, source: Source, options: ReadingOptions, seed: int, events: Events, text_rows: int | None
    ) -> tuple[Table, Table]:
        """The encoded table of ``source``, and the rows to train on.

        ``seed`` is for drawing these rows, and for shuffling a table that is written to files. Strings of at most
        ``text_rows`` rows are encoded, because training has no time for more; 0 is for a fit without a text network.
        """
        ...


class LocalBackend:
    """Encodes and trains in this process. Codes are in memory, or in files if they need too much memory."""

    def __init__(self, resources: ResourceOptions) -> None:
        self._resources = resources
        self._stack = ExitStack()
        self.bounds: Bounds | None = None

    def __enter__(self) -> Self:
        memory = None if self._resources.memory is None else Memory(self._resources.memory)
        self.bounds = self._stack.enter_context(bounded(memory, self._resources.codes))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def train(self) -> Trainer:
        from countless.train.tasks.recipe import train_here

        return train_here

    def encode(
        self, source: Source, options: ReadingOptions, seed: int, events: Events, text_rows: int | None
    ) -> tuple[Table, Table]:
        schema: Schema | None = None
        if self.bounds is None or not (self._resources.resume and is_codes(self.bounds.codes)):
            schema = read_schema(source, options, events)
            rows = rows_to_read(schema, options.sample_rows or text_rows)
            if text_rows == 0 and schema.texts:
                if self._fits(replace(schema, columns=schema.coded), None, events):
                    table = encode_without_strings(source, schema, events)
                    return table, table if options.sample_rows is None else table.sampled(options.sample_rows, seed)
            elif self._fits(schema, rows, events):
                return encode_in_memory(source, schema, rows or options.sample_rows, seed, events)
        assert self.bounds is not None
        table = encode_mapped(
            source,
            options,
            self.bounds.codes,
            self.bounds.memory,
            schema=schema,
            seed=seed,
            resume=self._resources.resume,
            events=events,
        )
        rows = options.sample_rows or rows_to_read(table.schema, text_rows or None)
        return table, table if rows is None else table.sampled(rows, seed)

    def _fits(self, schema: Schema, text_rows: int | None, events: Events) -> bool:
        """Whether the codes fit into memory. If not, the listener is told why."""
        if self.bounds is None:
            return True
        needed, memory, codes = bytes_in_memory(schema, text_rows), self.bounds.memory, self.bounds.codes
        if needed <= memory.codes or (self._resources.resume and has_checkpoint(self._resources.checkpoint)):
            if is_codes(codes):  # left by an earlier fit: --resume must not take it for this one's
                remove(codes)
            return True
        events.notice(out_of_core(needed, memory))
        return False


def backend_of(resources: ResourceOptions) -> Backend:
    """The back end that the options choose."""
    if resources.ray is None:
        return LocalBackend(resources)
    from countless.cluster.backend import RayBackend

    return RayBackend(resources)


def text_rows_within(budget: float | None) -> int | None:
    """How many rows with text a fit of ``budget`` seconds has time to train on, generously; None without a budget.

    >>> text_rows_within(None), text_rows_within(300.0)
    (None, 3000000)
    """
    return None if budget is None else max(LEAST_TEXT_ROWS, int(budget * TEXT_ROWS_A_SECOND))


def rows_to_read(schema: Schema, most: int | None) -> int | None:
    """``most`` if the table has text and more than ``most`` rows; otherwise None, for all rows."""
    return most if schema.texts and most is not None and most < schema.rows else None


def encode_in_memory(
    source: Source, schema: Schema, rows: int | None, seed: int, events: Events
) -> tuple[Table, Table]:
    """The table, and ``rows`` random rows to train on, or all. In a table with text, only these rows have strings."""
    text_rows = rows_to_read(schema, rows)
    if text_rows is not None:
        return encode_text_sample(source, schema, text_rows, seed, events)
    table = Table.encode_rows(source, schema, events)
    return table, table if rows is None else table.sampled(rows, seed)


def encode_text_sample(
    source: Source, schema: Schema, rows: int, seed: int, events: Events = QUIET
) -> tuple[Table, Table]:
    """All rows of a table without their strings, and ``rows`` random rows with strings, to train on.

    Strings are by far the largest part of a table with text, and a fit has no time to read all of them.
    """
    table = encode_without_strings(source, schema, events)
    events.stage("drawing rows to train on")
    with source.sample_table(rows, seed, schema.names, schema.rows) as sample:
        drawn = Table.encode_rows(sample, replace(schema, rows=rows), events)
    return table, Table(schema, drawn.codes, drawn.strings)


def encode_without_strings(source: Source, schema: Schema, events: Events = QUIET) -> Table:
    """All rows of a table with text, without their strings."""
    if not schema.coded:
        return Table(schema, ())
    return Table(schema, Table.encode_rows(source, replace(schema, columns=schema.coded), events).codes)


def out_of_core(needed: int, memory: Memory) -> str:
    """The message that the codes of a table are on disk, and why."""
    return (
        f"the encoded table would take {readable(needed)} of the {readable(memory.total)} of memory that the fit may "
        "use: it is kept on disk and read from there"
    )


def checkpoint_of(path: Path, name: str) -> Path:
    """The path of the checkpoint of the network called ``name``; ``path`` is that of the columns' network."""
    return path if name == COLUMNS else path.with_name(f"{path.name}-{name}")


def has_checkpoint(path: Path | None) -> bool:
    """Whether an earlier fit left a checkpoint at ``path``. Then its table is read as it was then."""
    return path is not None and any(checkpoint_of(path, name).exists() for name in (COLUMNS, TEXT))
