"""Back ends of a fit: what encodes the table and trains the networks, on this machine or on a Ray cluster."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from countless.data.columns.schema import Schema
from countless.data.encoding.code_files import is_codes, remove
from countless.data.encoding.memory_bounds import Bounds, bounded
from countless.data.encoding.memory_limit import Memory, readable
from countless.data.encoding.out_of_core import encode_mapped
from countless.data.encoding.table import Table, bytes_in_memory, read_schema
from countless.data.progress import Events
from countless.data.sources.source import Source
from countless.options import EncodeOptions, ResourceOptions
from countless.store import COLUMNS, TEXT

if TYPE_CHECKING:
    from countless.train.recipe import Trainer


class Backend(Protocol):
    """Encodes a table and trains on it, while entered."""

    @property
    def bounds(self) -> Bounds | None:
        """How much memory may be used, if that is bounded."""
        ...

    @property
    def train(self) -> Trainer:
        """Trains a network on the table that was encoded."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def encode(self, source: Source, options: EncodeOptions, seed: int, events: Events) -> Table:
        """The table of ``source``; ``seed`` shuffles its rows if they are written to files."""
        ...


class LocalBackend:
    """This process: the codes are in memory, or in files if they would take too much of it."""

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
        from countless.train.recipe import train_here

        return train_here

    def encode(self, source: Source, options: EncodeOptions, seed: int, events: Events) -> Table:
        if self.bounds is None:
            return Table.encode(source, options, events.stage, events.reading)
        memory, codes, resume = self.bounds.memory, self.bounds.codes, self._resources.resume
        schema: Schema | None = None
        if not (resume and is_codes(codes)):
            schema = read_schema(source, options, events.stage, events.reading)
            needed = bytes_in_memory(schema)
            if needed <= memory.codes or (resume and has_checkpoint(self._resources.checkpoint)):
                if is_codes(codes):  # an earlier fit left it: --resume must not mistake it for this one's
                    remove(codes)
                return Table.encode_rows(source, schema, events.stage, events.reading)
            events.notice(out_of_core(needed, memory))
        return encode_mapped(
            source,
            options,
            codes,
            memory,
            schema=schema,
            seed=seed,
            resume=resume,
            on_stage=events.stage,
            on_reading=events.reading,
        )


def backend_of(resources: ResourceOptions) -> Backend:
    """The back end that the options ask for."""
    if resources.ray is None:
        return LocalBackend(resources)
    from countless.cluster.backend import RayBackend

    return RayBackend(resources)


def out_of_core(needed: int, memory: Memory) -> str:
    """Why the codes of a table are on disk, for the user."""
    return (
        f"the encoded table would take {readable(needed)} of the {readable(memory.total)} of memory that the fit may "
        "use: it is kept on disk and read from there"
    )


def checkpoint_of(path: Path, name: str) -> Path:
    """Where the model called ``name`` keeps its checkpoint, if that of the columns is at ``path``."""
    return path if name == COLUMNS else path.with_name(f"{path.name}-{name}")


def has_checkpoint(path: Path | None) -> bool:
    """Whether an earlier fit left something to go on from at ``path``: its table stays where it was."""
    return path is not None and any(checkpoint_of(path, name).exists() for name in (COLUMNS, TEXT))
