"""Plugins of installed packages, found by their entry points: commands, data sets and pictures.

Reading the metadata of all packages takes some milliseconds, so it is done only for names that are not built in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from countless.errors import CountlessError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "countless.commands"  # a click command, under the name that it is called by
DATASETS = "countless.datasets"  # a mapping from names to data sets (countless.data.datasets.DataSet)
PICTURES = "countless.pictures"  # a function that returns the function that draws


def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name."""
    from importlib.metadata import entry_points  # loaded when it is needed: it takes longer than an estimate

    return {entry.name: entry for entry in entry_points(group=group)}


def load(entry: EntryPoint) -> Any:
    """The object that an entry point names; a :class:`CountlessError` if it cannot be imported."""
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        package = entry.dist.name if entry.dist is not None else entry.module
        raise CountlessError(
            f"{entry.name} of the package {package} cannot be loaded: {error}; install {package} again"
        ) from None
