"""Rows that are drawn from an estimator."""

from __future__ import annotations

import datetime
import decimal
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from countless.data.sources.source import Source, connect
from countless.errors import CountlessError, DataError, NoRowsError, QueryTypeError, UnknownColumnError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.options import Network
from countless.query.predicate import col
from tests.texts import NOTE, URL, random_estimator


@pytest.fixture(scope="module")
def pages() -> Estimator:
    return random_estimator(URL, NOTE)


class TestText:
    def test_rows_have_every_column(self, pages: Estimator) -> None:
        sample = pages.sample(40)
        assert len(sample) == 40
        assert sample.names == ("url", "note")
        assert (sample.log_probs < 0).all()
        assert len({url for url, _ in sample}) > 10

    @pytest.mark.parametrize(
        ("where", "holds"),
        [
            ("url LIKE '%ab%'", lambda url, note: "ab" in url),
            ("url LIKE 'w%.%' AND note LIKE 'x%'", lambda url, note: url[0] == "w" and "." in url and note[0] == "x"),
            ("url LIKE '%é%'", lambda url, note: "é" in url),
            ("note IS NULL", lambda url, note: note is None),
            ("length(url) < 3 AND note IS NOT NULL", lambda url, note: len(url) < 3 and note is not None),
            ("url LIKE 'a%' OR note LIKE '%z%'", lambda url, note: url[:1] == "a" or "z" in (note or "")),
            ("url LIKE 'a%' OR note IS NULL", lambda url, note: url[:1] == "a" or note is None),
            ("true", lambda url, note: True),
        ],
    )
    def test_rows_match_the_clause(self, pages: Estimator, where: str, holds: object) -> None:
        assert callable(holds)
        sample = pages.sample(25, where=where, seed=1)
        for (url, note), cut in zip(sample, sample.cut, strict=True):
            assert holds(url, note) or cut

    def test_a_predicate_made_in_python(self, pages: Estimator) -> None:
        assert all((url or "")[:1] == "b" for url, _ in pages.sample(5, where=col("url").like("b%")))

    def test_the_probability_is_that_of_the_row(self, pages: Estimator) -> None:
        sample = pages.sample(8, seed=2)
        for texts, cut, log_prob in zip(sample, sample.cut, sample.log_probs, strict=True):
            if cut:
                continue
            url, note = (None if text is None else text.replace("'", "''") for text in texts)
            parts = [pages.estimate(f"url = '{url}'", method="exact").selectivity]
            condition = "note IS NULL" if note is None else f"note = '{note}'"
            parts.append(pages.estimate(condition, method="exact").selectivity)
            assert math.exp(log_prob) == pytest.approx(math.prod(parts), rel=1e-3)

    def test_texts_that_are_cut_say_so(self, pages: Estimator) -> None:
        sample = pages.sample(100, where="length(note) > 4")
        assert set(sample.cut) == {("note",)}
        assert all(len(note) == NOTE.length for _, note in sample)

    def test_boxes_are_chosen_by_their_density(self, pages: Estimator) -> None:
        either = "url LIKE 'a%' OR note IS NULL"
        part = pages.estimate("url LIKE 'a%'").selectivity / pages.estimate(either).selectivity
        sample = pages.sample(600, where=either)
        share = sum((url or "").startswith("a") for url, _ in sample) / len(sample)
        assert share == pytest.approx(part, abs=0.1)

    def test_seeds(self, pages: Estimator) -> None:
        assert pages.sample(5).rows == pages.sample(5).rows
        assert pages.sample(5, seed=3).rows == pages.sample(5, seed=3).rows != pages.sample(5, seed=4).rows

    def test_mistakes(self, pages: Estimator) -> None:
        with pytest.raises(CountlessError, match="at least 1, not 0"):
            pages.sample(0)
        for count in ("x", 10.5):
            with pytest.raises(QueryTypeError, match=f"must be a whole number, not {count!r}"):
                pages.sample(count)  # type: ignore[arg-type]
        with pytest.raises(QueryTypeError, match="the seed must be at least 0, not -1"):
            pages.sample(seed=-1)
        with pytest.raises(NoRowsError, match="there is nothing to draw"):
            pages.sample(where="url = 'a' AND url = 'b'")
        with pytest.raises(CountlessError, match="no string that matches was found"):
            pages.sample(where="length(url) > 50")
        with pytest.raises(UnknownColumnError):
            pages.sample(where="urll = 'a'")


class TestColumns:
    def test_values_have_the_tables_types(self, estimator: Estimator) -> None:
        sample = estimator.sample(50)
        assert sample.names == estimator.columns
        kinds = [{type(row[index]) for row in sample} - {type(None)} for index in range(5)]
        assert kinds == [{int}, {str}, {bool}, {datetime.date}, {decimal.Decimal}]
        frame = sample.to_pandas()
        assert list(frame.columns) == list(estimator.columns)
        assert len(frame) == 50

    @pytest.mark.parametrize(
        "where",
        [
            "age > 60 AND married",
            "city IS NULL AND score < 1",
            "\"since when\" < DATE '2020-01-05' OR age = 20",
            "NOT (city = 'Oslo' OR married)",
        ],
    )
    def test_rows_match_the_clause(self, estimator: Estimator, where: str) -> None:
        arrow = estimator.sample(200, where=where).to_arrow()
        assert Source.open(arrow).counts([where]) == [200]

    def test_the_same_seed_the_same_rows(self, estimator: Estimator) -> None:
        assert estimator.sample(20).rows == estimator.sample(20).rows
        assert estimator.sample(20, seed=1).rows != estimator.sample(20, seed=2).rows

    def test_log_probabilities_are_those_of_the_rows(self, estimator: Estimator) -> None:
        sample = estimator.sample(30, where="age > 40")
        np.testing.assert_allclose(sample.log_probs, estimator.log_prob(sample.to_arrow()), rtol=1e-4)

    def test_few_rows_are_enumerated(self) -> None:
        """All four combinations are found, and nothing is left to chance but which is drawn how often."""
        rows = "SELECT (range % 4 = 0) AS a, (range % 2 = 0) AS b FROM range(400)"
        model = fit(
            connect().sql(rows), epochs=40, network=Network(hidden=8, blocks=1), calibrate=False, evidence="none"
        )
        sample = model.sample(400)
        assert sample.enumerated
        assert sample.effective_size <= 4
        shares = {pair: sum(row == pair for row in sample) / 400 for pair in set(sample.rows)}
        assert shares[True, True] == pytest.approx(0.25, abs=0.05)
        assert shares[False, False] == pytest.approx(0.5, abs=0.05)

    def test_a_rare_condition_is_worth_less(self, estimator: Estimator) -> None:
        assert estimator.sample(300).effective_size == 300
        rare = estimator.sample(
            300, where="age = 44 AND city IS NULL AND \"since when\" = '2020-01-04' AND score = 0.5"
        )
        assert 1 <= rare.effective_size < 100

    def test_what_cannot_be(self, estimator: Estimator) -> None:
        with pytest.raises(NoRowsError, match="nothing to draw"):
            estimator.sample(where="age > 40 AND age < 30")

    def test_what_counts_say_is_not(self, estimator: Estimator, people: Path) -> None:
        pairs = (
            f"FROM (SELECT DISTINCT age FROM '{people}') CROSS JOIN (SELECT DISTINCT \"since when\" FROM '{people}')"
        )
        absent = connect().sql(f'SELECT age, "since when" {pairs} EXCEPT SELECT age, "since when" FROM \'{people}\'')
        age, day = absent.order("ALL").fetchall()[0]
        with pytest.raises(NoRowsError, match=f"no row matches age = {age} AND .*: there is nothing to draw"):
            estimator.sample(where=f"age = {age} AND \"since when\" = '{day}'")

    def test_a_grid_gives_values_within_its_cells(self) -> None:
        rows = (
            "SELECT (hash(range) % 100003) / 7.0 AS x, "
            "TIMESTAMP '2020-01-01' + INTERVAL (hash(range, 1) % 999983) SECOND AS moment, "
            "CASE WHEN range % 5 > 0 THEN (hash(range, 2) % 30011)::INTEGER END AS n FROM range(4000)"
        )
        source = Source.open(connect().sql(rows))
        model = fit(
            source, epochs=8, max_distinct=1000, network=Network(hidden=32, blocks=1), calibrate=False, evidence="none"
        )
        assert all(column.grid is not None for column in model.schema.coded)
        frame = model.sample(2000).to_pandas()
        assert frame["n"].isna().mean() == pytest.approx(0.2, abs=0.04)
        for name in ("x", "n"):
            assert frame[name].quantile(0.5) == pytest.approx(frame[name].max() / 2, rel=0.12)
        assert frame["moment"].nunique() > 1500

    def test_files(self, estimator: Estimator, tmp_path: Path) -> None:
        sample = estimator.sample(15)
        for name in ("rows.csv", "rows.parquet"):
            sample.write(tmp_path / name)
            assert Source.open(tmp_path / name).count() == 15
        with pytest.raises(DataError, match="the ending must be"):
            sample.write(tmp_path / "rows.doc")


def texts(table: Any) -> Any:
    """Every value of an Arrow table as text, (rows, columns)."""
    return np.array([[str(value) for value in row.values()] for row in table.to_pylist()], dtype=object)


def chi_square(one: Any, other: Any) -> float:
    """How many standard deviations the chi-square statistic of two samples of the same size is above its mean."""
    names = np.unique(np.concatenate([one, other]), return_inverse=True)[1]
    first = np.bincount(names[: len(one)], minlength=names.max() + 1)
    second = np.bincount(names[len(one) :], minlength=names.max() + 1)
    common = first + second >= 10
    freedom = max(1, int(common.sum()) - 1)
    statistic = ((first - second)[common] ** 2 / (first + second)[common]).sum()
    return float(statistic - freedom) / math.sqrt(2 * freedom)


def test_columns_and_pairs_match_rows_that_were_held_out(people: Path) -> None:
    """By two-sample statistics: a sample of the model is about as near to held-out rows as rows of the table are."""
    table = connect().sql(f"SELECT * EXCLUDE id FROM '{people}'").to_arrow_table()
    order = np.random.default_rng(0).permutation(len(table))
    held_out, learned = texts(table.take(order[:1000])), table.take(order[1000:])
    names, others = table.column_names, texts(learned)[:1000]
    model = fit(
        learned,
        epochs=20,
        batch=100,
        network=Network(hidden=48, blocks=1, embedding=16),
        calibrate=False,
        evidence="none",
    )
    drawn = texts(model.sample(1000).to_arrow())
    for one in range(len(names)):
        assert chi_square(drawn[:, one], held_out[:, one]) < 5.0, names[one]
        for two in range(one):
            pairs = [np.array([f"{a}|{b}" for a, b in part[:, (one, two)]]) for part in (drawn, held_out, others)]
            assert chi_square(pairs[0], pairs[1]) < max(5.0, 1.5 * chi_square(pairs[2], pairs[1])), (names[one], two)
