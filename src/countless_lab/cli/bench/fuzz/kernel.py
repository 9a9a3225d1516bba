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


@click.command(epilog="\b\nExample:\n  countless bench fuzz kernel --minutes 60 -o kernel/")
@campaign_options
def kernel(**options: Any) -> int:
    """Run the compiled code with sanitizers of addresses and undefined behaviour, on random inputs.

    The C modules are built anew, with gcc or the version of it that CC names. Random networks, regions, evidence rows,
    strings and model files go through them, and answers are compared with those of the slow code in Python.
    """
    if os.environ.get(SANITIZED):
        return run_command(kernel_campaign(Path(os.environ[MODELS])), **options)
    with tempfile.TemporaryDirectory(prefix="countless-fuzz-") as folder:
        make_models(Path(folder))
        environment = sanitized_environment(build_sanitized(options["output"] or Path(folder))) | {MODELS: folder}
        arguments = sys.argv[sys.argv.index("bench") :]
        return subprocess.run(
            [sys.executable, "-m", "countless_command", *arguments], env=environment, check=False
        ).returncode
