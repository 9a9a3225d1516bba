"""A cluster as the place of a fit."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from countless.cluster.encoding import encode_on
from countless.cluster.session import Cluster
from countless.cluster.shared import REMEDY, require_shared
from countless.cluster.training import ClusterTrainer, Workers
from countless.data.memory import Memory
from countless.data.output import umask
from countless.data.source import Source
from countless.data.table import EncodeOptions, Table
from countless.errors import ClusterError


class Workplace:
    """A Ray cluster, while entered, with a folder of its own inside the ``shared`` one, which goes in the end."""

    memory = Memory(4 * 10**9)  # of a worker, unless it is told

    def __init__(self, address: str, workers: int | None, threads: int, shared: Path) -> None:
        self._cluster = Cluster(address)
        self._wanted = (workers, threads)
        self._shared = shared
        self._stack = ExitStack()
        self._workers: Workers
        self.folder: Path
        self.train: ClusterTrainer  # when a table is encoded

    def __enter__(self) -> Workplace:
        with ExitStack() as stack:
            cluster = stack.enter_context(self._cluster)
            self._workers = Workers.on(cluster.machines(), *self._wanted)
            self.folder = _own_folder(self._shared)
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            require_shared(cluster, self.folder)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def encode(self, source: Source, options: EncodeOptions, codes: Path, memory: Memory, **how: Any) -> Table:
        """The table of ``source``, whose codes are in the folder ``codes``; see :func:`encode_on`."""
        table = encode_on(self._cluster, source, options, codes, memory, **how)
        self.train = ClusterTrainer(self._cluster, self.folder, self._workers, codes, memory)
        return table


def _own_folder(shared: Path) -> Path:
    try:
        folder = Path(tempfile.mkdtemp(prefix="countless-cluster-", dir=shared.absolute()))
    except OSError as error:
        raise ClusterError(f"cannot write in {shared}: {error.strerror}; {REMEDY}") from None
    os.chmod(folder, 0o777 & ~umask())
    return folder
