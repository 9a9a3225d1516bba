"""The scoreboard: it runs on any machine, goes on after a stop, and its page and README say what was measured."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from countless.data.sources.source import Source
from countless.errors import CountlessError, DataError
from countless.estimator.answers.estimate import Estimate
from countless.workload import Query, save
from countless_lab.codes import PackedCodes, has_scan
from countless_lab.runner.store import ResultStore
from countless_lab.runner.sweep import SweepOutcome
from countless_lab.scoreboard.answers import Answers, ask, figures, nearer, ratio_of_medians
from countless_lab.scoreboard.history import add_run, code_fingerprint, read_runs
from countless_lab.scoreboard.opponents import DuckDBTable
from countless_lab.scoreboard.page import BEGIN, END, readme_table, write_page, write_readme
from countless_lab.scoreboard.run import summarize
from countless_lab.scoreboard.steps import (
    AskModel,
    AskOpponents,
    DrawQuestions,
    FitTable,
    MeasureRate,
    PrepareTable,
    TableRun,
    steps_of,
)
from countless_lab.scoreboard.tables import FULL, QUICK, ScoreboardScale, choose_tables, known_tables
from countless_lab.scoreboard.workloads import draw_workloads
from tests.cli.test_cli import Run, run  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "results" / "scoreboard"
SMALL = ("--rows", "500", "--budget", "1s", "--questions", "20", "--per-kind", "2", "--seconds", "3s")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a scoreboard of 500 rows, which was killed after the first fit and then run again."""
    folder = tmp_path_factory.mktemp("scoreboard")
    command = [sys.executable, "-m", "countless.cli.main", "bench", "scoreboard", "adult", *SMALL]
    command += ["-o", "results", "--work", "work", "--page", "page.md"]
    first = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
    for _ in range(1200):
        if list(folder.glob("work/cells/adult-500-fit-0-*.json")):
            break
        time.sleep(0.1)
    os.killpg(first.pid, signal.SIGINT)
    first.communicate(timeout=60)
    assert first.returncode == 130
    again = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert again.returncode == 0, again.stderr
    (folder / "again.txt").write_text(again.stderr, encoding="utf-8")
    return folder


def test_a_stopped_run_goes_on(measured: Path) -> None:
    lines = (measured / "again.txt").read_text(encoding="utf-8").splitlines()
    fitting = next(number for number, line in enumerate(lines) if "adult: fitting" in line)
    assert "kept from an earlier run" in lines[fitting + 1]
    assert "[1/6]" in lines[0]
    assert "left)" in lines[0]


def test_every_figure_is_there(measured: Path) -> None:
    (found,) = read_runs(measured / "results", "adult", "full")
    (fit,) = found["fits"]
    assert set(fit["stages"]) == {"read", "encode", "train", "count", "calibrate"}
    assert fit["stages"]["train"]["seconds"] > 0
    assert fit["seconds"] > 0 < fit["cpu_seconds"]
    assert fit["fit_peak_bytes"] > 10_000_000 < fit["resident_bytes"]
    assert fit["load_ms"] > 0
    assert found["rate"]["busy"] > 0 < found["rate"]["alone"]
    assert found["table"] == {"rows": 500, "columns": 14, "parquet_bytes": found["table"]["parquet_bytes"]}
    for name, questions in (("paper", 20), ("people", None)):
        own = fit[name]
        assert questions is None or own["queries"] == questions
        assert own["q_error"]["max"] >= own["q_error"]["p50"] >= 1
        assert 0 <= own["coverage"] <= 1
        assert own["latency_ms"]["p99"] >= own["latency_ms"]["p50"] > 0
        for method in ("duckdb", "sample", "same bytes"):
            other = found["opponents"][name][method]
            assert other["q_error"]["max"] == 1  # 500 rows are fewer than the sample has
            assert other["time_ratio"] > 0
    assert fit["people"]["kinds"]["two columns"]["refused"] == 0
    assert fit["people"]["refused"] == 0
    if has_scan():
        assert found["opponents"]["paper"]["scan"]["q_error"]["max"] == 1
    assert found["machine"]["cores"] == os.cpu_count()
    assert found["code"] == code_fingerprint()


def test_a_sample_of_as_many_bytes_is_stored_to_be_measured(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    numbers = "SELECT i % 7 AS few, md5(i::VARCHAR) AS many FROM range(20_000) AS t(i)"
    duckdb.execute(f"COPY ({numbers}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    table = DuckDBTable(path)
    whole = path.stat().st_size
    assert table.rows_of_bytes(2 * whole) == 20_000
    half = table.rows_of_bytes(whole // 2)
    assert half == pytest.approx(10_000, rel=0.1)
    answers = table.sample(half)
    assert answers("few >= 0").rows == pytest.approx(20_000)


def test_the_results_hold_no_literals(measured: Path) -> None:
    text = (measured / "results" / "adult.json").read_text(encoding="utf-8")
    assert "Bachelors" not in text
    assert "education" not in text


def test_the_page_shows_every_group(measured: Path) -> None:
    page = (measured / "page.md").read_text(encoding="utf-8")
    for heading in ("## Fit", "## File", "## Accuracy", "## Speed", "## By kind of question", "## History"):
        assert heading in page
    assert "results/scoreboard.png" in page
    assert (measured / "results" / "scoreboard.png").read_bytes().startswith(b"\x89PNG")
    assert "| LIKE 'x%' | 2 |" in page


def test_a_readme_is_renewed(measured: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    write_readme(measured / "results", readme)
    text = readme.read_text(encoding="utf-8")
    assert text == f"before\n{BEGIN}\n{readme_table(measured / 'results')}\n{END}\nafter\n"
    assert "| adult | 500 |" in text
    readme.write_text("nothing", encoding="utf-8")
    with pytest.raises(DataError, match="has no place for the figures"):
        write_readme(measured / "results", readme)


def test_the_readme_shows_the_committed_results() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.split(BEGIN)[1].split(END)[0].strip() == readme_table(RESULTS)


def test_a_run_of_the_same_code_takes_the_place_of_the_last(tmp_path: Path) -> None:
    for code, figure in (("a", 1), ("b", 2), ("b", 3)):
        add_run(tmp_path, "t", "full", {"code": code, "figure": figure})
    assert read_runs(tmp_path, "t", "full") == [{"code": "b", "figure": 3}, {"code": "a", "figure": 1}]
    (tmp_path / "t.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="not a result of the scoreboard"):
        read_runs(tmp_path, "t", "full")


def test_quick_runs_alone_make_a_history(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    with pytest.raises(DataError, match="no results in"):
        write_page(tmp_path, page)
    fits = [{"seconds": 60.0, "bytes": 2_000_000}, {"seconds": 70.0, "bytes": 2_000_000}]
    add_run(tmp_path, "t", "quick", {"code": "a", "date": "2026-01-02", "commit": "c0ffee", "fits": fits, "rate": {}})
    write_page(tmp_path, page)
    text = page.read_text(encoding="utf-8")
    assert "| t | 2026-01-02 c0ffee | 60-70 | 2.0 MB |" in text
    assert "## Fit" not in text


def test_tables_that_are_not_here_are_skipped(tmp_path: Path) -> None:
    present, missing = choose_tables((), quick=False, data=tmp_path)
    assert [table.name for table in present] == ["adult", "npm_urls"]
    assert "flights_3m" in missing
    with pytest.raises(DataError, match="no file of the table flights"):
        choose_tables(("flights",), quick=False, data=tmp_path)
    with pytest.raises(DataError, match="unknown table 'nosuch': choose from adult"):
        choose_tables(("nosuch",), quick=False, data=tmp_path)


def test_with_all_tables_the_small_stand_in_is_not_needed(tmp_path: Path) -> None:
    for table in known_tables().values():
        (tmp_path / table.source).parent.mkdir(exist_ok=True)
        (tmp_path / table.source).touch()
    present, missing = choose_tables((), quick=False, data=tmp_path)
    assert not missing
    assert "npm_urls" not in [table.name for table in present]
    assert [table.name for table in choose_tables((), True, tmp_path)[0]] == ["adult", "census_income", "flights"]


def given(folder: Path, scale: ScoreboardScale) -> TableRun:
    return TableRun(known_tables()["adult"], folder / "nosuch.parquet", 0, scale, "code", "generators")


def test_steps_have_a_model_before_they_ask_it(tmp_path: Path) -> None:
    kinds = [type(step) for step in steps_of(given(tmp_path, FULL))]
    assert kinds == [PrepareTable, DrawQuestions, FitTable, AskModel, MeasureRate, AskOpponents]
    assert [step.seed for step in steps_of(given(tmp_path, QUICK)) if isinstance(step, FitTable)] == [0, 1]


def test_an_unknown_table_is_one_line(run: Run) -> None:  # noqa: F811
    result = run("bench", "scoreboard", "nosuch", "-o", "results")
    assert result.code == 1
    assert "unknown table 'nosuch'" in result.err


def test_a_fit_that_fails_has_a_reason(tmp_path: Path) -> None:
    with pytest.raises(CountlessError, match="no such file"):
        FitTable(given(tmp_path, FULL), 0).run(tmp_path, lambda line: None)


def test_a_fit_that_fails_is_a_row(tmp_path: Path) -> None:
    store, steps = ResultStore(tmp_path), steps_of(given(tmp_path, FULL))
    with store.lock():
        for step in steps:
            if isinstance(step, FitTable | AskModel):
                continue
            for path in step.outputs(tmp_path):
                path.parent.mkdir(exist_ok=True)
                save(path, [Query("a = 1", 1)]) if isinstance(step, DrawQuestions) else path.write_text("{}")
            store.write(step, {}, 1.0)
    summary = summarize(steps[0].table_run, store, SweepOutcome(4, {steps[2].name: "no such file"}, ()))
    assert summary["fits"] == [{"seed": 0, "failed": "no such file", "ask_failed": "there is no model"}]
    with pytest.raises(CountlessError, match="adult: preparing the table failed: no"):
        summarize(steps[0].table_run, ResultStore(tmp_path / "none"), SweepOutcome(0, {steps[0].name: "no"}, ()))


def test_answers_are_timed_and_refusals_counted() -> None:
    queries = [Query("a", 10, "x"), Query("b", 10, "x"), Query("c", 10, "y")]

    def answer(where: str) -> Estimate:
        if where == "b":
            raise ValueError
        return Estimate(where, 20.0, 0.0, 5.0, 30.0, 0.9, "m", False, 0.0)

    answers = ask("m", answer, queries, 60.0, ValueError)
    summary = figures(answers, queries)
    assert sorted(answers.numbers) == [0, 1, 2]
    assert summary["refused"] == summary["kinds"]["x"]["refused"] == 1
    assert summary["kinds"]["y"]["q_error"]["max"] == 2
    assert summary["kinds"]["x"]["q_error"]["max"] == 10
    assert len(ask("m", answer, queries, -1.0, ValueError).numbers) == 0


def test_who_is_nearer() -> None:
    queries = [Query("a", 100, "x"), Query("b", 100, "x"), Query("c", 100, "y")]
    own = Answers("own", [0, 1, 2], [100.0, 50.0, 100.0], [0.0] * 3, [0.0] * 3, [1.0, 1.0, 1.0], [False] * 3)
    other = Answers("other", [0, 1], [10.0, 99.0], [0.0] * 2, [0.0] * 2, [4.0, 4.0], [False] * 2)
    assert nearer(own, other, queries) == {"all": [1, 1], "kinds": {"x": [1, 1]}}
    assert ratio_of_medians(other, own) == 4.0
    assert ratio_of_medians(Answers("none"), own) is None


def test_samples_scale_up(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    duckdb.connect().execute(f"COPY (SELECT range AS n, range % 2 AS even FROM range(10000)) TO '{path}'")
    table = DuckDBTable(path)
    assert table.exact("n < 5").rows == 5
    assert 4_000 < table.sample(1_000)("even = 0").rows < 6_000
    assert table.sample(10**9)("n < 5").rows == 5


@pytest.mark.skipif(not has_scan(), reason="the scan is not compiled: there was no C compiler")
def test_the_scan_counts_as_duckdb_does() -> None:
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "few": rng.integers(0, 5, 9_000),
            "many": rng.integers(-1_000, 1_000, 9_000),
            "most": rng.permutation(90_000)[:9_000],
            "text": [None if n == 3 else "abcdefgh"[n] for n in rng.integers(0, 8, 9_000)],
        }
    )
    connection = duckdb.connect()
    connection.register("t", table)
    codes = PackedCodes(table)
    clauses = (
        "few = 3",
        "few = 3 AND many <= 10 AND most >= 500",
        "text IS NULL AND many > 0",
        "text >= 'c' AND few < 4",
        "many = 123456",
    )
    for where in clauses:
        scan = codes.prepare(where)
        assert scan is not None
        expected = connection.execute(f"SELECT count(*) FROM t WHERE {where}").fetchall()[0][0]
        assert scan() == expected
    assert codes.prepare("few <> 3") is None
    assert codes.prepare("few < many") is None


def test_workloads_are_drawn_from_the_table_alone() -> None:
    source = Source.open("npm_urls").sampled(300, 0)
    workloads: Any = draw_workloads(source, 10, 2)
    assert len(workloads["paper"]) == 10
    assert all("LIKE '%" in query.where for query in workloads["paper"])
    assert {"LIKE 'x%'", "regular expression", "text equality"} <= {query.kind for query in workloads["people"]}
    assert json.dumps([query.rows for query in workloads["paper"]])
    assert all(query.rows >= 1 for query in workloads["paper"])
