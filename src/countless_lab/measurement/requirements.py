"""The packages that experiments need beyond those of the product: the extra ``lab``."""

from __future__ import annotations

from importlib.util import find_spec

from countless.errors import MissingExtraError

PACKAGES = ("matplotlib", "pyarrow", "threadpoolctl", "torch")


def require_lab() -> None:
    """Raise an error, before any work, that names the packages that are missing and the ``pip install`` to run."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"experiments need {', '.join(missing)}: pip install 'countless[lab]'")


def require_plotting() -> None:
    """Raise an error, before any work, if pictures cannot be drawn."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("drawing needs matplotlib: pip install 'countless[lab]'")
