"""The results of each table: a JSON file with a run for every commit that was measured, the newest first."""

from __future__ import annotations

import hashlib
import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import countless
from countless.data.atomic_files import json_bytes, write_bytes
from countless.errors import DataError
from countless_lab.measurement.machine import machine_facts

INSTRUCTION_SETS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve")
Run = dict[str, Any]


def read_runs(folder: Path, table: str, scale: str) -> list[Run]:
    """All runs of a table, the newest first."""
    path = _path(folder, table, scale)
    if not path.is_file():
        return []
    try:
        runs: list[Run] = json.loads(path.read_text(encoding="utf-8"))["runs"]
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path} is not a result of the scoreboard: remove it, or choose another -o") from None
    return runs


def add_run(folder: Path, table: str, scale: str, run: Run) -> None:
    """Add a run as the newest; it replaces an earlier one of the same code."""
    older = [earlier for earlier in read_runs(folder, table, scale) if earlier["code"] != run["code"]]
    write_bytes(_path(folder, table, scale), json_bytes({"table": table, "scale": scale, "runs": [run, *older]}))


def measured_tables(folder: Path, scale: str) -> list[str]:
    """The tables that have results."""
    ending = _path(folder, "", scale).name
    other_ending = "" if scale == "quick" else ".quick.json"
    return sorted(
        path.name.removesuffix(ending)
        for path in folder.glob(f"*{ending}")
        if not (other_ending and path.name.endswith(other_ending))
    )


def origin() -> Run:
    """The date, commit, code and machine of a run."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "code": code_fingerprint(),
        "machine": {**machine_facts(), "instruction_sets": instruction_sets()},
    }


def code_fingerprint() -> str:
    """A digest of the product's code: models and answers of the same code are not made again."""
    digest = hashlib.blake2b(digest_size=8)
    package = Path(countless.__file__).parent
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".c", ".h"):
            digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def instruction_sets() -> list[str]:
    """The instruction sets of the processor that matter for speed."""
    info = Path("/proc/cpuinfo")
    words = set(info.read_text(encoding="utf-8").split()) if info.is_file() else set()
    return [name for name in INSTRUCTION_SETS if name in words]


def _commit() -> str | None:
    """The commit that is checked out, with a plus if the code differs from it; None outside a checkout."""
    where = Path(countless.__file__).parent
    try:
        head = _git(where, "rev-parse", "--short=10", "HEAD")
        changed = _git(where, "status", "--porcelain", "--", str(where))
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}+" if changed else head


def _git(where: Path, *arguments: str) -> str:
    result = subprocess.run(["git", "-C", str(where), *arguments], capture_output=True, text=True, check=True)
    return result.stdout.strip()


def _path(folder: Path, table: str, scale: str) -> Path:
    return folder / (f"{table}.json" if scale == "full" else f"{table}.{scale}.json")
