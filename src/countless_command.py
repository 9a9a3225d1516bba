"""The ``countless`` command, from its first moment to its last: Ctrl-C is a word and an exit code, never a traceback.

This module is no part of the package, because Python loads the whole package before any module in it, and Ctrl-C may
come meanwhile. Extension modules that are being loaded do not survive a KeyboardInterrupt: some abort the process. So
Ctrl-C ends it at once, as long as there is nothing to tidy up.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130


def leave_at_once(*_: object) -> None:
    """End the process; to be called by a signal, in the middle of anything."""
    os.write(2, b"\ninterrupted\n" if os.isatty(2) else b"interrupted\n")  # on a terminal after ^C
    os._exit(INTERRUPTED)


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """Within, Ctrl-C ends the process at once: for loading modules, and when all is done.

    Only the main thread hears signals; and who ignores Ctrl-C goes on to do so.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, leave_at_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def main() -> None:
    """Run the command line."""
    with leaving_at_once():
        from countless.cli.main import main as run
    code = 0
    try:
        run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except KeyboardInterrupt:
        leave_at_once()
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, leave_at_once)  # while the interpreter ends
    if code == INTERRUPTED:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> None:
    """End the process without waiting for threads: one that is at work in an extension would abort it."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
