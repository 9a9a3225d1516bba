"""The ``countless`` command, from its first moment to its last: Ctrl-C is a word and an exit code, never a traceback.

This module is no part of the package, because Python loads the whole package before any module in it, and Ctrl-C may
come meanwhile. Extension modules that are being loaded do not survive a KeyboardInterrupt: some abort the process. So
Ctrl-C ends it at once, as long as there is nothing to tidy up. For the same reason it imports at its top only what the
interpreter has loaded anyway.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal takes milliseconds to load, for its enums
import os
import sys
import time

INTERRUPTED, TERMINATED = 130, 143
# Commands that ask a few questions. To start the threads of matrix products would take longer than the products.
ONE_THREAD = ("estimate", "explain", "query", "distribution", "info")


def leave_at_once(*_: object) -> None:
    """End the process; to be called by a signal, in the middle of anything."""
    os.write(2, b"\ninterrupted\n" if os.isatty(2) else b"interrupted\n")  # on a terminal after ^C
    os._exit(INTERRUPTED)


def stop_at_once(*_: object) -> None:
    """End a service that has not begun to serve; to be called by a signal."""
    said = "stopped before it began to serve"
    line = f'{{"level": "info", "message": "{said}"}}\n' if "json" in sys.argv else f"{said}\n"
    os.write(2, line.encode())
    os._exit(0)


class leaving_at_once:  # noqa: N801 - reads as a function where it is used
    """Within, Ctrl-C ends the process at once: for loading modules, for reading only, and when all is done.

    Only the main thread hears signals; and who ignores Ctrl-C goes on to do so.
    """

    def __enter__(self) -> None:
        self._before = _signal.getsignal(_signal.SIGINT)
        try:
            if self._before != _signal.SIG_IGN:
                _signal.signal(_signal.SIGINT, leave_at_once)
        except ValueError:  # another thread
            self._before = _signal.SIG_IGN

    def __exit__(self, *_: object) -> None:
        if self._before != _signal.SIG_IGN:
            _signal.signal(_signal.SIGINT, self._before)


def main() -> None:
    """Run the command line."""
    began = time.monotonic()
    if sys.argv[1:2] == ["serve"]:
        _signal.signal(_signal.SIGTERM, stop_at_once)  # until the service has a handler of its own
    if sys.argv[1:2] and sys.argv[1] in ONE_THREAD:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded
    with leaving_at_once():
        from countless.cli.main import main as run
    code = 0
    try:
        run(began=began)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except KeyboardInterrupt:
        leave_at_once()
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, leave_at_once)  # while the interpreter ends
    if code in (INTERRUPTED, TERMINATED):
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> None:
    """End the process without waiting for threads: one that is at work in an extension would abort it."""
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
