"""Column orders: the order in which a model reads the columns of its table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.data.encoding.table import Table
from countless.errors import OptionError
from countless.options import FALLING, NATURAL, RANDOM, RISING, Network

Positions = tuple[int, ...]


def orders_of(network: Network, table: Table) -> tuple[Positions, ...]:
    """The orders in which a network reads the positions of ``table``; those of a column stay together.

    They are the table's own, random ones from a seed, by the columns' entropy, or some named columns first. There are
    no two alike. Hidden columns come last, so that no other depends on them.
    """
    usual = NATURAL if network.orders == 1 else RANDOM
    order = usual if network.order is None else network.order
    kind, _, seed = order.partition(":") if isinstance(order, str) else ("", "", "")
    if kind == RANDOM:
        columns = _random_orders(len(table.schema.coded), network.orders, int(seed or 0))
    elif order in (FALLING, RISING):
        bits = np.array([entropy(counts) for counts in table.counts[: len(table.schema.coded)]])
        columns = [tuple(np.argsort(-bits if order == FALLING else bits, kind="stable").tolist())]
    else:
        columns = [_with_first(_first(order), [column.name for column in table.schema.coded])]
    hidden = tuple(range(table.schema.visible, len(table.schema.sizes)))
    return tuple(
        (*(position for column in each for position in table.schema.positions(column)), *hidden) for each in columns
    )


def check_order(network: Network, names: list[str]) -> None:
    """Refuse an order that names no column, or one twice, before the columns called ``names`` are read."""
    _with_first(_first(network.order), names)


def _first(order: str | Sequence[str] | None) -> Sequence[str]:
    """The columns that an order names."""
    if not isinstance(order, str):
        return order or ()
    named = order not in (NATURAL, FALLING, RISING) and order.partition(":")[0] != RANDOM
    return order.split(",") if named else ()


def _random_orders(columns: int, count: int, seed: int) -> list[tuple[int, ...]]:
    """``count`` random orders, or all that there are."""
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, ...], None] = {}
    few = math.factorial(columns) if columns < 10 else count
    while len(found) < min(count, few):
        found[tuple(rng.permutation(columns).tolist())] = None
    return list(found)


def _with_first(first: Sequence[str], names: list[str]) -> tuple[int, ...]:
    """All columns, those that are called ``first`` before the others."""
    chosen = [_index(names, name.strip()) for name in first]
    if len(set(chosen)) < len(chosen):
        raise OptionError("{order} names a column twice")
    return (*chosen, *(index for index in range(len(names)) if index not in chosen))


def entropy(counts: NDArray[Any]) -> float:
    """Bits of a distribution, given how often each symbol occurs."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def _index(names: list[str], name: str) -> int:
    for index, known in enumerate(names):
        if known.casefold() == name.casefold():
            return index
    raise OptionError(
        f"{{order}} names {name!r}, which is no fitted column: give natural, random, random:SEED, falling, rising, or "
        f"columns among {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}"
    )
