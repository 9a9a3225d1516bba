"""Filters that one column's value decides: none or all of its rows satisfy them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from countless.data.sources.source import Source, connect
from countless.data.summaries import counting
from countless.estimator.answers.dependencies import Dependency
from countless.estimator.answers.estimate import q_error
from countless.estimator.calibration.posterior import SampleCount, posterior
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit

# A package has one section and one of two architectures; a color has nothing to do with it. Rows of a package stand
# together, and there are packages of 10 to 150 rows.
TABLE = """
SELECT 'p' || package AS package, 's' || (hash(package, 1) % 9) AS section,
    if(hash(package, 2) % 3 = 0, 'all', 'amd64') AS architecture, 'c' || (hash(package, row) % 5) AS color,
    if(hash(package, row, 7) % 1000 = 0, 'rare', 'usual') AS quality
FROM (SELECT unnest(range(600)) AS package) CROSS JOIN (SELECT unnest(range(150)) AS row)
WHERE row < 10 + hash(package, 3) % 140
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dependencies") / "table.parquet"
    connect().execute(f"COPY ({TABLE}) TO '{path}' (FORMAT parquet)")
    return path


@pytest.fixture(scope="module")
def estimator(table: Path) -> Estimator:
    """A model that learned hardly anything: one short pass of a small network, and no pairs of packages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "most_sparse_bytes", lambda rows: 0)
        return fit(table, evidence=2_000, epochs=1, hidden=16, blocks=1, embedding=8, batch=4096)


@pytest.mark.parametrize(
    "other",
    [
        "architecture <> 'all'",
        "architecture = 'all'",
        "NOT (architecture = 'all' OR section = 's1')",
        "section NOT IN ('s0', 's1', 's2', 's3')",
    ],
)
def test_none_or_all_rows_of_a_value_satisfy_filters_that_it_decides(
    estimator: Estimator, table: Path, other: str
) -> None:
    clauses = [f"{other} AND package = 'p{number}'" for number in range(0, 600, 12)]
    truths = Source.open(table).counts(clauses)
    estimates = [estimator.estimate(where) for where in clauses]
    errors = [q_error(each.rows, truth) for each, truth in zip(estimates, truths, strict=True)]
    assert np.quantile(errors, 0.8) < 1.05  # some values have no evidence row: there the model must guess
    held = [each.low <= truth <= each.high for each, truth in zip(estimates, truths, strict=True)]
    assert np.mean(held) >= 0.9
    assert 0 in truths
    assert max(truths) > 50


@pytest.mark.parametrize("other", ["color <> 'c1'", "color = 'c1'", "quality = 'rare'"])
def test_other_filters_are_not_decided(estimator: Estimator, other: str) -> None:
    model = estimator._model
    for number in range(0, 600, 40):
        question = model.filters.compile(f"{other} AND package = 'p{number}'")
        assert model.fusion(model.runtimes, question).dependency is None


def test_a_dependency_needs_hits_that_agree(estimator: Estimator) -> None:
    """With a hit among several rows of the value the filters are not decided."""
    model = estimator._model
    question = model.filters.compile("package = 'p5' AND architecture <> 'all'")
    fusion = model.fusion(model.runtimes, question)
    assert fusion.dependency is not None
    assert fusion.dependency.part.count in (0, fusion.dependency.part.rows)
    assert fusion.dependency.mixed < 0.05


def test_the_posterior_is_none_or_all() -> None:
    nothing_seen = Dependency(SampleCount(0, 0, 1_000), 0.01)
    ordinary = posterior(SampleCount(0, 0, 1_000), None, None, 0.0, 1_000.0)
    for share, rows in ((0.1, 0.5), (0.9, 1_000.0)):
        assert nothing_seen.posterior(share, ordinary, 0.0, 1_000.0).quantile(0.5) == pytest.approx(rows)
    low, high = nothing_seen.posterior(0.5, ordinary, 0.0, 1_000.0).quantiles((0.05, 0.95))
    assert (low, high) == pytest.approx((0.5, 1_000.0))
    # Bounds that exclude one of the two leave the other.
    assert nothing_seen.posterior(0.1, ordinary, 1.0, 1_000.0).quantile(0.5) == pytest.approx(1_000.0)
    assert nothing_seen.posterior(0.9, ordinary, 0.0, 500.0).quantile(0.5) == pytest.approx(0.5)


def test_one_row_that_differs_leaves_what_the_ordinary_posterior_says() -> None:
    part = SampleCount(1, 4, 1_000)
    ordinary = posterior(part, None, None, 0.0, 1_000.0)
    weighed = Dependency(part, 0.01).posterior(0.1, ordinary, 0.0, 1_000.0)
    assert weighed.quantile(0.5) == pytest.approx(ordinary.quantile(0.5), rel=0.01)
