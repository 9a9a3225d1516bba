"""Which substrings are frequent, and in how many rows each is: by the compiled module, or slowly by Python."""

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
    """The compiled module, unless it was not built."""
    try:
        from countless.data import _substrings
    except ImportError:
        return None
    module: ModuleType = _substrings
    return module


def frequent(rows: RowTexts, threshold: int, longest: int, most: int) -> tuple[Trie, int]:
    """The substrings of up to ``longest`` symbols that at least ``threshold`` rows contain, and that threshold.

    It is raised if there would be more than ``most`` of them.
    """
    module = compiled()
    if module is None or not len(rows):
        return frequent_by_python(rows, threshold, longest, most)
    needed, parents, symbols, counts = module.grow(rows.text, rows.starts, threshold, longest, most)
    return read_trie(parents, symbols, counts, needed), needed


def frequent_by_python(rows: RowTexts, threshold: int, longest: int, most: int) -> tuple[Trie, int]:
    """The same without the compiled module."""
    counts = Counter(part for row in rows.lists() for part in set(parts_of(row, longest)))
    ranked = sorted(counts.values(), reverse=True)
    if len(ranked) > most:
        threshold = max(threshold, ranked[most] + 1)
    kept = sorted((part for part, count in counts.items() if count >= threshold), key=lambda part: (len(part), part))
    places: dict[Substring, int] = {(): 0, **{part: index for index, part in enumerate(kept, 1)}}
    parents = np.array([0, *(places[part[:-1]] for part in kept)], dtype=np.int32)
    symbols = np.array([0, *(part[-1] for part in kept)], dtype=np.uint16)
    found = np.array([len(rows), *(counts[part] for part in kept)], dtype=np.int64)
    return Trie(parents, symbols, found, np.zeros_like(found)), threshold


def parts_of(row: list[int], longest: int) -> Iterator[Substring]:
    """All substrings of a row that have no break in them."""
    for start in range(len(row)):
        for end in range(start, min(len(row), start + longest)):
            if row[end] == BREAK:
                break
            yield tuple(row[start : end + 1])


class RowCounter:
    """Counts the rows that contain each substring of a trie, which has all parts of its substrings."""

    def __init__(self, trie: Trie) -> None:
        self._trie = trie
        self._module = compiled()
        self._automaton: Any = None
        if self._module is not None:
            own = (np.ascontiguousarray(trie.parents), np.ascontiguousarray(trie.symbols))
            self._automaton = self._module.automaton(*own)

    def add(self, rows: RowTexts, counts: IntArray) -> None:
        """Add to ``counts`` how many of ``rows`` contain each."""
        if self._module is not None:
            self._module.occur(self._automaton, rows.text, rows.starts, counts)
        else:
            self.add_by_python(rows, counts)

    def add_by_case(self, table: SymbolTable, rows: RowTexts, counts: IntArray) -> None:
        """Add to the ``counts`` of rows in lower case, of the others, and of the others turned into lower case."""
        low, other = table.by_case(rows)
        if len(low):
            self.add(low, counts[0])
        if len(other):
            self.add(other, counts[1])
            self.add(table.folded(other), counts[2])

    def add_by_python(self, rows: RowTexts, counts: IntArray) -> None:
        """The same without the compiled module."""
        pairs = zip(self._trie.parents[1:].tolist(), self._trie.symbols[1:].tolist(), strict=True)
        children = {pair: node for node, pair in enumerate(pairs, 1)}
        if len(children) + 1 != len(counts):
            raise CountlessError("the trie has a substring twice")
        for row in rows.lists():
            met = set()
            for start in range(len(row)):
                node = 0
                for symbol in row[start:]:
                    node = children.get((node, symbol), 0)
                    if not node:
                        break
                    met.add(node)
            for node in met:
                counts[node] += 1
