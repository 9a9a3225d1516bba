"""The demo on a model that is already there: what a second run of it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from countless.cli.demo import EVIDENCE, PATTERNS, QUERIES, RANDOM_QUERIES, URLS_MODEL
from countless.data.datasets import adult, npm_urls
from countless.data.sources.source import Source
from countless.estimator.fitting.fit import fit
from countless.options import Network
from tests.cli.test_cli import Run, run

__all__ = ["run"]


@pytest.fixture(scope="module")
def adult_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "adult.countless"
    fit(npm_urls(), evidence=EVIDENCE, budget=4).save(path.with_name(URLS_MODEL))  # as the demo fits it
    return fit(adult(), epochs=1, batch=500, network=Network(hidden=32, blocks=1, embedding=8)).save(path)


def test_a_dozen_queries_beside_the_truth_and_the_baselines(run: Run, adult_model: Path) -> None:
    assert len(QUERIES) == 12
    result = run("demo", "--model", adult_model)
    assert result.code == 0, result.err
    assert f"using {adult_model} from an earlier run" in " ".join(result.err.split())
    for phrase in (
        "truth",
        "estimate",
        "90% interval",
        "q-error",
        "ms",
        "model alone",
        "evidence alone",
        "independence",
    ):
        assert phrase in result.out
    clause = result.out.splitlines().index(QUERIES[0])
    (truth,) = Source.open(adult()).counts([QUERIES[0]])
    assert result.out.splitlines()[clause + 1].split()[0] == f"{truth:,}"
    clause = result.out.splitlines().index(PATTERNS[0])
    (truth,) = Source.open(npm_urls()).counts([PATTERNS[0]])
    assert result.out.splitlines()[clause + 1].split()[0] == f"{truth:,}"
    assert "every answer would be exact" in " ".join(result.out.split())
    assert f"q-error over {RANDOM_QUERIES} random queries" in result.out


def test_a_model_file_that_is_none_is_fitted_anew(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "adult.countless").write_bytes(b"nonsense")
    monkeypatch.setattr("countless.cli.demo.fit_and_save", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    result = run("demo", "--model", tmp_path / "adult.countless")
    assert result.code == 130
    assert "fitting again" in result.err
