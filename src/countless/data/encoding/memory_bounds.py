"""The memory limit of a fit, and the folder for data that exceeds it."""

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
    """How much memory a fit may take, where the codes are if they do not fit, and what DuckDB must keep to."""

    memory: Memory
    codes: Path
    duckdb: Limit | None


@contextmanager
def bounded(memory: Memory | None, codes: Path | None) -> Iterator[Bounds | None]:
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
        yield Bounds(bound, codes, duckdb)
