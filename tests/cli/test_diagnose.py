"""``countless diagnose`` as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_cli import Run, run
from tests.texts import URL, random_estimator

__all__ = ["run"]

FILES = ["diagnosis.json", "diagnosis.md", "diagnosis.png", "diagnosis.svg"]


def test_for_people(run: Run, model: Path, people: Path) -> None:
    result = run("diagnose", model, people, "--queries", 60)
    assert result.code == 0, result.err
    assert result.out.startswith("60 queries; q-error p50 ")
    for phrase in (
        "q-error by number of filters",
        "q-error by true count",
        "too large and too small",
        "Whose error is it?",
        "Columns",
        "Pairs of columns",
        "The worst 20 queries",
        "to blame",
    ):
        assert phrase in result.out
    assert "counting (60 queries) ...\nanswering (60 queries) ...\n" in result.err


def test_json(run: Run, model: Path, people: Path) -> None:
    result = run("diagnose", model, people, "--queries", 40, "--filters", "2-3", "--seed", 3, "--json")
    output = json.loads(result.out)
    assert [group["label"] for group in output["by_filters"]] == ["2", "3"]
    assert sum(group["queries"] for group in output["by_truth"]) == output["queries"] == 40
    assert set(output["sampler"]["own_answers"]) == {"exact", "settled", "moving"}
    assert len(output["worst"]) == 20
    assert {"where", "truth", "estimate", "own", "blame"} <= set(output["worst"][0])
    assert "answers" not in output


def test_files(run: Run, model: Path, people: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first, second = tmp_path / "new" / "first", tmp_path / "second"
    for folder in (first, second):
        result = run("diagnose", model, people, "--queries", 30, "--particles", 2, "-o", folder)
        assert result.code == 0, result.err
        assert sorted(path.name for path in folder.iterdir()) == FILES
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in FILES)
    assert f"wrote {second / 'diagnosis.svg'}" in result.err
    assert result.out.startswith("30 queries")
    assert "to blame  " not in result.out
    assert len(json.loads((first / "diagnosis.json").read_text())["answers"]) == 30
    assert (first / "diagnosis.md").read_text().startswith("# Diagnosis of people.countless\n")


def test_a_workload(run: Run, model: Path, people: Path, tmp_path: Path) -> None:
    saved = tmp_path / "w.jsonl"
    run("evaluate", model, people, "--queries", 25, "--save", saved)
    output = json.loads(run("diagnose", model, people, "--workload", saved, "--json").out)
    evaluated = json.loads(run("evaluate", model, people, "--workload", saved, "--json").out)
    assert output["queries"] == 25
    assert output["q_error"]["max"] == evaluated["q_error"]["max"]
    assert output["q_error"]["p95"] == evaluated["q_error"]["p95"]


@pytest.mark.parametrize(
    ("options", "code", "phrase"),
    [
        (("--filters", "5-2"), 2, "'5-2' is not a range: write 8, or 5-12"),
        (("--filters", "many"), 2, "--filters"),
        (("--filters", "2", "--workload", "w"), 2, "--filters is for random queries"),
        (("--most-particles", "10"), 2, "--most-particles"),
        (("--workload", "none.jsonl"), 1, "cannot read the workload none.jsonl"),
        (("--workload", "{tmp}/empty"), 1, "holds no queries"),
        (("-o", "/proc/here"), 1, "cannot write in /proc/here"),
    ],
)
def test_errors(
    run: Run, model: Path, people: Path, tmp_path: Path, options: tuple[str, ...], code: int, phrase: str
) -> None:
    (tmp_path / "empty").write_text("")
    result = run("diagnose", model, people, *(option.format(tmp=tmp_path) for option in options))
    assert result.code == code
    assert phrase in result.err
    assert result.out == ""


def test_a_table_that_does_not_fit(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a\n1\n")
    result = run("diagnose", model, tmp_path / "other.csv")
    assert result.code == 1
    assert result.err.startswith("error: the table lacks the model's columns age, city")


def test_text_alone(run: Run, people: Path, tmp_path: Path) -> None:
    texts = random_estimator(URL).save(tmp_path / "t.countless")
    result = run("diagnose", texts, people)
    assert result.code == 1
    assert result.err.startswith("error: the model is of text alone")
    assert len(result.err.splitlines()) == 1
