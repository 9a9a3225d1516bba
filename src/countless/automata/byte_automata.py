"""Automata that read the bytes of UTF-8 instead of letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.automata.dfa import same_columns

ASCII = 128
LEADS = 64  # bytes from 128 on that go on with a letter; then come those that begin one


def on_bytes(narrow: IntArray, kind: IntArray, letters: str) -> tuple[IntArray, NDArray[np.uint16]]:
    """An automaton that reads kinds of ``letters``, as one that reads kinds of bytes; and the kind of each byte.

    Each state becomes several: so much of a letter of more than one byte was read, by nodes of a tree of their bytes.
    Letters of the most common kind have no branches of their own.
    """
    kinds, high = kind[:ASCII], np.zeros((1, ASCII), dtype=np.int64)
    if len(letters) > ASCII:
        common = int(np.bincount(kind[ASCII:]).argmax())
        others = [place for place in range(ASCII, len(letters)) if kind[place] != common]
        high = _bytes_of_letters(
            [(letters[place].encode("utf-8", "surrogatepass"), int(kind[place])) for place in others], common
        )
    first, of_high = same_columns(high)
    high = high[:, first]
    states, nodes = len(narrow), len(high)
    table = np.zeros((states, nodes, narrow.shape[1] + len(first)), dtype=np.int64)
    table[:, 0, : narrow.shape[1]] = narrow * nodes
    own = np.arange(states)[:, None, None] * nodes + np.maximum(high, 0)
    table[:, :, narrow.shape[1] :] = np.where(high >= 0, own, narrow[:, np.maximum(-1 - high, 0)] * nodes)
    whole = np.concatenate([kinds, of_high + narrow.shape[1]])
    return table.reshape(states * nodes, -1), whole.astype(np.uint16)


def _bytes_of_letters(letters: Sequence[tuple[bytes, int]], common: int) -> IntArray:
    """What follows each node by each byte from 128 on: a node, or after a letter's last byte -1 less its kind.

    ``letters`` are those whose kind is not the ``common`` one.
    """
    leaf = -1 - common
    if not letters:  # the first byte tells all, and the others are passed over
        return np.array([[0] * LEADS + [leaf] * LEADS])
    default: list[list[int]] = [[0] * LEADS + [1] * 32 + [2] * 16 + [3] * 16]
    default += [[after] * LEADS + [0] * LEADS for after in (leaf, 1, 2)]
    table = [list(row) for row in default]
    for encoded, kind in letters:
        node = 0
        for byte in encoded[:-1]:
            after = table[node][byte - ASCII]
            if after < len(default):
                table.append(list(default[after]))
                after = table[node][byte - ASCII] = len(table) - 1
            node = after
        table[node][encoded[-1] - ASCII] = -1 - kind
    return np.array(table)
