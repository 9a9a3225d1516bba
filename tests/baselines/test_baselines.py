"""The baselines are what they say they are."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from countless.baselines.independence import Independence
from countless.baselines.row_sample import RowSample
from countless.data.source import Source
from countless.data.table import EncodeOptions, Table

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
