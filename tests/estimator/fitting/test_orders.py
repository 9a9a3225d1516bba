"""In which order columns are read: by name, at random, one or several."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import countless
from countless.data.columns.schema import Schema
from countless.data.encoding.table import Table
from countless.errors import OptionError, UnsupportedQueryError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.backends import LocalBackend
from countless.estimator.fitting.orders import entropy, orders_of
from countless.options import EncodeOptions, Network
from countless.spec import ModelSpec

SMALL = Network(hidden=24, blocks=1, embedding=8)


def columns(schema: Schema, order: tuple[int, ...]) -> list[str]:
    """The columns in the order in which their positions come."""
    names = [schema.coded[schema.column_of(position)].name for position in order]
    return list(dict.fromkeys(names))


@pytest.fixture(scope="module")
def table(people: Path) -> Table:
    return Table.encode(people, EncodeOptions(exclude=("id",)))


@pytest.fixture(scope="module")
def several(people: Path) -> Estimator:
    """A model of five orders."""
    return countless.fit(people, exclude="id", epochs=8, batch=100, network=SMALL, orders=5, evidence="none")


def test_the_tables_own_order(table: Table) -> None:
    (order,) = orders_of(Network(), table)
    assert order == tuple(range(len(table.schema.sizes)))
    assert orders_of(Network(order="natural"), table) == (order,)


def test_named_columns_come_first(table: Table) -> None:
    for given in ("score, AGE", ("score", "age")):
        (order,) = orders_of(Network(order=given), table)
        assert columns(table.schema, order) == ["score", "age", "city", "married", "since when"]


def test_columns_by_their_entropy(table: Table) -> None:
    (falling,), (rising,) = (orders_of(Network(order=text), table) for text in ("falling", "rising"))
    names = [column.name for column in table.schema.coded]
    bits = dict(zip(names, (map(entropy, table.counts)), strict=True))
    assert columns(table.schema, falling) == sorted(bits, key=lambda name: -bits[name])
    assert columns(table.schema, rising) == sorted(bits, key=lambda name: bits[name])


def test_entropy() -> None:
    assert entropy(np.array([4, 0, 4, 8])) == 1.5
    assert entropy(np.array([7])) == 0


def test_random_orders_follow_from_their_seed(table: Table) -> None:
    schema = table.schema
    one, again, other = (orders_of(Network(order=text, orders=4), table) for text in ("random", "random:0", "random:1"))
    assert one == again != other
    assert len(set(one)) == 4
    assert all(sorted(order) == list(range(len(schema.sizes))) for order in one)


def test_there_are_no_more_orders_than_permutations(people: Path) -> None:
    two = countless.fit(
        people, columns=["age", "city"], epochs=1, network=SMALL, orders=10, calibrate=False, evidence="none"
    )
    assert len(two.info()["model"]["orders"]) == 2


@pytest.mark.parametrize(
    ("order", "count", "phrase"),
    [
        ("natural", 2, "several orders are drawn at random"),
        (("age",), 3, "several orders are drawn at random"),
        (None, 0, "orders must be at least 1, not 0"),
        ("random:x", 1, "seed of a random order must be a number"),
    ],
)
def test_orders_that_cannot_be(order: str | tuple[str, ...] | None, count: int, phrase: str) -> None:
    with pytest.raises(OptionError, match=phrase):
        Network(order=order, orders=count)


@pytest.mark.parametrize(("order", "phrase"), [("age,age", "twice"), ("agee", "no fitted column"), ("", "names ''")])
def test_orders_that_do_not_fit_the_table(table: Table, order: str, phrase: str) -> None:
    with pytest.raises(OptionError, match=phrase):
        orders_of(Network(order=order), table)


@pytest.mark.parametrize("order", ["foo", "age,age", "id", ("score", "foo")])
def test_an_order_is_refused_before_the_table_is_read(
    people: Path, order: str | tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> Table:
        raise AssertionError("the table was read")

    monkeypatch.setattr(LocalBackend, "encode", read)
    with pytest.raises(OptionError, match="order names"):
        countless.fit(people, exclude="id", order=order)
    with pytest.raises(AssertionError, match="was read"):
        countless.fit(people, exclude="id", order="Score,age")


def test_a_model_of_several_orders_answers_by_their_mean(several: Estimator, people: Path, tmp_path: Path) -> None:
    where = "age > 40 AND married AND city = 'Rome'"
    loaded = countless.load(several.save(tmp_path / "several.countless"))
    exact = loaded.estimate(where, method="exact").rows
    assert loaded.estimate(where, summary=False).rows == pytest.approx(exact, rel=1e-4)
    for method in ("multi-order", "multi-order+skipping"):
        assert loaded.estimate(where, method=method, particles=5000).rows == pytest.approx(exact, rel=0.5)
    assert loaded.estimate(where, method="multi-order+skipping", particles=50).forward_rows == 5 * 10 * 3
    first = loaded.estimate(where, method="skipping", particles=50)
    assert first.forward_rows == 50 * 3


def test_methods_for_several_orders_need_them(estimator: Estimator) -> None:
    with pytest.raises(UnsupportedQueryError, match="knows one order only: fit it with --orders 10"):
        estimator.estimate("age > 40", method="multi-order")


def test_several_orders_take_no_more_parameters(several: Estimator, people: Path) -> None:
    one = countless.fit(people, exclude="id", epochs=1, network=SMALL, calibrate=False, evidence="none")
    assert several.report["parameters"] <= one.report["parameters"]
    spec = ModelSpec((9,) * 20, hidden=200, orders=tuple(tuple(np.roll(range(20), k).tolist()) for k in range(3)))
    single = ModelSpec((9,) * 20, hidden=200)
    assert 0.98 * single.parameters < spec.narrowed().parameters <= single.parameters
    assert single.narrowed() == single


def test_without_calibration_there_is_no_error_bar(people: Path) -> None:
    raw = countless.fit(people, exclude="id", epochs=1, network=SMALL, calibrate=False, evidence="none")
    assert raw.info()["interval"]["queries"] == 0
    estimate = raw.estimate("age > 40")
    assert estimate.low <= estimate.rows <= estimate.high
