"""The baselines are what they say they are."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.evaluation.baselines.duckdb_guess import DuckDbGuess
from countless.evaluation.baselines.independence import Independence
from countless.evaluation.baselines.row_sample import RowSample
from countless.evaluation.baselines.sample_scan import SampleScan
from countless.options import EncodeOptions

CLAUSES = ["age > 40", "city IS NULL", "married AND age <= 30", "city = 'Oslo' OR age = 20", "city = 'Paris'", "TRUE"]


@pytest.fixture(scope="module")
def table(people: Path) -> Table:
    return Table.encode(people, EncodeOptions(exclude=("id",)))


def test_independence_multiplies_exact_frequencies(table: Table, people: Path) -> None:
    parts = ["age > 40", "married", "city IN ('Oslo', 'Rome')"]
    shares = [count / table.rows for count in Source.open(people).counts(parts)]
    answer = Independence(table).estimate(" AND ".join(parts))
    assert answer.selectivity == pytest.approx(math.prod(shares))
    assert (answer.method, answer.low, answer.high) == ("independence", 0, table.rows)


def test_a_sample_of_all_rows_is_the_truth(table: Table, people: Path) -> None:
    everything = RowSample(table, share=1.0)
    assert [everything.estimate(where).rows for where in CLAUSES] == pytest.approx(Source.open(people).counts(CLAUSES))


def test_the_sample_is_of_the_size_asked_for_and_without_bias(table: Table, people: Path) -> None:
    (truth,) = Source.open(people).counts(["age > 40"])
    answers = [RowSample(table, share=0.02, seed=seed).estimate("age > 40") for seed in range(300)]
    assert {round(answer.selectivity * 60, 6) % 1 for answer in answers} == {0}  # multiples of one row in sixty
    assert np.mean([answer.rows for answer in answers]) == pytest.approx(truth, rel=0.03)
    assert 0.85 < np.mean([answer.low <= truth <= answer.high for answer in answers]) < 0.97


TEXTS = ("cat", "dove", "eel unicorn", "", "50%", None)
PATTERNS = ("t LIKE '%e%'", "t IS NULL", "t NOT LIKE '%c%'", "regexp_matches(t, '^[a-d]')", "t = ''", "n < 30", "TRUE")


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"n": range(120), "t": pd.Series(TEXTS * 20, dtype=object)})


class TestText:
    """The baselines that know text: both ask DuckDB."""

    def test_a_sample_of_all_rows_is_the_truth(self, frame: pd.DataFrame) -> None:
        everything = SampleScan(frame, share=1.0)
        truths = Source.open(frame).counts(PATTERNS)
        for where, truth in zip(PATTERNS, truths, strict=True):
            answer = everything.estimate(where)
            assert answer.rows == pytest.approx(truth)
            assert answer.low <= answer.rows <= answer.high
            assert answer.method == "row-sample"

    def test_a_sample_is_of_the_size_asked_for_and_without_bias(self, frame: pd.DataFrame) -> None:
        answers = [SampleScan(frame, share=0.1, seed=seed).estimate("n < 30").selectivity for seed in range(60)]
        assert {round(share * 12, 6) % 1 for share in answers} == {0}
        assert np.mean(answers) == pytest.approx(0.25, abs=0.06)
        assert SampleScan(frame, share=0.0001).size == 1

    def test_the_optimizers_guess_is_a_number_of_rows(self, frame: pd.DataFrame) -> None:
        guess = DuckDbGuess(frame)
        for where in PATTERNS:
            answer = guess.estimate(where)
            assert 0 <= answer.rows <= 120
            assert (answer.low, answer.high, answer.method) == (0, 120, "duckdb-guess")
            assert answer.selectivity == answer.rows / 120

    def test_both_of_one_source(self, frame: pd.DataFrame) -> None:
        source = Source.open(frame)
        sample = SampleScan(source, share=0.5)
        before = sample.estimate("t LIKE '%e%'").rows
        DuckDbGuess(source)
        assert sample.estimate("t LIKE '%e%'").rows == before

    def test_of_a_file_of_lines(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("cat\n\ndove\n")
        assert SampleScan(tmp_path / "a.txt", share=1.0).estimate("line LIKE '%o%' OR line = ''").rows == 2
        assert 0 <= DuckDbGuess(tmp_path / "a.txt").estimate("line LIKE '%o%'").rows <= 3
