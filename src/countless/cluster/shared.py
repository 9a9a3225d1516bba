"""A check that every machine of a cluster can read and write the shared folder."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from countless.cluster.session import Cluster
from countless.errors import ClusterError

REMEDY = "give a folder on storage that all machines mount, with --shared"


def require_shared(cluster: Cluster, folder: Path) -> None:
    """Say before any work that some machine does not see ``folder``, or cannot write there."""
    token = secrets.token_hex(8)
    mark = folder / f"seen-{token}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark.write_text(token, encoding="utf-8")
    except OSError as error:
        raise ClusterError(f"cannot write in {folder}: {error.strerror}; {REMEDY}") from None
    try:
        for machine, complaint in cluster.everywhere(sees, str(mark), token):
            if complaint is not None:
                raise ClusterError(f"the machine {machine.host} {complaint}; {REMEDY}")
    finally:
        mark.unlink(missing_ok=True)


def sees(mark: str, token: str) -> str | None:
    """What is wrong on this machine: the file ``mark`` is not there, or no other can be written beside it."""
    path = Path(mark)
    try:
        if path.read_text(encoding="utf-8") != token:
            return f"has another {path.parent} than this one"
    except OSError:
        return f"does not see {path.parent}"
    own = path.with_name(f"{path.name}-{os.getpid()}")
    try:
        own.touch()
        own.unlink()
    except OSError as error:
        return f"cannot write in {path.parent} ({error.strerror})"
    return None
