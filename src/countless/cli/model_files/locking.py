"""A lock on a model file, so that only one command at a time writes it and the files beside it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from countless.data.atomic_files import remove_strays
from countless.errors import ModelFileError

LOCK = ".lock"


def lock_of(output: Path) -> Path:
    """The file that names the process that writes ``output``."""
    return output.with_name(output.name + LOCK)


def hold(command: str, *outputs: Path) -> None:
    """Keep other commands from writing ``outputs`` until this command ends; remove partial files of killed commands.

    Raises:
        ModelFileError: another process is writing one of them; the message names it.
    """
    context = click.get_current_context()
    for output in dict.fromkeys(path.absolute() for path in outputs):
        if output.parent.is_dir():  # otherwise nothing can be written there, as the command will say
            context.with_resource(held(command, output))
            remove_strays(output)


@contextmanager
def held(command: str, output: Path) -> Iterator[None]:
    """Hold the lock of ``output`` inside this block.

    The operating system releases the lock of a process that ends, so the lock file of a killed process does no harm.
    """
    lock = lock_of(output)
    handle = _locked(lock, output)
    try:
        owner = {"pid": os.getpid(), "command": command}
        os.truncate(handle, 0)
        os.pwrite(handle, json.dumps(owner).encode(), 0)
        yield
    finally:
        with suppress(OSError):
            os.unlink(lock)  # while it is still ours
        os.close(handle)


def _locked(lock: Path, output: Path) -> int:
    """Open and lock the lock file, and make sure that its owner has not removed it meanwhile."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise ModelFileError(f"cannot write beside {output}: {error.strerror}; choose another -o") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _owner(handle)
            os.close(handle)
            process = f"process {owner['pid']} (countless {owner['command']})" if owner else "another process"
            raise ModelFileError(
                f"{process} is writing {output}: wait until it has ended, or choose another -o; nothing was changed"
            ) from None
        except OSError:
            return handle  # a file system without locks: continue without one
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), lock.stat()):
                return handle
        os.close(handle)  # its owner removed it before we had it


def _owner(handle: int) -> dict[str, Any] | None:
    """The process that holds a lock, or None if it has not written its number yet."""
    try:
        owner = json.loads(os.pread(handle, 4096, 0))
        return {"pid": int(owner["pid"]), "command": str(owner["command"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
