"""The encoded table of a fit: in memory, or in a folder if memory is limited."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from countless.data.codes import remove_spills, spill_prefix
from countless.data.connection import Limit
from countless.data.mapped import encode_mapped
from countless.data.memory import Memory
from countless.data.source import Source
from countless.data.table import EncodeOptions, Table
from countless.errors import DataError
from countless.estimator.learning import Listener


@dataclass(frozen=True)
class Bounds:
    """How much memory a fit may take, where the codes are, and what DuckDB must keep to."""

    memory: Memory
    codes: Path
    duckdb: Limit


@contextmanager
def bounded(memory: Memory | None, codes: Path | None) -> Iterator[Bounds | None]:
    """The bounds of a fit, if there is a limit; without a place for the codes they have one as long as the body runs.

    So long DuckDB has a folder beside, for what does not fit its share of the memory; one that a fit to the same place
    left when it was killed is removed.
    """
    if memory is None:
        yield None
        return
    with ExitStack() as stack:
        try:
            if codes is None:
                codes = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="countless-"))) / "codes"
            remove_spills(codes)
            beside = tempfile.TemporaryDirectory(
                prefix=spill_prefix(codes), dir=codes.parent, ignore_cleanup_errors=True
            )
            spill = stack.enter_context(beside)
        except OSError as error:
            raise DataError(f"cannot make the folder {codes}: {error.strerror}; choose another place") from None
        yield Bounds(memory, codes, Limit(memory.duckdb, spill))


def encoded(
    source: Source, options: EncodeOptions, bounds: Bounds | None, seed: int, resume: bool, listener: Listener
) -> Table:
    """The table of ``source``, all in memory or within the bounds."""
    if bounds is None:
        return Table.encode(source, options, listener.stage, listener.reading)
    return encode_mapped(
        source,
        options,
        bounds.codes,
        bounds.memory,
        seed=seed,
        resume=resume,
        on_stage=listener.stage,
        on_reading=listener.reading,
    )
