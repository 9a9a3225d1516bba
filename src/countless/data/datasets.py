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
    """Options for fitting a known table, for those that the user did not set."""

    text: tuple[str, ...] = ()
    max_length: int | None = None


class DataSet(Protocol):
    """A table that an installed package provides under a name."""

    def locate(self) -> Path:
        """The file on this machine; if it is missing, a SourceError says where to get it."""
        ...

    def open(self) -> Source:
        """The rows."""
        ...


def adult() -> Path:
    """UCI Adult (Becker and Kohavi, 1996; CC BY 4.0): 48,842 people of the 1994 US census, 15 columns.

    >>> adult().name
    'adult.parquet'
    """
    return Path(__file__).with_name("adult.parquet")


def npm_urls() -> Path:
    """URLs of the repositories of npm packages (MIT): a random sample of 20,000, one column.

    >>> npm_urls().name
    'npm_urls.parquet'
    """
    return Path(__file__).with_name("npm_urls.parquet")


EMBEDDED = {"adult": adult, "npm_urls": npm_urls}


def installed_data_set(name: str) -> DataSet | None:
    """The data set of this name that an installed package provides; None if there is none."""
    return _installed_data_sets().get(name) if NAME.fullmatch(name) else None


def is_data_set(name: str) -> bool:
    """Whether there is a data set of this name."""
    return name in EMBEDDED or installed_data_set(name) is not None


def data_set_names() -> tuple[str, ...]:
    """The names of all data sets."""
    return (*EMBEDDED, *_installed_data_sets())


def _installed_data_sets() -> Mapping[str, DataSet]:
    """The data sets of installed packages, by name."""
    data_sets: dict[str, DataSet] = {}
    for entry in installed(DATASETS).values():
        data_sets.update(load(entry))
    return data_sets
