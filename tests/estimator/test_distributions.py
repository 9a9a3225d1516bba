"""Several distributions under one condition are what each of them is alone."""

from __future__ import annotations

import pytest

from countless import Estimator
from countless.errors import QueryTypeError, UnknownColumnError
from countless.estimator.distribution import BinsWanted

COLUMNS = ("age", "city", "married", "since when", "score")


@pytest.mark.parametrize("where", [None, "age > 30 AND married AND score < 1.3", "city = 'Oslo' OR age > 50"])
@pytest.mark.parametrize("bins", [None, 5, {"AGE": [0, 30, 100], "score": 2}])
def test_they_are_what_each_is_alone(estimator: Estimator, where: str | None, bins: BinsWanted | None) -> None:
    found = estimator.distributions(COLUMNS, where, bins=bins)
    for column, each in zip(COLUMNS, found, strict=True):
        own = {name: bins[name] for name in bins if name.lower() == column} if isinstance(bins, dict) else bins
        alone = estimator.distribution(column, where, bins=own)
        assert (each.names, each.types, each.columns) == (alone.names, alone.types, alone.columns)
        assert (each.disagreement, each.counted, each.sampled) == (alone.disagreement, alone.counted, alone.sampled)
        assert each.total.rows == alone.total.rows


def test_the_condition_is_counted_once(estimator: Estimator) -> None:
    found = estimator.distributions(["age", "city"], "age > 30")
    assert found[0].total is found[1].total


def test_an_unknown_column(estimator: Estimator) -> None:
    with pytest.raises(QueryTypeError, match='bins of "score", which is not among the columns'):
        estimator.distributions(["age", "city"], bins={"score": 3})
    with pytest.raises(UnknownColumnError, match='did you mean "city"'):
        estimator.distributions(["age", "cty"])
