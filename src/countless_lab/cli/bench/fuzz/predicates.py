"""``countless bench fuzz predicates``."""

from __future__ import annotations

from typing import Any

import click

from countless_lab.cli.bench.fuzz.campaign_options import campaign_options, run_command
from countless_lab.fuzz.asking import PREDICATES


@click.command(
    epilog="\b\nExamples:\n"
    "  countless bench fuzz predicates --minutes 60 -o predicates/\n"
    "  countless bench fuzz predicates --minutes 60 -o predicates/ --resume"
)
@campaign_options
def predicates(**options: Any) -> int:
    """Ask models of random tables random predicates, and compare with DuckDB's counts.

    Each table is fitted for a second, and most models hold all its rows. Every operator and every function that a
    clause may call occurs. It is a defect if an exact answer is not DuckDB's count, if the model answers what DuckDB
    finds no meaning for, if an exception is none of Countless's own, if an answer takes more than two seconds of
    processor time, or if memory grows.
    """
    return run_command(PREDICATES, **options)
