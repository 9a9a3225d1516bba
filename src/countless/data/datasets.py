"""Named data sets: two that ship with the package, and those of installed plugins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from countless.extensions import DATASETS, installed, load

if TYPE_CHECKING:
    from countless.data.sources.source import Source

NAME = re.compile(r"[\w-]+")  # anything else is a path


@dataclass(frozen=True)
class Advice:
    """How a table that is known is to be fitted, where the options of a fit do not say otherwise."""

    text: tuple[str, ...] = ()
    max_length: int | None = None


class DataSet(Protocol):
    """A table that an installed package knows by name."""

    def locate(self) -> Path:
        """Its file on this machine; a SourceError says where to get it."""
        ...

    def open(self) -> Source:
        """Its rows."""
        ...


def adult() -> Path:
    """UCI Adult (Becker and Kohavi, 1996; CC BY 4.0): 48,842 people of the 1994 US census, 15 columns.

    >>> adult().name
    'adult.parquet'
    """
    return Path(__file__).with_name("adult.parquet")


def npm_urls() -> Path:
    """Where the sources of npm packages are kept (MIT): a random sample of 20,000 URLs, one column.

    >>> npm_urls().name
    'npm_urls.parquet'
    """
    return Path(__file__).with_name("npm_urls.parquet")


EMBEDDED = {"adult": adult, "npm_urls": npm_urls}


def brought_data_set(name: str) -> DataSet | None:
    """The data set of this name that an installed package brings; None if there is none."""
    return _brought().get(name) if NAME.fullmatch(name) else None


def is_data_set(name: str) -> bool:
    """Whether a data set goes by this name."""
    return name in EMBEDDED or brought_data_set(name) is not None


def data_set_names() -> tuple[str, ...]:
    """The names of all data sets."""
    return (*EMBEDDED, *_brought())


def _brought() -> Mapping[str, DataSet]:
    """What installed packages bring, by name."""
    found: dict[str, DataSet] = {}
    for entry in installed(DATASETS).values():
        found.update(load(entry))
    return found
