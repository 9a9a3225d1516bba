"""Several distributions under one condition are what each of them is alone."""

from __future__ import annotations

from typing import Any

import pytest

from countless import Estimator
from countless.engine.distributions import marginals as marginals_module
from countless.engine.distributions.joint import BoxMasses, masses_of_box
from countless.errors import QueryTypeError, UnknownColumnError
from countless.estimator.answers.distributions.distribution import BinsWanted

COLUMNS = ("age", "city", "married", "since when", "score")


@pytest.mark.parametrize("where", [None, "age > 30 AND married AND score < 1.3", "city = 'Oslo' OR age > 50"])
@pytest.mark.parametrize("bins", [None, 5, {"AGE": [0, 30, 100], "score": 2}])
def test_they_are_what_each_is_alone(estimator: Estimator, where: str | None, bins: BinsWanted | None) -> None:
    distributions = estimator.distributions(COLUMNS, where, bins=bins)
    for column, each in zip(COLUMNS, distributions, strict=True):
        own = {name: bins[name] for name in bins if name.lower() == column} if isinstance(bins, dict) else bins
        alone = estimator.distribution(column, where, bins=own)
        assert (each.names, each.types, each.sampled, each.counted) == (
            alone.names,
            alone.types,
            alone.sampled,
            alone.counted,
        )
        for one, other in zip(each.columns, alone.columns, strict=True):
            assert one == (pytest.approx(other, rel=1e-5) if isinstance(one[0], float) else other)
        assert each.disagreement == pytest.approx(alone.disagreement, abs=1e-5)
        assert each.total.rows == alone.total.rows


def test_columns_after_the_evidence_share_a_walk(estimator: Estimator) -> None:
    """The people's order is their columns': what is asked about age leaves all others to one walk."""
    walks: list[Any] = []

    def walked(*arguments: Any) -> BoxMasses:
        walks.append(arguments)
        return masses_of_box(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marginals_module, "masses_of_box", walked)
        estimator.distributions(COLUMNS, "age IN (20, 30, 40) AND city <> 'Oslo'")
    assert [[axis.column for axis in axes] for _, _, axes, _, _ in walks] == [[0], [1]]


def test_the_condition_is_counted_once(estimator: Estimator) -> None:
    distributions = estimator.distributions(["age", "city"], "age > 30")
    assert distributions[0].total is distributions[1].total


def test_an_unknown_column(estimator: Estimator) -> None:
    with pytest.raises(QueryTypeError, match='bins of "score", which is not among the columns'):
        estimator.distributions(["age", "city"], bins={"score": 3})
    with pytest.raises(UnknownColumnError, match='did you mean "city"'):
        estimator.distributions(["age", "cty"])
