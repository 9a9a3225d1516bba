"""``countless anomalies`` and ``countless complete``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from countless.data.sources.source import Source, connect
from countless.estimator.estimator import Estimator
from tests.cli.test_cli import Run, run
from tests.texts import URL, random_estimator

__all__ = ["run"]

ROWS = "id,AGE,city,note\n7,30,Oslo,\n8,,Rome,x\n9,30,,y\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    return path


def read(path: Path) -> list[tuple[Any, ...]]:
    return connect().sql(f"SELECT * FROM '{path}'").fetchall()


class TestAnomalies:
    def test_for_people(self, run: Run, model: Path, people: Path) -> None:
        result = run("anomalies", model, people, "--top", 3)
        assert result.code == 0, result.err
        head, *lines = result.out.splitlines()
        assert head.split() == [
            "row",
            "log_probability",
            "column",
            "value",
            "probability",
            "expected",
            "expected_probability",
        ]
        assert len(lines) == 3
        assert result.err == ""

    def test_json_lines(self, run: Run, model: Path, tmp_path: Path) -> None:
        path = tmp_path / "rows.csv"
        path.write_text("age,city\n30,Oslo\n30,Atlantis\n")
        outputs = [json.loads(line) for line in run("anomalies", model, path, "--json").out.splitlines()]
        assert [line["row"] for line in outputs] == [1, 0]
        assert outputs[0]["log_probability"] is None
        assert (outputs[0]["column"], outputs[0]["value"], outputs[0]["probability"]) == ("city", "Atlantis", 0.0)
        (expected, _) = Estimator.load(model).log_prob(path)
        assert outputs[1]["log_probability"] == pytest.approx(expected)

    def test_a_file(self, run: Run, model: Path, people: Path, tmp_path: Path) -> None:
        out = tmp_path / "odd.csv"
        result = run("anomalies", model, people, "--top", 3, "-o", out)
        assert (result.code, result.out, result.err) == (0, "", f"wrote 3 rows to {out}\n")
        shown = [json.loads(line) for line in run("anomalies", model, people, "--top", 3, "--json").out.splitlines()]
        assert [row[0] for row in read(out)] == [line["row"] for line in shown]

    def test_no_rows(self, run: Run, model: Path, tmp_path: Path) -> None:
        path = tmp_path / "rows.csv"
        path.write_text("age,city\n")
        assert run("anomalies", model, path).out == "the table has no rows\n"

    @pytest.mark.parametrize(
        ("text", "phrase"),
        [
            (None, "error: no such file:"),
            ("a,b\n1,2\n", "error: the table has no column of the model: it has a, b; the model has age, city"),
            ("age\nold\n", "error: \"age\" has a value that is no INTEGER, as the model has it: 'old'"),
        ],
    )
    def test_errors(self, text: str | None, phrase: str, run: Run, model: Path, tmp_path: Path) -> None:
        path = tmp_path / "rows.csv"
        if text is not None:
            path.write_text(text)
        for command in (("anomalies", model, path), ("complete", model, path, "-o", tmp_path / "out.csv")):
            result = run(*command)
            assert (result.code, result.out) == (1, "")
            assert phrase in result.err
            assert len(result.err.splitlines()) == 1
        assert not (tmp_path / "out.csv").exists()


class TestComplete:
    @pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
    def test_writes_the_table(self, name: str, run: Run, model: Path, table: Path, tmp_path: Path) -> None:
        out, cells = tmp_path / name, tmp_path / f"cells-{name}"
        result = run("complete", model, table, "-o", out, "--columns", "age,city", "--probabilities", cells)
        assert result.code == 0, result.err
        assert result.out == ""
        assert result.err == f"filled in 2 cells of 3 rows; wrote {out} and {cells}\n"
        first, second, third = read(out)
        assert first == (7, 30, "Oslo", None)
        assert second[0] == 8
        assert 18 <= second[1] <= 67
        assert third[2] in ("Oslo", "Rome", "New York", "Łódź")
        assert [line[:2] for line in read(cells)] == [(1, "age"), (2, "city")]
        assert [str(line[2]) for line in read(cells)] == [str(second[1]), third[2]]
        assert all(0 < line[3] <= 1 for line in read(cells))
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, f"cells-{name}", "rows.csv"])

    def test_columns_that_the_table_lacks(self, run: Run, model: Path, table: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.csv"
        assert run("complete", model, table, "-o", out).code == 0
        assert out.read_text().splitlines()[0] == "id,AGE,city,note,married,since when,score"
        assert all(None not in row[4:] for row in read(out))

    def test_draws(self, run: Run, model: Path, tmp_path: Path) -> None:
        table, outs = tmp_path / "rows.csv", [tmp_path / f"{name}.csv" for name in "abc"]
        table.write_text("age,city\n" + ",Oslo\n" * 40)
        for out, seed in zip(outs, (1, 1, 2), strict=True):
            options = ("--draws", "--seed", seed, "--columns", "age")
            assert run("complete", model, table, "-o", out, *options).code == 0
        first, again, other = (read(out) for out in outs)
        assert first == again != other
        assert len({age for age, _ in first}) > 5

    def test_nothing_is_missing(self, run: Run, model: Path, people: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.parquet"
        result = run("complete", model, people, "-o", out, "--columns", "age")
        assert result.code == 0
        assert result.err == f"nothing was missing in 3,000 rows; wrote {out}\n"
        assert read(out) == read(people)

    def test_the_table_itself_may_be_written(self, run: Run, model: Path, table: Path) -> None:
        assert run("complete", model, table, "-o", table, "--columns", "age").code == 0
        assert [row[1] is None for row in read(table)] == [False] * 3

    def test_texts_are_left(self, run: Run, tmp_path: Path) -> None:
        model = random_estimator(URL).save(tmp_path / "m.countless")
        table = tmp_path / "rows.csv"
        table.write_text("url,n\nw,1\n,2\n")
        result = run("complete", model, table, "-o", tmp_path / "out.csv")
        assert result.err.startswith("filled in 0 cells of 2 rows, left 1 missing text out; wrote")

    def test_places_that_cannot_be_written(self, run: Run, model: Path, table: Path, tmp_path: Path) -> None:
        for name, phrase in (("out.txt", "the ending must be"), ("no/out.csv", "no directory"), ("", "")):
            result = run("complete", model, table, "-o", tmp_path / name)
            assert result.code == 1
            assert phrase in result.err
        result = run("complete", model, table, "-o", tmp_path / "out.csv", "--probabilities", tmp_path / "cells.txt")
        assert "cells.txt: the ending must be" in result.err
        assert list(tmp_path.iterdir()) == [table]

    def test_what_is_interrupted_leaves_nothing(
        self, run: Run, model: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out, plain = tmp_path / "out.csv", Source.run
        out.write_text("what was there")

        def stopped(self: Source, sql: str) -> None:
            plain(self, sql)
            if sql.startswith("COPY"):
                raise KeyboardInterrupt

        monkeypatch.setattr(Source, "run", stopped)
        result = run("complete", model, table, "-o", out)
        assert result.code == 130
        assert out.read_text() == "what was there"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "rows.csv"]

    def test_unknown_columns(self, run: Run, model: Path, table: Path, tmp_path: Path) -> None:
        result = run("complete", model, table, "-o", tmp_path / "out.csv", "--columns", "agee")
        assert 'did you mean "age"?' in result.err
