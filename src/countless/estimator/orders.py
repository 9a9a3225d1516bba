"""In which order a model reads the columns of its table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countless.data.schema import Schema
from countless.data.table import Table
from countless.errors import TrainingError

NATURAL, RANDOM, FALLING, RISING = "natural", "random", "falling", "rising"


@dataclass(frozen=True)
class Orders:
    """``count`` orders: the table's own, random ones from a seed, or the columns named ``first`` and then the rest.

    ``by`` may be ``falling`` or ``rising``: by the columns' entropy.

    >>> Orders.read("random:3", 10)
    Orders(count=10, seed=3, first=(), by='')
    """

    count: int = 1
    seed: int | None = None
    first: tuple[str, ...] = ()
    by: str = ""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise TrainingError("a model reads its columns in at least 1 order")
        if self.seed is not None and self.seed < 0:
            raise TrainingError("the seed of a random order must not be negative")

    @classmethod
    def read(cls, order: str | Sequence[str] | None, count: int) -> Orders:
        """``natural``, ``random`` or ``random:SEED``, or names of columns; None is random if there are several."""
        if order is None:
            order = NATURAL if count == 1 else RANDOM
        kind, _, seed = order.partition(":") if isinstance(order, str) else ("", "", "")
        if kind == RANDOM:
            if seed and not seed.isdecimal():
                raise TrainingError(f"the seed of a random order is a number, as in random:3, not {seed!r}")
            return cls(count, int(seed or 0))
        if count > 1:
            raise TrainingError("several orders are drawn at random: leave out the order, or give random:SEED")
        if order == NATURAL:
            return cls(count)
        if order in (FALLING, RISING):
            return cls(count, by=str(order))
        return cls(count, None, tuple(order.split(",")) if isinstance(order, str) else tuple(order))

    def positions(self, table: Table) -> tuple[tuple[int, ...], ...]:
        """The orders of the table's positions; those of a column stay together. There are no two alike."""
        schema = table.schema
        if self.by:
            bits = np.array([entropy(counts) for counts in table.counts()])
            columns = np.argsort(-bits if self.by == FALLING else bits, kind="stable")
            return (tuple(position for column in columns for position in schema.positions(int(column))),)
        return tuple(
            tuple(position for column in columns for position in schema.positions(column))
            for columns in self._columns(schema)
        )

    def _columns(self, schema: Schema) -> list[tuple[int, ...]]:
        names = [column.name for column in schema.coded]
        if self.seed is None:
            chosen = [_place(names, name.strip()) for name in self.first]
            if len(set(chosen)) < len(chosen):
                raise TrainingError("the order names a column twice")
            return [(*chosen, *(place for place in range(len(names)) if place not in chosen))]
        rng = np.random.default_rng(self.seed)
        found: dict[tuple[int, ...], None] = {}
        few = math.factorial(len(names)) if len(names) < 10 else self.count
        while len(found) < min(self.count, few):
            found[tuple(rng.permutation(len(names)).tolist())] = None
        return list(found)


def entropy(counts: NDArray[np.int64]) -> float:
    """Bits of a distribution, given how often each symbol occurs."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def _place(names: list[str], name: str) -> int:
    for place, known in enumerate(names):
        if known.casefold() == name.casefold():
            return place
    raise TrainingError(
        f"the order names {name!r}, which is no fitted column: give natural, random, random:SEED, falling, rising, or "
        f"columns among {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}"
    )
