"""The encoded table of a fit: in memory, or in a folder if memory is limited."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from countless.data.mapped import encode_mapped
from countless.data.memory import Memory
from countless.data.source import Source
from countless.data.table import EncodeOptions, Table
from countless.errors import DataError
from countless.estimator.learning import Listener


@contextmanager
def encoded(
    source: Source,
    options: EncodeOptions,
    memory: Memory | None,
    codes: Path | None,
    seed: int,
    resume: bool,
    listener: Listener,
) -> Iterator[Table]:
    """The table of ``source``; with ``memory``, its codes are at ``codes``, or in a folder that is removed afterwards.

    In the meantime DuckDB keeps to its share of the memory, and has a folder beside for what does not fit.
    """
    if memory is None:
        yield Table.encode(source, options, listener.stage, listener.reading)
        return
    with ExitStack() as stack:
        if codes is None:
            codes = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="countless-"))) / "codes"
        try:
            spill = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=f"{codes.name}-spill-", dir=codes.parent, ignore_cleanup_errors=True)
            )
        except OSError as error:
            raise DataError(f"cannot make the folder {codes}: {error.strerror}; choose another place") from None
        source.limit(memory.duckdb, spill)
        yield encode_mapped(
            source,
            options,
            codes,
            memory,
            seed=seed,
            resume=resume,
            on_stage=listener.stage,
            on_reading=listener.reading,
        )
