"""The sections of a model file: typed networks, summaries and rows, and plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from countless._version import __version__
from countless.cached_property import cached_property
from countless.spec import ModelSpec, SharedTextSpec
from countless.store.archive import packed_bytes
from countless.store.tensors import StoredTensors

COLUMNS, TEXT = "columns", "text"  # the networks: one of all columns, one of all text columns
PAIRS = "pairs"  # the summary of columns; each text column has one called substrings_of(index)
EVIDENCE = "evidence"  # random rows of the table


def substrings_of(index: int) -> str:
    """The name of the summary of the text column at ``index``."""
    return f"substrings-{index}"


@dataclass(frozen=True, eq=False)
class StoredNetwork:
    """A network: its spec as plain data, and its weights."""

    spec: dict[str, Any]
    weights: StoredTensors

    @classmethod
    def encoded(
        cls, spec: ModelSpec | SharedTextSpec, weights: Mapping[str, NDArray[Any]], dtype: str
    ) -> StoredNetwork:
        """The network that ``spec`` describes, with ``weights`` to be stored as ``dtype``."""
        return cls(spec.to_json(), StoredTensors.encoded(weights, dtype, spec.lookups, spec.coarse))


@dataclass(frozen=True, eq=False)
class StoredSummary:
    """Exact counts, as :class:`.Pairs` or :class:`.Substrings` packs them."""

    arrays: Mapping[str, NDArray[Any]]

    @property
    def bytes(self) -> int:
        """How much memory it takes, packed."""
        return sum(array.nbytes for array in self.arrays.values())


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows of the table, as :class:`.EvidenceRows` packs them."""

    arrays: Mapping[str, NDArray[Any]]

    @cached_property
    def bytes(self) -> int:
        """About how many bytes of the file they take."""
        return packed_bytes(self.arrays)


@dataclass(frozen=True, eq=False)
class Sections:
    """What was learned, counted and kept of a table, by name."""

    networks: Mapping[str, StoredNetwork] = field(default_factory=dict)
    summaries: Mapping[str, StoredSummary] = field(default_factory=dict)
    rows: Mapping[str, StoredRows] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Contents:
    """Everything in a model file."""

    schema: dict[str, Any]
    sections: Sections
    calibration: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    library: str = __version__
