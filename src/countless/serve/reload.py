"""Hot reload: a model file that was replaced is loaded again, while the old model goes on answering."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Literal

from countless.errors import CountlessError
from countless.serve.metrics import FAILED, LOADED, ServiceMetrics
from countless.serve.model_file import FileStamp, ModelFile
from countless.serve.models import Served

INTERVAL = 1.0  # seconds between two looks at the files
GRACE = 2.0  # seconds that a load has to end when the service stops
Order = Literal["reload", "stop"]

logger = logging.getLogger(__name__)


@dataclass
class _Watched:
    file: ModelFile
    tried: FileStamp | None  # at the latest load, failed or not
    seen: FileStamp | None  # at the latest look


class ModelReloader:
    """Looks at the files of models once a second, in a thread of its own, and loads those that were replaced.

    A file that is being written is loaded once two looks find it the same. A file that cannot be loaded is not tried
    again before it changes, and the old model goes on answering.

    Args:
        models: the models that are served now, by name.
        swap: replaces the model of the same name.
        metrics: count every load.
        interval: seconds between two looks; None to load only on request.
    """

    def __init__(
        self,
        models: Mapping[str, Served],
        swap: Callable[[Served], None],
        metrics: ServiceMetrics,
        interval: float | None = INTERVAL,
    ) -> None:
        self._models = models
        self._swap = swap
        self._metrics = metrics
        self._interval = interval
        self._orders: SimpleQueue[Order] = SimpleQueue()
        files = [(served.file, served.stamp) for served in models.values() if served.file is not None]
        self._watched = [_Watched(file, stamp, stamp) for file, stamp in files]
        self._thread = threading.Thread(target=self._run, name="countless-reload", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def reload(self) -> None:
        """Load every file now, whether it has changed or not. May be called by a signal handler."""
        self._orders.put("reload")

    def stop(self) -> None:
        """Stop the thread; a load that takes longer than ``GRACE`` is not waited for."""
        self._orders.put("stop")
        self._thread.join(GRACE)

    def _run(self) -> None:
        while (order := self._order()) != "stop":
            for watched in self._watched:
                if order == "reload":
                    self._load(watched, watched.file.stamp())
                else:
                    self._look(watched)

    def _order(self) -> Order | None:
        try:
            return self._orders.get(timeout=self._interval)
        except Empty:
            return None

    def _look(self, watched: _Watched) -> None:
        stamp = watched.file.stamp()
        is_settled, watched.seen = stamp == watched.seen, stamp
        if stamp == watched.tried or not is_settled:
            return
        if stamp is not None and self._is_served(watched.file):  # it was only touched, or copied over itself
            watched.tried = stamp
            self._metrics.failing[watched.file.name] = False
            return
        self._load(watched, stamp)

    def _is_served(self, file: ModelFile) -> bool:
        try:
            return file.version() == self._models[file.name].version
        except CountlessError:
            return False

    def _load(self, watched: _Watched, stamp: FileStamp | None) -> None:
        name = watched.file.name
        watched.tried = watched.seen = stamp
        try:
            served = Served.load(watched.file)
        except CountlessError as error:
            self._fail(name, str(error).split("\n", 1)[0])
        except Exception:
            logger.exception("%s: a bug in loading the file", name)
            self._fail(name, "a bug, see above")
        else:
            watched.tried = watched.seen = served.stamp
            self._swap(served)
            self._metrics.reloaded(name, LOADED)
            columns = len(served.estimator.schema.names)
            logger.info(
                "%s: loaded again in %.2f s: %s rows, %d columns, version %s",
                *(name, served.load_seconds, f"{served.line['rows']:,}", columns, served.version),
            )
            gc.collect()  # the old model has reference cycles, and may be large

    def _fail(self, name: str, reason: str) -> None:
        self._metrics.reloaded(name, FAILED)
        logger.error("%s: not loaded again, the model of before is served: %s", name, reason)
