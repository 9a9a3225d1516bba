"""The Ray back end of a fit."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from countless.cluster.encoding import encode_on
from countless.cluster.session import AUTO, Cluster
from countless.cluster.shared import REMEDY, require_shared
from countless.cluster.training import ClusterTrainer, Workers
from countless.data.atomic_files import umask
from countless.data.encoding.memory_bounds import Bounds, bounded
from countless.data.encoding.memory_limit import Memory
from countless.data.encoding.table import Table
from countless.data.progress import Events
from countless.data.sources.source import Source
from countless.errors import ClusterError
from countless.options import ReadingOptions, ResourceOptions

PREFIX = "cluster-"
WORKER_MEMORY = 4 * 10**9  # bytes; the default


class RayBackend:
    """The back end on a Ray cluster. The codes are files in a folder that all machines can read.

    It is a context manager, and has a folder of its own inside the shared one, which is removed at the end.
    """

    def __init__(self, resources: ResourceOptions) -> None:
        self._resources = resources
        self._cluster = Cluster(resources.ray or AUTO)
        self._stack = ExitStack()
        self._folder: Path
        self._workers: Workers
        self.bounds: Bounds | None = None
        self.train: ClusterTrainer  # set when a table is encoded

    def __enter__(self) -> RayBackend:
        resources = self._resources
        shared = resources.shared or Path(resources.checkpoint or ".").parent
        with ExitStack() as stack:
            cluster = stack.enter_context(self._cluster)
            self._workers = Workers.on(cluster.machines(), resources.workers, resources.threads or 1)
            self._folder = make_run_folder(shared, resources.checkpoint)
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            require_shared(cluster, self._folder)
            codes = (resources.codes or self._folder / "codes").absolute()
            self.bounds = stack.enter_context(bounded(Memory(resources.memory or WORKER_MEMORY), codes))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def encode(
        self, source: Source, options: ReadingOptions, seed: int, events: Events, text_rows: int | None
    ) -> tuple[Table, Table]:
        """The table of ``source``, encoded by all machines, and its rows to train on.

        A cluster reads all strings, because it has more time and memory than one machine.
        """
        assert self.bounds is not None
        codes, memory = self.bounds.codes, self.bounds.memory
        table = encode_on(
            self._cluster,
            source,
            options,
            codes,
            memory,
            seed=seed,
            resume=self._resources.resume,
            events=events,
        )
        self.train = ClusterTrainer(self._cluster, self._folder, self._workers, codes, memory)
        return table, table if options.sample_rows is None else table.sampled(options.sample_rows, seed)


def make_run_folder(shared: Path, checkpoint: Path | None = None) -> Path:
    """A new folder inside the ``shared`` one. Removes the folder of a killed fit with the same ``checkpoint``."""
    prefix = PREFIX
    if checkpoint is not None:
        prefix = f"{checkpoint.name}-{PREFIX}"
        for stale in shared.glob(glob.escape(prefix) + "*"):
            shutil.rmtree(stale, ignore_errors=True)
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=shared.absolute()))
    except OSError as error:
        raise ClusterError(f"cannot write in {shared}: {error.strerror}; {REMEDY}") from None
    os.chmod(folder, 0o777 & ~umask())
    return folder
