"""Models that follow their tables: what is counted is exact again, old values keep what was learned of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless import Estimator, Listener, Network, TextNetwork, fit, load
from countless.data.columns.digits import to_digits
from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import quote_identifier
from countless.data.encoding.schema_growth import NEW, Growth
from countless.data.encoding.table import position_counts
from countless.data.sources.source import Source, connect
from countless.errors import DataError, EmptyTableError, OptionError
from countless.estimator.loading import evidence_of
from countless.estimator.updating.replay import ReplayRows, mixed
from countless.estimator.updating.weight_inheritance import heritages, inherited
from countless.models.resmade import ResMADE
from countless.spec import ModelSpec

# People of another city and of other ages, some of unknown age, married on other days.
NEWCOMERS = """
SELECT
    CASE WHEN range % 11 > 0 THEN 60 + (hash(range, 8) % 20)::INTEGER END AS age,
    ['Aarhus', 'Oslo', 'Zürich'][1 + (range % 3)] AS city,
    range % 2 = 0 AS married,
    DATE '2019-12-25' + (hash(range, 4) % 60)::INTEGER AS "since when",
    (range % 9 / 4)::DECIMAL(4, 2) AS score
FROM range(600)
"""
CLAUSES = (
    "age > 60",
    "age IS NULL",
    "city = 'Zürich'",
    "city = 'Aarhus' OR city IS NULL",
    "city = 'Zürich' AND age IS NULL",
    "age BETWEEN 40 AND 70 AND married",
    "\"since when\" < '2020-01-01' AND city = 'Oslo'",
    "score = 2 AND city = 'Oslo'",
    "TRUE",
)


@pytest.fixture(scope="module")
def newcomers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("new") / "new.parquet"
    connect().execute(f"COPY ({NEWCOMERS}) TO '{path}'")
    return path


@pytest.fixture(scope="module")
def updated(estimator: Estimator, newcomers: Path) -> Estimator:
    return estimator.update(newcomers, epochs=2)


def counts(people: Path, newcomers: Path, clauses: tuple[str, ...]) -> list[int]:
    both = f"SELECT * EXCLUDE (id) FROM '{people}' UNION ALL BY NAME SELECT * FROM '{newcomers}'"
    return Source.open(connect().sql(both)).counts(clauses)


def test_questions_about_one_or_two_columns_are_exact_again(updated: Estimator, people: Path, newcomers: Path) -> None:
    truths = counts(people, newcomers, CLAUSES)
    answers = updated.estimate_many(CLAUSES)
    assert [answer.rows for answer in answers] == truths
    assert all(answer.low == answer.high for answer in answers)
    assert updated.rows == 3_600


def test_the_error_bars_know_the_new_rows(
    estimator: Estimator, updated: Estimator, people: Path, newcomers: Path
) -> None:
    queries = updated.calibration.queries
    clauses = [query.where for query in estimator.calibration.queries]
    assert {query.where for query in queries} <= set(clauses)
    some = queries[:40]
    assert [query.rows for query in some] == counts(people, newcomers, tuple(query.where for query in some))
    estimates = updated.estimate_many([query.where for query in some])
    assert [answer.rows for answer in estimates] == pytest.approx(
        [query.estimate for query in some], rel=1e-4, abs=1e-4
    )


def test_new_rows_are_learned_and_old_ones_not_forgotten(updated: Estimator) -> None:
    (entry,) = updated.report["updates"]
    assert entry["rows"] == 600
    assert entry["rows_before"] == 3_000
    assert entry["new_codes"] == {"age": 13, "city": 2, "since when": 20, "score": 2}
    assert entry["bits_after"]["new"] < entry["bits_before"]["new"]
    assert entry["bits_after"]["old"] < entry["bits_before"]["old"] + 0.5


def test_the_file_of_an_updated_model_is_whole(updated: Estimator, tmp_path: Path) -> None:
    again = load(updated.save(tmp_path / "model.countless"))
    where = "age > 30 AND city = 'Zürich' AND married"
    assert again.estimate(where).rows == updated.estimate(where).rows
    assert again.info()["training"]["updates"] == updated.report["updates"]


def test_the_old_estimator_stays_as_it_is(estimator: Estimator, updated: Estimator) -> None:
    assert updated is not estimator
    assert estimator.rows == 3_000
    assert "updates" not in estimator.report
    assert estimator.estimate("city = 'Zürich'").rows == 0


def test_the_same_seed_makes_the_same_model(estimator: Estimator) -> None:
    rows = [{"age": 30, "city": "Rome", "married": True, "since when": "2020-01-03", "score": 1.25}] * 20
    one, two = (estimator.update(rows, epochs=1, seed=3) for _ in range(2))
    where = "age > 30 AND city = 'Rome' AND married"
    assert one.estimate(where).rows == two.estimate(where).rows
    assert one.estimate("city = 'Rome'").rows == estimator.estimate("city = 'Rome'").rows + 20


def test_old_rows_may_come_from_the_table_or_from_the_file(people: Path, newcomers: Path, tmp_path: Path) -> None:
    small: dict[str, Any] = {"exclude": "id", "epochs": 1, "network": Network(16, 0, 4), "calibrate": False}
    sampled = fit(people, evidence=500, **small)
    assert sampled.info()["evidence"]["rows"] == 500
    once = load(sampled.update(newcomers, epochs=1).save(tmp_path / "once.countless"))
    assert once.report["updates"][-1]["replay"] == "evidence"
    twice = once.update(newcomers, epochs=1)
    assert twice.info()["evidence"]["rows"] == 500
    assert twice.rows == 4_200
    assert twice.estimate("city = 'Aarhus'").rows == 400
    from_table = fit(people, evidence="none", **small).update(newcomers, replay=people, epochs=1)
    assert from_table.report["updates"][-1]["replayed_rows"] == 3_000
    assert from_table.info()["evidence"] is None
    with pytest.raises(DataError, match="has no evidence rows"):
        from_table.update(newcomers, replay="evidence")


def test_evidence_of_a_whole_table_stays_whole(people: Path, newcomers: Path, tmp_path: Path) -> None:
    """Some columns in grids."""
    before = fit(people, exclude="id", max_distinct=8, epochs=1, network=Network(16, 0, 4), calibrate=False)
    updated = load(before.update(newcomers, epochs=1).save(tmp_path / "m.countless"))
    assert updated.report["updates"][-1]["replayed_rows"] == 3_000
    evidence = evidence_of(updated.schema, updated._sections)
    assert evidence is not None
    columns = ", ".join(quote_identifier(name) for name in updated.columns)
    types = ", ".join(f"CAST({quote_identifier(c.name)} AS {c.type})" for c in updated.schema.columns)
    union = f"SELECT {columns} FROM '{people}' UNION ALL BY NAME SELECT {columns} FROM '{newcomers}'"
    truth = connect().sql(f"SELECT {types} FROM ({union})").fetchall()
    source = evidence.source()
    assert sorted(source.rows(f"SELECT {columns} FROM {source.table}"), key=repr) == sorted(truth, key=repr)


@pytest.mark.parametrize("options", [{"orders": 2}, {"summary": False}, {"max_distinct": 8}, {"dtype": "float32"}])
def test_other_models_are_updated_too(people: Path, newcomers: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    """Of several orders, without counts, with grids, in full precision."""
    before = fit(people, exclude="id", epochs=1, network=Network(16, 1, 4), calibrate=False, **options, evidence="none")
    updated = load(before.update(newcomers, epochs=1).save(tmp_path / "model.countless"))
    assert updated.rows == 3_600
    assert updated.orders == before.orders
    assert updated.estimate("city = 'Aarhus'").rows == pytest.approx(200, rel=0.5)
    assert updated.estimate("age IS NULL AND city = 'Oslo'").rows > 0


def test_a_table_of_nothing_but_text_is_updated(tmp_path: Path) -> None:
    network = TextNetwork(width=8, blocks=1, heads=1, inner=8, buckets=16)
    rows = pd.DataFrame({"t": ["cat eel", "dove eel", "eel cat"] * 100})
    before = fit(rows, text="t", epochs=1, text_network=network, calibrate=False, evidence="none")
    updated = load(before.update(rows, epochs=1).save(tmp_path / "t.countless"))
    assert updated.rows == 600
    assert updated.estimate("t LIKE '%dove%'").rows == 200
    again = before.update(rows[:3], replay=rows, epochs=1)
    assert again.estimate("t LIKE '%ove e%'").rows == 101


def test_several_text_columns_are_updated_together(tmp_path: Path) -> None:
    network = TextNetwork(width=8, blocks=1, heads=1, inner=8, buckets=16)
    rows = pd.DataFrame({"t": ["cat eel", "dove eel", "eel cat"] * 100, "u": ["rome", "oslo", "bonn"] * 100})
    before = fit(rows, text=("t", "u"), epochs=1, text_network=network, calibrate=False, evidence="none")
    updated = load(before.update(rows, epochs=1).save(tmp_path / "t.countless"))
    assert updated.estimate("t LIKE '%dove%'").rows == updated.estimate("u LIKE '%slo%'").rows == 200
    text = updated.report["updates"][0]["text"]
    assert text["columns"] == ["t", "u"]
    weights = [each._sections.networks["text"].weights.stored for each in (before, updated)]
    stored = [{name: array.dtype for name, array in each.items()} for each in weights]
    assert stored[0] == stored[1]


def test_ctrl_c_keeps_the_best_so_far(estimator: Estimator, newcomers: Path) -> None:
    class Impatient(Listener):
        signals = iter([signal.SIGINT])  # a second one would end the update without a model

        def training(self, progress: Any) -> None:
            for number in self.signals:
                os.kill(os.getpid(), number)

    stopped = estimator.update(newcomers, epochs=50, listener=Impatient())
    assert stopped.report["interrupted"]
    assert stopped.report["updates"][-1]["epochs"] < 1
    assert stopped.estimate("city = 'Zürich' AND age IS NULL").rows == pytest.approx(18, abs=3)


def test_what_cannot_be_updated_says_so(estimator: Estimator, newcomers: Path) -> None:
    with pytest.raises(DataError, match="lack the model's columns"):
        estimator.update([{"age": 3}])
    with pytest.raises(EmptyTableError, match="no new rows"):
        estimator.update(connect().sql(f"SELECT * FROM '{newcomers}' WHERE FALSE"))
    with pytest.raises(OptionError, match="budget must be more than 0"):
        estimator.update(newcomers, budget=-1.0)
    others = connect().sql(
        "SELECT 1 AS age, 'Nowhere' AS city, TRUE AS married, DATE '2020-01-01' AS \"since when\", 1 AS score"
    )
    with pytest.raises(DataError, match='"age" has values that the model does not hold'):
        estimator.update(newcomers, replay=others, epochs=1)


@pytest.fixture(scope="module")
def sentences() -> Estimator:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["cat", "dove", "eel"], size=2)) for _ in range(300)]
    rows = pd.DataFrame({"kind": rng.integers(3, size=300), "t": texts})
    network = TextNetwork(width=8, blocks=1, heads=1, inner=8, buckets=16)
    options: dict[str, Any] = {"epochs": 1, "network": Network(8, 0, 4), "text_network": network}
    return fit(rows, text="t", **options, evidence="none")


def test_text_is_learned_along(sentences: Estimator, tmp_path: Path) -> None:
    texts = ["cat eel", None, "eel é", "dove cat"]
    rows = [{"kind": kind, "t": text} for kind, text in zip([0, 1, 5, 5], texts, strict=True)]
    updated = load(sentences.update(rows, epochs=1).save(tmp_path / "t.countless"))
    assert updated.rows == 304
    assert updated.schema.texts[0].has_null
    assert updated.estimate("kind = 5").rows == 2
    assert updated.report["updates"][0]["text"]["unit"] == "character"
    for piece in ("cat", "ee", "v"):
        before = sentences.estimate(f"t LIKE '%{piece}%'").rows
        added = sum(text is not None and piece in text for text in texts)
        assert updated.estimate(f"t LIKE '%{piece}%'").rows == before + added


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.booleans(), min_size=1, max_size=12).filter(lambda news: not all(news)),
    st.booleans(),
    st.sampled_from(["INTEGER", "VARCHAR"]),
)
def test_an_old_value_keeps_its_embedding(news: list[bool], null: bool, kind: str) -> None:
    olds = [place for place, new in enumerate(news) if not new]
    before = Column("a", kind, tuple(f"{place:02}" for place in olds), has_null=null)
    after = Column("a", kind, tuple(f"{place:02}" for place in range(len(news))), has_null=True)
    origin = [NEW if new else olds.index(place) for place, new in enumerate(news)] + [before.null if null else NEW]
    other = Column("b", "INTEGER", ("0", "1"), False)
    growth = Growth(Schema(10, (before, other)), Schema(20, (after, other)), (np.array(origin), np.arange(2)))
    arrays = ResMADE(ModelSpec(growth.old.sizes, 4, 0, 3)).arrays()
    arrays["bias"] = np.random.default_rng(0).normal(size=len(arrays["bias"])).astype(np.float32)
    counted = (np.arange(after.size), np.array([3, 4]))
    weights = inherited(arrays, heritages(growth, None), position_counts(growth.schema.coded, counted))
    assert weights["embedding"].shape == (after.size + 1 + 3, 3)
    for code, old in enumerate(origin):
        if old != NEW:
            assert np.allclose(weights["embedding"][code], arrays["embedding"][old])
            assert weights["bias"][code] == pytest.approx(arrays["bias"][old], abs=1e-6)
    assert np.allclose(
        weights["embedding"][after.size :], arrays["embedding"][before.size :]
    )  # MASK, and the other column
    assert np.isfinite(weights["bias"]).all()


@settings(deadline=None, max_examples=30)
@given(st.integers(3, 40), st.integers(0, 6))
def test_digits_inherit_from_the_digits_that_had_their_rows(size: int, appended: int) -> None:
    before = Column("a", "INTEGER", tuple(map(str, range(size))), False, (-(-size // 3), 3))
    wider = size + appended
    after = Column("a", "INTEGER", tuple(map(str, range(wider))), False, (-(-wider // 3), 3))
    origin = np.array([*range(size), *[NEW] * appended])
    leading, last = heritages(Growth(Schema(9, (before,)), Schema(9, (after,)), (origin,)), None)
    assert np.allclose(leading.shares.sum(axis=1), 1)
    old = len(np.unique(to_digits(np.arange(size), before.radices)[0]))
    assert np.allclose(leading.shares[:old], np.eye(len(leading.shares), before.radices[0])[:old])
    assert np.allclose(last.shares, np.eye(3))


@settings(deadline=None)
@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 5_000), st.integers(2, 3_000))
def test_old_and_new_rows_are_mixed_in_their_shares(drawn: int, new: int, old_rows: int, most: int) -> None:
    old = ReplayRows(np.zeros((drawn, 1), dtype=np.int64), ())
    fresh = ReplayRows(np.ones((new, 1), dtype=np.int64), ())
    symbols = mixed(old, fresh, old_rows, most, np.random.default_rng(0)).symbols[:, 0]
    size = min(most, old_rows + new)
    assert len(symbols) == size
    assert abs(symbols.sum() - size * new / (old_rows + new)) <= 1
    assert np.all(np.diff(symbols) >= 0)  # new rows come last
