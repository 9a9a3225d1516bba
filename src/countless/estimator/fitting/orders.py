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
    """The different orders in which a network reads the positions of ``table``; those of a column stay together.

    An order is the table's own, a random one, one by the columns' entropy, or it has some named columns first. Hidden
    columns are last, so that no other column depends on them.
    """
    default = NATURAL if network.orders == 1 else RANDOM
    order = default if network.order is None else network.order
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
        (*(position for column in column_order for position in table.schema.positions(column)), *hidden)
        for column_order in columns
    )


def check_order(network: Network, names: list[str]) -> None:
    """Raise an error if an order names a column that is not in ``names``, or a column twice."""
    _with_first(_first(network.order), names)


def _first(order: str | Sequence[str] | None) -> Sequence[str]:
    """The columns that an order puts first."""
    if not isinstance(order, str):
        return order or ()
    is_list_of_names = order not in (NATURAL, FALLING, RISING) and order.partition(":")[0] != RANDOM
    return order.split(",") if is_list_of_names else ()


def _random_orders(columns: int, count: int, seed: int) -> list[tuple[int, ...]]:
    """``count`` different random orders, or all possible ones if there are fewer."""
    rng = np.random.default_rng(seed)
    orders: dict[tuple[int, ...], None] = {}
    possible = math.factorial(columns) if columns < 10 else count
    while len(orders) < min(count, possible):
        orders[tuple(rng.permutation(columns).tolist())] = None
    return list(orders)


def _with_first(first: Sequence[str], names: list[str]) -> tuple[int, ...]:
    """The indexes of all columns; those named in ``first`` come first."""
    first_indexes = [_index(names, name.strip()) for name in first]
    if len(set(first_indexes)) < len(first_indexes):
        raise OptionError("{order} names a column twice")
    return (*first_indexes, *(index for index in range(len(names)) if index not in first_indexes))


def entropy(counts: NDArray[Any]) -> float:
    """Bits of a distribution, given how often each symbol occurs."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def _index(names: list[str], name: str) -> int:
    for index, candidate in enumerate(names):
        if candidate.casefold() == name.casefold():
            return index
    raise OptionError(
        f"{{order}} names {name!r}, which is no fitted column: give natural, random, random:SEED, falling, rising, or "
        f"columns among {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}"
    )
