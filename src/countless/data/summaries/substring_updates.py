"""Updates of substring counts: the counts of new rows are added to the stored ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from countless.arrays import IntArray
from countless.data.columns.strings.text import TextColumn
from countless.data.summaries.substring_counting import CANDIDATES, LEAST_ROWS, SAMPLE_SYMBOLS, StringScans
from countless.data.summaries.substring_growth import RowCounter, frequent
from countless.data.summaries.substring_text import RowTexts, SymbolTable, joined
from countless.data.summaries.substring_tries import Trie
from countless.data.summaries.substrings import Substrings


def added_substrings(summary: Substrings, scans: StringScans, column: TextColumn) -> Substrings:
    """The summary of the old rows and of new ones, which ``scans`` reads.

    A substring that was too rare to be stored is not added, because its number of old rows is unknown. Instead
    ``unseen`` grows by the most new rows that contain any such substring.
    """
    table, trie = SymbolTable(column), summary.trie()
    counter = RowCounter(trie)
    counts = np.zeros((3, len(trie.parents)), dtype=np.int64)
    rows = nulls = 0
    new_rows: list[RowTexts] = []
    for strings in scans.read():
        rows, nulls = rows + len(strings.lengths), nulls + int(np.count_nonzero(~strings.present))
        texts = table.rows(strings)
        new_rows.append(texts)
        counter.add_by_case(table, texts, counts)
    lower, mixed, folded = counts
    merged = Trie(trie.parents, trie.symbols, trie.counts + lower + mixed, trie.extras + np.maximum(folded - mixed, 0))
    merged.counts[0] = summary.rows + rows
    unseen = summary.unseen + _most_unseen(new_rows, table, trie, summary.longest)
    tree = merged.compressed()
    return replace(
        summary,
        rows=summary.rows + rows,
        nulls=summary.nulls + nulls,
        unseen=unseen,
        levels=tree.levels,
        starts=tree.starts,
        labels=tree.labels,
        counts=tree.counts,
        extras=tree.extras,
        sampled=None if summary.sampled is None else summary.sampled + rows,
    )


def _most_unseen(new_rows: list[RowTexts], table: SymbolTable, trie: Trie, longest: int) -> int:
    """An upper bound on the number of new rows that contain a substring which is not in the trie."""
    texts = joined(new_rows)
    if len(texts.text) > SAMPLE_SYMBOLS:
        return len(texts)
    in_both_cases = joined([texts, table.folded(table.by_case(texts)[1])])
    new_trie, threshold = frequent(in_both_cases, LEAST_ROWS, longest, CANDIDATES)
    is_new = _matching_nodes(new_trie, trie) < 0
    return max(threshold - 1, int(new_trie.counts[is_new].max(initial=0)))


def _matching_nodes(first: Trie, second: Trie) -> IntArray:
    """For each node of the first trie the second one's node of the same substring; -1 if there is none."""
    base = 1 << 16
    keys = second.parents.astype(np.int64) * base + second.symbols
    keys[0] = -1
    order = np.argsort(keys)
    sorted_keys = keys[order]
    matches = np.full(len(first.parents), -1, dtype=np.int64)
    matches[0] = 0
    for nodes in first.levels[1:]:
        parents = matches[first.parents[nodes]]
        node_keys = parents * base + first.symbols[nodes]
        index = np.minimum(np.searchsorted(sorted_keys, node_keys), len(sorted_keys) - 1)
        matches[nodes] = np.where((parents >= 0) & (sorted_keys[index] == node_keys), order[index], -1)
    return matches
