"""``countless bench fuzz files``."""

from __future__ import annotations

from typing import Any

import click

from countless_lab.cli.bench.fuzz.campaign_options import campaign_options, run_with_models
from countless_lab.fuzz.loading import files_campaign


@click.command(epilog="\b\nExample:\n  countless bench fuzz files --minutes 10 -o files/")
@campaign_options
def files(**options: Any) -> int:
    """Damage model files of every kind, load them, and ask them.

    A mutation changes the zip archive, a JSON section, the header of an array, or its values. Each file must be
    refused with an error of Countless's own, or answer with numbers that can be counts of rows.
    """
    return run_with_models(files_campaign, **options)
