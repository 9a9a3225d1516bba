"""``countless bench fuzz service``."""

from __future__ import annotations

from typing import Any

import click

from countless_lab.cli.bench.fuzz.campaign_options import campaign_options, run_with_models
from countless_lab.fuzz.service import REQUESTS, service_campaign


@click.command(epilog="\b\nExample:\n  countless bench fuzz service --minutes 10 -o service/")
@click.option(
    "--requests", type=click.IntRange(min=1), default=REQUESTS, show_default=True, help="Requests to each service."
)
@campaign_options
def service(requests: int, **options: Any) -> int:
    """Send hostile requests to a service on this machine: clauses, bodies, heads and timings.

    After each of them an ordinary question must be answered as before. At the end no thread, no request and no memory
    may be left over, and the service must stop with code 0.
    """
    return run_with_models(lambda models: service_campaign(models, requests), **options)
