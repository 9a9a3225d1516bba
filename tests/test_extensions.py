"""What installed packages bring: found by entry points, and looked up only for names that are not the product's own."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from countless.data.datasets import data_set_names
from countless.data.sources.source import Source
from countless.errors import CountlessError, SourceError
from countless.extensions import COMMANDS, DATASETS, PICTURES, installed, load
from tests.cli.test_cli import Run, run

__all__ = ["run"]

BROKEN = EntryPoint("broken", "nosuch_module:command", COMMANDS)


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """No package brings anything."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints())


def test_the_laboratory_is_found() -> None:
    assert set(installed(COMMANDS)) >= {"bench", "paper"}
    assert "census" in load(installed(DATASETS)["paper"])
    assert "diagnosis" in installed(PICTURES)


def test_the_product_works_alone(run: Run, model: Path, people: Path, without_packages: None) -> None:
    assert run("estimate", model, "age > 40").code == 0
    assert "bench" not in run("--help").out
    assert "No such command 'bench'" in run("bench", "growth").err
    assert data_set_names() == ("adult", "npm_urls")
    with pytest.raises(SourceError, match=r"no such file: census \(data sets that go by a name are adult, npm_urls\)"):
        Source.open("census")
    done = run("diagnose", model, people, "-o", "never")
    assert done.code == 1
    assert "pip install 'countless[lab]'" in done.err
    assert not Path("never").exists()


def test_a_package_that_is_broken(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints([BROKEN]))
    with pytest.raises(CountlessError, match="broken of the package nosuch_module cannot be loaded: No module named"):
        load(BROKEN)
    assert run("broken").code == 1
    assert "broken" in run("--help").out


def test_own_commands_do_not_look_for_packages(
    run: Run, model: Path, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(group: str) -> EntryPoints:
        raise AssertionError(group)

    monkeypatch.setattr("importlib.metadata.entry_points", refuse)
    assert run("estimate", model, "age > 40").code == 0
    assert run("evaluate", model, people, "--queries", 2).code == 0
    assert Source.open("adult").count() == 48_842
