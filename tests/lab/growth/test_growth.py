"""Growth, on tables so small that it takes seconds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from countless.errors import CountlessError, MissingExtraError
from countless.options import Network
from countless_lab.growth.dimensions import DIMENSIONS, GrowthPoint, GrowthSizes
from countless_lab.growth.jobs import FittedModel, ServedPoint, jobs_of, serve
from countless_lab.growth.picture import draw
from countless_lab.growth.report import report
from countless_lab.runner.job import Job, by_name
from countless_lab.runner.store import ResultStore
from countless_lab.runner.sweep import unfinished
from tests.cli.test_cli import Run, run

__all__ = ["run"]

TINY = GrowthSizes(
    columns=(3, 5),
    distinct=(10, 600),
    filters=(1, 2),
    rows=(1_500, 3_000),
    batch=(1, 4),
    usual_columns=3,
    usual_filters=2,
    usual_rows=1_500,
    filters_columns=4,
    distinct_columns=3,
    distinct_filters=2,
    distinct_rows=3_000,
    network=Network(hidden=8, blocks=1, embedding=4),
)
OPTIONS = ("--budget", "0.1", "--queries", 5, "--rows-most", 3_000)


def measured(folder: Path, points: Sequence[GrowthPoint]) -> ResultStore:
    """A store that has pretended results of these points."""
    store = ResultStore(folder)
    with store.lock():
        for job in jobs_of(points):
            store.write(job, pretended(job), 1.0)
    return store


def pretended(job: Job) -> dict[str, Any]:
    if isinstance(job, FittedModel):
        return {"rows_per_second": 900, "seconds": 2.0, "peak_bytes": 10**8, "file_bytes": 10**6}
    if not isinstance(job, ServedPoint):
        return {}
    latency = {"p50": 1.0 + job.point.filters / 100, "p90": 2.0, "p99": 3.0}
    serving = {"latency_ms": latency, "loop_per_second": 500.0, "peak_bytes": 10**8, "torch_imported": False}
    return serving if job.point.batch is None else {**serving, "many_per_second": 1_500.0}


class TestDimensions:
    def test_one_thing_grows_at_a_time(self) -> None:
        points = GrowthSizes().points()
        assert tuple(dict.fromkeys(point.dimension for point in points)) == DIMENSIONS
        assert [len(point.fit.table.distinct) for point in points if point.dimension == "columns"] == [20, 50, 100, 200]
        assert {point.filters for point in points if point.dimension == "columns"} == {8}
        assert {point.fit.table.rows for point in points if point.dimension == "distinct"} == {2_500_000}
        assert len({point.fit for point in points if point.dimension in ("filters", "batch")}) == 2
        assert len({point.name for point in points}) == len(points)

    def test_smaller_tables(self) -> None:
        small = GrowthSizes().up_to(50_000)
        assert (small.rows, small.usual_rows, small.distinct) == ((50_000,), 50_000, (10, 100, 1_000, 10_000))


class TestJobs:
    def test_points_share_models(self) -> None:
        points = TINY.points()
        jobs = jobs_of(points)
        assert len(points) == sum(isinstance(job, ServedPoint) for job in jobs) == 10
        assert sum(isinstance(job, FittedModel) for job in jobs) == len({point.fit for point in points}) == 6
        assert list(by_name(jobs)) == [job.name for job in jobs]

    def test_a_changed_setting_is_measured_anew(self, tmp_path: Path) -> None:
        points = TINY.points()[:1]
        store = measured(tmp_path, points)
        assert unfinished(by_name(jobs_of(points)), store) == set()
        for changed in ({"budget": 1.0}, {"seed": 4}, {"network": Network(hidden=9)}):
            jobs = by_name(jobs_of(replace(TINY, **changed).points()[:1]))
            assert {"columns-3", *(name for name in jobs if name.startswith("model-"))} <= unfinished(jobs, store)
        more = by_name(jobs_of(replace(TINY, queries=9).points()[:1]))
        assert unfinished(more, store) == set(more)  # the models of an earlier run are gone

    def test_an_error_of_a_job_is_its_reason(self, tmp_path: Path) -> None:
        with pytest.raises(CountlessError, match=r"no such model file: none\.countless"):
            serve(Path("none.countless"), ["c0 = 1"], 1, None)


class TestReport:
    def test_the_report_has_ratios_and_can_be_drawn(self, tmp_path: Path) -> None:
        assert draw(report(TINY.points(), ResultStore(tmp_path), "")).startswith(b"\x89PNG")
        measured_report = report(TINY.points(), measured(tmp_path, TINY.points()), "countless bench growth")
        assert measured_report["ratios"]["throughput, estimate_many(4) over the loop"] == 3.0
        assert measured_report["ratios"]["latency p50, filters 2 over 1"] > 1.0
        assert str(tmp_path) not in json.dumps(measured_report)
        picture = draw(measured_report)
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 300_000

    def test_without_matplotlib_there_is_an_error_first(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
        with pytest.raises(MissingExtraError, match=r"countless\[lab\]"):
            draw({})
        result = run("bench", "growth", "-o", "never")
        assert result.code == 1
        assert not Path("never").exists()


class TestCommand:
    @pytest.fixture(autouse=True)
    def tiny(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("countless_lab.cli.bench.growth.SIZES", TINY)

    def test_end_to_end(self, run: Run, tmp_path: Path) -> None:
        arguments = ("bench", "growth", "-o", tmp_path / "out", *OPTIONS, "--only", "batch")
        result = run(*arguments, "--json")
        assert result.code == 0, result.err
        record = json.loads(result.out.splitlines()[-1])
        assert record == json.loads((tmp_path / "out" / "growth.json").read_text())
        assert (tmp_path / "out" / "growth.png").read_bytes().startswith(b"\x89PNG")
        assert [(point["dimension"], point["value"]) for point in record["points"]] == [("batch", 1), ("batch", 4)]
        for point in record["points"]:
            serving, fit = point["serving"], point["fit"]
            assert 0 < serving["latency_ms"]["p50"] <= serving["latency_ms"]["p99"]
            assert serving["many_per_second"] > 0
            assert serving["torch_imported"] is False
            assert fit["peak_bytes"] > serving["peak_bytes"] > 10**7
            assert fit["rows_per_second"] > 0
            assert fit["columns"] == 3
            assert {"training", "encoding rows", "calibrating"} <= set(fit["stages"])
        assert "--only batch" in record["command"]
        again = run(*arguments)
        assert again.code == 0
        assert "6 of 6 cells done by an earlier run" in again.err
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
            "cells",
            "growth.json",
            "growth.png",
            "sweep.lock",
        ]
        assert "estimate_many(4) over the loop" in again.out

    @pytest.mark.parametrize(
        ("arguments", "code", "phrase"),
        [
            (("-o", "/proc/growth"), 1, "cannot write in /proc/growth"),
            (("-o", "{file}"), 1, "choose another -o"),
            ((), 2, "-o"),
            (("-o", "{file}", "--only", "colums"), 2, "colums: choose from columns, distinct"),
        ],
    )
    def test_errors(self, run: Run, tmp_path: Path, arguments: tuple[str, ...], code: int, phrase: str) -> None:
        (tmp_path / "file").write_text("")
        result = run("bench", "growth", *(argument.format(file=tmp_path / "file") for argument in arguments))
        assert result.code == code
        assert phrase in result.err

    def test_a_fit_that_fails(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYTHONWARNINGS", "error")
        monkeypatch.setattr("countless_lab.cli.bench.growth.SIZES", replace(TINY, network=Network(hidden=2**40)))
        result = run("bench", "growth", "-o", tmp_path / "out", *OPTIONS, "--only", "batch")
        assert result.code == 1
        assert "2 cells that need them did not run" in result.err
        assert "2 cells not run: model-1500x3-" in result.err
