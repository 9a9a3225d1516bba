"""Frequent substrings, and the number of rows that contain each: by the compiled module, or slowly in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from countless.arrays import IntArray
from countless.data.summaries.substring_text import BREAK, RowTexts, SymbolTable
from countless.data.summaries.substring_tries import Trie, read_trie
from countless.errors import CountlessError

Substring = tuple[int, ...]


def compiled() -> ModuleType | None:
    """The compiled module; None if it was not built."""
    try:
        from countless.data import _substrings
    except ImportError:
        return None
    module: ModuleType = _substrings
    return module


def frequent(rows: RowTexts, threshold: int, longest: int, most: int) -> tuple[Trie, int]:
    """The substrings of up to ``longest`` symbols that at least ``threshold`` rows contain, and the threshold.

    The threshold is raised until there are no more than ``most`` substrings.
    """
    module = compiled()
    if module is None or not len(rows):
        return frequent_by_python(rows, threshold, longest, most)
    threshold, parents, symbols, counts = module.grow(rows.text, rows.starts, threshold, longest, most)
    return read_trie(parents, symbols, counts, threshold), threshold


def frequent_by_python(rows: RowTexts, threshold: int, longest: int, most: int) -> tuple[Trie, int]:
    """:func:`frequent` without the compiled module."""
    counts = Counter(part for row in rows.lists() for part in set(substrings_of_row(row, longest)))
    ranked = sorted(counts.values(), reverse=True)
    if len(ranked) > most:
        threshold = max(threshold, ranked[most] + 1)
    frequent_parts = (part for part, count in counts.items() if count >= threshold)
    ordered = sorted(frequent_parts, key=lambda part: (len(part), part))
    nodes: dict[Substring, int] = {(): 0, **{part: node for node, part in enumerate(ordered, 1)}}
    parents = np.array([0, *(nodes[part[:-1]] for part in ordered)], dtype=np.int32)
    symbols = np.array([0, *(part[-1] for part in ordered)], dtype=np.uint16)
    node_counts = np.array([len(rows), *(counts[part] for part in ordered)], dtype=np.int64)
    return Trie(parents, symbols, node_counts, np.zeros_like(node_counts)), threshold


def substrings_of_row(row: list[int], longest: int) -> Iterator[Substring]:
    """All substrings of a row that contain no break."""
    for start in range(len(row)):
        for end in range(start, min(len(row), start + longest)):
            if row[end] == BREAK:
                break
            yield tuple(row[start : end + 1])


class RowCounter:
    """Counts the rows that contain each substring of a trie; with a substring the trie has all its parts."""

    def __init__(self, trie: Trie) -> None:
        self._trie = trie
        self._module = compiled()
        self._automaton: Any = None
        if self._module is not None:
            parents, symbols = np.ascontiguousarray(trie.parents), np.ascontiguousarray(trie.symbols)
            self._automaton = self._module.automaton(parents, symbols)

    def add(self, rows: RowTexts, counts: IntArray) -> None:
        """Add to ``counts`` the number of ``rows`` that contain each substring."""
        if self._module is not None:
            self._module.occur(self._automaton, rows.text, rows.starts, counts)
        else:
            self.add_by_python(rows, counts)

    def add_by_case(self, table: SymbolTable, rows: RowTexts, counts: IntArray) -> None:
        """Add to three arrays of ``counts``: rows in lower case, other rows, and other rows turned into lower case."""
        lower, mixed = table.by_case(rows)
        if len(lower):
            self.add(lower, counts[0])
        if len(mixed):
            self.add(mixed, counts[1])
            self.add(table.folded(mixed), counts[2])

    def add_by_python(self, rows: RowTexts, counts: IntArray) -> None:
        """:meth:`add` without the compiled module."""
        pairs = zip(self._trie.parents[1:].tolist(), self._trie.symbols[1:].tolist(), strict=True)
        children = {pair: node for node, pair in enumerate(pairs, 1)}
        if len(children) + 1 != len(counts):
            raise CountlessError("the trie has a substring twice")
        for row in rows.lists():
            contained = set()
            for start in range(len(row)):
                node = 0
                for symbol in row[start:]:
                    node = children.get((node, symbol), 0)
                    if not node:
                        break
                    contained.add(node)
            for node in contained:
                counts[node] += 1
