"""Automata that read the bytes of UTF-8 instead of letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.automata.dfa import same_columns

ASCII = 128
LEADS = 64  # bytes from 128 on that continue a letter; the bytes after these begin one


def on_bytes(next_by_kind: IntArray, kind: IntArray, letters: str) -> tuple[IntArray, NDArray[np.uint16]]:
    """Convert an automaton that reads kinds of ``letters`` to one that reads kinds of bytes; and the kind of each byte.

    A state becomes several, one for each node of a tree of the letters' bytes: how much of a letter was read. Letters
    of the most common kind have no branches of their own.
    """
    kinds, high_bytes = kind[:ASCII], np.zeros((1, ASCII), dtype=np.int64)
    if len(letters) > ASCII:
        common = int(np.bincount(kind[ASCII:]).argmax())
        other_letters = [letter for letter in range(ASCII, len(letters)) if kind[letter] != common]
        high_bytes = _bytes_of_letters(
            [(letters[letter].encode("utf-8", "surrogatepass"), int(kind[letter])) for letter in other_letters], common
        )
    first, high_kinds = same_columns(high_bytes)
    high_bytes = high_bytes[:, first]
    states, nodes = len(next_by_kind), len(high_bytes)
    table = np.zeros((states, nodes, next_by_kind.shape[1] + len(first)), dtype=np.int64)
    table[:, 0, : next_by_kind.shape[1]] = next_by_kind * nodes
    first_node = np.arange(states)[:, None, None] * nodes + np.maximum(high_bytes, 0)
    table[:, :, next_by_kind.shape[1] :] = np.where(
        high_bytes >= 0, first_node, next_by_kind[:, np.maximum(-1 - high_bytes, 0)] * nodes
    )
    kind_of_byte = np.concatenate([kinds, high_kinds + next_by_kind.shape[1]])
    return table.reshape(states * nodes, -1), kind_of_byte.astype(np.uint16)


def _bytes_of_letters(letters: Sequence[tuple[bytes, int]], common: int) -> IntArray:
    """What follows each node by each byte from 128 on: a node, or, after a letter's last byte, -1 minus its kind.

    ``letters`` are all letters whose kind is not ``common``.
    """
    leaf = -1 - common
    if not letters:  # the first byte decides, and all others are skipped
        return np.array([[0] * LEADS + [leaf] * LEADS])
    default: list[list[int]] = [[0] * LEADS + [1] * 32 + [2] * 16 + [3] * 16]
    default += [[next_node] * LEADS + [0] * LEADS for next_node in (leaf, 1, 2)]
    table = [list(row) for row in default]
    for encoded, kind in letters:
        node = 0
        for byte in encoded[:-1]:
            next_node = table[node][byte - ASCII]
            if next_node < len(default):
                table.append(list(default[next_node]))
                next_node = table[node][byte - ASCII] = len(table) - 1
            node = next_node
        table[node][encoded[-1] - ASCII] = -1 - kind
    return np.array(table)
