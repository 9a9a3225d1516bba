"""User modules that register model kinds or methods: docs/extending.md."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

from countless.errors import CountlessError

PLUGINS = "COUNTLESS_PLUGINS"  # an environment variable: names of modules, with commas between them


def plugin_names() -> list[str]:
    """The modules that the environment names."""
    return [name for part in os.environ.get(PLUGINS, "").split(",") if (name := part.strip())]


def load_plugins() -> None:
    """Import the modules that the environment names. They register their model kinds and methods."""
    for name in plugin_names():
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise CountlessError(
                f"cannot import {name!r}, which {PLUGINS} names: {error}; is its folder on PYTHONPATH?"
            ) from None
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise CountlessError(f"the plugin {name!r} failed: {reason}; try python -c 'import {name}'") from None


def fingerprint(modules: Iterable[str]) -> str:
    """A hash of the modules' sources, for cached results that depend on them."""
    digest = hashlib.sha256()
    for name in modules:
        spec = importlib.util.find_spec(name)
        digest.update(name.encode())
        if spec is not None and spec.origin is not None and Path(spec.origin).is_file():
            digest.update(Path(spec.origin).read_bytes())
    return digest.hexdigest()[:16]
