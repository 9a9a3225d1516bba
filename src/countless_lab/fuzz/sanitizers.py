"""The compiled code built with sanitizers: an access out of bounds or undefined behaviour ends the process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import countless
from countless.errors import DataError

FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g"
RUNTIMES = ("libasan.so", "libubsan.so")
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",  # Python leaks on purpose
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
SANITIZED = "COUNTLESS_SANITIZED"  # set in the environment of a process that has such a build


def build_sanitized(folder: Path) -> Path:
    """A copy of the package whose compiled modules have sanitizers; a folder for PYTHONPATH.

    A build that is newer than the sources is used again.
    """
    sources = Path(countless.__file__).resolve().parents[1]
    project = sources.parent / "pyproject.toml"
    if not project.exists():
        raise DataError("the sanitizers need the sources of Countless: run this in a clone, installed with pip -e")
    package = folder / "package"
    newest = max(path.stat().st_mtime for ending in ("*.c", "*.h") for path in sources.rglob(ending))
    if not all(path.stat().st_mtime > newest for path in package.rglob("*.so")) or not package.exists():
        environment = os.environ | {"CFLAGS": FLAGS, "LDFLAGS": FLAGS, "CC": os.environ.get("CC", "gcc")}
        build = ["build_ext", "--build-lib", str(folder / "built"), "--build-temp", str(folder / "objects")]
        command = [sys.executable, "-c", "from setuptools import setup; setup()", "-q", *build]
        done = subprocess.run(command, cwd=project.parent, env=environment, capture_output=True, text=True, check=False)
        if not list((folder / "built").rglob("*.so")):
            raise DataError(f"the compiled code cannot be built with sanitizers: {done.stderr[-500:]}")
    shutil.copytree(sources, package, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copytree(folder / "built", package, dirs_exist_ok=True)
    return package


def sanitized_environment(package: Path) -> dict[str, str]:
    """The environment of a process that uses this package."""
    compiler = os.environ.get("CC", "gcc")
    found = [subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip() for name in RUNTIMES]
    loaded = " ".join(str(Path(path).resolve()) for path in found if Path(path).is_absolute())
    return os.environ | OPTIONS | {"LD_PRELOAD": loaded, "PYTHONPATH": str(package), SANITIZED: "1"}
