"""Is a model still true? On its own table it is, on another it says which column has moved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countless import Estimator, Network, TextNetwork, fit
from countless.data.columns.strings.characters import Characters
from countless.data.columns.strings.text import TextColumn
from countless.data.sources.source import Source, connect
from countless.data.summaries.substring_counting import StringScans, count_substrings
from countless.errors import CountlessError, DataError
from countless.estimator.loading import evidence_of
from countless.estimator.updating.check import _evidence_drifts, _recoded
from countless.estimator.updating.drift import text_drift


@pytest.mark.parametrize("sample", [None, 500])
def test_a_model_is_true_of_its_own_table(estimator: Estimator, people: Path, sample: int | None) -> None:
    check = estimator.check(people, sample=sample)
    assert check.ok
    assert check.drifted == ()
    assert max(drift.drift for drift in check.columns) == 0
    assert check.pairs == ()
    assert check.answers is not None
    assert check.answers.coverage > 0.85
    assert str(check) == "the model still matches the table"


@pytest.mark.parametrize("seed", range(10))
def test_no_false_alarm_whatever_the_sample(estimator: Estimator, people: Path, seed: int) -> None:
    assert estimator.check(people, sample=300, queries=0, threshold=0.0, seed=seed).ok


def test_a_shifted_column_is_named(estimator: Estimator, people: Path) -> None:
    moved = connect().sql(f"SELECT * REPLACE (CASE WHEN id % 3 = 0 THEN 'Rome' ELSE city END AS city) FROM '{people}'")
    check = estimator.check(moved)
    assert check.drifted == ("city",)
    drift = next(drift for drift in check.columns if drift.column == "city")
    assert drift.moved.what == "Rome"
    truth = moved.filter("city = 'Rome'").shape[0] / 3_000
    assert drift.moved.table == pytest.approx(truth)
    assert "city has drifted" in str(check)
    assert check.to_json()["drifted"] == ["city"]


def test_new_values_and_new_nulls(estimator: Estimator, people: Path) -> None:
    moved = connect().sql(
        f"SELECT * REPLACE (CASE WHEN id % 5 = 0 THEN 99 ELSE age END AS age, "
        f"CASE WHEN id % 4 > 0 THEN married END AS married) FROM '{people}'"
    )
    check = estimator.check(moved, queries=0)
    assert set(check.drifted) == {"age", "married"}
    by_name = {drift.column: drift for drift in check.columns}
    assert by_name["age"].new == pytest.approx(0.2)
    assert by_name["married"].new == pytest.approx(0.25)
    assert by_name["age"].moved.what == "values that the model does not hold"


def test_columns_that_no_longer_go_together(estimator: Estimator, people: Path) -> None:
    """Each column is as before, but rows are not."""
    shuffled = connect().sql(
        f"SELECT one.* EXCLUDE (married, n), two.married FROM "
        f"(SELECT *, row_number() OVER () AS n FROM '{people}') AS one JOIN "
        f"(SELECT married, row_number() OVER (ORDER BY married, hash(id)) AS n FROM '{people}') AS two USING (n)"
    )
    check = estimator.check(shuffled)
    assert check.drifted == ()
    assert check.pairs[0].columns == ("age", "married")
    assert check.pairs[0].drift > 0.1
    assert "age and married no longer go together" in str(check)
    assert check.answers is not None
    assert check.answers.coverage < 0.9


def test_a_table_that_has_grown(estimator: Estimator, people: Path) -> None:
    twice = connect().sql(f"SELECT * FROM '{people}' UNION ALL SELECT * FROM '{people}'")
    check = estimator.check(twice)
    assert check.growth == 1.0
    assert check.drifted == ()
    assert check.reasons == ("6,000 rows instead of 3,000",)


def test_a_table_that_cannot_be_compared(estimator: Estimator, people: Path) -> None:
    with pytest.raises(DataError, match="lacks the model's columns"):
        estimator.check(pd.DataFrame({"age": [1]}))
    with pytest.raises(CountlessError, match="no rows"):
        estimator.check(connect().sql(f"SELECT * FROM '{people}' WHERE FALSE"))


def test_text_is_judged_by_its_pieces() -> None:
    rng = np.random.default_rng(0)
    column = TextColumn("t", "VARCHAR", "ab", 6, False, 64, (), (3_000, 3_000))

    def texts(count: int, first: str) -> list[str | None]:
        return [first + "".join(rng.choice(["a", "b"], size=3)) for _ in range(count)]

    characters = Characters.of_texts(texts(1_000, "ab"))
    summary = count_substrings(StringScans(lambda: iter([characters]), 1_000), column)
    same = text_drift(column, summary, 1_000, texts(800, "ab"))
    assert same.drift == 0
    moved = text_drift(column, summary, 1_000, texts(800, "aa"))
    assert moved.drift > 0.1
    assert "strings with" in moved.moved.what
    unknown = text_drift(column, None, 1_000, ["é"] * 800)
    assert unknown.new == 1
    assert unknown.drift > 0.9


WORDS = "SELECT range % 7 AS kind, sin(range) AS wide, 'word ' || (range * 37 % 3000) AS t FROM range(3000)"


@pytest.fixture(scope="module", params=["all", "1000"])
def fitted(request: pytest.FixtureRequest) -> Estimator:
    return fit(
        connect().sql(WORDS),
        text="t",
        max_distinct=50,
        evidence=request.param,
        epochs=1,
        network=Network(hidden=8, blocks=0),
        text_network=TextNetwork(width=8, blocks=1, heads=1, inner=8, buckets=16),
        calibrate=False,
        summary=False,
    )


class TestEvidence:
    """The rows of the file beside the table: whole, or some of them; a grid, a text, and a column with codes."""

    @pytest.mark.parametrize("sample", [None, 400])
    def test_nothing_has_changed(self, fitted: Estimator, sample: int | None) -> None:
        rows = evidence_of(fitted.schema, fitted._sections)
        assert rows is not None
        some = Source.open(connect().sql(WORDS))
        every, texts = _recoded(some if sample is None else some.sampled(sample, 3), fitted.schema)
        assert [drift.drift for drift in _evidence_drifts(fitted.schema, rows, every, texts)] == [0, 0, 0]

    @pytest.mark.parametrize(
        ("name", "changed"),
        [("kind", "least(kind, 2)"), ("wide", "wide / 3"), ("t", "replace(t, 'word 1', 'word 2')"), ("t", "NULL")],
    )
    def test_what_has_changed_is_named(self, fitted: Estimator, name: str, changed: str) -> None:
        moved = connect().sql(f"SELECT * REPLACE ({changed} AS {name}) FROM ({WORDS})")
        rows = evidence_of(fitted.schema, fitted._sections)
        assert rows is not None
        every, texts = _recoded(Source.open(moved), fitted.schema)
        drifts = {drift.column: drift.drift for drift in _evidence_drifts(fitted.schema, rows, every, texts)}
        assert drifts.pop(name) > 0.1
        assert set(drifts.values()) == {0.0}
        check = fitted.check(moved, queries=0)
        assert name in check.drifted
