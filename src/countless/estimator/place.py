"""Where a fit takes place: in this process, or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from countless.data.memory import Memory
from countless.data.source import Source
from countless.data.table import EncodeOptions, Table
from countless.errors import TrainingError
from countless.estimator.encoding import Bounds, bounded, encoded
from countless.estimator.learning import Listener

if TYPE_CHECKING:
    from countless.cluster.workplace import Workplace
    from countless.train.recipe import Trainer


class Place(Protocol):
    """Encodes tables, and trains; the functions are those of :mod:`countless.estimator.encoding`."""

    @property
    def train(self) -> Trainer:
        """What trains here."""
        ...

    def bounded(
        self, memory: Memory | None, codes: Path | None, kept: bool = False
    ) -> AbstractContextManager[Bounds | None]:
        """The bounds of a fit, if there are any."""
        ...

    def encoded(
        self,
        source: Source,
        options: EncodeOptions,
        bounds: Bounds | None,
        seed: int,
        resume: bool,
        listener: Listener,
    ) -> Table:
        """The table of a source."""
        ...


class Here:
    """This process."""

    bounded = staticmethod(bounded)
    encoded = staticmethod(encoded)

    @property
    def train(self) -> Trainer:
        from countless.train.recipe import train_here

        return train_here


class There:
    """A cluster, on which codes always lie in a folder."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace

    @property
    def train(self) -> Trainer:
        return self._workplace.train

    def bounded(
        self, memory: Memory | None, codes: Path | None, kept: bool = False
    ) -> AbstractContextManager[Bounds | None]:
        return bounded(memory or self._workplace.memory, (codes or self._workplace.folder / "codes").absolute())

    def encoded(
        self,
        source: Source,
        options: EncodeOptions,
        bounds: Bounds | None,
        seed: int,
        resume: bool,
        listener: Listener,
    ) -> Table:
        assert bounds is not None
        return self._workplace.encode(
            source,
            options,
            bounds.codes,
            bounds.memory,
            seed=seed,
            resume=resume,
            on_stage=listener.stage,
            on_reading=listener.reading,
        )


@contextmanager
def place_of(
    ray: str | None,
    workers: int | None,
    threads: int | None,
    shared: str | os.PathLike[str] | None,
    checkpoint: Path | None,
) -> Iterator[Place]:
    """The place that :func:`~countless.estimator.fit.fit` is told."""
    if ray is None:
        if workers is not None or threads is not None or shared is not None:
            raise TrainingError("--workers, --threads and --shared are about a cluster: give its address with --ray")
        yield Here()
        return
    if 0 in (workers, threads) or min(workers or 1, threads or 1) < 1:
        raise TrainingError("--workers and --threads must be at least 1")
    if shared is None and checkpoint is None:
        raise TrainingError('a cluster needs a folder that all its machines see: give it with shared="..."')
    folder = Path(shared) if shared is not None else Path(checkpoint or ".").parent
    from countless.cluster.workplace import Workplace

    with Workplace(ray, workers, threads or 1, folder) as workplace:
        yield There(workplace)
