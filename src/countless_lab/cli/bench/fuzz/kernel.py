"""``countless bench fuzz kernel``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from countless_lab.cli.bench.fuzz.campaign_options import campaign_options, run_command
from countless_lab.fuzz.compiled_code import kernel_campaign
from countless_lab.fuzz.sanitizers import SANITIZED, build_sanitized, sanitized_environment
from countless_lab.fuzz.small_models import make_models

MODELS = "COUNTLESS_SANITIZED_MODELS"  # the folder of their models


@click.command(
    epilog="\b\nExamples:\n"
    "  countless bench fuzz kernel --minutes 60 -o kernel/\n"
    "  countless bench fuzz kernel --compiler clang --minutes 60 -o kernel-clang/"
)
@click.option("--compiler", default="gcc", show_default=True, help="Build with gcc, clang or a version of them.")
@campaign_options
def kernel(compiler: str, **options: Any) -> int:
    """Run the compiled code with sanitizers of addresses and undefined behaviour, on random inputs.

    The C modules are built anew. The sanitizers of gcc and clang differ, so run both. Random networks, regions,
    evidence rows, strings and model files go through the modules, and answers are compared with those of the slow code
    in Python.
    """
    if os.environ.get(SANITIZED):
        return run_command(kernel_campaign(Path(os.environ[MODELS]), compiler), **options)
    with tempfile.TemporaryDirectory(prefix="countless-fuzz-") as folder:
        target = options["output"] or Path(folder)
        models = target / "models"
        models.mkdir(parents=True, exist_ok=True)
        make_models(models)
        package = build_sanitized(target, compiler)
        environment = sanitized_environment(package, compiler) | {MODELS: str(models.resolve())}
        arguments = sys.argv[sys.argv.index("bench") :]
        return subprocess.run(
            [sys.executable, "-m", "countless_command", *arguments], env=environment, check=False
        ).returncode
