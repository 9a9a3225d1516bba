"""``countless paper`` as a person uses it, with results that nobody measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from countless.errors import DataError
from countless_lab.cli.paper import COMMANDS
from countless_lab.paper.cells import Cell, Data
from countless_lab.paper.exhibits import EXHIBITS
from countless_lab.paper.scale import SCALES
from countless_lab.paper.tables import data_sets
from countless_lab.runner.sweep import SweepOutcome
from tests.cli.test_cli import Run, run
from tests.lab.paper.fabricated import Pretended

__all__ = ["run"]

SMOKE = SCALES["smoke"]


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A sweep that costs nothing; the list tells which cells were asked for."""
    tables: list[str] = []

    def pretend(cells: Sequence[Cell], folder: Path, *_: Any) -> SweepOutcome:
        tables.extend(cell.name for cell in cells)
        return SweepOutcome(len(cells), {}, ())

    monkeypatch.setattr("countless_lab.cli.sweep_display.sweep", pretend)
    monkeypatch.setattr("countless_lab.cli.paper.run.ResultStore", lambda folder: Pretended())
    return tables


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A table with two columns of text, and others."""
    path = tmp_path / "mixed.parquet"
    long = "'https://example.org/' || range"
    rows = f"SELECT range % 7 AS a, range % 3 AS b, {long} AS url, 'x' || {long} AS other FROM range(3000)"
    duckdb.execute(f"COPY ({rows}) TO '{path}'")
    return path


class TestDataSets:
    def test_columns_and_text(self, mixed: Path) -> None:
        both, text = data_sets([str(mixed), "npm_urls"], [], SMOKE)
        assert both == Data("mixed", str(mixed), 2_000, ("url", "other"))
        assert text == Data("npm_urls", "npm_urls", 2_000, text=True)

    def test_excluding_in_whichever_table_has_it(self, mixed: Path) -> None:
        first, second = data_sets([str(mixed), "adult"], ["FNLWGT", "a"], SCALES["full"])
        assert first.exclude == ("a", "url", "other")
        assert second == Data("adult", "adult", 48_842, ("fnlwgt",))

    def test_text_alone_after_excluding(self, mixed: Path) -> None:
        (text,) = data_sets([str(mixed)], ["a", "b", "other"], SMOKE)
        assert text.text
        assert text.exclude == ("a", "b", "other")

    @pytest.mark.parametrize(
        ("tables", "exclude", "phrase"),
        [
            (["adult"], ["nope"], 'names "nope", which no table has'),
            (["adult", "./adult"], [], "no such file"),
            (["{mixed}"], ["a", "b"], "several columns of text, url, other: leave one"),
            (["{mixed}", "{copy}"], [], "two tables are called mixed"),
        ],
    )
    def test_errors(self, mixed: Path, tables: list[str], exclude: list[str], phrase: str) -> None:
        copy = mixed.parent / "copy" / "mixed.parquet"
        copy.parent.mkdir()
        copy.write_bytes(mixed.read_bytes())
        with pytest.raises(DataError, match=phrase):
            data_sets([table.format(mixed=mixed, copy=copy) for table in tables], exclude, SMOKE)


class TestExhibits:
    def test_one(self, run: Run, swept: list[str], tmp_path: Path) -> None:
        result = run("paper", "likelihoods", "adult", "--exclude", "fnlwgt", "--scale", "smoke", "-o", tmp_path / "out")
        assert result.code == 0, result.err
        assert "Multi-order(3)" in result.out
        assert "wrote" in result.err
        names = {path.name for path in (tmp_path / "out").iterdir()}
        assert {f"likelihoods.{kind}" for kind in ("json", "md", "svg", "png")} <= names
        content = json.loads((tmp_path / "out" / "likelihoods.json").read_text())
        command = "countless paper likelihoods adult --exclude fnlwgt --scale smoke -o DIR"
        assert content["facts"][0]["command"] == command
        assert str(tmp_path) not in json.dumps(content)
        assert all(name.startswith("adult-") for name in swept)
        assert len(swept) == len(set(swept))

    def test_fewer_orders(self, run: Run, swept: list[str], tmp_path: Path) -> None:
        options = ("--exclude", "fnlwgt", "--scale", "smoke", "--orders", "1", "-o", tmp_path / "out")
        assert run("paper", "likelihoods", "adult", *options).code == 0
        assert not any("order1" in name for name in swept)
        (record,) = json.loads((tmp_path / "out" / "likelihoods.json").read_text())["facts"]
        assert record["settings"]["orders"] == 1
        assert record["command"].endswith("--scale smoke --orders 1 -o DIR")

    def test_all_gives_each_table_what_fits(self, run: Run, swept: list[str], tmp_path: Path) -> None:
        result = run("paper", "all", "adult", "npm_urls", "--scale", "smoke", "-o", tmp_path / "out", "--json")
        assert result.code == 0, result.err
        output = json.loads(result.out)
        tables = {name: [one["data"]["name"] for one in facts] for name, facts in output["exhibits"].items()}
        assert tables.pop("text") == tables.pop("text-completion") == ["npm_urls"]
        assert set(tables) == {"summary", "main", "additions", "likelihoods", "sizes", "maskings", "completion"}
        assert all(names == ["adult"] for names in tables.values())
        assert output["failed"] == {}
        page = run("paper", "report", tmp_path / "out")
        assert page.code == 0, page.err
        assert "npm_urls" in (tmp_path / "out" / "report.html").read_text()

    def test_all_without_text_says_so(self, run: Run, swept: list[str], tmp_path: Path) -> None:
        result = run("paper", "all", "adult", "--scale", "smoke", "-o", tmp_path / "out")
        assert result.code == 0
        assert "no table of text only was given: text, text-completion left out" in result.err
        assert not (tmp_path / "out" / "text.json").exists()

    @pytest.mark.parametrize(
        ("arguments", "code", "phrase"),
        [
            (("main", "npm_urls"), 1, "npm_urls is text only: main is about columns"),
            (("text", "adult"), 1, "adult has other columns than text"),
            (("main", "adult", "npm_urls"), 1, "npm_urls is text only"),
            (("main", "nothing.parquet"), 1, "no such file: nothing.parquet"),
            (("main", "adult", "--exclude", "nope"), 1, "which no table has"),
            (("main", "adult", "--kind", "tree"), 1, "--kind must be resmade"),
            (("main",), 2, "TABLE"),
            (("main", "adult", "--scale", "huge"), 2, "huge"),
            (("main", "adult", "-o", "/proc/paper"), 1, "cannot write in /proc/paper"),
            (("report", "nowhere"), 1, "no exhibit in nowhere: make one with countless paper all TABLE -o nowhere"),
        ],
    )
    def test_errors(
        self,
        run: Run,
        swept: list[str],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        arguments: tuple[str, ...],
        code: int,
        phrase: str,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        scaled = code == 1 and arguments[0] != "report"
        result = run("paper", *arguments, *(("--scale", "smoke") if scaled else ()))
        assert result.code == code
        assert phrase in result.err
        assert swept == []
        assert not (tmp_path / "paper-results").exists()

    def test_another_scale_in_the_same_folder(self, run: Run, swept: list[str], tmp_path: Path) -> None:
        assert run("paper", "likelihoods", "adult", "--scale", "smoke", "-o", tmp_path / "out").code == 0
        result = run("paper", "likelihoods", "adult", "--scale", "small", "-o", tmp_path / "out")
        assert result.code == 1
        assert "at the scale smoke, not small: choose another -o" in result.err

    def test_failures_are_listed_and_the_rest_is_written(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failed = {f"cell{index}": "no memory" for index in range(7)}
        monkeypatch.setattr("countless_lab.cli.sweep_display.sweep", lambda *_: SweepOutcome(9, failed, ("one", "two")))
        partly = Pretended(lambda cell: "uniform" in cell.name)
        monkeypatch.setattr("countless_lab.cli.paper.run.ResultStore", lambda folder: partly)
        result = run("paper", "main", "adult", "--scale", "smoke", "-o", tmp_path / "out")
        assert result.code == 1
        for phrase in (
            "7 cells failed; the same command tries again",
            "cell0: no memory",
            "and 2 more",
            "2 cells that",
        ):
            assert phrase in result.err
        assert (tmp_path / "out" / "main.svg").exists()

    def test_nothing_at_all(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("countless_lab.cli.sweep_display.sweep", lambda *_: SweepOutcome(0, {"a": "no"}, ()))
        monkeypatch.setattr("countless_lab.cli.paper.run.ResultStore", lambda folder: Pretended(lambda cell: False))
        result = run("paper", "sizes", "adult", "--scale", "smoke", "-o", tmp_path / "out")
        assert result.code == 1
        assert "nothing is measured yet" in result.out
        assert json.loads((tmp_path / "out" / "sizes.json").read_text())["facts"] == []

    def test_stopped(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def stopped(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("countless_lab.cli.sweep_display.sweep", stopped)
        result = run("paper", "sizes", "adult", "--scale", "smoke", "-o", tmp_path / "out")
        assert result.code == 130
        assert "the same command goes on from there" in result.err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(run: Run, command: str) -> None:
    result = run("paper", command, "--help")
    assert result.code == 0
    assert f"countless paper {command}" in result.out.split("Examples")[1]


def test_every_exhibit_is_a_command() -> None:
    assert set(COMMANDS) == {*EXHIBITS, "all", "report"}


def test_help_explains_the_scales(run: Run) -> None:
    text = " ".join(run("paper", "--help").out.split())
    for scale in SCALES.values():
        assert f"{scale.name}: " in text
    assert "20 epochs (200 for kdd), 8 orders" in text
