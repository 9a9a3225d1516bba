"""Given rows: densities, anomalies and completion, against enumeration of what the model says."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from countless import Estimator, Network, TextNetwork, fit
from countless.data.columns.schema import Column, Schema
from countless.data.sources.source import connect
from countless.engine.runtimes import Runtimes
from countless.errors import CountlessError, DataError
from countless.estimator.rows import text_evidence as evidence
from countless.estimator.rows.anomalies import anomalies
from countless.estimator.rows.completion import CompletionOptions, complete
from countless.estimator.rows.likelihood import log_prob
from tests.engine.distributions.test_likelihood import random_joint
from tests.mocks import JointRuntime
from tests.texts import NOTE, URL, random_estimator

SMALL = Network(hidden=24, blocks=1, embedding=8)
# b has NULL, c is in digits of 2 by 3, of which one code is not used
SCHEMA = Schema(
    100,
    (
        Column("a", "INTEGER", ("1", "5"), has_null=False),
        Column("b", "VARCHAR", ("x", "y"), has_null=True),
        Column("c", "DATE", tuple(f"2020-01-0{day}" for day in range(1, 6)), has_null=False, radices=(2, 3)),
    ),
)


@pytest.fixture(scope="module")
def runtimes() -> Runtimes:
    """A model that knows a joint distribution: in the order of the columns, and in another."""
    joint = random_joint((2, 3, 2, 3), seed=4)
    joint[:, :, 1, 2] = 0.0
    return Runtimes((JointRuntime(joint), JointRuntime(joint, (2, 3, 0, 1))))


def joint_of(runtimes: Runtimes) -> Any:
    """The joint distribution over a, b and c, as codes."""
    runtime = runtimes.columns[0]
    assert isinstance(runtime, JointRuntime)
    return runtime.joint.reshape(2, 3, 6)[:, :, :5]


def every_row() -> list[dict[str, Any]]:
    values = [[*column.values, *[None] * column.has_null] for column in SCHEMA.coded]
    return [dict(zip("abc", row, strict=True)) for row in itertools.product(*values)]


class TestLogProb:
    def test_every_row(self, runtimes: Runtimes) -> None:
        probs = np.exp(log_prob(SCHEMA, runtimes, every_row()))
        np.testing.assert_allclose(probs, joint_of(runtimes).ravel(), atol=1e-9)
        assert probs.sum() == pytest.approx(1.0)

    def test_columns_that_are_not_there(self, runtimes: Runtimes) -> None:
        joint = joint_of(runtimes)
        np.testing.assert_allclose(np.exp(log_prob(SCHEMA, runtimes, {"A": 5})), joint[1].sum())
        (prob,) = np.exp(log_prob(SCHEMA, runtimes, {"b": None, "C": datetime.date(2020, 1, 4), "else": 1}))
        assert prob == pytest.approx(joint[:, 2, 3].sum())

    def test_what_was_never_seen(self, runtimes: Runtimes) -> None:
        rows = [{"a": 2, "b": "x"}, {"a": None, "b": "x"}, {"a": 1, "b": "z"}, {"a": 1, "b": "x"}]
        assert np.isinf(log_prob(SCHEMA, runtimes, rows)).tolist() == [True, True, True, False]

    def test_it_is_what_a_question_about_all_columns_finds(self, estimator: Estimator) -> None:
        row = {"age": 30, "city": "Oslo", "married": False, "since when": "2020-01-09", "score": Decimal("0.25")}
        where = "age = 30 AND city = 'Oslo' AND NOT married AND \"since when\" = '2020-01-09' AND score = 0.25"
        density = estimator.estimate(where, method="exact", summary=False).selectivity
        (log_probs,) = estimator.log_prob(row)
        assert np.exp(log_probs) == pytest.approx(density, rel=1e-4)

    def test_tables_of_all_kinds(self, estimator: Estimator, people: Path) -> None:
        log_probs = estimator.log_prob(people)
        assert len(log_probs) == 3000
        assert np.isfinite(log_probs).all()
        frame = pd.read_parquet(people)
        np.testing.assert_allclose(estimator.log_prob(frame), log_probs, rtol=1e-5)
        np.testing.assert_allclose(estimator.log_prob(pa.Table.from_pandas(frame)), log_probs, rtol=1e-5)
        relation = connect().sql(f"SELECT * FROM '{people}' WHERE id BETWEEN 10 AND 12 ORDER BY id")
        np.testing.assert_allclose(estimator.log_prob(relation), log_probs[10:13], rtol=1e-5)

    def test_the_values_of_a_grid_together_are_certain(self) -> None:
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"x": np.append(rng.normal(size=500), np.zeros(100)), "k": rng.integers(3, size=600)})
        estimator = fit(frame, max_distinct=40, epochs=1, network=SMALL, evidence="none")
        assert estimator.schema.coded[0].grid is not None
        values = pd.DataFrame(itertools.product(frame["x"].unique(), range(3)), columns=["x", "k"])
        assert np.exp(estimator.log_prob(values)).sum() == pytest.approx(1.0, rel=1e-4)

    def test_several_orders(self, people: Path) -> None:
        columns = ["city", "married", "score"]
        estimator = fit(people, columns=columns, orders=3, epochs=1, network=SMALL, evidence="none")
        assert estimator.orders == 3
        texts = [[*column.values, *[None] * column.has_null] for column in estimator.schema.coded]
        rows = [dict(zip(columns, row, strict=True)) for row in itertools.product(*texts)]
        assert np.exp(estimator.log_prob(rows)).sum() == pytest.approx(1.0, rel=1e-4)

    def test_texts(self) -> None:
        estimator = random_estimator(URL, NOTE)
        (both,) = estimator.log_prob({"url": "www.a", "note": None})
        (url,) = estimator.log_prob({"URL": "www.a"})
        (note,) = estimator.log_prob({"note": None})
        assert both == pytest.approx(url + note)
        assert estimator.log_prob({"url": None}).tolist() == [-np.inf]
        density = estimator.estimate("url = 'www.a'", method="exact").selectivity
        assert np.exp(url) == pytest.approx(density, rel=1e-4)


class TestComplete:
    def test_the_most_likely_value_and_its_probability(self, runtimes: Runtimes) -> None:
        joint = joint_of(runtimes)
        rows: list[dict[str, Any]] = [
            {"a": 1, "b": None, "c": "2020-01-02", "mine": 7},
            {"a": None, "b": "y", "c": None, "mine": None},
            {"a": 5, "b": "x", "c": "2020-01-01", "mine": 9},
        ]
        completed = complete(SCHEMA, runtimes, rows, CompletionOptions())
        first = joint[0, :2, 1] / joint[0, :2, 1].sum()  # NULL is no value to fill in
        second_a = joint[:, 1].sum(axis=1) / joint[:, 1].sum()
        second_c = joint[:, 1].sum(axis=0) / joint[:, 1].sum()
        expected = [
            (0, "b", "xy"[first.argmax()], first.max()),
            (1, "a", "15"[second_a.argmax()], second_a.max()),
            (1, "c", f"2020-01-0{1 + second_c.argmax()}", second_c.max()),
        ]
        cells = completed.cells.rows
        assert [line[:3] for line in cells] == [line[:3] for line in expected]
        assert [line[3] for line in cells] == pytest.approx([line[3] for line in expected])
        assert completed.frame.to_dicts() == [
            rows[0] | {"b": expected[0][2]},
            rows[1] | {"a": int(expected[1][2]), "c": expected[2][2]},
            rows[2],
        ]

    def test_a_row(self, runtimes: Runtimes) -> None:
        completed = complete(SCHEMA, runtimes, {"b": "x", "note": "?"}, CompletionOptions())
        assert list(completed.row) == ["b", "note", "a", "c"]
        assert completed.row["b"] == "x"
        assert isinstance(completed.row["a"], int)
        assert isinstance(completed.row["c"], datetime.date)
        two = complete(SCHEMA, runtimes, [{"b": "x"}] * 2, CompletionOptions())
        with pytest.raises(DataError, match="there are 2 rows"):
            _ = two.row

    def test_a_key_that_a_row_lacks_is_missing(self, runtimes: Runtimes) -> None:
        rows = [{"a": 1, "b": "x"}, {"b": "y", "c": "2020-01-02"}]
        completed = complete(SCHEMA, runtimes, rows, CompletionOptions())
        assert [line[:2] for line in completed.cells] == [(0, "c"), (1, "a")]
        with pytest.raises(DataError, match='row 0 has no "c"'):
            log_prob(SCHEMA, runtimes, rows)
        with pytest.raises(DataError, match='row 0 has no "c"'):
            anomalies(SCHEMA, runtimes, rows, 1)

    def test_what_it_looks_like_and_becomes(self, runtimes: Runtimes) -> None:
        completed = complete(SCHEMA, runtimes, [{"a": 1, "b": None}] * 2, CompletionOptions(("b",)))
        value = completed.cells.rows[0][2]
        assert len(completed) == 2
        assert str(completed).splitlines() == ["a  b", f"1  {value}", f"1  {value}", "2 cells filled in, of 2 rows"]
        assert repr(completed) == "<Completed: 2 cells filled in, of 2 rows>"
        assert completed.to_dicts() == completed.to_arrow().to_pylist() == completed.to_polars().to_dicts()
        assert completed.to_dicts() == completed.to_pandas().to_dict("records") == [{"a": 1, "b": value}] * 2

    def test_draws_follow_the_joint_distribution(self, runtimes: Runtimes) -> None:
        joint = joint_of(runtimes)[:, 1] / joint_of(runtimes)[:, 1].sum()  # (a, c) where b is y
        count = 1_500
        options = CompletionOptions(draws=True, seed=3)
        one = Runtimes(runtimes.columns[:1])
        completed = complete(SCHEMA, one, [{"a": None, "b": "y"}] * count, options)
        drawn = pd.crosstab(*completed.frame.to_pandas()[["a", "c"]].astype(str).T.values).reindex(
            index=["1", "5"], columns=[f"2020-01-0{day}" for day in range(1, 6)], fill_value=0
        )
        error = np.sqrt(joint * (1 - joint) / count)
        assert (np.abs(drawn.to_numpy() / count - joint) <= 4.5 * error + 1e-9).all()
        again = complete(SCHEMA, one, [{"a": None, "b": "y"}] * count, options)
        assert again.cells.rows == completed.cells.rows
        other = complete(SCHEMA, one, [{"a": None, "b": "y"}] * count, CompletionOptions(draws=True, seed=4))
        assert other.cells.rows != completed.cells.rows

    def test_what_was_never_seen_is_kept_and_unknown(self, runtimes: Runtimes) -> None:
        options = CompletionOptions(("b",))
        odd = complete(SCHEMA, runtimes, {"a": 77, "c": "2020-01-03"}, options)
        plain = complete(SCHEMA, runtimes, {"c": "2020-01-03"}, options)
        assert odd.row == {"a": 77} | plain.row
        assert odd.cells.rows == plain.cells.rows

    @pytest.mark.parametrize("draws", [False, True])
    def test_types_and_order_stay(self, estimator: Estimator, people: Path, draws: bool) -> None:
        frame = pd.read_parquet(people).head(40)
        holes = frame.copy()
        holes.loc[::3, "age"] = None
        holes.loc[::4, "since when"] = None
        holes["score"] = np.nan  # no value at all: a float column of pandas
        holes["MARRIED"] = holes.pop("married")
        found = estimator.complete(holes, draws=draws)
        assert found.frame.names == tuple(holes.columns)
        completed = found.frame.to_pandas()
        known = ~holes["city"].isna()
        assert (completed["id"] == frame["id"]).all()
        assert (completed["city"][known] == frame["city"][known]).all()
        assert completed.notna().all().all()
        assert (completed["age"][1::3] == frame["age"][1::3]).all()
        missing = int(holes.drop(columns="id").isna().to_numpy().sum())
        assert len(found.cells) == missing
        assert estimator.complete(holes, columns=["AGE"]).frame.to_pandas()["city"].isna().sum() == (~known).sum()
        assert np.isfinite(estimator.log_prob(completed)).all()

    def test_of_a_grid_the_value_in_the_middle(self) -> None:
        rng = np.random.default_rng(0)
        kind = rng.integers(2, size=800)
        frame = pd.DataFrame({"kind": kind, "x": rng.normal(size=800) + 100.0 * kind})
        frame.loc[::5, "x"] = np.where(kind[::5] == 0, 0.0, frame["x"][::5])
        estimator = fit(frame, max_distinct=60, epochs=30, batch=100, network=SMALL, evidence="none")
        for kind_of, middle in ((0, 0.0), (1, 100.0)):
            row = estimator.complete({"kind": kind_of}).row
            assert row["x"] == pytest.approx(middle, abs=1.0)
        drawn = estimator.complete(pd.DataFrame({"kind": [1] * 100}), draws=True).frame.to_pandas()
        assert drawn["x"].nunique() > 50

    def test_nothing_to_do(self, estimator: Estimator, people: Path, tmp_path: Path) -> None:
        frame = pd.read_parquet(people).dropna().reset_index(drop=True)
        completed = estimator.complete(frame)
        assert len(completed.cells) == 0
        completed.write(tmp_path / "same.parquet")
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "same.parquet"), frame, check_dtype=False)

    def test_files(self, runtimes: Runtimes, tmp_path: Path) -> None:
        completed = complete(SCHEMA, runtimes, {"a": 1, "b": "it's"}, CompletionOptions())
        for name in ("out.csv", "out.parquet"):
            completed.write(tmp_path / name)
            (row,) = connect().sql(f"SELECT a, b, c FROM '{tmp_path / name}'").fetchall()
            assert row == tuple(completed.row.values())
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.parquet"]

    def test_texts_are_left_missing_or_drawn(self) -> None:
        estimator = random_estimator(URL, NOTE)
        rows = [{"url": None, "note": "x"}, {"url": "w", "note": None}, {"url": None, "note": "y"}]
        found = estimator.complete(rows)
        assert (len(found.cells), found.left) == (0, 3)
        with pytest.raises(DataError, match="modelled as text, which can only be drawn"):
            estimator.complete(rows, columns=["url"])
        drawn = estimator.complete(rows, draws=True, seed=1)
        assert (len(drawn.cells), drawn.left) == (3, 0)
        completed = drawn.frame.to_dicts()
        assert [row["note"] for row in completed[::2]] == ["x", "y"]
        assert all(isinstance(value, str) for row in completed for value in row.values())
        (log,) = estimator.log_prob({"url": completed[0]["url"]})
        assert drawn.cells.rows[0][3] == pytest.approx(np.exp(log), rel=1e-3)
        only = estimator.complete(rows, columns=["NOTE"], draws=True)
        assert [line[:2] for line in only.cells.rows] == [(1, "note")]

    def test_unknown_columns(self, estimator: Estimator) -> None:
        with pytest.raises(DataError, match='holds no column "agee" to fill in: did you mean "age"'):
            estimator.complete({"age": 1}, columns=["agee"])

    def test_one_column_and_a_seed(self, estimator: Estimator) -> None:
        completed = estimator.complete({"age": 30, "city": None}, columns="city")
        assert [line[1] for line in completed.cells] == ["city"]
        with pytest.raises(CountlessError, match="the seed must be at least 0, not -1"):
            estimator.complete({"age": 30}, draws=True, seed=-1)


class TestAnomalies:
    def test_the_least_likely_rows(self, runtimes: Runtimes) -> None:
        rows = every_row()
        unlikely = anomalies(SCHEMA, runtimes, rows, 7)
        joint = joint_of(runtimes)
        order = np.argsort(joint.ravel(), kind="stable")[:7]
        assert [line[0] for line in unlikely] == order.tolist()
        for line, place in zip(unlikely.to_dicts(), order, strict=True):
            codes = np.unravel_index(place, joint.shape)
            chances = []
            for axis in range(3):
                index = tuple(slice(None) if other == axis else code for other, code in enumerate(codes))
                chances.append(joint[index] / joint[index].sum())
            ratios = [chance[code] / chance.max() for chance, code in zip(chances, codes, strict=True)]
            blamed = int(np.argmin(ratios))
            column = SCHEMA.coded[blamed]
            values = [*column.values, None]
            assert line["column"] == column.name
            assert line["value"] == values[codes[blamed]]
            assert line["expected"] == values[int(chances[blamed].argmax())]
            assert line["probability"] == pytest.approx(chances[blamed][codes[blamed]], abs=1e-9)
            assert line["expected_probability"] == pytest.approx(chances[blamed].max())
            assert line["log_probability"] == pytest.approx(np.log(joint.ravel()[place]))

    def test_what_was_never_seen_comes_first(self, runtimes: Runtimes) -> None:
        odd: list[dict[str, Any]] = [{"a": 5, "b": "zz"}, {"a": 3, "b": "zz"}, {"a": None, "b": "x"}]
        rows = [*every_row(), *(row | {"c": "2020-01-01"} for row in odd)]
        records = anomalies(SCHEMA, runtimes, rows, 5).to_dicts()
        assert [line["row"] for line in records[:1]] == [31]
        assert {line["row"] for line in records[:3]} == {30, 31, 32}
        by_row = {line["row"]: line for line in records}
        assert (by_row[30]["column"], by_row[30]["value"], by_row[30]["probability"]) == ("b", "zz", 0.0)
        assert (by_row[32]["column"], by_row[32]["value"]) == ("a", None)
        assert by_row[30]["log_probability"] == -np.inf
        assert by_row[30]["expected"] in ("x", "y", None)
        assert np.isfinite(records[3]["log_probability"])

    def test_a_row_that_was_planted(self, people: Path) -> None:
        """Columns that tell each other, but for one row: it is found among thousands, and the right column blamed."""
        frame = pd.read_parquet(people)[["age", "city", "score"]]
        frame["decade"] = frame["age"] // 10 * 10
        frame["country"] = frame["city"].map({"Oslo": "Norway", "Rome": "Italy", "New York": "USA", "Łódź": "Poland"})
        estimator = fit(
            frame, epochs=25, batch=100, network=Network(hidden=48, blocks=1, embedding=16), evidence="none"
        )
        rome = int(np.flatnonzero(frame["city"] == "Rome")[100])
        old = int(np.flatnonzero(frame["age"] > 60)[50])
        frame.loc[rome, "country"] = "Poland"
        frame.loc[old, "decade"] = 20
        by_row = {line["row"]: line for line in estimator.anomalies(frame, top=10).to_dicts()}
        assert by_row[rome]["column"] in ("country", "city")
        assert (by_row[rome]["column"], by_row[rome]["expected"]) in (("country", "Italy"), ("city", "Łódź"))
        assert by_row[old]["column"] in ("decade", "age")
        assert by_row[old]["probability"] < 0.05 < by_row[old]["expected_probability"]

    def test_a_value_on_a_grid_is_not_odd_because_null_is_likely(self) -> None:
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"x": rng.normal(size=2_000), "rare": rng.random(size=2_000) < 0.1})
        frame.loc[::2, "x"] = None
        estimator = fit(frame, max_distinct=60, epochs=15, batch=100, network=SMALL, evidence="none")
        assert estimator.schema.coded[0].grid is not None
        (rows,) = estimator.anomalies({"x": 0.1, "rare": True}).to_dicts()
        assert (rows["column"], rows["expected"]) == ("rare", "false")
        (alone,) = estimator.anomalies({"x": 0.1}).to_dicts()
        assert float(alone["expected"]) == pytest.approx(0.0, abs=0.5)
        assert estimator.anomalies({"x": None}).to_dicts()[0]["expected"] is None

    def test_more_rows_are_asked_for_than_there_are(self, estimator: Estimator, people: Path) -> None:
        assert len(estimator.anomalies({"age": 30}, top=10)) == 1
        assert len(estimator.anomalies(connect().sql(f"SELECT * FROM '{people}' LIMIT 0"))) == 0
        with pytest.raises(CountlessError, match="at least 1"):
            estimator.anomalies({"age": 30}, top=0)
        with pytest.raises(CountlessError, match="must be a whole number, not 'x'"):
            estimator.anomalies({"age": 30}, top="x")  # type: ignore[arg-type]

    def test_chunks_make_no_difference(self, estimator: Estimator, people: Path) -> None:
        watched: list[tuple[int, int]] = []
        frame = pd.concat([pd.read_parquet(people)] * 2, ignore_index=True)
        unlikely = estimator.anomalies(frame, 4, watch=lambda done, total: watched.append((done, total)))
        once = estimator.anomalies(people, 2).to_dicts()
        assert watched == [(4096, 6000), (6000, 6000)]
        assert [line["row"] % 3000 for line in unlikely.to_dicts()] == [once[0]["row"]] * 2 + [once[1]["row"]] * 2

    def test_texts(self) -> None:
        estimator = random_estimator(URL, NOTE)
        rows = estimator.anomalies([{"url": "w", "note": "x"}, {"url": None, "note": "x"}]).to_dicts()
        assert [line["row"] for line in rows] == [1, 0]
        assert (rows[0]["column"], rows[0]["value"], rows[0]["probability"]) == ("url", None, 0.0)
        assert rows[1]["column"] in ("url", "note")
        assert rows[1]["expected"] is None


@pytest.fixture(scope="module")
def mixed() -> Estimator:
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=900)
    texts = [("cat", "dove", "eel")[one] if rng.random() < 0.9 else None for one in kind]
    frame = pd.DataFrame({"kind": kind, "twice": kind * 2, "t": pd.Series(texts, dtype=object)})
    small = TextNetwork(width=16, blocks=1, heads=2, inner=32, buckets=64)
    estimator = fit(frame, text="t", epochs=20, batch=50, network=SMALL, text_network=small, evidence="none")
    assert estimator._runtimes.texts[0].spec.context
    return estimator


class TestMixed:
    """Columns, and texts that know their row."""

    def test_a_column_given_the_rest_and_the_text(self, mixed: Estimator, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(evidence, "LEAST_RATIO", 0.0)
        for row in ({"twice": 2, "t": "cat"}, {"twice": 4, "t": "eel"}):
            completed = mixed.complete(row, columns=["kind"])
            tried = np.exp(mixed.log_prob([{"kind": kind} | row for kind in range(3)]))
            assert completed.row["kind"] == tried.argmax()
            assert completed.cells.rows[0][3] == pytest.approx((tried / tried.sum()).max(), rel=1e-3)

    def test_the_text_tells_the_column(self, mixed: Estimator) -> None:
        rows = [{"t": "cat"}, {"t": "dove"}, {"t": "eel"}]
        assert mixed.complete(rows).frame.to_pandas()["kind"].tolist() == [0, 1, 2]

    def test_the_column_tells_the_text(self, mixed: Estimator) -> None:
        rows = [{"kind": kind, "twice": 2 * kind, "t": None} for kind in (0, 1, 2) * 10]
        drawn = mixed.complete(rows, draws=True).frame.to_pandas()
        right = drawn["t"].to_numpy() == np.array(["cat", "dove", "eel"])[drawn["kind"]]
        assert right.mean() > 0.7

    def test_anomalies(self, mixed: Estimator) -> None:
        rows = [{"kind": kind, "twice": 2 * kind, "t": "eel"} for kind in [2] * 50] + [
            {"kind": 0, "twice": 4, "t": "eel"}
        ]
        (records,) = mixed.anomalies(rows, top=1).to_dicts()
        assert (records["row"], records["column"], records["value"], records["expected"]) == (50, "kind", "0", "2")
