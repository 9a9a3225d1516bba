"""Models for others to have: no row of the table is in the file, and answers are the model's."""

from __future__ import annotations

from pathlib import Path

import pytest

from countless import Estimator, Network, fit, load
from countless.data.sources.source import connect
from tests.cli.test_cli import Run, run

__all__ = ["run"]

NAMES = "SELECT range % 5 AS kind, 'secret ' || hash(range) AS name, hash(range, 1) / 1e9 AS amount FROM range(400)"


@pytest.fixture(scope="module")
def fitted() -> Estimator:
    options = {"max_distinct": 20, "no_text": "name", "network": Network(hidden=8, blocks=0)}
    return fit(connect().sql(NAMES), epochs=1, **options)  # type: ignore[arg-type]


def test_what_is_left_out_is_listed(run: Run, fitted: Estimator, tmp_path: Path) -> None:
    model, public = fitted.save(tmp_path / "m.countless"), tmp_path / "public.countless"
    assert "400 rows of the table, whole, in " in run("info", model).out
    result = run("strip", model, "-o", public)
    assert result.code == 0
    message = " ".join(result.err.split())
    assert "left out: 400 evidence rows of the table" in message
    assert f"left out: the texts of {len(fitted.calibration.queries)} calibration questions" in message
    grids = [column for column in fitted.schema.coded if column.grid is not None]
    for column in grids:
        assert f"{len(column.values)} of the 400 values of {column.name}" in message
    assert len(grids) == 2
    assert "it still holds every distinct value of the fitted columns (but only " in message
    assert "evidence  none: no rows of the table are in the file" in run("info", public).out
    two = run("estimate", public, "kind > amount")
    assert two.code == 1
    assert "a model that was fitted with evidence rows answers it" in " ".join(two.err.split())
    assert load(public).info()["evidence"] is None
    assert public.stat().st_size < model.stat().st_size
    again = run("strip", public, "-o", tmp_path / "again.countless")
    assert "left out: nothing" in again.err


def test_answers_are_those_of_the_model(fitted: Estimator, tmp_path: Path) -> None:
    public = load(fitted.stripped().save(tmp_path / "public.countless"))
    assert fitted.info()["evidence"]["rows"] == 400
    where = "kind = 2 AND amount > 3e9"
    assert public.estimate(where, method="particles").rows == fitted.estimate(where, method="particles").rows
    assert [*public.calibration.left_out_bars(400)] == [*fitted.calibration.left_out_bars(400)]
    assert not any(query.where for query in public.calibration.queries)
    assert "table" not in public.report


def test_an_update_says_that_it_needs_a_calibration(fitted: Estimator) -> None:
    rows = connect().sql(f"SELECT * FROM ({NAMES}) LIMIT 20")
    updated = fitted.stripped().update(rows, epochs=1)
    assert "stripped" in updated.report["missing"]["calibration"]
    assert updated.info()["evidence"] is None
