"""A fit that knows what will be asked."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from countless.errors import TrainingError, UnknownColumnError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.estimator.fitting.learning import Listener
from countless.options import Network, TextNetwork
from countless.workload import WorkloadColumns

SMALL = Network(hidden=16, blocks=1, embedding=8)


class Heard(Listener):
    """Remembers the stages, and the workload."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.asked: list[WorkloadColumns] = []

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def workload(self, asked: WorkloadColumns) -> None:
        self.asked.append(asked)


def test_the_report_tells_what_was_asked(people: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.sql"
    queries.write_text("age > 30 AND city = 'Oslo';\nSELECT * FROM p\nWHERE married;\nage = 20 AND city = 'Rome'")
    heard = Heard()
    estimator = fit(
        people,
        exclude="id",
        epochs=1,
        network=SMALL,
        workload=queries,
        calibrate=False,
        listener=heard,
        evidence="none",
    )
    assert heard.asked == [WorkloadColumns(3, 0, {(0, 1): 2.0, (2,): 1.0})]
    expected = {"queries": 3, "column_sets": 2}
    assert estimator.report["workload"] == expected
    assert Estimator.load(estimator.save(tmp_path / "m")).info()["training"]["workload"] == expected


def test_a_clause_that_does_not_fit_is_told_before_training(people: Path) -> None:
    heard = Heard()
    with pytest.raises(UnknownColumnError, match="clause 2 of the workload"):
        fit(people, exclude="id", network=SMALL, workload=["age > 3", "agee > 3"], listener=heard, evidence="none")
    assert "training" not in heard.stages


def test_another_workload_is_another_run(people: Path, tmp_path: Path) -> None:
    def run(workload: list[str] | None) -> Estimator:
        place = tmp_path / "c"
        return fit(
            people,
            exclude="id",
            epochs=2,
            network=SMALL,
            workload=workload,
            calibrate=False,
            checkpoint=place,
            resume=place.exists(),
            evidence="none",
        )

    run(["age > 30"])
    assert run(["age < 50"]).report["epochs"] == 2  # the same columns: the same run, which has ended
    with pytest.raises(TrainingError, match="its workload was"):
        run(["city = 'Oslo'"])
    with pytest.raises(TrainingError, match="its workload was"):
        run(None)


def test_a_workload_about_text_alone_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    frame = pd.DataFrame({"url": [f"www.{n:09}.org/{n % 7}" for n in range(1500)], "a": [n % 3 for n in range(1500)]})
    tiny = TextNetwork(width=8, blocks=1, heads=1, inner=8, buckets=16)
    estimator = fit(
        frame,
        epochs=1,
        network=SMALL,
        text_network=tiny,
        max_length=4,
        calibrate=False,
        workload=["url LIKE 'www%'", "url LIKE '%7'"],
        evidence="none",
    )
    assert "skipped 2 clauses of the workload" in caplog.text
    assert estimator.report["workload"] == {"queries": 0, "column_sets": 0}
