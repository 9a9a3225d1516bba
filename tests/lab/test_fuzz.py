"""Random tables end with a model or with an honest error; crashes and hangs are reported, not suffered."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pyarrow import ipc

from countless.errors import DataError
from countless_lab.cli.bench.fuzz import campaign_options
from countless_lab.cli.bench.fuzz import tables as command
from countless_lab.fuzz import fitting
from countless_lab.fuzz.campaign import Campaign, Outcome
from countless_lab.fuzz.child import ChildProcesses, Limits
from countless_lab.fuzz.fitting import check_fit
from countless_lab.fuzz.forms import FRAME_ROWS, materialize
from countless_lab.fuzz.run import Case, Findings, run_campaign
from countless_lab.fuzz.tables import ARROW, PANDAS, POLARS, RELATION, draw_table, every_feature
from tests.cli.test_cli import Run, run  # noqa: F401 - a fixture
from tests.lab.fuzz_campaigns import COUNTING, CRASHING

# Chosen so that every type, form and kind of content occurs.
SEEDS = (294, 2007, 231, 605, 795, 957, 2818, 958, 12, 1088, 20061, 1, 2, 3, 13, 17, 20, 24, 32, 38)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_tables(tmp_path: Path, seed: int) -> None:
    assert check_fit(draw_table(seed), tmp_path).defects == ()


def test_every_feature_occurs() -> None:
    assert frozenset().union(*(draw_table(seed).features for seed in SEEDS)) == every_feature()


class TestDefects:
    """What a promise that is broken looks like."""

    @pytest.mark.parametrize(
        ("error", "defect"),
        [
            (ValueError("cannot reshape"), "ValueError: cannot reshape"),
            (DataError("this cannot be"), "names neither a column nor a remedy: this cannot be"),
            (DataError("too odd: leave it out with --exclude 'no such'"), r"the remedy does not work, \['no such'\]"),
            (DataError("too odd: leave it out with --exclude 'it's'"), "names neither a column nor a remedy"),
        ],
    )
    def test_errors(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, defect: str) -> None:
        def failing(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(fitting, "fit", failing)
        outcome = check_fit(draw_table(6), tmp_path)
        assert outcome.result == fitting.REFUSED
        with pytest.raises(AssertionError, match=defect):
            assert outcome.defects == (), outcome.defects[0]

    def test_a_remedy_that_does_not_help(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (name,) = draw_table(6).names

        def failing(*_: object, **__: object) -> None:
            raise DataError(f'"{name}" is too odd: leave it out with --exclude \'"{name}"\'')

        monkeypatch.setattr(fitting, "fit", failing)
        (defect,) = check_fit(draw_table(6), tmp_path).defects
        assert "the remedy does not work" in defect


class TestChildren:
    """A case in a process of its own."""

    def test_a_crash(self) -> None:
        result, ended = ChildProcesses().run(os.kill, os.getpid(), 0)
        assert (result, ended) == (None, None)
        _, ended = ChildProcesses().run(os._exit, 3)
        assert ended == "crashed, with exit code 3"
        _, ended = ChildProcesses().run(os.abort)
        assert ended is not None
        assert "crashed, by SIGABRT" in ended

    def test_a_hang(self) -> None:
        started = time.monotonic()
        _, ended = ChildProcesses(Limits(seconds=1.0)).run(time.sleep, 60)
        assert ended == "hangs: it was ended after 1 s"
        assert time.monotonic() - started < 50

    def test_memory(self) -> None:
        _, ended = ChildProcesses(Limits(memory=2 * 1024**3)).run(bytearray, 3 * 1024**3)
        assert ended is not None
        assert "MemoryError" in ended


def test_the_rows_of_frames_are_kept_in_a_file(tmp_path: Path) -> None:
    frames = (table for seed in range(60) if (table := draw_table(seed)).form in (ARROW, PANDAS, POLARS, RELATION))
    by_form = {table.form: table for table in frames}
    assert len(by_form) == 4
    for table in by_form.values():
        materialize(table, tmp_path)
        rows = ipc.open_file(tmp_path / FRAME_ROWS).read_all()
        assert (rows.num_rows, rows.column_names) == (table.rows, list(table.names))


class TestCommand:
    """``countless bench fuzz tables``, and what all campaigns have of it."""

    def test_no_defect(self, run: Run) -> None:  # noqa: F811
        result = run("bench", "fuzz", "tables", "--seed", "6", "--cases", "1")
        assert result.code == 0, result
        assert "1 table in " in result.out
        assert ": 1 model, 0 cases with a defect" in result.out
        assert "[1] seed 6: a DuckDB relation, 30 rows, 1 column: model in" in result.err

    def test_a_defect(self, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # noqa: F811
        monkeypatch.setattr(command, "TABLES", CRASHING)
        result = run("bench", "fuzz", "tables", "--seed", "8", "--cases", "2", "-o", tmp_path / "kept")
        assert result.code == 1
        assert "defect: crashed, by SIGKILL" in result.out
        assert "repeat: countless bench fuzz tables --seed 9 --cases 1" in result.out
        assert "2 crashed, 2 cases with a defect" in result.out
        assert len((tmp_path / "kept" / "defects.jsonl").read_text(encoding="utf-8").splitlines()) == 2

    def test_a_run_goes_on(self, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # noqa: F811
        monkeypatch.setattr(command, "TABLES", COUNTING)
        folder = tmp_path / "run"
        run("bench", "fuzz", "tables", "--seed", "4", "--cases", "2", "-o", folder)
        result = run("bench", "fuzz", "tables", "--cases", "1", "-o", folder, "--resume")
        assert "[3] seed 6: even, 10 fits in" in result.err
        assert "3 tables, 30 fits in " in result.out
        assert ": 2 even, 1 odd, 0 cases with a defect" in result.out

    def test_nothing_to_resume(self, run: Run, tmp_path: Path) -> None:  # noqa: F811
        assert "--resume needs the folder" in run("bench", "fuzz", "tables", "--resume").err
        result = run("bench", "fuzz", "tables", "--resume", "-o", tmp_path)
        assert (result.code, "nothing to resume" in result.err) == (1, True)

    def test_interrupted(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
        def stopped(
            campaign: Campaign, cases: int | None, seconds: float, output: object, findings: Findings, watch: object
        ) -> None:
            findings.add(Case(0, "a table", Outcome(fitting.MODEL), 1.0))
            raise KeyboardInterrupt

        monkeypatch.setattr(campaign_options, "run_campaign", stopped)
        result = run("bench", "fuzz", "tables")
        assert (result.code, "interrupted" in result.err) == (130, True)
        assert "1 table in 1s: 1 model" in result.out

    def test_time_is_a_limit(self) -> None:
        findings = Findings()
        run_campaign(COUNTING, None, 0.0, None, findings, lambda case: None)
        assert findings.cases == 0
