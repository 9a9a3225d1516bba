"""The command line on text: what a fit says of it, and every command that asks about it."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

from countless.cli.terminal.fit_progress import FitView
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.options import TEXT_PRESETS, TextNetwork
from countless.train.loop import Progress
from tests.cli.test_cli import Run, run

__all__ = ["run"]

WORDS = ("cat", "dove", "eel", "unicorn")
SMALL = TextNetwork(width=16, blocks=1, heads=2, inner=32, buckets=64)


def write_lines(path: Path, rows: int = 400) -> Path:
    """Sentences of one word to three, one of them with a character that no other has."""
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(WORDS, size=rng.integers(1, 4))) for _ in range(rows)]
    path.write_text("\n".join(["unicorn, é", *lines[1:]]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits that take no time."""
    monkeypatch.setattr("countless.estimator.fitting.calibrating.CALIBRATION_QUERIES", (22, 22))
    monkeypatch.setitem(TEXT_PRESETS, "default", SMALL)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("lines") / "lines.txt")


@pytest.fixture(scope="module")
def pages(lines: Path) -> Path:
    """A model of the lines."""
    estimator = fit(lines, text="line", epochs=12, batch=50, learning_rate=0.01, text_network=SMALL, evidence="none")
    return estimator.save(lines.with_name("lines.countless"))


class TestFit:
    def test_says_what_of_the_text_is_modelled(self, run: Run, lines: Path, tmp_path: Path) -> None:
        model = tmp_path / "m.countless"
        result = run(
            "fit",
            lines,
            "-o",
            model,
            "--text",
            "line",
            "--max-length",
            14,
            "--epochs",
            1,
            "--text-counts",
            "9kB",
            "--text-model",
        )
        assert result.code == 0, result.err
        (column,) = Estimator.load(model).schema.texts
        assert column.cut > 1
        cut = f"up to 14 of a string ({column.cut} strings are cut there)"
        assert f"400 rows, 1 text column\nline is text: 13 characters (2 rarer ones as unknown), {cut}" in result.err
        assert f"text, 13 characters (2 rarer ones as unknown), {cut}" in " ".join(result.err.split())
        for phrase in (
            "training on the text of line ...",
            "counting substrings of line ...",
            "text of line: 1 epoch in",
            "training rows: ",
            " bits/character, none are held out for validation",
            "rows of the table as they are, text included (",
            "counts are exact: the file holds all rows of the table",
        ):
            assert phrase in result.err
        assert result.out == ""
        assert sorted(tmp_path.iterdir()) == [model, tmp_path / "m.countless.training-text"]  # no checkpoint

    def test_the_last_progress_and_the_summary_say_the_same(self, run: Run, tmp_path: Path) -> None:
        table = write_lines(tmp_path / "lines.txt", 2400)
        options = ("--text", "line", "--max-length", 6, "--epochs", 1, "--text-model")
        result = run("fit", table, "-o", tmp_path / "m", *options)
        assert result.code == 0, result.err
        matches = re.findall(r"validation: [0-9.]+ bits/character with text masked, [0-9.]+ without", result.err)
        assert len(matches) == 2
        assert matches[0] == matches[1]
        assert matches[0] in run("info", tmp_path / "m").out

    def test_columns_that_must_not_be_text(self, run: Run, tmp_path: Path) -> None:
        table = tmp_path / "t.txt"
        table.write_text("".join(f"a line that is long, {n}\n" for n in range(1200)))
        result = run("fit", table, "-o", tmp_path / "m", "--no-text", "line", "--epochs", 1, "--hidden", 16)
        assert result.code == 0, result.err
        schema = Estimator.load(tmp_path / "m").schema
        assert schema.texts == ()
        assert schema.coded[0].grid is not None
        assert not re.search("is text|text of", result.err)

    def test_without_a_summary(self, run: Run, lines: Path, tmp_path: Path) -> None:
        result = run("fit", lines, "-o", tmp_path / "m", "--text", "line", "--no-summary", "--epochs", 1)
        assert result.code == 0, result.err
        assert "substrings" not in result.err
        assert Estimator.load(tmp_path / "m").info()["texts"][0]["summary"] is None

    def test_the_papers_network(self, run: Run, lines: Path, tmp_path: Path) -> None:
        options = ("--text", "line", "--text-preset", "paper", "--text-masking", "spans", "--max-length", 8)
        result = run("fit", lines, "-o", tmp_path / "m", *options, "--epochs", 1)
        assert result.code == 0, result.err
        out = run("info", tmp_path / "m").out
        assert "of line: a Transformer of 8 blocks, width 32, inner 256, 4 heads, n-grams none" in out

    @pytest.mark.parametrize(
        ("options", "phrase"),
        [
            (("--text", "lime"), '--text names an unknown column "lime": did you mean "line"?'),
            (("--no-text", "lime"), '--no-text names an unknown column "lime": did you mean "line"?'),
            (("--text", "line", "--no-text", "line"), '"line" is named by --text and by --no-text'),
        ],
    )
    def test_errors_are_one_line(
        self, run: Run, lines: Path, tmp_path: Path, options: tuple[str, ...], phrase: str
    ) -> None:
        result = run("fit", lines, "-o", tmp_path / "m", *options)
        assert result.code == 1
        assert phrase in result.err.splitlines()[-1]
        assert result.err.splitlines()[-1].startswith("error: ")
        assert list(tmp_path.iterdir()) == []

    def test_a_number_is_no_text(self, run: Run, people: Path, tmp_path: Path) -> None:
        result = run("fit", people, "-o", tmp_path / "m", "--text", "age")
        assert result.code == 1
        assert 'error: --text names "age", which is INTEGER: only strings can be modelled as text' in result.err

    @pytest.mark.parametrize(
        "options", [("--max-length", 0), ("--text-preset", "huge"), ("--text-masking", "half"), ("--max-length", "x")]
    )
    def test_usage(self, run: Run, lines: Path, options: tuple[str, object]) -> None:
        result = run("fit", lines, "-o", "m", *options)
        assert result.code == 2
        assert str(options[0]) in result.err

    def test_ctrl_c_keeps_the_best_model_and_resume_goes_on(
        self, run: Run, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = tmp_path / "m.countless"
        command = ("fit", lines, "-o", model, "--text", "line", "--text-model", "--batch", 100, "--epochs", 4)
        signals = iter([signal.SIGINT])  # a second one would end the fit without a model

        def training(view: FitView, progress: Progress) -> None:
            for number in signals:
                os.kill(os.getpid(), number)

        with monkeypatch.context() as patch:
            patch.setattr(FitView, "training", training)
            result = run(*command)
        assert result.code == 130
        assert "stopped early" in result.err
        assert Estimator.load(model).report["text"]["epochs"] == 0.25
        checkpoint = tmp_path / "m.countless.checkpoint-text"
        assert sorted(tmp_path.iterdir()) == [model, checkpoint, tmp_path / "m.countless.run"]
        resumed = run(*command, "--resume")
        assert resumed.code == 0
        assert f"continuing from {checkpoint}" in resumed.err
        assert Estimator.load(model).report["text"]["epochs"] == 4
        assert sorted(tmp_path.iterdir()) == [model, tmp_path / "m.countless.training-text"]
        assert "nothing to resume" in run(*command, "--resume").err


class TestEstimate:
    def test_like(self, run: Run, pages: Path, lines: Path) -> None:
        truth = sum("dove" in line for line in lines.read_text(encoding="utf-8").splitlines())
        result = run("estimate", pages, "line LIKE '%dove%'")
        assert result.code == 0, result.err
        assert result.out.startswith(f"{truth} rows  (exact; ")
        answer = json.loads(run("estimate", pages, "line LIKE 'dove%' AND length(line) > 4", "--json").out)
        assert 0 < answer["low"] < answer["rows"] < answer["high"]

    def test_a_file_of_clauses(self, run: Run, pages: Path, tmp_path: Path) -> None:
        (tmp_path / "q.sql").write_text("line LIKE '%cat%'\nregexp_matches(line, '(')\nline IS NULL\n")
        result = run("estimate", pages, "--file", tmp_path / "q.sql", "--json")
        assert result.code == 1
        first, second, third = map(json.loads, result.out.splitlines())
        assert first["rows"] > 0
        assert "error" in second
        assert third["rows"] == 0

    @pytest.mark.parametrize(
        ("where", "phrase"),
        [
            ("regexp_matches(line, '(')", "the pattern cannot be read"),
            (r"regexp_matches(line, '(a)\1')", "back-references are not supported"),
            ("list_contains([line], 'ca')", "lists are not computed"),
        ],
    )
    def test_errors_are_clear(self, run: Run, pages: Path, where: str, phrase: str) -> None:
        result = run("estimate", pages, where)
        assert result.code == 1
        assert result.out == ""
        first, *spot = result.err.splitlines()
        assert first.startswith("error: ")
        assert phrase in first
        assert len(spot) in (0, 2)  # nothing but the clause with the spot underlined
        assert "Traceback" not in result.err


class TestEvaluate:
    def test_text_alone_is_asked_for_pieces(self, run: Run, pages: Path, lines: Path, tmp_path: Path) -> None:
        saved = tmp_path / "w.jsonl"
        result = run("evaluate", pages, lines, "--queries", 30, "--save", saved, "--json")
        output = json.loads(result.out)
        assert set(output["by_class"]) <= {"3 characters", "4 characters", "5 characters"}
        queries = [json.loads(line) for line in saved.read_text(encoding="utf-8").splitlines()]
        assert all(query["where"].startswith('"line" LIKE \'%') and query["rows"] > 0 for query in queries)
        again = json.loads(run("evaluate", pages, lines, "--workload", saved, "--json").out)
        assert again["by_class"] == output["by_class"]

    def test_a_mix_of_patterns(self, run: Run, pages: Path, lines: Path) -> None:
        output = json.loads(run("evaluate", pages, lines, "--queries", 44, "--patterns", "mix", "--json").out)
        assert len(output["by_class"]) == 11
        assert all(entry["queries"] == 4 for entry in output["by_class"].values())
        figures = {"queries", "refused", "exact", "coverage", "coverage_not_exact", "width", "width_not_exact"}
        assert set(output["by_class"]["regex"]) == {*figures, *output["q_error"]}

    def test_classes_for_people(self, run: Run, pages: Path, lines: Path) -> None:
        out = run("evaluate", pages, lines, "--queries", 22, "--patterns", "mix").out
        for word in ("group", "two pieces", "not like", "worst:"):
            assert word in out

    def test_the_summary_may_be_left_alone(self, run: Run, pages: Path, lines: Path) -> None:
        with_it, without = (
            json.loads(run("evaluate", pages, lines, "--queries", 40, option, "--json").out)["q_error"]["p90"]
            for option in ("--summary", "--no-summary")
        )
        assert with_it < without

    @pytest.mark.parametrize("method", ["row-sample", "duckdb-guess", "naive"])
    def test_other_methods(self, run: Run, pages: Path, lines: Path, method: str) -> None:
        result = run("evaluate", pages, lines, "--queries", 10, "--method", method, "--json")
        assert result.code == 0, result.err
        assert json.loads(result.out)["method"] == method

    def test_independence_is_not_for_text(self, run: Run, tmp_path: Path) -> None:
        table = tmp_path / "t.txt"
        table.write_text("".join(f"a line that is long, {n}\n" for n in range(1200)))
        model = fit(table, epochs=1, text_network=SMALL).save(tmp_path / "m")
        result = run("evaluate", model, table, "--queries", 5, "--method", "independence")
        assert result.code == 1
        assert "error: the method 'independence' is not for text columns" in result.err

    def test_baselines_on_text(self, run: Run, pages: Path, lines: Path) -> None:
        result = run("evaluate", pages, lines, "--queries", 22, "--patterns", "mix", "--baselines", "--json")
        assert result.code == 0, result.err
        evaluations = {item["method"]: item for item in json.loads(result.out)}
        assert "is not for text columns" in evaluations["independence"]["problem"]
        for name in ("particles", "row-sample", "duckdb-guess", "scan"):
            assert (evaluations[name]["answered"], evaluations[name]["problem"]) == (22, None)
        assert evaluations["postgres"]["answered"] == 22 or "PostgreSQL" in evaluations["postgres"]["problem"]

    def test_patterns_need_text(self, run: Run, model: Path, people: Path) -> None:
        result = run("evaluate", model, people, "--patterns", "mix")
        assert result.code == 1
        assert "error: the model has no text column to draw patterns from: leave out --patterns" in result.err


def test_info(run: Run, pages: Path) -> None:
    out = run("info", pages).out
    for phrase in (
        "400 rows, 1 column, ",
        "text, 13 characters (2 rarer ones as unknown)",
        "model     of line: a Transformer of 1 block, width 16, inner 32, 2 heads, ",
        "n-grams of 2, 3, 4 in 64 buckets",
        "substrings that occur in at least 2 rows",
        "training  of line: 12 epochs",
    ):
        assert phrase in out
    output = json.loads(run("info", pages, "--json").out)
    assert output["columns"] == []
    assert output["model"] is None
    assert output["texts"][0]["rare_characters"] == 2


def test_explain(run: Run, pages: Path) -> None:
    out = run("explain", pages, "line LIKE '%cat%'").out
    assert "visited   line" in out
    assert "strings of line (by an automaton of 4 states)" in out
    assert json.loads(run("explain", pages, "line LIKE '%cat%'", "--json").out)["visited"] == ["line"]


def test_sample(run: Run, pages: Path) -> None:
    result = run("sample", pages, "--where", "line LIKE 'cat%'", "--count", 3)
    assert result.code == 0, result.err
    assert all(line.startswith("cat") for line in result.out.splitlines())
    assert os.linesep in result.out
