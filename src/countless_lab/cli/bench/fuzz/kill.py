"""``countless bench fuzz kill``."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from countless_lab.cli.bench.fuzz.campaign_options import campaign_options, run_command
from countless_lab.fuzz.killing import kill_campaign, make_inputs, small_cluster


@click.command(epilog="\b\nExample:\n  countless bench fuzz kill --cases 200 --minutes 60 -o kill/")
@click.option("--ray/--no-ray", default=True, help="Kill fits on Ray, too, if it is installed.  [default: ray]")
@campaign_options
def kill(ray: bool, **options: Any) -> int:
    """Kill commands with SIGKILL at random moments, and run them again.

    The commands are fit (in memory, with text, out of core, on a Ray cluster on this machine), update, train,
    calibrate, strip and serve. Afterwards the model file must be the old one or a whole new one. The same command, with
    --resume if it is a fit, must then succeed, do what was asked, and leave no stray files.
    """
    with tempfile.TemporaryDirectory(prefix="countless-fuzz-") as folder:
        make_inputs(Path(folder))
        with small_cluster(Path(folder)) if ray else nullcontext() as cluster:
            return run_command(kill_campaign(Path(folder), cluster), **options)
