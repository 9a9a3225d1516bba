"""A model that was trained is never lost: what would fail after training is told before it, or done without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from countless import load
from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source, connect
from countless.errors import DataError, EmptyTableError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.estimator.fitting.learning import Listener
from countless.estimator.fitting.preflight import preflight
from countless.options import Network
from countless.workload import every_filter, every_pattern, pattern_clauses
from countless.workload.columns import KINDS
from countless.workload.text import KINDS as TEXT_KINDS

SMALL: dict[str, Any] = {"epochs": 1, "network": Network(hidden=16, blocks=1, embedding=8), "evidence": "none"}


class Heard(Listener):
    def __init__(self) -> None:
        self.stages: list[str] = []
        self.notices: list[str] = []

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def notice(self, message: str) -> None:
        self.notices.append(message)


def fails(*_: object, **__: object) -> list[int]:
    raise RuntimeError("the table went away\nwith details")


class TestBeforeTraining:
    @pytest.mark.parametrize("text", [False, True])
    def test_a_column_that_cannot_be_asked_about_is_named(
        self, text: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = tmp_path / "t.parquet"
        key = "CAST(md5(CAST(range AS VARCHAR)) AS UUID)"
        connect().execute(f"COPY (SELECT {key} AS \"the key\", range % 3 AS n FROM range(200)) TO '{table}'")
        # As if the table had a type that a model stores in another, unknown to the source.
        monkeypatch.setattr(Source, "_in_stored_types", lambda self, columns: self)
        if not text:  # as if some kind of question asked for a part of a value
            like = [f"{quote_identifier('the key')} LIKE 'a%'"]
            monkeypatch.setattr(
                "countless.estimator.fitting.preflight.every_filter",
                lambda column: every_filter(column) + like * (column.name == "the key"),
            )
        heard = Heard()
        with pytest.raises(DataError, match=r'questions about "the key" fail.*leave the column out with --exclude'):
            fit(table, text=["the key"] if text else (), listener=heard, **SMALL)
        assert "encoding rows" in heard.stages
        assert "training" not in heard.stages
        fit(table, exclude=["the key"], **SMALL)

    def test_every_operator_and_kind_of_pattern_is_asked(self, estimator: Estimator) -> None:
        for column in estimator.schema.coded:
            clauses = every_filter(column)
            operators = {operator for kind in KINDS.values() for operator in kind.of(column)}
            assert len(clauses) == len(operators) + 1
        table = pd.DataFrame({"t": [f"a long string of words, the {n}th" for n in range(50)]})
        model = fit(table, text="t", calibrate=False, **SMALL)
        (text,) = model.schema.texts
        clauses = every_pattern(text, ["some text", "other"])
        assert len(clauses) == len(TEXT_KINDS) + 1
        preflight(Source.open(table), model.schema)
        empty = pd.DataFrame({"t": ["", None]})
        with pytest.raises(DataError, match=r"no string to draw patterns.*leave the column out with --exclude 't'"):
            preflight(Source.open(empty), model.schema)
        assert pattern_clauses(text, Source.open(table), 3, 0)

    def test_it_reads_few_rows(self, people: Path, estimator: Estimator, monkeypatch: pytest.MonkeyPatch) -> None:
        statements: list[str] = []
        rows = Source.rows

        def recorded(self: Source, sql: str) -> list[tuple[Any, ...]]:
            statements.append(sql)
            return rows(self, sql)

        monkeypatch.setattr(Source, "rows", recorded)
        preflight(Source.open(people), estimator.schema)
        (statement,) = [sql for sql in statements if "count(" in sql]
        assert statement.endswith("LIMIT 20)")


class TestAfterTraining:
    def test_a_calibration_that_fails_leaves_the_widest_bars(
        self, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        heard = Heard()
        with monkeypatch.context() as patch:
            patch.setattr(Source, "counts", fails)
            raw = fit(people, exclude=["id"], listener=heard, **SMALL)
        assert raw.report["missing"] == {"calibration": "the table went away"}
        (notice,) = heard.notices
        assert "the table went away" in notice
        assert "\n" not in notice
        raw = load(raw.save(tmp_path / "m"))
        clause = "age < 30 AND city = 'Rome' AND married"
        estimate = raw.estimate(clause)
        assert (estimate.low, estimate.exact) == (0.0, False)
        assert estimate.high >= Source.open(people).counts([clause])[0]
        assert raw.estimate(clause, summary=False).high == raw.rows  # no counts to narrow it
        assert raw.estimate(clause, summary=False, table_rows=6_000).high == 6_000
        assert raw.info()["interval"]["coverage"] is None

        calibrated = raw.calibrate(people)
        assert raw.report["missing"]  # it stays as it is
        assert "missing" not in calibrated.report
        whole = fit(people, exclude=["id"], **SMALL)
        assert calibrated.calibration == whole.calibration  # as if nothing had failed
        assert calibrated.estimate(clause) != raw.estimate(clause)
        assert calibrated.calibrate(people, seed=1).calibration != calibrated.calibration

    def test_an_update_keeps_what_it_learned(
        self, estimator: Estimator, people: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        heard = Heard()
        rows = Source.open(people).selected(f"SELECT * FROM '{people}' LIMIT 100")
        monkeypatch.setattr("countless.estimator.updating.update._calibration", fails)
        updated = estimator.update(rows, epochs=1, listener=heard)
        assert updated.rows == 3_100
        assert updated.report["missing"] == {"calibration": "the table went away"}
        assert "missing" not in estimator.report
        assert updated.estimate("age < 30 AND city = 'Rome' AND married", summary=False).high == 3_100

    def test_ctrl_c_is_no_failure(self, people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("countless.estimator.fitting.fit.calibrated", stop)
        with pytest.raises(KeyboardInterrupt):
            fit(people, exclude=["id"], **SMALL)


class TestCalibrate:
    def test_another_table(self, estimator: Estimator, people: Path) -> None:
        heard = Heard()
        half = connect().sql(f"SELECT * FROM '{people}' LIMIT 1500")
        calibrated = estimator.calibrate(half, listener=heard)
        assert calibrated.calibration.queries
        assert "the table has 1,500 rows, and the model was made of 3,000" in heard.notices[0]
        with pytest.raises(DataError, match="lacks the model's columns age"):
            estimator.calibrate(pd.DataFrame({"city": ["Rome"]}))
        with pytest.raises(EmptyTableError, match="no rows"):
            estimator.calibrate(connect().sql(f"SELECT * FROM '{people}' LIMIT 0"))
