"""Modules of yours that bring kinds of models or methods along: docs/extending.md."""

from __future__ import annotations

import importlib
import os

from countless.errors import CountlessError

PLUGINS = "COUNTLESS_PLUGINS"  # an environment variable: names of modules, with commas between them


def load_plugins() -> None:
    """Import the modules that the environment names, so that they can register what they bring."""
    for name in filter(None, (part.strip() for part in os.environ.get(PLUGINS, "").split(","))):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise CountlessError(f"cannot import {name!r}, which {PLUGINS} names: {error}") from None
