"""The command line as a person uses it: what it prints, where, and how it exits."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from countless.cli.explain import _advice
from countless.cli.main import COMMANDS, main
from countless.cli.parameters.options import Duration
from countless.cli.terminal import display as show
from countless.data.sources.source import connect
from countless.errors import ServerError
from countless.estimator.answers.estimate import Estimate
from countless.estimator.calibration.conformal import Calibration
from countless.estimator.estimator import Estimator
from countless.evaluation.baselines.postgres.server import find_binaries
from countless.evaluation.baselines.registry import BASELINES


@dataclass
class Done:
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process."""

    def call(*arguments: object) -> Done:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(int(caught.value.code or 0), captured.out, captured.err)

    return call


FAST = ("--epochs", 2, "--hidden", 16, "--blocks", 1, "--embedding", 8, "--no-keep-training")


class TestFit:
    def test_writes_a_model_and_says_all(self, run: Run, people: Path, tmp_path: Path) -> None:
        model = tmp_path / "m.countless"
        result = run("fit", people, "-o", model, "--exclude", "score,married", "--max-distinct", 30, *FAST)
        assert result.code == 0, result.err
        assert result.out == ""
        for phrase in (
            "3,000 rows, 4 columns",
            "grid of 30 cells, about 100 rows each",
            "5 codes",
            "excluded: married, score",
            "bits",
            "peak memory",
            "every distinct value",
        ):
            assert phrase in result.err
        assert Estimator.load(model).columns == ("id", "age", "city", "since when")
        assert list(tmp_path.iterdir()) == [model]  # no checkpoint stays behind

    def test_a_workload(self, run: Run, people: Path, tmp_path: Path) -> None:
        queries, model = tmp_path / "queries.sql", tmp_path / "m.countless"
        queries.write_text("-- what is asked\nage > 30 AND city = 'Oslo'\nage < 30 AND city = 'Rome'\nTRUE\n")
        result = run("fit", people, "-o", model, "--exclude", "id", "--workload", queries, *FAST)
        assert result.code == 0, result.err
        assert "workload: 2 clauses about 1 set of columns" in result.err
        assert "skipped 1 clause of the workload" in result.err
        assert "workload  2 clauses about 1 set of columns" in run("info", model).out

    @pytest.mark.parametrize(
        ("text", "phrase"),
        [
            ("", "holds no queries"),
            ("age > 30\nagee > 30", 'queries.sql, line 2: unknown column "agee": did you mean "age"?\n  agee > 30\n'),
        ],
    )
    def test_a_workload_that_does_not_fit(self, text: str, phrase: str, run: Run, people: Path, tmp_path: Path) -> None:
        queries = tmp_path / "queries.sql"
        queries.write_text(text)
        result = run("fit", people, "-o", tmp_path / "m", "--workload", queries, *FAST)
        assert result.code == 1
        assert phrase in result.err
        assert "training" not in result.err

    def test_resuming_what_is_finished_changes_nothing(self, run: Run, people: Path, tmp_path: Path) -> None:
        model = tmp_path / "m"
        run("fit", people, "-o", model, *FAST)
        before = model.read_bytes()
        result = run("fit", people, "-o", model, "--resume", *FAST)
        assert result.code == 0
        assert "nothing to resume" in result.err
        assert "to fit it anew leave --resume out" in result.err
        assert model.read_bytes() == before

    def test_names_are_shown_as_they_are(self, run: Run, tmp_path: Path) -> None:
        table, model = tmp_path / "[red]t:smile:.csv", tmp_path / "[bold]m.countless"
        table.write_text('"[red]a[/]",":smile:"\n1,2\n3,4\n')
        result = run("fit", table, "-o", model, "--exclude", ":smile:", *FAST)
        assert result.code == 0, result.err
        assert "excluded: :smile:" in result.err
        assert "[red]a[/]" in result.err
        assert f"wrote {model}" in result.err
        assert "[red]a[/]" in run("info", model).out

    def test_structs(self, run: Run, tmp_path: Path) -> None:
        table, model = tmp_path / "t.jsonl", tmp_path / "m.countless"
        row = '{"n": %d, "address": {"city": "Oslo", "zip": %d, "geo": {"lat": %d}}}\n'
        table.write_text("".join(row % (number, number % 3, number % 2) for number in range(50)))
        result = run("fit", table, "-o", model, "--exclude", "address.city", *FAST)
        assert result.code == 0, result.err
        assert "excluded: address.city" in result.err
        assert "left out address.geo: it is a struct: --flatten 2 makes columns of its fields" in result.err
        assert run("estimate", model, "address.zip = 1").out.startswith("17 ")
        result = run("fit", table, "-o", model, "--columns", "address", "--flatten", 2, *FAST)
        assert result.code == 0, result.err
        assert Estimator.load(model).columns == ("address.city", "address.zip", "address.geo.lat")
        assert run("estimate", model, "address.geo.lat = 1").out.startswith("25 ")
        assert run("evaluate", model, table, "--queries", 5, "--baselines", "independence,scan").code == 0

    def test_derived_columns(self, run: Run, tmp_path: Path) -> None:
        table, model, config = (tmp_path / name for name in ("t.csv", "m.countless", "fit.toml"))
        table.write_text("city,age\n" + "".join(f"{('Oslo', 'OSLO', 'Rome')[n % 3]},{n}\n" for n in range(60)))
        config.write_text('derive = ["age // 10 AS decade", "lower(city) AS low"]\n')
        result = run("fit", table, "-o", model, "--config", config, *FAST)
        assert result.code == 0, result.err
        assert Estimator.load(model).columns == ("city", "age", "decade", "low")
        result = run(
            "fit", table, "-o", model, "--derive", "lower(city) AS low", "--derive", "age // 10 AS decade", *FAST
        )
        assert result.code == 0, result.err
        assert run("estimate", model, "lower(city) = 'oslo'").out.startswith("40 ")
        assert "derived   low: LOWER(city)" in run("info", model).out
        assert run("evaluate", model, table, "--queries", 5, "--baselines", "independence,scan").code == 0
        assert run("check", model, table).code == 0
        result = run("fit", table, "-o", model, "--derive", "lower(ctiy) AS low", *FAST)
        assert result.code == 1
        assert result.err.endswith('--derive LOWER(ctiy) AS low: unknown column "ctiy": did you mean "city"?\n')

    def test_chosen_columns_and_a_budget(self, run: Run, people: Path, tmp_path: Path) -> None:
        result = run(
            "fit", people, "-o", tmp_path / "m", "--columns", 'age,"since when"', "--budget", "1s", "--hidden", 16
        )
        assert result.code == 0, result.err
        assert Estimator.load(tmp_path / "m").columns == ("age", "since when")

    @pytest.mark.parametrize(
        ("arguments", "phrase"),
        [
            (("none.parquet", "-o", "m"), "no such file: none.parquet"),
            (("{people}", "-o", "nowhere/m"), "there is no directory nowhere"),
            (("{people}", "-o", "{people.parent}"), "is a directory"),
            (("{people}", "-o", "{people}"), "exists and is not a Countless model"),
            (("{people}", "-o", "/proc/m"), "cannot write in /proc"),
            (("{people}", "-o", "{tmp}/m", "--columns", "agee"), 'unknown column "agee": did you mean "age"?'),
            (
                ("{people}", "-o", "{tmp}/m", "--masking", "often"),
                "--masking must be uniform, none, or a probability such as 0.5, from 0 to 1, not 'often'",
            ),
        ],
    )
    def test_errors_are_one_line(
        self, run: Run, people: Path, tmp_path: Path, arguments: tuple[str, ...], phrase: str
    ) -> None:
        result = run("fit", *(argument.format(people=people, tmp=tmp_path) for argument in arguments))
        assert result.code == 1
        last = result.err.splitlines()[-1]
        assert last.startswith("error: ")
        assert phrase in last
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("option", "value"), [("--budget", "soon"), ("--budget", "0"), ("--epochs", "0"), ("--epochs", "x")]
    )
    def test_usage(self, run: Run, people: Path, option: str, value: str) -> None:
        result = run("fit", people, "-o", "m", option, value)
        assert result.code == 2
        assert option in result.err

    def test_ctrl_c_keeps_the_best_model_and_resume_goes_on(self, people: Path, tmp_path: Path) -> None:
        model = tmp_path / "m.countless"
        command = [
            sys.executable,
            "-m",
            "countless.cli.main",
            "fit",
            str(people),
            "-o",
            str(model),
            "--hidden",
            "16",
            "--seed",
            "3",
        ]
        process = subprocess.Popen([*command, "--epochs", "100000"], stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for line in process.stderr:
            if "epoch" in line:
                break
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "stopped early" in err
        assert "Traceback" not in err
        epochs = Estimator.load(model).report["epochs"]
        assert 0 < epochs < 100000
        process = subprocess.Popen([*command, "--epochs", "100000", "--resume"], stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for line in process.stderr:
            if "epoch" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert Estimator.load(model).report["epochs"] > epochs


class TestEstimate:
    def test_for_people(self, run: Run, model: Path) -> None:
        result = run("estimate", model, "age > 50 AND married")
        assert result.code == 0
        assert " rows  (exact; " in result.out
        result = run("estimate", model, "age > 50 AND married AND score > 1")
        assert " at 90%; " in result.out

    def test_json(self, run: Run, model: Path) -> None:
        result = run("estimate", model, "age > 50 AND married", "--json", "--method", "skipping", "--particles", 500)
        answer = json.loads(result.out)
        assert {"where", "rows", "selectivity", "low", "high", "method", "ms"} <= set(answer)
        assert answer["where"] == "age > 50 AND married"
        assert answer["method"] == "skipping"

    def test_a_file_of_clauses(self, run: Run, model: Path, tmp_path: Path) -> None:
        queries = tmp_path / "q.sql"
        queries.write_text("-- older people\nage > 50;\n\nagee > 50\ncity = 'Łódź'\n", encoding="utf-8")
        result = run("estimate", model, "--file", queries, "--json")
        assert result.code == 1
        first, second, third = (json.loads(line) for line in result.out.splitlines())
        assert first["rows"] > 0
        assert 'did you mean "age"' in second["error"]
        assert second["line"] == 4
        assert third["where"] == "city = 'Łódź'"

    def test_a_file_without_errors_exits_well(self, run: Run, model: Path, tmp_path: Path) -> None:
        (tmp_path / "q.sql").write_text("age > 50\n")
        result = run("estimate", model, "--file", tmp_path / "q.sql")
        assert result.code == 0
        assert result.out.endswith("ms)  age > 50\n")

    def test_a_literal_that_does_not_occur_is_noted(self, run: Run, model: Path) -> None:
        result = run("estimate", model, "city = 'oslo'")
        assert result.out.startswith("0 rows")
        assert result.err == "note: 'oslo' does not occur in city: did you mean 'Oslo'?\n"

    def test_an_answer_of_a_kind_that_was_never_calibrated_is_noted(
        self, run: Run, estimator: Estimator, tmp_path: Path
    ) -> None:
        queries = tuple(query for query in estimator.calibration.queries if not query.shape.union)
        model = estimator.calibrated(Calibration(queries)).save(tmp_path / "m.countless")
        plain = run("estimate", model, "age > 40 AND city = 'Rome' AND score > 1")
        assert plain.err == ""
        either = "age > 40 AND city = 'Rome' AND score > 1 OR age < 30 AND married AND score < 1"
        result = run("estimate", model, either, "--json")
        assert (
            result.err
            == "note: no calibration question was similar to this one, so the error bar is a cautious guess\n"
        )
        answer = json.loads(result.out)
        assert (answer["calibrated"], answer["low"]) == (False, 0)
        assert "no calibration question was similar" in run("explain", model, either).out

    @pytest.mark.parametrize(
        ("arguments", "code", "phrase"),
        [
            (("agee > 3",), 1, 'error: unknown column "agee": did you mean "age"?\n  agee > 3\n  ^^^^\n'),
            (("age >",), 1, "syntax error"),
            ((), 2, "give either a WHERE clause or --file"),
            (("age > 3", "--file", "x"), 2, "give either a WHERE clause or --file"),
            (("--file", "none.sql"), 1, "cannot read none.sql"),
            (("age > 3", "--method", "magic"), 2, "--method"),
            (("age > 3", "--particles", "0"), 2, "--particles"),
        ],
    )
    def test_errors(self, run: Run, model: Path, arguments: tuple[str, ...], code: int, phrase: str) -> None:
        result = run("estimate", model, *arguments)
        assert result.code == code
        assert phrase in result.err
        assert result.out == ""

    def test_a_damaged_model(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "m").write_bytes(b"nonsense")
        result = run("estimate", tmp_path / "m", "age > 3")
        assert result.code == 1
        assert result.err.startswith("error: ")
        assert len(result.err.splitlines()) == 1

    def test_a_closed_pipe_is_no_error(self, model: Path, tmp_path: Path) -> None:
        (tmp_path / "q.sql").write_text("age > 50\n" * 3000)
        command = f"{sys.executable} -m countless.cli.main estimate {model} --file {tmp_path}/q.sql --json | head -1"
        result = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False, env=os.environ
        )
        assert result.stderr == ""


def test_explain(run: Run, model: Path) -> None:
    result = run("explain", model, "age > 50 AND city IN ('Oslo', 'Paris')")
    assert result.code == 0
    for phrase in (
        "visited   age, city",
        "skipped   married",
        "unseen    'Paris' does not occur in city",
        "exact counts in the model file",
        "time      parse",
    ):
        assert phrase in result.out
    result = run("explain", model, "age > 50 AND city = 'Oslo' AND married")
    assert "the model, without random sampling" in result.out
    output = json.loads(run("explain", model, "age > 50", "--json").out)
    assert output["visited"] == ["age"]
    assert result.out.endswith("\n(--legend explains the words)\n")
    assert "\n  particles  " in run("explain", model, "age > 50 AND city = 'Oslo' AND married", "--legend").out


def test_explain_says_what_to_do_about_a_wide_error_bar(run: Run, model: Path) -> None:
    few = run("explain", model, "age = 50 AND city = 'Oslo' AND married AND score = 1.5").out
    assert "advice    an interval of a few rows is usual for so small a count: nothing to do\n" in few
    assert "advice" not in run("explain", model, "age > 50").out  # it is exact
    answer = Estimate("a > 3", 17.0, 0.1, 11.0, 26.0, 0.9, "fused", exact=False, ms=1.0, hits=7, evidence_rows=100_000)
    assert _advice(Path("m"), 240_000, answer).startswith(
        "the interval is wide, because few evidence rows match: fit with --evidence all, or train longer with countless"
    )
    assert _advice(Path("m"), 240_000, replace(answer, high=15.0)) == ""


def test_a_missing_model_and_swapped_arguments(run: Run, model: Path, tmp_path: Path) -> None:
    missing = model.with_name("peple.countless")
    assert run("info", missing).err == f"error: no such model file: {missing}; did you mean {model}?\n"
    result = run("estimate", tmp_path / "age > 30", "age > 30")
    assert result.err.endswith(f"make one with countless fit TABLE -o '{tmp_path / 'age > 30'}'\n")
    result = run("estimate", "age > 30", model)
    assert result.code == 2
    hint = f"{model} is a model file, and the model file comes first: countless estimate {model} 'age > 30'"
    assert hint in result.err
    assert "the model file comes first" in run("distribution", "age", model).err


def test_a_misspelled_command(run: Run) -> None:
    result = run("estimat")
    assert result.code == 2
    assert "No such command 'estimat'. Did you mean estimate?" in result.err


class TestEvaluate:
    def test_json(self, run: Run, model: Path, people: Path, tmp_path: Path) -> None:
        saved = tmp_path / "w.jsonl"
        first = json.loads(run("evaluate", model, people, "--queries", 50, "--seed", 4, "--save", saved, "--json").out)
        again = json.loads(run("evaluate", model, people, "--workload", saved, "--json").out)
        assert first["q_error"] == again["q_error"]
        assert first["queries"] == 50
        assert {"q_error", "q_error_10_rows", "latency_ms", "coverage", "width", "method", "by_class"} <= set(first)
        assert "by_filters" not in first
        assert first["model_bytes"] == model.stat().st_size
        assert first["table_bytes"] == people.stat().st_size
        assert len(saved.read_text().splitlines()) == 50

    @pytest.mark.parametrize("method", ["skipping", "independence", "row-sample", "scan"])
    def test_methods_for_people(self, run: Run, model: Path, people: Path, method: str) -> None:
        result = run("evaluate", model, people, "--queries", 20, "--method", method)
        assert result.code == 0, result.err
        assert f"method {method}" in result.out
        assert "worst:" in result.out

    def test_kinds(self, run: Run, model: Path, people: Path) -> None:
        result = run("evaluate", model, people, "--queries", 100, "--kinds")
        assert result.code == 0, result.err
        lines = [line for line in result.out.splitlines() if re.match(r"(equality|OR|1-2 filters|1000\+ rows) ", line)]
        assert len(lines) == 4
        figures = r" \d+ +(\d+\.\d% +[\d.,]+|- +-)$"  # exact answers; coverage and width of the others
        assert all(re.search(figures, line.rstrip()) for line in lines)
        assert re.search(r"\d answers are exact; for the other \d+, the truth is inside the 90% error bar", result.out)
        assert "9-12 filters" not in result.out
        assert "10 true rows or more" in result.out
        assert "refused, which counts" not in result.out
        assert f"% of the table's {show.size(people.stat().st_size)}" in result.out
        result = run("evaluate", model, people, "--queries", 30, "--kinds", "--json")
        output = json.loads(result.out)
        assert f"counting {output['queries']} random queries" in result.err
        assert 0 < output["exact"] < output["queries"]
        assert output["coverage_not_exact"] <= output["coverage"]
        assert output["by_filters"]["9-12"]["queries"] == 0
        assert output["by_estimate"]["1000+"]["coverage"] >= 0.5

    def test_error_bars_that_are_too_narrow_are_marked(
        self, run: Run, model: Path, people: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ask = ("evaluate", model, people, "--queries", 30, "--kinds")
        assert "too narrow" not in run(*ask).out
        monkeypatch.setattr("countless.evaluation.evaluate.ENOUGH_QUERIES", 1)
        monkeypatch.setattr("countless.evaluation.evaluate.LEAST_COVERAGE", 1.1)
        out = run(*ask).out
        assert re.search(r"^OR .*% ! ", out, re.MULTILINE)
        assert f"better ones: countless calibrate {model} {people}, or fit again with --evidence all" in out

    def test_kinds_are_not_patterns(self, run: Run, model: Path, people: Path) -> None:
        result = run("evaluate", model, people, "--kinds", "--patterns", "mix")
        assert result.code == 2
        assert "either --kinds or --patterns" in result.err

    def test_a_table_that_is_no_parquet_file_has_no_ratio(self, run: Run, model: Path, people: Path) -> None:
        table = people.with_suffix(".csv")
        connect().execute(f"COPY (FROM '{people}') TO '{table}'")
        output = json.loads(run("evaluate", model, table, "--queries", 5, "--json").out)
        assert output["table_bytes"] is None

    def test_a_workload_is_read_or_written(self, run: Run, model: Path, people: Path) -> None:
        result = run("evaluate", model, people, "--workload", "w", "--save", "w")
        assert result.code == 2
        assert "either --save or --workload" in result.err

    def test_a_table_that_does_not_fit(self, run: Run, model: Path, tmp_path: Path) -> None:
        (tmp_path / "other.csv").write_text("a\n1\n")
        result = run("evaluate", model, tmp_path / "other.csv")
        assert result.code == 1
        assert "the table lacks the model's columns" in result.err
        assert "random queries" not in result.err
        result = run("evaluate", model, tmp_path / "othr.csv")
        assert result.err == f"error: no such file: {tmp_path / 'othr.csv'}; did you mean {tmp_path / 'other.csv'}?\n"


class TestBaselines:
    def test_rules(self, run: Run, model: Path, people: Path) -> None:
        result = run("evaluate", model, people, "--queries", 30, "--seed", 2, "--rules")
        assert result.code == 0, result.err
        for phrase in ("the same question, the same answer", "two parts of a range add up to it", "worst by"):
            assert phrase in result.out
        output = json.loads(run("evaluate", model, people, "--queries", 30, "--rules", "--json").out)
        assert [rule["cases"] for rule in output["rules"]] == [30] * 6
        assert [rule["broken"] for rule in output["rules"][:3]] == [0, 0, 0]
        assert run("evaluate", model, people, "--rules", "--workload", "w").code == 2
        assert run("evaluate", model, people, "--rules", "--kinds").code == 2

    def test_all_beside_the_model(self, run: Run, model: Path, people: Path) -> None:
        result = run("evaluate", model, people, "--queries", 20, "--baselines", "--share", 0.05)
        assert result.code == 0, result.err
        first, header, *lines = result.out.splitlines()
        assert first.startswith("20 queries")
        assert header.split()[0] == "method"
        methods = ["particles", *(name if name != "row-sample" else "row-sample-5%" for name in BASELINES)]
        assert [line.split()[0] for line in lines[: len(methods)]] == methods
        try:
            find_binaries()
        except ServerError:
            assert "postgres cannot answer: there is no PostgreSQL server" in result.out
        else:
            assert "loading the table into PostgreSQL" in result.err

    def test_json_has_the_same_facts(self, run: Run, model: Path, people: Path) -> None:
        names = "independence,row-sample,row-sample-10%,scan"
        result = run("evaluate", model, people, "--queries", 20, "--baselines", names, "--json")
        output = json.loads(result.out)
        assert [item["method"] for item in output] == ["particles", *names.split(",")]
        for item in output:
            assert item["bytes"] > 100
            assert item["q_error"]["max"] >= item["q_error"]["p50"] >= 1
            assert item["latency_ms"]["p99"] >= item["latency_ms"]["p50"] > 0
            assert (item["answered"], item["queries"], item["problem"]) == (20, 20, None)
        assert output[0]["bytes"] == model.stat().st_size
        assert output[-1]["q_error"]["max"] == 1

    def test_one_that_cannot_be_had_is_listed_with_the_reason(
        self, run: Run, model: Path, people: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        pytest.importorskip("psycopg")
        monkeypatch.setattr("countless.evaluation.baselines.postgres.server.INSTALLED", tmp_path)
        monkeypatch.setattr("shutil.which", lambda name: None)
        result = run("evaluate", model, people, "--queries", 5, "--baselines", "postgres,scan")
        assert result.code == 0, result.err
        reason = "there is no PostgreSQL server on this machine: install one with: apt-get install postgresql"
        assert f"postgres cannot answer: {reason}" in result.out
        assert "scan " in result.out
        result = run("evaluate", model, people, "--queries", 5, "--method", "postgres")
        assert (result.code, result.err.splitlines()[-1]) == (1, f"error: {reason}")

    def test_a_clause_that_a_baseline_does_not_understand(
        self, run: Run, model: Path, people: Path, tmp_path: Path
    ) -> None:
        workload = tmp_path / "w.jsonl"
        workload.write_text('{"where": "age > 40", "rows": 1400}\n{"where": "id < 5", "rows": 5}\n')
        result = run("evaluate", model, people, "--workload", workload, "--baselines", "independence,scan")
        assert result.code == 0, result.err
        assert "independence answered 1 of 2 queries: " in result.out
        assert "scan answered" not in result.out

    @pytest.mark.parametrize(
        ("options", "code", "phrase"),
        [
            (("--baselines", "magic"), 1, "unknown baseline 'magic': choose from independence"),
            (("--baselines", "scan", "--method", "independence"), 2, "--baselines are compared with the model"),
            (("--baselines", "scan", "--share", "0"), 2, "--share"),
        ],
    )
    def test_errors(
        self, run: Run, model: Path, people: Path, options: tuple[str, ...], code: int, phrase: str
    ) -> None:
        result = run("evaluate", model, people, *options)
        assert result.code == code
        assert phrase in result.err


def test_info(run: Run, model: Path) -> None:
    result = run("info", model)
    assert "3,000 rows, 5 columns" in result.out
    assert "left out  id" in result.out
    output = json.loads(run("info", model, "--json").out)
    assert output["rows"] == 3000
    assert output["columns"][0] == {
        "name": "age",
        "type": "INTEGER",
        "distinct": 50,
        "has_null": False,
        "codes": 50,
        "digits": 1,
        "grid_cells": None,
    }
    assert [column["name"] for column in output["columns"]] == ["age", "city", "married", "since when", "score"]
    line = next(line for line in result.out.splitlines() if line.startswith("bytes "))
    for part in ("network ", "values of columns ", "counts of values and pairs ", "error bars "):
        assert part in line
    sizes = list(output["bytes"].values())
    assert sizes == sorted(sizes, reverse=True)
    assert 0.8 * model.stat().st_size < sum(sizes) < model.stat().st_size  # the rest is the archive's directory


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_has_an_example(run: Run, command: str | None) -> None:
    result = run(*([command] if command else []), "--help")
    assert result.code == 0
    assert "Example" in result.out
    assert "countless " in result.out.split("Example")[1]


def test_version_and_unknown_commands(run: Run) -> None:
    assert run("--version").out.startswith("countless, version ")
    assert run("frobnicate").code == 2


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1.5", 1.5), ("2H", 7200)]
)
def test_durations(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds
