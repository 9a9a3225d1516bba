"""A service in a process of its own whose estimates take a second: ``python -m tests.serve.slow_service MODEL``."""

from __future__ import annotations

import sys
import time
from typing import Any

from countless.serve.app import Options
from countless.serve.models import Served, load_models
from countless.serve.server import address, listen, run


class Slow:
    """An estimator that tells when it is asked, and takes its time."""

    def __init__(self, inner: Any) -> None:
        self.schema, self.info, self._inner = inner.schema, inner.info, inner

    def estimate(self, where: str) -> Any:
        sys.stderr.write("asked\n")
        sys.stderr.flush()
        time.sleep(1.0)
        return self._inner.estimate(where)


def main() -> None:
    (served,) = load_models(sys.argv[1:]).values()
    listening = listen("127.0.0.1", 0)

    def ready() -> None:
        sys.stderr.write(f"serving at {address(listening)}\n")
        sys.stderr.flush()

    slow: Any = Slow(served.estimator)
    sys.exit(run({"people": Served("people", slow, None)}, listening, Options(), ready).code)


if __name__ == "__main__":
    main()
