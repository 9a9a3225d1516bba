"""``countless bench fuzz concurrency``."""

from __future__ import annotations

from typing import Any

import click

from countless_lab.cli.bench.fuzz.campaign_options import campaign_options, run_with_models
from countless_lab.fuzz.sharing import concurrency_campaign


@click.command(epilog="\b\nExample:\n  countless bench fuzz concurrency --minutes 10 -o concurrency/")
@campaign_options
def concurrency(**options: Any) -> int:
    """Ask one estimator from 16 threads, from forked processes meanwhile, and from a spawned one.

    Questions are of every kind and asked in random order. Every answer must equal that of a model that is asked alone,
    to the last bit.
    """
    return run_with_models(concurrency_campaign, **options)
