"""N-grams counted in a given time: of all rows, or of a sample that does not claim to be exact."""

from __future__ import annotations

import numpy as np
import pytest

from countless.data.summaries import sampled_ngrams as ngram_sample
from countless.data.summaries.count_updates import added_ngrams
from countless.data.summaries.ngrams import NGrams, count_ngrams
from countless.data.summaries.sampled_ngrams import count_ngrams_within, spread_rows

ROWS, CHARACTERS, END, NULL = 20_000, 4, 5, 7


@pytest.fixture(autouse=True)
def small_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram_sample, "PILOT_ROWS", 1_000)


def symbols() -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Strings of five random letters, the rarer the later in the alphabet; a tenth of the rows is NULL."""
    rng = np.random.default_rng(3)
    found = np.full((ROWS, 6), END, dtype=np.uint8)
    found[:, :5] = rng.choice(CHARACTERS, size=(ROWS, 5), p=[0.6, 0.3, 0.08, 0.02])
    found[: ROWS // 10] = END
    found[: ROWS // 10, 0] = NULL
    return found


class Ticking:
    """A clock on which so many seconds pass between two looks."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def same(one: NGrams, two: NGrams) -> bool:
    return all(np.array_equal(a, b) for a, b in zip((*one.codes, *one.counts), (*two.codes, *two.counts), strict=True))


def test_with_enough_time_all_rows_are_counted() -> None:
    whole = count_ngrams(symbols(), CHARACTERS)
    for seconds, step in ((None, 1.0), (1_000.0, 1.0)):
        found = count_ngrams_within(symbols(), CHARACTERS, seconds, Ticking(step))
        assert found.is_exact
        assert same(found, whole)


@pytest.mark.parametrize(("seconds", "rows"), [(11.0, 8_000), (0.5, 1_000)])  # a pilot of 1,000 rows takes a second
def test_with_less_time_a_sample_is_scaled_up(seconds: float, rows: int) -> None:
    whole = count_ngrams(symbols(), CHARACTERS)
    found = count_ngrams_within(symbols(), CHARACTERS, seconds, Ticking(1.0))
    assert not found.is_exact
    assert found.sampled == rows
    assert (found.rows, found.nulls, found.cut) == (whole.rows, whole.nulls, whole.cut)
    assert found.threshold >= 10 * ROWS / rows - 1
    for gram in ([0], [1], [2], [0, 1], [0, 0, 1]):
        count, truth = found.count(gram), whole.count(gram)
        assert count is not None
        assert truth is not None
        assert count == pytest.approx(truth, rel=0.15)
        assert found.most(count) >= truth


def test_the_file_and_an_update_remember_that_it_is_a_sample() -> None:
    found = count_ngrams_within(symbols(), CHARACTERS, 11.0, Ticking(1.0))
    again = NGrams.from_arrays(found.arrays(), CHARACTERS)
    assert again.sampled == 8_000
    assert same(again, found)
    more = added_ngrams(again, symbols()[:100])
    assert more.sampled == 8_100
    assert not more.is_exact
    exact = count_ngrams(symbols(), CHARACTERS)
    assert NGrams.from_arrays(exact.arrays(), CHARACTERS).is_exact


def test_sampled_rows_are_spread_over_the_table() -> None:
    rows = spread_rows(1_000_000, 1_000)
    assert len(np.unique(rows)) == 1_000
    assert np.array_equal(rows // 1_000, np.arange(1_000))
    assert np.array_equal(spread_rows(7, 7), np.arange(7))
