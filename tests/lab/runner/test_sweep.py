"""Sweeps of tiny jobs: whatever fails or is stopped, what has finished stays."""

from __future__ import annotations

import fcntl
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from countless.data.sources.source import connect
from countless.errors import CountlessError, DataError
from countless_lab.cli.sweep_display import SweepDisplay
from countless_lab.runner.process import LocalProcesses
from countless_lab.runner.sweep import Job, ResultStore, SweepListener, SweepOutcome, sweep
from tests.lab.runner.jobs import ENVIRONMENT, Breaks, Count, Leaves, Meets, Stubborn, Timed, Waits, until

SCRIPT = """
import sys
from pathlib import Path
from countless_lab.runner.sweep import SweepListener, sweep
from tests.lab.runner.jobs import Count, Waits

class Tell(SweepListener):
    def finished(self, name, seconds):
        sys.stdout.write(name)
        sys.stdout.flush()

jobs = [Count("first"), Waits("a"), Waits("b"), Count("last", needs=("a", "b"))]
try:
    sweep(jobs, Path(sys.argv[1]), workers=2, watch=Tell())
except KeyboardInterrupt:
    sys.exit(130)
"""
SURVIVORS: Sequence[Job] = [Count("first"), Waits("a"), Waits("b"), Count("last", needs=("a", "b"))]


class Notes(SweepListener):
    """Everything that was heard."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def planned(self, done: int, jobs: int) -> None:
        self.heard.append(("planned", done, jobs))

    def started(self, name: str) -> None:
        self.heard.append(("started", name))

    def said(self, name: str, line: str) -> None:
        self.heard.append(("said", name, line))

    def finished(self, name: str, seconds: float) -> None:
        self.heard.append(("finished", name))

    def failed(self, name: str, message: str) -> None:
        self.heard.append(("failed", name, message))

    def dropped(self, names: tuple[str, ...], need: str) -> None:
        self.heard.append(("dropped", names, need))


def ran(folder: Path) -> list[str]:
    """The jobs that were run since the last call."""
    marks = folder / "ran.txt"
    names = marks.read_text().splitlines() if marks.exists() else []
    marks.unlink(missing_ok=True)
    return names


def alive(process: int) -> bool:
    """Whether a process is there and not just waiting to be buried."""
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


class TestResults:
    def test_kept_and_not_made_again(self, tmp_path: Path) -> None:
        jobs = [Count("b", needs=("a",)), Count("a", value=2)]
        notes = Notes()
        assert sweep(jobs, tmp_path, workers=1, watch=notes) == SweepOutcome(2, {}, ())
        assert ran(tmp_path) == ["a", "b"]
        assert notes.heard == [
            ("planned", 0, 2),
            ("started", "a"),
            ("said", "a", "counting a"),
            ("finished", "a"),
            ("started", "b"),
            ("said", "b", "counting b"),
            ("finished", "b"),
        ]
        store = ResultStore(tmp_path)
        assert store.result(jobs[1]) == {"value": 2}
        record = json.loads(store.path("a").read_text())
        assert record["job"] == {"name": "a", "needs": [], "value": 2}
        assert record["seconds"] >= 0
        assert sorted(path.name for path in (tmp_path / "cells").iterdir()) == ["a.json", "b.json"]
        assert sweep([*jobs, Count("c")], tmp_path).done == 3
        assert ran(tmp_path) == ["c"]

    def test_changed_or_damaged_ones_are_made_again(self, tmp_path: Path) -> None:
        sweep([Count("a"), Count("b")], tmp_path)
        ran(tmp_path)
        ResultStore(tmp_path).path("b").write_text('{"job": {"na')
        changed = Count("a", value=5)
        assert ResultStore(tmp_path).result(changed) is None
        sweep([changed, Count("b")], tmp_path)
        assert sorted(ran(tmp_path)) == ["a", "b"]
        assert ResultStore(tmp_path).result(changed) == {"value": 5}

    def test_files_that_are_gone_are_made_again_only_if_needed(self, tmp_path: Path) -> None:
        jobs = [Leaves("a"), Leaves("b", needs=("a",)), Count("c", needs=("b",))]
        sweep(jobs, tmp_path)
        ran(tmp_path)
        for name in ("a", "b"):
            (tmp_path / f"{name}.left").unlink()
        assert sweep(jobs, tmp_path).done == 3
        assert ran(tmp_path) == []
        assert sweep([*jobs[:2], Count("c", needs=("b",), value=2)], tmp_path).done == 3
        assert ran(tmp_path) == ["a", "b", "c"]

    def test_a_full_disk_is_one_line_and_nothing_is_half_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.replace", full)
            with pytest.raises(
                DataError, match=r"a\.json: No space left on device; nothing was changed: free some space"
            ):
                sweep([Count("a")], tmp_path)
        assert list((tmp_path / "cells").iterdir()) == []

    def test_a_folder_that_cannot_be_written_in(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(DataError, match=f"cannot write in {tmp_path / 'file'}"):
            sweep([Count("a")], tmp_path / "file")


class TestProcesses:
    def test_two_run_at_once_and_share_the_cores(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("countless_lab.runner.sweep.usable_cores", lambda: 6)
        jobs = [Meets(name, party=("a", "b")) for name in ("a", "b")]
        assert sweep(jobs, tmp_path, workers=2).done == 2
        result = ResultStore(tmp_path).result(jobs[0])
        assert result == {
            "threads": {
                "OMP_NUM_THREADS": "3",
                "OPENBLAS_NUM_THREADS": "3",
                "MKL_NUM_THREADS": "3",
                "OMP_WAIT_POLICY": "PASSIVE",
                "COUNTLESS_THREADS": "3",
            },
            "loaded": False,
        }

    def test_no_limits_but_one_thread_for_what_is_timed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ENVIRONMENT:
            monkeypatch.delenv(name, raising=False)
        jobs = [Meets("a"), Timed("b")]
        assert sweep(jobs, tmp_path, backend=LocalProcesses(1, None)).done == 2
        found = [ResultStore(tmp_path).result(job) for job in jobs]
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        assert [result and result["threads"] for result in found] == [{}, one]

    def test_duckdb_keeps_to_its_threads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COUNTLESS_THREADS", "3")
        assert connect().execute("SELECT current_setting('threads')").fetchone() == (3,)


class TestFailures:
    def test_others_go_on_and_the_next_sweep_tries_again(self, tmp_path: Path) -> None:
        jobs = [
            Breaks("bad"),
            Count("needs bad", needs=("bad",)),
            Count("needs both", needs=("good", "needs bad")),
            Count("good"),
        ]
        notes = Notes()
        outcome = sweep(jobs, tmp_path, workers=1, watch=notes)
        assert outcome == SweepOutcome(1, {"bad": "ValueError: broken"}, ("needs bad", "needs both"))
        assert ("dropped", ("needs bad", "needs both"), "bad") in notes.heard
        error = (tmp_path / "cells" / "bad.error.txt").read_text()
        assert "Traceback" in error
        assert "in two lines" in error
        assert not (tmp_path / "cells" / "bad.log").exists()
        (tmp_path / "mended").touch()
        ran(tmp_path)
        assert sweep(jobs, tmp_path, workers=1) == SweepOutcome(4, {}, ())
        assert ran(tmp_path) == ["bad", "needs bad", "needs both"]
        assert {path.suffix for path in (tmp_path / "cells").iterdir()} == {".json"}

    @pytest.mark.parametrize(
        ("how", "message", "kept"),
        [
            ("signal", "the process was ended by SIGKILL: if memory was short, use fewer workers", ""),
            ("exit", "the process ended with code 3 and no result: see a.error.txt", "last words"),
            ("ours", "no such thing: look elsewhere", "QueryError"),
            ("unfit", "TypeError: Object of type object is not JSON serializable", "Traceback"),
        ],
    )
    def test_reasons(self, tmp_path: Path, how: str, message: str, kept: str) -> None:
        failed = sweep([Breaks("a", how=how)], tmp_path).failed
        assert list(failed) == ["a"]
        assert failed["a"].startswith(message)
        assert "\n" not in failed["a"]
        assert kept in (tmp_path / "cells" / "a.error.txt").read_text()
        assert not ResultStore(tmp_path).path("a").exists()


class TestPlans:
    @pytest.mark.parametrize(
        ("jobs", "message"),
        [
            ([Count("a", needs=("b",))], "job a needs b, which is not in the sweep"),
            ([Count("a", needs=("b",)), Count("b", needs=("a",))], "in a circle: (a -> b -> a|b -> a -> b)"),
            ([Count("a"), Count("a", value=2)], "two jobs are named a"),
            ([Count("a/b")], "'a/b' cannot be the name of a file"),
        ],
    )
    def test_what_cannot_be_done_is_told_first(self, tmp_path: Path, jobs: list[Count], message: str) -> None:
        with pytest.raises(CountlessError, match=message):
            sweep(jobs, tmp_path / "never")
        assert not (tmp_path / "never").exists()

    def test_at_least_one_worker(self, tmp_path: Path) -> None:
        with pytest.raises(CountlessError, match="workers is 0: give at least 1"):
            sweep([Count("a")], tmp_path, workers=0)

    def test_one_sweep_at_a_time(self, tmp_path: Path) -> None:
        with (
            ResultStore(tmp_path).lock(),
            pytest.raises(CountlessError, match=f"another sweep is at work in {tmp_path}: wait"),
        ):
            sweep([Count("a")], tmp_path)
        assert sweep([Count("a")], tmp_path).done == 1
        with open(tmp_path / "sweep.lock", "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class TestStops:
    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
    def test_processes_end_and_the_next_sweep_goes_on(self, tmp_path: Path, how: signal.Signals) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        with subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            pids = [tmp_path / "a.pids", tmp_path / "b.pids"]
            until(lambda: all(path.exists() and path.read_text() for path in pids))
            assert process.stdout is not None
            assert process.stdout.read(5) == "first"
            children = [int(pid) for path in pids for pid in path.read_text().split()]
            assert len(children) == 4
            assert all(map(alive, children))
            process.send_signal(how)
            assert process.wait(20) == (130 if how == signal.SIGINT else -signal.SIGKILL)
        if how == signal.SIGINT:
            assert not any(map(alive, children))
            assert [path.name for path in (tmp_path / "cells").iterdir()] == ["first.json"]
        until(lambda: not any(map(alive, children)))
        (tmp_path / "go").touch()
        assert ran(tmp_path) == ["first"]
        assert sweep(SURVIVORS, tmp_path, workers=2) == SweepOutcome(4, {}, ())
        assert sorted(ran(tmp_path)) == ["a", "b", "last"]
        assert {path.suffix for path in (tmp_path / "cells").iterdir()} == {".json"}

    def test_who_does_not_listen_is_killed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        class Impatient(SweepListener):
            def said(self, name: str, line: str) -> None:
                assert alive(int(line))
                raise KeyboardInterrupt(line)

        monkeypatch.setattr("countless_lab.runner.process.GRACE", 0.1)
        with pytest.raises(KeyboardInterrupt) as stopped:
            sweep([Stubborn("a")], tmp_path, watch=Impatient())
        assert not alive(int(str(stopped.value)))
        assert list((tmp_path / "cells").iterdir()) == []


class TestDisplay:
    def test_lines_where_there_is_no_terminal(self, tmp_path: Path) -> None:
        text = io.StringIO()
        console = Console(file=text, markup=False, width=100)
        jobs = [Count("a"), Breaks("b"), Count("c", needs=("b",))]
        for _ in range(2):
            with SweepDisplay(console) as watch:
                sweep(jobs, tmp_path, workers=1, watch=watch)
        failure = ["b failed: ValueError: broken", "1 cell not run: b failed"]
        assert text.getvalue().splitlines() == [
            "1/3  a: 0s",
            *failure,
            "1 of 3 cells done by an earlier run",
            *failure,
        ]

    def test_a_terminal_shows_what_runs(self) -> None:
        text = io.StringIO()
        console = Console(file=text, force_terminal=True, markup=False, width=120, color_system=None)
        with SweepDisplay(console) as watch:
            watch.planned(0, 3)
            watch.started("short")
            watch.said("short", "begins")
            watch.finished("short", 60.0)
            watch.started("long [x]")
            watch.said("long [x]", "epoch 1\nof 2 [bold]")
            shown = io.StringIO()
            Console(file=shown, markup=False, width=120).print(watch)
            watch.failed("last", "broken")
        lines = shown.getvalue().splitlines()
        assert "1 of 3 cells  about 2m00s left" in lines[0]
        assert lines[1].split("  ")[0] == "long [x]"
        assert "epoch 1 of 2 [bold]" in lines[1]
        assert "last failed: broken" in text.getvalue()
