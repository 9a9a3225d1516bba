"""The paper's experiments from end to end at the smallest scale, with a method and a kind of model from a plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from countless_lab.paper.exhibits import EXHIBITS

ROOT = Path(__file__).parents[3]


def paper(*arguments: str) -> subprocess.CompletedProcess[str]:
    """``countless paper``, in a process of its own, which loads the tests' plugin."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "COUNTLESS_PLUGINS": "tests.plugin"}
    command = [sys.executable, "-m", "countless.cli.main", "paper", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every exhibit at the scale smoke."""
    out = tmp_path_factory.mktemp("paper")
    result = paper("all", "adult", "npm_urls", "--exclude", "fnlwgt", "--scale", "smoke", "-o", str(out))
    assert result.returncode == 0, result.stderr
    return out


def facts(folder: Path, exhibit: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((folder / f"{exhibit}.json").read_text(encoding="utf-8"))["facts"]
    return found


def test_every_exhibit_is_there_and_whole(folder: Path) -> None:
    for name in EXHIBITS:
        (one,) = facts(folder, name)
        assert one["missing"] == []
        assert one["results"]
        assert all((folder / f"{name}.{kind}").stat().st_size > 0 for kind in ("md", "svg", "png"))


def test_a_method_that_a_plugin_brings_stands_beside_the_others(folder: Path) -> None:
    for name in ("summary", "main", "sizes", "maskings"):
        assert "stratified" in (folder / f"{name}.md").read_text(encoding="utf-8").lower()


def test_a_second_run_has_nothing_to_do(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (folder / "cells").glob("*.json")}
    assert paper("maskings", "adult", "--exclude", "fnlwgt", "--scale", "smoke", "-o", str(folder)).returncode == 0
    assert before == {path: path.stat().st_mtime_ns for path in (folder / "cells").glob("*.json")}


def test_a_kind_of_model_that_a_plugin_brings(folder: Path) -> None:
    options = ("--exclude", "fnlwgt", "--scale", "smoke", "--kind", "pairwise")
    result = paper("maskings", "adult", *options, "-o", str(folder))
    assert result.returncode == 0, result.stderr
    assert [one["data"]["name"] for one in facts(folder, "maskings")] == ["adult", "adult (pairwise)"]  # type: ignore[index]


def test_the_report(folder: Path) -> None:
    result = paper("report", str(folder))
    assert result.returncode == 0, result.stderr
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= len(EXHIBITS)
    assert str(folder) not in page
