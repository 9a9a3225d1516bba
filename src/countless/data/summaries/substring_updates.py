"""Counts of substrings with those of new rows added."""

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


def added_substrings(summary: Substrings, passes: StringScans, column: TextColumn) -> Substrings:
    """The summary of the old rows and of new ones.

    For a substring that was too rare to be stored, the number of old rows is unknown: it stays out, and ``unseen``
    rises by the most new rows that any such substring has.
    """
    table, trie = SymbolTable(column), summary.trie()
    counter = RowCounter(trie)
    counts = np.zeros((3, len(trie.parents)), dtype=np.int64)
    rows = nulls = 0
    kept: list[RowTexts] = []
    for strings in passes.read():
        rows, nulls = rows + len(strings.lengths), nulls + int(np.count_nonzero(~strings.present))
        texts = table.rows(strings)
        kept.append(texts)
        counter.add_by_case(table, texts, counts)
    low, plain, folded = counts
    merged = Trie(trie.parents, trie.symbols, trie.counts + low + plain, trie.extras + np.maximum(folded - plain, 0))
    merged.counts[0] = summary.rows + rows
    unseen = summary.unseen + _most_unseen(kept, table, trie, summary.longest)
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


def _most_unseen(kept: list[RowTexts], table: SymbolTable, trie: Trie, longest: int) -> int:
    """The most of the new rows that contain a substring which the trie does not have, or more than these."""
    texts = joined(kept)
    if len(texts.text) > SAMPLE_SYMBOLS:
        return len(texts)
    both = joined([texts, table.folded(table.by_case(texts)[1])])
    found, threshold = frequent(both, LEAST_ROWS, longest, CANDIDATES)
    known = _places(found, trie)
    return max(threshold - 1, int(found.counts[known < 0].max(initial=0)))


def _places(some: Trie, trie: Trie) -> IntArray:
    """Of each substring of one trie its node in another; -1 if that does not have it."""
    base = 1 << 16
    keys = trie.parents.astype(np.int64) * base + trie.symbols
    keys[0] = -1
    order = np.argsort(keys)
    ranked = keys[order]
    places = np.full(len(some.parents), -1, dtype=np.int64)
    places[0] = 0
    for nodes in some.levels[1:]:
        before = places[some.parents[nodes]]
        wanted = before * base + some.symbols[nodes]
        there = np.minimum(np.searchsorted(ranked, wanted), len(ranked) - 1)
        places[nodes] = np.where((before >= 0) & (ranked[there] == wanted), order[there], -1)
    return places
