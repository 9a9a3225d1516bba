"""The encoded table of a fit: in memory, or in a folder if it would take too much of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from countless.data.codes import is_codes, remove, remove_spills, spill_prefix
from countless.data.connection import Limit
from countless.data.machine import available_memory
from countless.data.mapped import encode_mapped
from countless.data.memory import Memory, readable
from countless.data.schema import Schema
from countless.data.source import Source
from countless.data.table import EncodeOptions, Table, bytes_in_memory, read_schema
from countless.errors import DataError
from countless.estimator.learning import Listener


@dataclass(frozen=True)
class Bounds:
    """How much memory a fit may take, where the codes are if they do not fit, and what DuckDB must keep to.

    ``kept`` tells whether a checkpoint is there to go on from: what it was learned from stays where it was.
    """

    memory: Memory
    codes: Path
    duckdb: Limit | None
    kept: bool = False


@contextmanager
def bounded(memory: Memory | None, codes: Path | None, kept: bool = False) -> Iterator[Bounds | None]:
    """The bounds of a fit: what the machine has left, or ``memory`` if that is less.

    None if neither is known. Without a place for the codes they have one as long as the body runs. With ``memory``,
    DuckDB has a folder beside, for what does not fit its share; one that a fit to the same place left when it was
    killed is removed.
    """
    available = available_memory()
    if available is None and memory is None:
        yield None
        return
    bound = memory or Memory.of_machine(available or 0)
    if available is not None:
        bound = bound.lowered(Memory.of_machine(available))
    with ExitStack() as stack:
        try:
            if codes is None:
                codes = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="countless-"))) / "codes"
            remove_spills(codes)
            duckdb = None
            if memory is not None:
                beside = tempfile.TemporaryDirectory(
                    prefix=spill_prefix(codes), dir=codes.parent, ignore_cleanup_errors=True
                )
                duckdb = Limit(bound.duckdb, stack.enter_context(beside))
        except OSError as error:
            raise DataError(f"cannot make the folder {codes}: {error.strerror}; choose another place") from None
        yield Bounds(bound, codes, duckdb, kept)


def encoded(
    source: Source, options: EncodeOptions, bounds: Bounds | None, seed: int, resume: bool, listener: Listener
) -> Table:
    """The table of ``source``: all in memory, or in a folder if its codes would take too much of it."""
    if bounds is None:
        return Table.encode(source, options, listener.stage, listener.reading)
    schema: Schema | None = None
    if not (resume and is_codes(bounds.codes)):
        schema = read_schema(source, options, listener.stage, listener.reading)
        needed = bytes_in_memory(schema)
        if needed <= bounds.memory.codes or (resume and bounds.kept):
            if is_codes(bounds.codes):  # an earlier fit left it: --resume must not mistake it for this one's
                remove(bounds.codes)
            return Table.encode_rows(source, schema, listener.stage, listener.reading)
        listener.notice(out_of_core(needed, bounds.memory))
    return encode_mapped(
        source,
        options,
        bounds.codes,
        bounds.memory,
        schema=schema,
        seed=seed,
        resume=resume,
        on_stage=listener.stage,
        on_reading=listener.reading,
    )


def out_of_core(needed: int, memory: Memory) -> str:
    """Why the codes of a table are on disk, for the user."""
    return (
        f"the encoded table would take {readable(needed)} of the {readable(memory.total)} of memory that the fit may "
        "use: it is kept on disk and read from there"
    )
