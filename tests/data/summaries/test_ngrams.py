"""Counts of n-grams against brute force, and what becomes of them in a file."""

from __future__ import annotations

import zlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.data.columns.text import TextColumn, encode
from countless.data.summaries import ngrams
from countless.data.summaries.integer_packing import packed
from countless.data.summaries.ngrams import LONGEST_GRAM, NGrams, count_ngrams
from countless.errors import ModelFileError

TEXTS = st.lists(st.none() | st.text("abé", max_size=9), max_size=30)
COLUMN = TextColumn("t", "VARCHAR", "ab", 9, True, 9, (("é", 1),), (5, 5))


def counted(texts: list[str | None], column: TextColumn = COLUMN) -> NGrams:
    return count_ngrams(encode(column, texts).symbols, len(column.characters))


def brute(texts: list[str | None]) -> Counter[str]:
    """The rows of every n-gram of a and b."""
    found: Counter[str] = Counter()
    for text in filter(None, texts):
        sizes = range(1, LONGEST_GRAM + 1)
        grams = {text[start : start + size] for size in sizes for start in range(len(text) - size + 1)}
        found.update(gram for gram in grams if "é" not in gram)
    return found


def held(summary: NGrams, characters: str = "ab") -> dict[str, int]:
    """What a summary says of each of its n-grams."""
    found = {}
    for length, (codes, counts) in enumerate(zip(summary.codes, summary.counts, strict=True), 1):
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            digits = [code // len(characters) ** place % len(characters) for place in reversed(range(length))]
            found["".join(characters[digit] for digit in digits)] = count
            assert summary.count(digits) == count
    return found


@given(TEXTS, st.integers(1, 7))
def test_every_frequent_ngram_is_counted(texts: list[str | None], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "ROWS_AT_ONCE", block)
        patch.setattr(ngrams, "PENDING", 3)
        summary = counted(texts)
    assert summary.threshold == 2
    assert held(summary) == {gram: count for gram, count in brute(texts).items() if count >= 2}
    assert (summary.rows, summary.nulls, summary.cut) == (len(texts), texts.count(None), 0)
    assert len(summary) == len(held(summary))


@given(TEXTS, st.integers(0, 20))
def test_the_threshold_is_the_least_that_leaves_few_enough(texts: list[str | None], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "MOST_ENTRIES", most)
        summary = counted(texts)
    truth = brute(texts)
    at_least = [sum(count >= limit for count in truth.values()) for limit in range(len(texts) + 2)]
    assert summary.threshold == next(
        limit for limit in range(2, len(texts) + 3) if sum(at_least[limit : limit + 1]) <= most
    )
    assert held(summary) == {gram: count for gram, count in truth.items() if count >= summary.threshold}


def test_cut_strings_are_counted_up_to_the_cut() -> None:
    column = TextColumn("t", "VARCHAR", "ab", 3, True, 9, (), (5, 5), cut=2, beyond=2.0)
    summary = counted(["aab", "aabb", "aab" * 3, None], column)
    assert held(summary) == {"a": 3, "b": 3, "aa": 3, "ab": 3, "aab": 3}
    assert (summary.cut, summary.nulls) == (2, 1)


def test_no_characters() -> None:
    column = TextColumn("t", "VARCHAR", "", 1, True, 1)
    for texts in ([], [None, ""]):
        summary = counted(texts, column)
        assert not len(summary)
        assert not len(NGrams.from_arrays(summary.arrays(), 0))


@pytest.mark.parametrize("symbols", [[], [0] * 6, [2], [-1], [0, 5]])
def test_what_is_no_ngram(symbols: list[int]) -> None:
    with pytest.raises(ValueError, match=r"no character|1 to 5"):
        counted(["ab"]).count(symbols)


def test_an_alphabet_that_is_too_large() -> None:
    with pytest.raises(ValueError, match="too large"):
        count_ngrams(np.zeros((1, 2), dtype=np.uint16), 5_000)


@given(TEXTS)
def test_a_file_has_it_all(texts: list[str | None]) -> None:
    summary = counted(texts)
    again = NGrams.from_arrays(summary.arrays(), 2)
    assert held(again) == held(summary)
    for name in ("characters", "rows", "nulls", "cut", "threshold"):
        assert getattr(again, name) == getattr(summary, name)


def test_a_file_is_small() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(300)]
    column = TextColumn("t", "VARCHAR", "abcdefgh", 30, False, 9, (), (1,) * 8)
    summary = counted(["/".join(rng.choice(words, 3)).replace("/", "h") for _ in range(3000)], column)
    assert sum(array.nbytes for array in summary.arrays().values()) < 4 * len(summary)


WHOLE = counted(["abab", "babb", "ab", None, "aabb", "bbb"])


@settings(max_examples=300)
@given(st.data())
def test_damage_is_told(data: st.DataObject) -> None:
    """Whatever is changed, the file is refused, or reads as a summary that is sound in itself."""
    arrays = {name: array.copy() for name, array in WHOLE.arrays().items()}
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name]
    how = data.draw(st.sampled_from(["change", "shorten", "lengthen", "missing", "type", "unpacked"]))
    number = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 20)
    if how == "change":
        place = data.draw(st.integers(0, len(array) - 1))
        array[place] = data.draw(st.integers(0, 255) if array.dtype == np.uint8 else number)
    elif how == "shorten":
        arrays[name] = array[: data.draw(st.integers(0, len(array) - 1))]
    elif how == "lengthen":
        arrays[name] = np.concatenate([array, array[:1]])
    elif how == "missing":
        del arrays[name]
    elif how == "type":
        arrays[name] = array.astype(np.float32)
    elif name != "ngrams.sizes":  # any numbers, well packed
        count = len(WHOLE)
        arrays[name] = packed(np.array(data.draw(st.lists(number, min_size=count, max_size=count))))
    try:
        found = NGrams.from_arrays(arrays, 2)
    except ModelFileError:
        return
    assert all(np.all(np.diff(codes) > 0) for codes in found.codes)
    assert all(np.all((counts >= found.threshold) & (counts <= found.rows)) for counts in found.counts)
    assert len(held(found)) == len(found) == sum(map(len, found.counts))


def test_another_alphabet() -> None:
    with pytest.raises(ModelFileError, match="fit the model again"):
        NGrams.from_arrays(WHOLE.arrays(), 3)


def test_a_bomb_is_not_unpacked() -> None:
    bomb = np.frombuffer(zlib.compress(bytes(10**7)), dtype=np.uint8)
    with pytest.raises(ModelFileError):
        NGrams.from_arrays({**WHOLE.arrays(), "ngrams.codes": bomb}, 2)
    sizes = WHOLE.arrays()["ngrams.sizes"].copy()
    sizes[-1] = 2**40
    with pytest.raises(ModelFileError):
        NGrams.from_arrays({**WHOLE.arrays(), "ngrams.sizes": sizes}, 2)
