"""Options that several commands of the laboratory share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Any], Any]


def count_option(name: str, default: int, text: str, least: int = 1) -> Decorator:
    """An option that takes a number, and whose help shows its default."""
    return click.option(name, type=click.IntRange(min=least), default=default, show_default=True, help=text)


json_file_option = click.option("-o", "--output", type=click.Path(path_type=Path), help="Write a JSON file.")
