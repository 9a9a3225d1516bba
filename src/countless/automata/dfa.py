"""Transition tables of deterministic finite automata: exploration, merging and minimization."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

from countless.arrays import BoolArray, IntArray
from countless.cancellation import check_cancelled
from countless.errors import QueryTooLargeError

MOST_STATES = 10_000
STEPS = 256  # states after which it is seen whether someone still waits
HASH_FACTOR = 0x9E3779B97F4A7C15  # odd: columns are compared by sums of its powers

State = TypeVar("State", bound=Hashable)


def explore(start: State, after: Callable[[State], Sequence[State]]) -> tuple[list[State], IntArray]:
    """The states that are reached from ``start``, which comes first, and the table of what follows on each.

    ``after`` has the states that follow on one state, letter by letter.

    >>> explore("idle", lambda state: ["busy", state])
    (['idle', 'busy'], array([[1, 0],
           [1, 1]]))
    """
    number = {start: 0}
    order = [start]
    rows: list[list[int]] = []
    for state in order:
        if len(rows) % STEPS == 0:
            check_cancelled()
        row = []
        for following in after(state):
            if following not in number:
                number[following] = len(order)
                order.append(following)
            row.append(number[following])
        rows.append(row)
        if len(order) > MOST_STATES:
            raise QueryTooLargeError(
                f"the patterns of one text column need more than {MOST_STATES:,} states together: simplify them"
            )
    return order, np.array(rows, dtype=np.int64)


def same_columns(*tables: IntArray) -> tuple[IntArray, IntArray]:
    """The first of each kind of column that the tables have, and each column's kind.

    >>> same_columns(np.array([[1, 0, 1], [2, 2, 2]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    stacked = np.vstack(tables)
    with np.errstate(over="ignore"):
        weights = np.cumprod(np.full(len(stacked), HASH_FACTOR, dtype=np.uint64))
        sums = weights @ stacked.astype(np.uint64)
    _, first, kind = np.unique(sums, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    first, kind = first[order], number[kind]
    if np.array_equal(stacked[:, first[kind]], stacked):
        return first, kind
    return _same_columns_by_bytes(stacked)  # two kinds have the same sum


def _same_columns_by_bytes(stacked: IntArray) -> tuple[IntArray, IntArray]:
    columns = np.ascontiguousarray(stacked.T)
    kinds: dict[bytes, int] = {}
    kind = np.array([kinds.setdefault(column.tobytes(), len(kinds)) for column in columns], dtype=np.int64)
    first = np.zeros(len(kinds), dtype=np.int64)
    first[kind[::-1]] = np.arange(len(kind))[::-1]
    return first, kind


def distance(following: IntArray, goal: BoolArray) -> IntArray:
    """How many letters lead from each state to one of ``goal`` at least; the number of states if none ever do."""
    count = len(goal)
    before: list[list[int]] = [[] for _ in range(count)]
    for state, row in enumerate(following.tolist()):
        for after in set(row):
            before[after].append(state)
    far = [count] * count
    reached = np.flatnonzero(goal).tolist()
    for state in reached:
        far[state] = 0
    for state in reached:  # grows while it is walked
        for previous in before[state]:
            if far[previous] == count:
                far[previous] = far[state] + 1
                reached.append(previous)
    return np.array(far, dtype=np.int64)


def minimal(following: IntArray, accepts: BoolArray) -> tuple[IntArray, BoolArray]:
    """The minimal machine of the same strings: without unreachable states, equivalent states merged."""
    if not following.shape[1]:
        return np.zeros((1, 0), dtype=np.int64), accepts[:1].copy()
    first, kind = same_columns(following)
    order, table = explore(0, following[:, first].tolist().__getitem__)
    ends = accepts[order]
    backward = _backward(table)
    block = _refined(table, ends) if backward is None else _merged(table, ends, backward)
    chosen = np.zeros(block.max() + 1, dtype=np.int64)
    chosen[block[::-1]] = np.arange(len(block))[::-1]
    return block[table[chosen]][:, kind], ends[chosen]


def _refined(table: IntArray, ends: BoolArray) -> IntArray:
    """Equivalent states, by equal numbers."""
    # Moore's refinement, from a partition that is fine already: equivalent states are equally far from either end.
    block = _numbered(np.stack([distance(table, ends), distance(table, ~ends)], axis=1))
    while True:
        check_cancelled()
        finer = _numbered(np.concatenate([block[:, None], block[table]], axis=1))
        if finer.max() == block.max():
            return block
        block = finer


def _merged(table: IntArray, ends: BoolArray, backward: Sequence[int]) -> IntArray:
    """The same as :func:`_refined` for a machine without loops, in one pass; refinement takes one for each letter."""
    same = np.arange(len(table))  # an equivalent state of each state
    known: dict[tuple[bool, bytes], int] = {}
    sinks: dict[bool, int] = {}
    for state in backward:
        accepted = bool(ends[state])
        if (table[state] == state).all():
            same[state] = sinks.setdefault(accepted, state)
        same[state] = known.setdefault((accepted, same[table[state]].tobytes()), same[state])
    return _numbered(same[:, None])


def _backward(table: IntArray) -> list[int] | None:
    """The states, each after all that follow on it; None if there is a loop, but from a state to itself by any letter.

    >>> _backward(np.array([[1, 2], [2, 2], [2, 2]])), _backward(np.array([[0, 1], [1, 1]]))
    ([2, 1, 0], None)
    """
    left: list[int] = []
    before: list[list[int]] = [[] for _ in table]
    for state, row in enumerate(table.tolist()):
        others = set(row) if set(row) != {state} else set()
        left.append(len(others))
        for after in others:
            before[after].append(state)
    order = [state for state, count in enumerate(left) if not count]
    for state in order:  # grows while it is walked
        for previous in before[state]:
            left[previous] -= 1
            if not left[previous]:
                order.append(previous)
    return order if len(order) == len(table) else None


def _numbered(rows: IntArray) -> IntArray:
    """Equal rows by equal numbers, in the order in which they first occur."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in np.ascontiguousarray(rows)])
