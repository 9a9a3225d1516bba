"""Transition tables of deterministic finite automata: exploration, merging and minimization."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

from countless.arrays import BoolArray, IntArray
from countless.cancellation import check_cancelled
from countless.errors import QueryTooLargeError

MOST_STATES = 10_000
CANCELLATION_INTERVAL = 256  # states between two checks for cancellation
HASH_FACTOR = 0x9E3779B97F4A7C15  # odd: the hash of a column is a sum weighted by its powers

State = TypeVar("State", bound=Hashable)


def explore(start: State, next_states: Callable[[State], Sequence[State]]) -> tuple[list[State], IntArray]:
    """The states that can be reached from ``start``, which comes first, and their transition table.

    ``next_states`` returns the next states of a state, letter by letter.

    >>> explore("idle", lambda state: ["busy", state])
    (['idle', 'busy'], array([[1, 0],
           [1, 1]]))
    """
    number = {start: 0}
    order = [start]
    rows: list[list[int]] = []
    for state in order:
        if len(rows) % CANCELLATION_INTERVAL == 0:
            check_cancelled()
        row = []
        for next_state in next_states(state):
            if next_state not in number:
                number[next_state] = len(order)
                order.append(next_state)
            row.append(number[next_state])
        rows.append(row)
        if len(order) > MOST_STATES:
            raise QueryTooLargeError(
                f"the patterns of one text column need more than {MOST_STATES:,} states together: simplify them"
            )
    return order, np.array(rows, dtype=np.int64)


def same_columns(*tables: IntArray) -> tuple[IntArray, IntArray]:
    """Group equal columns of the stacked tables: the first column of each kind, and the kind of each column.

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
    return _same_columns_by_bytes(stacked)  # two different columns have the same hash


def _same_columns_by_bytes(stacked: IntArray) -> tuple[IntArray, IntArray]:
    columns = np.ascontiguousarray(stacked.T)
    kinds: dict[bytes, int] = {}
    kind = np.array([kinds.setdefault(column.tobytes(), len(kinds)) for column in columns], dtype=np.int64)
    first = np.zeros(len(kinds), dtype=np.int64)
    first[kind[::-1]] = np.arange(len(kind))[::-1]
    return first, kind


def distance(next_states: IntArray, goal: BoolArray) -> IntArray:
    """The least number of letters from each state to a ``goal`` state; the number of states if it cannot be reached."""
    count = len(goal)
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for state, row in enumerate(next_states.tolist()):
        for next_state in set(row):
            predecessors[next_state].append(state)
    distances = [count] * count
    queue = np.flatnonzero(goal).tolist()
    for state in queue:
        distances[state] = 0
    for state in queue:  # grows during the loop
        for previous in predecessors[state]:
            if distances[previous] == count:
                distances[previous] = distances[state] + 1
                queue.append(previous)
    return np.array(distances, dtype=np.int64)


def minimal(next_states: IntArray, accepts: BoolArray) -> tuple[IntArray, BoolArray]:
    """The minimal automaton of the same strings: without unreachable states, and with equivalent states merged."""
    if not next_states.shape[1]:
        return np.zeros((1, 0), dtype=np.int64), accepts[:1].copy()
    first, kind = same_columns(next_states)
    order, table = explore(0, next_states[:, first].tolist().__getitem__)
    ends = accepts[order]
    backward = _backward(table)
    block = _refined(table, ends) if backward is None else _merged(table, ends, backward)
    representatives = np.zeros(block.max() + 1, dtype=np.int64)
    representatives[block[::-1]] = np.arange(len(block))[::-1]
    return block[table[representatives]][:, kind], ends[representatives]


def _refined(table: IntArray, ends: BoolArray) -> IntArray:
    """The class of each state: equivalent states have equal numbers."""
    # Moore's refinement. It starts from a fine partition: equivalent states have equal distances to acceptance and to
    # rejection.
    block = _numbered(np.stack([distance(table, ends), distance(table, ~ends)], axis=1))
    while True:
        check_cancelled()
        finer = _numbered(np.concatenate([block[:, None], block[table]], axis=1))
        if finer.max() == block.max():
            return block
        block = finer


def _merged(table: IntArray, ends: BoolArray, backward: Sequence[int]) -> IntArray:
    """The same as :func:`_refined` for an automaton without loops, in one pass over its states, successors first."""
    equivalent = np.arange(len(table))  # for each state, the representative of its class
    state_by_signature: dict[tuple[bool, bytes], int] = {}
    sinks: dict[bool, int] = {}
    for state in backward:
        accepted = bool(ends[state])
        if (table[state] == state).all():
            equivalent[state] = sinks.setdefault(accepted, state)
        equivalent[state] = state_by_signature.setdefault(
            (accepted, equivalent[table[state]].tobytes()), equivalent[state]
        )
    return _numbered(equivalent[:, None])


def _backward(table: IntArray) -> list[int] | None:
    """The states in an order with successors first; None if there is a loop, other than of a state by all its letters.

    >>> _backward(np.array([[1, 2], [2, 2], [2, 2]])), _backward(np.array([[0, 1], [1, 1]]))
    ([2, 1, 0], None)
    """
    unordered_successors: list[int] = []
    predecessors: list[list[int]] = [[] for _ in table]
    for state, row in enumerate(table.tolist()):
        successors = set(row) if set(row) != {state} else set()
        unordered_successors.append(len(successors))
        for successor in successors:
            predecessors[successor].append(state)
    order = [state for state, count in enumerate(unordered_successors) if not count]
    for state in order:  # grows during the loop
        for previous in predecessors[state]:
            unordered_successors[previous] -= 1
            if not unordered_successors[previous]:
                order.append(previous)
    return order if len(order) == len(table) else None


def _numbered(rows: IntArray) -> IntArray:
    """A number for each row, equal for equal rows, in the order in which they first occur."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in np.ascontiguousarray(rows)])
