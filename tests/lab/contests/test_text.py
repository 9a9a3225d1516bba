"""The contest on text: every method on the same questions, with a model that nobody trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from countless.errors import DataError, MissingExtraError
from countless.workload.text import KINDS
from countless_lab.contests.text import OFF, ON, TextContestOptions, contest, per_sample
from countless_lab.measurement.contenders import ContestListener, one_thread
from tests.cli.test_cli import Run, run
from tests.texts import URL, random_estimator

__all__ = ["run"]

FEW = TextContestOptions(queries=6, slow_queries=3, mix_queries=2 * len(KINDS), samples=20, repeats=1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("text")
    table = place / "urls.csv"
    table.write_text("url\n" + "".join(f"www.{'abc'[n % 3]}{'ab' * (n % 4)}/c\n" for n in range(100)))
    return table, random_estimator(URL).save(place / "urls.countless")


def test_all_of_it_is_measured(files: tuple[Path, Path]) -> None:
    results = contest(str(files[0]), files[1], FEW, ContestListener())
    assert results["contains"][OFF]["queries"] == 6
    assert results["contains"]["skipping-20"]["queries"] == 3
    assert results["contains"]["duckdb"]["q_max"] == 1.0
    assert set(results["mix"][ON]) == set(KINDS)
    assert all(found["queries"] == 2 for found in results["mix"][OFF].values())
    assert results["per_sample"]["ratio"] > 0
    assert results["anchored_ms"]["p50"] > 0
    assert json.loads(json.dumps(results)) == results


def test_a_sample_without_a_cache_is_the_same_kind_of_work() -> None:
    times = per_sample(random_estimator(URL)._runtimes.texts[0], 0, samples=8, fewer=4)
    assert times["ratio"] == pytest.approx(times["naive_without_cache_ms"] / times["naive_ms"])


def test_a_model_without_text(model: Path) -> None:
    with pytest.raises(DataError, match="has no text column"):
        contest("", model, FEW, ContestListener())


def test_the_command(run: Run, files: tuple[Path, Path]) -> None:
    few = ("--queries", "4", "--slow-queries", "2", "--mix-queries", str(len(KINDS)), "--samples", "10")
    result = run("bench", "text", *files, *few, "--json")
    assert result.code == 0, result.err
    assert "does a string contain a piece" in result.out
    assert json.loads(result.out.splitlines()[-1])["options"]["queries"] == 4


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "threadpoolctl", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'countless\[lab\]'"):
        one_thread()
