"""A service in a process of its own whose estimates take their time: ``... slow_service MODEL SLEEP TIMEOUT``."""

from __future__ import annotations

import sys
import time
from typing import Any

from countless.serve.models import Served, load_models
from countless.serve.server import address, leave, listen, run
from countless.serve.service import ServiceOptions


class Slow:
    """An estimator that tells when it is asked, and takes its time."""

    def __init__(self, inner: Any, seconds: float) -> None:
        self.schema, self.info, self._inner, self._seconds = inner.schema, inner.info, inner, seconds

    def estimate(self, where: str) -> Any:
        sys.stderr.write("asked\n")
        sys.stderr.flush()
        time.sleep(self._seconds)
        return self._inner.estimate(where)


def main() -> None:
    model, seconds, timeout = sys.argv[1:]
    (served,) = load_models([model]).values()
    listening = listen("127.0.0.1", 0)

    def ready() -> None:
        sys.stderr.write(f"serving at {address(listening)}\n")
        sys.stderr.flush()

    slow: Any = Slow(served.estimator, float(seconds))
    options = ServiceOptions(seconds=float(timeout))
    sys.exit(leave(run({"people": Served("people", slow, None)}, listening, options, ready)))


if __name__ == "__main__":
    main()
