"""The memory limit of a fit, and the folders for data that exceeds it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from countless.data.encoding.available_memory import available_memory
from countless.data.encoding.code_files import remove_spills, spill_prefix
from countless.data.encoding.memory_limit import Memory
from countless.data.sources.connection import Limit
from countless.errors import DataError


@dataclass(frozen=True)
class Bounds:
    """The memory that a fit may use, the folder for codes that do not fit, and the limit of DuckDB, if any."""

    memory: Memory
    codes: Path
    duckdb: Limit | None


@contextmanager
def bounded(memory: Memory | None, codes: Path | None) -> Iterator[Bounds | None]:
    """The bounds of a fit: the machine's available memory, or ``memory`` if that is less; None if neither is known.

    Without a folder for the ``codes`` they get a temporary one for this block. With ``memory``, DuckDB gets a folder
    beside it to spill to; such a folder of a fit that was killed is removed.
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
                spill = tempfile.TemporaryDirectory(
                    prefix=spill_prefix(codes), dir=codes.parent, ignore_cleanup_errors=True
                )
                duckdb = Limit(bound.duckdb, stack.enter_context(spill))
        except OSError as error:
            raise DataError(f"cannot make the folder {codes}: {error.strerror}; choose another place") from None
        yield Bounds(bound, codes, duckdb)
