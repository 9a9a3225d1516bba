"""How likely whole strings are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from countless.arrays import FloatArray, IntArray
from countless.engine.reading import pieces
from countless.engine.text.runtime import TextRuntime

AT_ONCE = 128  # strings that are read in one tree


def log_probabilities(
    runtime: TextRuntime, symbols: ArrayLike, lengths: ArrayLike, contexts: IntArray | None = None
) -> FloatArray:
    """The logarithm of the probability of each whole string, END, CUT or NULL included.

    ``symbols`` (strings, length + 1) and ``lengths`` are those of :class:`~countless.data.text.Strings`. The
    ``contexts`` of the strings (strings, positions) make no difference: the models know none.
    """
    strings, sizes = np.asarray(symbols).astype(np.int64), np.asarray(lengths)
    found = np.zeros(len(strings))
    for some in pieces(len(strings), AT_ONCE):
        found[some] = _read(runtime, strings[some], sizes[some])
    return found


def _read(runtime: TextRuntime, strings: IntArray, lengths: IntArray) -> FloatArray:
    """The same for strings that are read in one call; the last symbol of each is only asked about."""
    tree = runtime.tree()
    read = np.arange(strings.shape[1]) < lengths[:, None] - 1
    nodes = np.zeros((len(strings), strings.shape[1] + 1), dtype=np.int64)  # that tell about each place; 0 is the root
    nodes[:, 1:][read] = tree.size + np.arange(np.count_nonzero(read))
    probs = np.concatenate([tree.roots, tree.extend(nodes[:, :-1][read], strings[read])])
    asked = np.arange(strings.shape[1]) < lengths[:, None]
    logs = np.zeros(strings.shape)
    with np.errstate(divide="ignore"):
        logs[asked] = np.log(probs[nodes[:, :-1][asked], strings[asked]])
    return np.asarray(logs.sum(axis=1))
