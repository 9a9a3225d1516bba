"""``countless bench fuzz tables``."""

from __future__ import annotations

from typing import Any

import click

from countless_lab.cli.bench.fuzz.campaign_options import campaign_options, run_command
from countless_lab.fuzz.fitting import TABLES


@click.command(
    epilog="\b\nExamples:\n"
    "  countless bench fuzz tables --minutes 10\n"
    "  countless bench fuzz tables --seed 17 --cases 1 -o defects/"
)
@campaign_options
def tables(**options: Any) -> int:
    """Fit random tables, each for a second in a process of its own, and check what comes of it.

    A fit must end with a model, or with an error that names the column and a remedy. The remedy is tried. The model is
    loaded again and asked about some of the table's values. The exit code is 1 if a defect was found. Ctrl-C ends the
    run and reports what was found so far.
    """
    return run_command(TABLES, **options)
