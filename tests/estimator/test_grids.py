"""A model with columns of too many values, end to end: fitted, asked, explained, saved, and compared with DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from countless import Estimator, Network
from countless.data.encoding.table import Table
from countless.data.sources.source import Source, connect
from countless.estimator.answers.estimate import q_error
from countless.estimator.fitting.fit import fit
from countless.evaluation.baselines.independence import Independence
from countless.evaluation.baselines.row_sample import RowSample
from countless.evaluation.evaluate import evaluate, random_workload
from countless.options import EncodeOptions

# A measurement that depends on a kind, a time without NULL, and a key that nothing depends on.
ROWS = """
SELECT
    (hash(range, 1) % 3)::INTEGER AS kind,
    CASE WHEN hash(range, 2) % 10 > 0
        THEN (hash(range, 1) % 3) * 10 + sqrt(hash(range, 3) % 1000003) / 100 END AS x,
    TIMESTAMP '2020-01-01' + INTERVAL (hash(range, 4) % 31536000) SECOND AS moment,
    'user-' || md5(range::VARCHAR) AS name
FROM range(6000)
"""
CLAUSES = (
    "x > 15",
    "x BETWEEN 5 AND 9.5 AND kind = 0",
    "x >= 12 AND x < 16.5 AND kind = 1",
    "x < 8 OR kind = 2",
    "x IS NULL AND kind = 1",
    "NOT (x > 25)",
    "moment < '2020-03-01'",
    "moment BETWEEN '2020-06-01' AND '2020-07-15' AND x > 10",
    "month(moment) IN (3, 4, 5)",
    "name < 'user-4'",
    "name LIKE 'user-a%' OR name > 'user-e8'",
    "floor(x) = 17",
)


@pytest.fixture(scope="module")
def source() -> Source:
    return Source.open(connect().sql(ROWS))


@pytest.fixture(scope="module")
def gridded(source: Source) -> Estimator:
    network = Network(hidden=48, blocks=1, embedding=16)
    return fit(source, max_distinct=100, no_text="name", epochs=12, batch=100, network=network, evidence="none")


def test_no_column_is_left_out(gridded: Estimator) -> None:
    assert gridded.columns == ("kind", "x", "moment", "name")
    assert gridded.schema.left_out == ()
    assert [column["grid_cells"] for column in gridded.info()["columns"]] == [None, 100, 100, 100]
    assert gridded.schema.groups == (1, 2, 2, 2, *(1 for _ in gridded.schema.calendar))


def test_estimates_are_near_the_truth(gridded: Estimator, source: Source) -> None:
    for where, truth in zip(CLAUSES, source.counts(CLAUSES), strict=True):
        assert q_error(gridded.estimate(where).rows, truth) < 1.35, where


def test_a_key_is_found_about_once(gridded: Estimator, source: Source) -> None:
    ((name,),) = source.rows(f"SELECT name FROM {source.table} LIMIT 1")
    assert gridded.estimate(f"name = '{name}'").rows == pytest.approx(1, rel=0.3)
    nobody = gridded.estimate("name = 'nobody'")
    assert (nobody.rows, nobody.high) == (0, 0)
    unknown = gridded.estimate("upper(name) = 'USER-7'")  # no knot has it, but another value might
    assert unknown.rows == 0
    assert unknown.high >= 1
    assert gridded.estimate("x < 15 OR x >= 15 OR x IS NULL").rows == 6000


def test_the_explanation_tells_what_is_not_exact(gridded: Estimator) -> None:
    text = str(
        gridded.explain(
            "x > 15 AND name = 'user-7' AND minute(moment) = 3 AND month(moment) = 3 AND kind = 1 AND x IS NOT NULL"
        )
    )
    assert "x > 15: about 5" in text
    assert "values of x, by interpolation in a grid of 100 cells\n" in text
    assert "in a grid of 100 cells; a value counts as the mean of its cell, whether it occurs or not\n" in text
    assert "values of moment, by its knots in a grid of 100 cells\n" in text
    assert "1 of 3 values of kind (by search)" in text
    assert "1 of 12 values of month(moment) (by search)" in text
    assert "unseen    'nobody' does not occur in name" in str(gridded.explain("name = 'nobody'"))
    (comparison,) = gridded.explain("x > 15").to_json()["comparisons"]
    assert (comparison["how"], comparison["cells"]) == ("interpolation", 100)


def test_the_file_keeps_the_grids(gridded: Estimator, tmp_path: Path) -> None:
    loaded = Estimator.load(gridded.save(tmp_path / "grid.countless"))
    assert loaded.schema == gridded.schema
    assert loaded.info() == gridded.info()
    assert [e.rows for e in loaded.estimate_many(CLAUSES)] == [e.rows for e in gridded.estimate_many(CLAUSES)]


def test_the_papers_queries_use_them(gridded: Estimator, source: Source) -> None:
    queries = random_workload(gridded.schema, source, 100, seed=1)
    assert evaluate(gridded.estimate, queries, "particles").to_json()["q_error"]["p50"] < 3


def test_the_baselines_interpolate_too(source: Source) -> None:
    table = Table.encode(source, EncodeOptions(max_distinct=100, no_text=("name",)))
    (truth,) = source.counts(["x > 15"])
    assert Independence(table).estimate("x > 15").rows == pytest.approx(truth, abs=10)
    assert RowSample(table, share=1.0).estimate("x > 15").rows == pytest.approx(truth, abs=10)


@pytest.fixture(scope="module")
def with_key() -> tuple[Source, Estimator]:
    """A key without duplicates, another with one, and the rows of half of the table as evidence."""
    source = Source.open(
        connect().sql("SELECT range * 7 AS id, CASE range WHEN 5 THEN 4 ELSE range END AS twice FROM range(6000)")
    )
    network = Network(hidden=16, blocks=1, embedding=4)
    model = fit(source, max_distinct=100, epochs=1, network=network, evidence="50%", calibrate=False)
    return source, model


def test_a_column_without_duplicates_bounds_the_count(with_key: tuple[Source, Estimator], tmp_path: Path) -> None:
    source, model = with_key
    loaded = Estimator.load(model.save(tmp_path / "key.countless"))
    assert [column.grid and column.grid.unique for column in loaded.schema.coded] == [True, False]
    asked = ("id = 77", "id IN (70, 77)", "NOT id <> 7 OR id = 21", "id BETWEEN 70 AND 80", "id > 69 AND id < 71")
    for (where, bound), truth in zip(zip(asked, (1, 2, 2, 11, 1), strict=True), source.counts(asked), strict=True):
        for question in (where, f"({where}) AND twice >= 0"):
            for method in ("fused", "particles"):
                estimate = loaded.estimate(question, method=method)
                assert estimate.high <= bound, question
                assert not estimate.exact or estimate.rows == truth, question
    assert loaded.estimate("id <> 77 AND id < 700").high > 50
    assert loaded.estimate("id = 77 OR twice = 3").high > 1
    assert loaded.estimate("twice = 4").high > 1


def test_a_key_that_is_among_the_evidence_rows_is_exact(with_key: tuple[Source, Estimator]) -> None:
    _, model = with_key
    answers = [model.estimate(f"id = {7 * key}") for key in range(50)]
    assert {(found.rows, found.low, found.high) for found in answers if found.exact} == {(1.0, 1.0, 1.0)}
    assert 10 < sum(found.exact for found in answers) < 40
    exact = next(found for found in answers if found.exact)
    assert "a column without duplicates allows no more rows" in str(model.explain(exact.where))
    assert not model.estimate(exact.where, table_rows=7000).exact
