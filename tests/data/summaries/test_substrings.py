"""Counted substrings, against sets of all substrings of every row."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.data.columns.strings.characters import Characters
from countless.data.columns.strings.text import TextColumn
from countless.data.sources.source import Source
from countless.data.summaries import substring_counting as counting
from countless.data.summaries import substring_growth as growth
from countless.data.summaries.substring_counting import StringScans, count_substrings, unseen_bound
from countless.data.summaries.substring_growth import RowCounter, frequent, frequent_by_python
from countless.data.summaries.substring_text import RowTexts, SymbolTable
from countless.data.summaries.substring_tries import Trie
from countless.data.summaries.substring_updates import added_substrings
from countless.data.summaries.substrings import Substrings
from countless.errors import ModelFileError

COLUMN = TextColumn("t", "VARCHAR", "ABab/", 6, True, 9, (("é", 2),), (5, 5, 5, 5, 5))
TEXTS = st.lists(st.none() | st.text("ABab/é", max_size=8) | st.text("ab", max_size=12), max_size=30)


def passes(texts: list[str | None], batch: int = 7) -> StringScans:
    """The texts, some at a time."""
    parts = [texts[first : first + batch] for first in range(0, len(texts), batch)]
    return StringScans(lambda: map(Characters.of_texts, parts), len(texts))


def counted(texts: list[str | None], size: int | None = None) -> Substrings:
    return count_substrings(passes(texts), COLUMN, size=size)


def truth(texts: list[str | None], longest: int = counting.LONGEST) -> Counter[str]:
    """The rows of every substring; ``^`` is the beginning of a string and ``$`` its end, and é is a break."""
    counts: Counter[str] = Counter()
    for text in texts:
        if text is not None:
            parts = f"^{text}$".split("é")
            counts.update({part[i:j] for part in parts for i in range(len(part)) for j in range(i + 1, len(part) + 1)})
    return Counter({part: count for part, count in counts.items() if len(part) <= longest})


def symbols(summary: Substrings, part: str) -> list[int]:
    anchors = {"^": summary.begin, "$": summary.end}
    return [anchors[each] if each in anchors else COLUMN.characters.index(each) for each in part]


def is_right(summary: Substrings, texts: list[str | None]) -> None:
    """What is counted is counted right, and what is not is rare."""
    lower: list[str | None] = [None if text is None else text.lower() for text in texts]
    every, folded = truth(texts), truth(lower)
    for part, count in every.items():
        told = summary.count(symbols(summary, part))
        assert told == count if told is not None else count <= summary.unseen
    for part, count in folded.items():
        told = summary.count(symbols(summary, part), folded=True)
        assert told == count if told is not None else count <= summary.unseen


@settings(deadline=None, max_examples=40)
@given(TEXTS, st.sampled_from([None, 500, 420]))
def test_counts_are_the_rows_that_contain_a_substring(texts: list[str | None], size: int | None) -> None:
    summary = counted(texts, size)
    assert (summary.rows, summary.nulls) == (len(texts), texts.count(None))
    is_right(summary, texts)
    is_right(Substrings.from_arrays(summary.arrays(), len(COLUMN.characters)), texts)


@settings(deadline=None, max_examples=40)
@given(TEXTS, st.sampled_from([None, 500, 420]), st.text("^$abcAB", max_size=9), st.integers(0, 3))
def test_the_longest_part_is_the_same_without_the_compiled_module(
    texts: list[str | None], size: int | None, part: str, start: int
) -> None:
    summary = counted(texts, size)
    known = ["".join(each for each in text if each in COLUMN.characters) for text in texts if text is not None]
    part = "".join(each for each in part if each in "^$" or each in COLUMN.characters)
    for some in (tuple(symbols(summary, each)) for each in (part, *(f"^{text}$" for text in known))):
        if start <= len(some):
            length, node = summary.longest_by_python(some, start)
            rows = summary.rows - summary.nulls if node < 0 else summary.counts[node]
            assert summary.longest_from(some, start) == (length, rows)
    assert summary._after.tolist() == summary.next_of_level_by_numpy().tolist()


@settings(deadline=None, max_examples=25)
@given(TEXTS, TEXTS)
def test_new_rows_are_added(old: list[str | None], new: list[str | None]) -> None:
    summary = added_substrings(counted(old), passes(new), COLUMN)
    assert (summary.rows, summary.nulls) == (len(old) + len(new), (old + new).count(None))
    is_right(summary, old + new)


@settings(deadline=None, max_examples=40)
@given(TEXTS, st.integers(1, 3), st.integers(1, 9), st.sampled_from([5, 1_000_000]))
def test_the_compiled_module_finds_what_python_finds(
    texts: list[str | None], threshold: int, longest: int, most: int
) -> None:
    rows = SymbolTable(COLUMN).rows(Characters.of_texts(texts))
    (one, needed), (two, expected) = (find(rows, threshold, longest, most) for find in (frequent, frequent_by_python))
    assert needed <= expected  # of the least threshold, levels that are not reached any more tell nothing
    assert paths(one.pruned(expected)) == paths(two)
    counter, counts, slow = RowCounter(two), *np.zeros((2, len(two.parents)), dtype=np.int64)
    counter.add(rows, counts)
    counter.add_by_python(rows, slow)
    assert counts.tolist() == slow.tolist()
    assert counts[1:].tolist() == two.counts[1:].tolist()


def paths(trie: Trie) -> dict[tuple[int, ...], int]:
    """Every substring and its count."""
    prefixes: list[tuple[int, ...]] = [()]
    for parent, symbol in zip(trie.parents[1:].tolist(), trie.symbols[1:].tolist(), strict=True):
        prefixes.append((*prefixes[parent], symbol))
    return dict(zip(prefixes[1:], trie.counts[1:].tolist(), strict=True))


@settings(deadline=None, max_examples=40)
@given(TEXTS, st.integers(1, 4))
def test_a_tree_expands_to_its_trie(texts: list[str | None], threshold: int) -> None:
    trie, _ = frequent(SymbolTable(COLUMN).rows(Characters.of_texts(texts)), threshold, 9, 10_000)
    tree = trie.compressed()
    again = Trie.expanded(*tree, rows=len(texts))
    assert paths(again) == paths(trie)
    assert len(tree.levels) <= len(trie.parents) - 1


def test_it_works_without_the_compiled_module(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str | None] = ["/a/b", "/a/B", None, "ab", "/a/b/b"]
    expected = counted(texts)
    monkeypatch.setattr(growth, "compiled", lambda: None)
    plain = counted(texts)
    assert {name: array.tolist() for name, array in plain.arrays().items()} == {
        name: array.tolist() for name, array in expected.arrays().items()
    }


def words(count: int) -> list[str | None]:
    rng = np.random.default_rng(3)
    return ["/".join("ab"[each] * 2 + "AB"[each] for each in rng.integers(0, 2, 3)) for _ in range(count)]


def test_a_source_reads_a_random_share_some_neighbours_and_the_nulls() -> None:
    strings = "SELECT CASE WHEN i % 10 = 0 THEN NULL ELSE 'a' || i END AS path FROM range(20_000) AS t(i)"
    source = Source.open(duckdb.sql(strings))
    scans = StringScans.of(source, replace(COLUMN, name="path", has_null=True), 20_000)
    assert scans.null_count() == 2_000
    some = scans.neighbours()
    assert some is not None
    assert len(some.lengths) > 100
    rng = np.random.default_rng(3)
    drawn = list(scans.random_strings(0.1, rng))
    assert sum(len(strings.lengths) for strings in drawn) == pytest.approx(2_000, rel=0.15)
    assert sum(int(strings.present.sum()) for strings in drawn) == pytest.approx(1_800, rel=0.15)
    plain = replace(scans, draw=None, nearby=None, nulls=None)
    assert plain.null_count() == 2_000
    assert plain.neighbours() is not None
    assert sum(len(strings.lengths) for strings in plain.random_strings(0.1, rng)) == pytest.approx(2_000, rel=0.15)


def test_a_sample_proposes_and_all_rows_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "SAMPLE_ROWS", 200)
    texts = words(2_000)
    summary = counted(texts)
    assert summary.is_exact
    assert len(summary) > 50
    is_right(summary, texts)


def test_without_time_a_sample_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "SAMPLE_ROWS", 500)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # the time is planned for as many threads
    texts, now = words(4_000), iter(range(10**9))
    summary = count_substrings(passes(texts, 500), COLUMN, seconds=9.0, clock=lambda: float(next(now)))
    assert summary.sampled is not None
    assert summary.rows == len(texts)
    every = truth(texts)
    for part in ("^aa", "aaA/", "B$"):
        count = summary.count(symbols(summary, part))
        assert count is not None
        assert 0.7 * every[part] < count < 1.4 * every[part]
        assert summary.most(count) >= every[part]


def test_a_smaller_size_keeps_the_frequent_ones() -> None:
    texts = words(3_000)
    large, small = counted(texts), counted(texts, 600)
    assert len(small) < len(large)
    assert small.threshold > large.threshold
    assert sum(array.nbytes for array in small.arrays().values()) <= 600
    is_right(small, texts)


def test_the_bound_of_what_a_sample_misses() -> None:
    assert unseen_bound(3, 1.0) == 2.0
    assert 15 / 0.01 < unseen_bound(3, 0.01) < 25 / 0.01


def test_rows_of_text_that_are_none() -> None:
    module = growth.compiled()
    if module is None:
        pytest.skip("the compiled module was not built")
    whole = SymbolTable(COLUMN).rows(Characters.of_texts(["ab", "a"]))
    broken: list[tuple[RowTexts, str]] = [
        (RowTexts(whole.text[:-1], whole.starts), "ends with a break"),
        (RowTexts(whole.text, whole.starts[::-1].copy()), "ends with a break"),
        (RowTexts(whole.text.astype(np.uint8), whole.starts), "expected"),
    ]
    for rows, message in broken:
        with pytest.raises(ValueError, match=message):
            module.grow(rows.text, rows.starts, 1, 5, 100)
    with pytest.raises(ValueError, match="after their parents"):
        module.automaton(np.array([0, 2, 1], dtype=np.int32), np.zeros(3, dtype=np.uint16))


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("substrings.counts"),
        lambda arrays: arrays.update({"substrings.counts": arrays["substrings.counts"][:-5]}),
        lambda arrays: arrays.update({"substrings.head": arrays["substrings.head"] + 1}),
        lambda arrays: arrays.update({"substrings.labels": arrays["substrings.lengths"]}),
    ],
)
def test_damaged_arrays(change: Callable[[dict[str, np.ndarray]], object]) -> None:
    arrays = counted(words(50)).arrays()
    change(arrays)
    with pytest.raises(ModelFileError, match="do not fit together"):
        Substrings.from_arrays(arrays, len(COLUMN.characters))
