"""Growth, on tables so small that it takes seconds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from countless.errors import CountlessError, DataError, MissingExtraError
from countless.estimator.learning import Network
from countless_lab.growth import measure as growth
from countless_lab.growth.dimensions import DIMENSIONS, Growth, Point
from countless_lab.growth.kept import Kept
from countless_lab.growth.picture import draw
from countless_lab.runner.run_job import run_job
from tests.cli.test_cli import Run, run

__all__ = ["run"]

TINY = Growth(
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


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs that cost nothing; the list tells which were run."""
    done = []

    def pretend(name: str, one_thread: bool = False, **arguments: Any) -> dict[str, Any]:
        done.append(name)
        if name == "fit":
            return {"rows_per_second": 900, "seconds": 2.0, "peak_bytes": 10**8, "file_bytes": 10**6}
        latency = {"p50": 1.0 + len(arguments["clauses"][0]) / 100, "p90": 2.0, "p99": 3.0}
        facts = {"latency_ms": latency, "loop_per_second": 500.0, "peak_bytes": 10**8, "torch_imported": False}
        return facts if arguments["batch"] is None else {**facts, "many_per_second": 1_500.0}

    monkeypatch.setattr(growth, "run_job", pretend)
    return done


class TestDimensions:
    def test_one_thing_grows_at_a_time(self) -> None:
        points = Growth().points()
        assert tuple(dict.fromkeys(point.dimension for point in points)) == DIMENSIONS
        assert [len(point.fit.table.distinct) for point in points if point.dimension == "columns"] == [20, 50, 100, 200]
        assert {point.filters for point in points if point.dimension == "columns"} == {8}
        assert {point.fit.table.rows for point in points if point.dimension == "distinct"} == {2_500_000}
        assert len({point.fit for point in points if point.dimension in ("filters", "batch")}) == 2
        assert len({point.name for point in points}) == len(points)

    def test_smaller_tables(self) -> None:
        small = Growth().up_to(50_000)
        assert (small.rows, small.usual_rows, small.distinct) == ((50_000,), 50_000, (10, 100, 1_000, 10_000))


class TestMeasure:
    def test_points_share_models_and_finished_ones_are_not_measured_again(
        self, jobs: list[str], tmp_path: Path
    ) -> None:
        points = TINY.points()
        kept = Kept(tmp_path)
        assert len(list(growth.measure(points, kept))) == len(points) == 10
        assert jobs.count("fit") == len({point.fit for point in points}) == 6
        assert jobs.count("serve") == 10
        jobs.clear()
        assert len(list(growth.measure(points, kept))) == 10
        assert jobs == []

    def test_a_changed_setting_is_measured_anew(self, jobs: list[str], tmp_path: Path) -> None:
        kept = Kept(tmp_path)
        list(growth.measure(TINY.points()[:1], kept))
        for changed in ({"budget": 1.0}, {"queries": 9}, {"seed": 4}, {"network": Network(hidden=9)}):
            jobs.clear()
            list(growth.measure(replace(TINY, **changed).points()[:1], kept))
            assert jobs == ["fit", "serve"]

    def test_an_interruption_loses_only_the_current_point(
        self, jobs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(point: Point, doing: str) -> None:
            if (point.name, doing) == ("columns-5", "fitting"):
                raise KeyboardInterrupt

        temporary = tmp_path / "temporary"
        temporary.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        kept = Kept(tmp_path / "out")
        with pytest.raises(KeyboardInterrupt):
            list(growth.measure(TINY.points()[:2], kept, interrupted))
        assert [path.name for path in (tmp_path / "out" / "points").iterdir()] == ["columns-3.json"]
        assert list(temporary.iterdir()) == []
        jobs.clear()
        list(growth.measure(TINY.points()[:2], kept))
        assert jobs == ["fit", "serve"]

    def test_a_damaged_record_is_measured_anew(self, jobs: list[str], tmp_path: Path) -> None:
        kept = Kept(tmp_path)
        (tmp_path / "points" / "columns-3.json").write_text('{"settings')
        list(growth.measure(TINY.points()[:1], kept))
        assert jobs == ["fit", "serve"]

    def test_the_report_has_ratios_and_can_be_drawn(self, jobs: list[str], tmp_path: Path) -> None:
        kept = Kept(tmp_path)
        assert draw(growth.report(TINY.points(), kept, "")).startswith(b"\x89PNG")
        list(growth.measure(TINY.points(), kept))
        found = growth.report(TINY.points(), kept, "countless bench growth")
        assert found["ratios"]["throughput, estimate_many(4) over the loop"] == 3.0
        assert found["ratios"]["latency p50, filters 2 over 1"] > 1.0
        assert str(tmp_path) not in json.dumps(found)
        picture = draw(found)
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 300_000

    def test_without_matplotlib_there_is_an_error_first(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
        with pytest.raises(MissingExtraError, match=r"countless\[lab\]"):
            draw({})
        done = run("bench", "growth", "-o", "never")
        assert done.code == 1
        assert not Path("never").exists()


class TestJobs:
    def test_an_error_of_the_job_is_raised_here(self) -> None:
        with pytest.raises(CountlessError, match=r"no such model file: none\.countless"):
            run_job("serve", model="none.countless", clauses=["c0 = 1"], repeats=1, batch=None)

    def test_a_job_that_breaks_says_why(self) -> None:
        with pytest.raises(CountlessError, match="the process that was to serve failed: TypeError"):
            run_job("serve")


class TestCommand:
    @pytest.fixture(autouse=True)
    def tiny(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("countless_lab.cli.bench.growth.SIZES", TINY)

    def test_end_to_end(self, run: Run, tmp_path: Path) -> None:
        arguments = ("bench", "growth", "-o", tmp_path / "out", *OPTIONS, "--only", "batch")
        done = run(*arguments, "--json")
        assert done.code == 0, done.err
        found = json.loads(done.out.splitlines()[-1])
        assert found == json.loads((tmp_path / "out" / "growth.json").read_text())
        assert (tmp_path / "out" / "growth.png").read_bytes().startswith(b"\x89PNG")
        assert [(point["dimension"], point["value"]) for point in found["points"]] == [("batch", 1), ("batch", 4)]
        for point in found["points"]:
            serving, fit = point["serving"], point["fit"]
            assert 0 < serving["latency_ms"]["p50"] <= serving["latency_ms"]["p99"]
            assert serving["many_per_second"] > 0
            assert serving["torch_imported"] is False
            assert fit["peak_bytes"] > serving["peak_bytes"] > 10**7
            assert fit["rows_per_second"] > 0
            assert fit["columns"] == 3
            assert {"training", "encoding rows", "calibrating"} <= set(fit["stages"])
        assert "--only batch" in found["command"]
        again = run(*arguments)
        assert again.code == 0
        assert "2 of 2 points measured by an earlier run" in again.err
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
    def test_errors(
        self, run: Run, tmp_path: Path, jobs: list[str], arguments: tuple[str, ...], code: int, phrase: str
    ) -> None:
        (tmp_path / "file").write_text("")
        done = run("bench", "growth", *(argument.format(file=tmp_path / "file") for argument in arguments))
        assert done.code == code
        assert phrase in done.err
        assert jobs == []


def test_results_are_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    kept = Kept(tmp_path)
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(DataError, match="No space left on device; nothing was changed: free some space"):
        kept.write("growth.json", b"{}")
    assert [path.name for path in tmp_path.iterdir()] == ["points"]
