"""The measurement of a large table and its parts: true counts, samples, steps, figures and picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from countless.data.sources.source import Source
from countless.errors import DataError
from countless.estimator.answers.estimate import Estimate
from countless_lab.scaling.answers import ScaleAnswers, ask_method, method_figures, time_ratios
from countless_lab.scaling.page import BEGIN, END, write_figures
from countless_lab.scaling.questions import GroupQuestion, ScaleQuestions, ScaleTruth, count_truth, draw_questions
from countless_lab.scaling.report import MODEL
from countless_lab.scaling.samples import ask_sample, draw_sample, draw_sample_of_bytes
from countless_lab.scoreboard.answers import Answers
from tests.benchmarks.scripts import load_script

scale = load_script("scale")
SMALL = ("--per-kind", "2", "--timed-per-kind", "1", "--fit-options", "--epochs 1")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """900 files of made-up packages."""
    path = tmp_path_factory.mktemp("scaling") / "files.parquet"
    endings = ("py", "so", "html")
    rows = {
        "suite": [("old", "new", None)[n % 3] for n in range(900)],
        "package": [f"package-{n % 40}" for n in range(900)],
        "path": [f"/usr/share/package-{n % 40}/part{n}/file-{n * 7919 % 1000}.{endings[n % 3]}" for n in range(900)],
    }
    pq.write_table(pa.table(rows), path)
    return path


def counted(table: Path, where: str) -> int:
    return int(duckdb.connect().execute(f"SELECT count(*) FROM '{table}' WHERE {where}").fetchall()[0][0])


def test_counts_in_few_scans_are_those_of_one_scan_each(table: Path) -> None:
    questions = draw_questions(Source.open(table), 6, 1)
    said: list[str] = []
    truth = count_truth(Source.open(table), questions, said.append)
    assert questions.texts == ["path"]
    assert "counting the values of path" in said  # the values, not the rows, are judged
    assert {kind for _, kind in questions.counts} >= {"equality", "LIKE '%x%'", "ILIKE", "LIKE and filters"}
    for (where, _), rows in zip(questions.counts, truth.counts, strict=True):
        assert rows == counted(table, where)
    assert {group.kind for group in questions.groups} == {"GROUP BY, filters", "GROUP BY, LIKE", "GROUP BY, both"}
    for group, found in zip(questions.groups, truth.groups, strict=True):
        sql = f"SELECT {group.column}, count(*) FROM '{table}' WHERE {group.where} GROUP BY 1"
        assert dict(found) == dict(duckdb.connect().execute(sql).fetchall())
        assert all(rows > 0 for _, rows in found)


def test_questions_and_truths_survive_a_file(table: Path, tmp_path: Path) -> None:
    questions = draw_questions(Source.open(table), 2, 1)
    truth = count_truth(Source.open(table), questions, lambda line: None)
    questions.save(tmp_path / "q.json")
    truth.save(tmp_path / "t.json")
    assert ScaleQuestions.load(tmp_path / "q.json") == questions
    assert ScaleTruth.load(tmp_path / "t.json") == truth


def test_a_few_of_each_kind_are_timed() -> None:
    counts = [("a", "IN"), ("b", "IN"), ("c", "OR"), ("d", "IN")]
    questions = ScaleQuestions(counts, [GroupQuestion("x", "a", "GROUP BY, LIKE")], [])
    assert questions.timed(2) == ([0, 1, 2], [0])


def test_a_sample_of_all_rows_is_exact_and_one_of_few_bytes_is_small(table: Path, tmp_path: Path) -> None:
    everything, few = tmp_path / "all.parquet", tmp_path / "few.parquet"
    draw_sample(table, 10**6, everything)
    questions = draw_questions(Source.open(table), 3, 1)
    truth = count_truth(Source.open(table), questions, lambda line: None)
    answers, rows = ask_sample("sample", everything, table, questions, truth)
    assert rows == 900
    figures = method_figures(answers, questions, truth)
    assert all(facts["q_error"]["max"] == 1 for by in figures.values() for facts in by.values())
    draw_sample_of_bytes(table, everything.stat().st_size // 2, everything, few)
    assert 0.9 < few.stat().st_size / (everything.stat().st_size // 2) < 1.1
    draw_sample_of_bytes(table, 10**9, everything, few)
    assert pq.read_metadata(few).num_rows == 900


def answers_of(method: str, ms: list[float], group_ms: dict[int, float]) -> ScaleAnswers:
    counts = Answers(
        method, [*range(len(ms))], [1.0] * len(ms), [0.0] * len(ms), [2.0] * len(ms), ms, [False] * len(ms)
    )
    return ScaleAnswers(counts, Answers(method), group_ms)


def test_times_are_compared_on_the_same_questions() -> None:
    questions = ScaleQuestions(
        [("a", "IN"), ("b", "OR"), ("c", "ILIKE")], [GroupQuestion("x", "a", "GROUP BY, LIKE")] * 2, []
    )
    own = answers_of(MODEL, [1.0, 100.0, 2.0], {0: 4.0, 1: 1.0})
    other = answers_of("exact", [50.0], {1: 8.0})
    assert time_ratios(other, own, questions) == {"columns": 50.0, "GROUP BY": 8.0}


def test_a_refused_question_is_an_answer_of_no_rows() -> None:
    questions = ScaleQuestions([("a", "IN")], [GroupQuestion("x", "a", "GROUP BY, LIKE")], [])
    truth = ScaleTruth([20], [[("u", 5), (None, 7)]])

    def refuse(*question: str) -> Any:
        raise DataError("no")

    figures = method_figures(ask_method(MODEL, refuse, refuse, questions, truth, DataError), questions, truth)
    assert figures["kinds"]["IN"]["q_error"]["max"] == 20
    assert figures["kinds"]["IN"]["refused"] == 1
    assert figures["kinds"]["GROUP BY, LIKE"]["q_error"]["max"] == 7

    def answer(column: str, where: str) -> dict[str | None, Estimate]:
        return {None: Estimate("", 7, 0.0, 7, 7, 1.0, "", True, 0.0)}

    figures = method_figures(ask_method(MODEL, refuse, answer, questions, truth, DataError), questions, truth)
    assert figures["kinds"]["GROUP BY, LIKE"]["q_error"]["max"] == 5  # the group that the answer lacks
    assert figures["kinds"]["GROUP BY, LIKE"]["q_error"]["p50"] == 3  # between 1 and 5


def test_the_script_measures_parts_and_goes_on(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    command = [str(table), "--work", str(tmp_path / "work"), "-o", str(tmp_path / "out"), *SMALL]
    assert scale.main([*command, "--only", "truth,fit,countless"]) == 0
    assert "all: LIKE" in capsys.readouterr().out
    assert scale.main([*command, "--sweep", "--parts", "300", "--page", str(page)]) == 0
    record = json.loads((tmp_path / "out" / "files.json").read_text())
    rows = [part["rows"] for part in record["parts"]]
    assert 200 < rows[0] < 400
    assert rows[1] == 900
    for part in record["parts"]:
        assert set(part["methods"]) >= {MODEL, "sample", "same bytes", "DuckDB in memory", "DuckDB on Parquet"}
        kinds = part["methods"][MODEL]["kinds"]  # tables this small are kept whole: every count is exact
        assert all(facts["q_error"]["max"] == 1 for facts in kinds.values())
        assert part["behind_samples"] == []
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\nMeasured on")
    assert text.endswith(f"{END}\nafter\n")
    assert "A fit of 900 rows" in text
    assert "(out/files.png)" in text
    assert (tmp_path / "out" / "files.png").read_bytes().startswith(b"\x89PNG")
    assert "/usr/share" not in (tmp_path / "out" / "files.json").read_text()  # no literals


def test_what_is_missing_is_told(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = ["--work", str(tmp_path)]
    assert scale.main([str(tmp_path / "none.parquet"), *work]) == 1
    assert "debian_files.py" in capsys.readouterr().err
    assert scale.main([str(table), *work, "--only", "nonsense"]) == 1
    assert "no step nonsense: choose from questions, table, truth" in capsys.readouterr().err
    (tmp_path / "page.md").write_text("no place")
    with pytest.raises(DataError, match="no place for the figures"):
        write_figures({"parts": []}, tmp_path / "page.md", tmp_path / "none.png")
