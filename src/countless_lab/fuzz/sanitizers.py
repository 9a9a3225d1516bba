"""Build the compiled code with sanitizers, which end the process at an invalid access or undefined behaviour."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import countless
from countless.errors import DataError

CHECKS = "-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow"
FLAGS = f"{CHECKS} -fno-omit-frame-pointer -g"
CLANG_FLAGS = ["-shared-libasan", "-O0"]  # clang needs many minutes to optimise the kernel with checks
BUILD = """
import sys
from setuptools import setup
from setuptools.command.build_ext import build_ext

class LastFlags(build_ext):
    def build_extension(self, module):
        module.extra_compile_args += sys.argv[1].split()
        super().build_extension(module)

setup(script_args=sys.argv[2:], cmdclass={"build_ext": LastFlags})
"""
GCC_RUNTIMES = ("libasan.so", "libubsan.so")
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",  # Python leaks on purpose
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
SANITIZED = "COUNTLESS_SANITIZED"  # set in the environment of a process that has such a build


def build_sanitized(folder: Path, compiler: str) -> Path:
    """A copy of the package whose compiled modules have sanitizers; a folder for PYTHONPATH.

    A build by the same compiler that is newer than the sources is used again.
    """
    sources = Path(countless.__file__).resolve().parents[1]
    project = sources.parent / "pyproject.toml"
    if not project.exists():
        raise DataError("the sanitizers need the sources of Countless: run this in a clone, installed with pip -e")
    package, built = (folder / Path(compiler).name / name for name in ("package", "built"))
    newest = max(path.stat().st_mtime for ending in ("*.c", "*.h") for path in sources.rglob(ending))
    if not all(path.stat().st_mtime > newest for path in package.rglob("*.so")) or not package.exists():
        flags = " ".join([FLAGS, *(CLANG_FLAGS if _is_clang(compiler) else ())])
        environment = os.environ | {"LDFLAGS": flags, "CC": compiler}
        build = ["build_ext", "--build-lib", str(built), "--build-temp", str(built.with_name("objects"))]
        command = [sys.executable, "-c", BUILD, flags, "-q", *build]
        build_run = subprocess.run(
            command, cwd=project.parent, env=environment, capture_output=True, text=True, check=False
        )
        if not list(built.rglob("*.so")):
            raise DataError(f"{compiler} cannot build the compiled code with sanitizers: {build_run.stderr[-500:]}")
    shutil.copytree(sources, package, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copytree(built, package, dirs_exist_ok=True)
    return package


def sanitized_environment(package: Path, compiler: str) -> dict[str, str]:
    """The environment of a process that uses this package."""
    loaded = " ".join(str(path.resolve()) for path in _runtimes(compiler))
    return os.environ | OPTIONS | {"LD_PRELOAD": loaded, "PYTHONPATH": str(package), SANITIZED: "1"}


def _runtimes(compiler: str) -> list[Path]:
    """The libraries of the sanitizers, which must be loaded before Python."""
    if _is_clang(compiler):
        libraries = [Path(_output(compiler, "-print-runtime-dir")) / f"libclang_rt.asan-{platform.machine()}.so"]
    else:
        libraries = [Path(_output(compiler, f"-print-file-name={name}")) for name in GCC_RUNTIMES]
    missing = [path.name for path in libraries if not path.exists()]
    if missing:
        raise DataError(
            f"{compiler} has no {' and no '.join(missing)}: install its sanitizers, such as libclang-rt-dev"
        )
    return libraries


def _is_clang(compiler: str) -> bool:
    return "clang" in _output(compiler, "--version")


def _output(compiler: str, option: str) -> str:
    """The output of the compiler."""
    try:
        return subprocess.check_output([compiler, option], text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        raise DataError(f"there is no compiler {compiler}: install it, or name another with --compiler") from None
