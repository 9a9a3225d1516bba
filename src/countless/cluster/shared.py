"""A check that every machine of a cluster can read and write the shared folder."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from countless.cluster.session import Cluster
from countless.errors import ClusterError

REMEDY = "give a folder on storage that all machines mount, with --shared"


def require_shared(cluster: Cluster, folder: Path) -> None:
    """Raise an error before any work if some machine cannot read or write ``folder``."""
    token = secrets.token_hex(8)
    marker = folder / f"seen-{token}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        marker.write_text(token, encoding="utf-8")
    except OSError as error:
        raise ClusterError(f"cannot write in {folder}: {error.strerror}; {REMEDY}") from None
    try:
        for machine, problem in cluster.everywhere(access_problem, str(marker), token):
            if problem is not None:
                raise ClusterError(f"the machine {machine.host} {problem}; {REMEDY}")
    finally:
        marker.unlink(missing_ok=True)


def access_problem(marker: str, token: str) -> str | None:
    """The problem on this machine: the file ``marker`` is missing, or its folder is not writable; else None."""
    path = Path(marker)
    try:
        if path.read_text(encoding="utf-8") != token:
            return f"has another {path.parent} than this one"
    except OSError:
        return f"does not see {path.parent}"
    probe = path.with_name(f"{path.name}-{os.getpid()}")
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        return f"cannot write in {path.parent} ({error.strerror})"
    return None
