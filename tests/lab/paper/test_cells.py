"""How the paper's models are trained: by options of their own, whatever a fit does by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import countless
from countless.options import TrainingOptions
from countless.train.options import TrainOptions
from countless_lab.paper.cells import Data
from countless_lab.paper.scale import SCALES
from countless_lab.paper.study import Study


class _AskedError(Exception):
    """A fit was asked for."""


def options_of_fit(monkeypatch: pytest.MonkeyPatch, folder: Path, scale: str, text: bool) -> dict[str, Any]:
    """What :func:`countless.fit` is called with."""
    given: dict[str, Any] = {}

    def fit(source: Any, **options: Any) -> None:
        given.update(options)
        raise _AskedError

    monkeypatch.setattr(countless, "fit", fit)
    data = Data("npm_urls" if text else "adult", "npm_urls" if text else "adult", 500, text=text)
    study = Study(data, SCALES[scale])
    model = study.text_model("prefix") if text else study.model("uniform")
    with pytest.raises(_AskedError):
        model.run(folder, lambda _: None)
    return given


@pytest.mark.parametrize(("scale", "batch", "rate"), [("smoke", 64, 2e-3), ("small", 256, 2e-3), ("full", 2_048, 5e-4)])
def test_the_columns_are_trained_as_the_paper_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scale: str, batch: int, rate: float
) -> None:
    given = options_of_fit(monkeypatch, tmp_path, scale, text=False)
    options = TrainOptions.of(
        TrainingOptions(**{name: given[name] for name in ("batch", "learning_rate", "schedule")}), 1.0, None
    )
    assert options.batch_for(10**6) == batch
    rates = [options.learning_rate_at(fraction) / rate for fraction in (0.03, 0.5, 0.75, 1.0)]
    assert rates == pytest.approx([0.9978, 0.5, 0.1464, 0.0], abs=1e-4)  # a cosine
    assert (given["network"].blocks, given["network"].units) == (3, "even")


@pytest.mark.parametrize("scale", SCALES)
def test_the_text_is_trained_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scale: str) -> None:
    given = options_of_fit(monkeypatch, tmp_path, scale, text=True)
    assert (given["learning_rate"], given["schedule"], given["text_tokens"]) == (3e-3, "cosine", 8_192)
