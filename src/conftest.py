"""What doctests of the public interface can use: ``countless``, and ``est``, a small model of the embedded table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import countless

COLUMNS = ("age", "education", "sex", "hours_per_week", "income")


@pytest.fixture(scope="session")
def small_model() -> countless.Estimator:
    """Five columns of the embedded table, with all of its rows as evidence: counts are exact."""
    return countless.fit(
        "adult", columns=COLUMNS, epochs=1, sample_rows=2_000, hidden=16, blocks=1, embedding=8, seed=0
    )


@pytest.fixture(autouse=True)
def doctest_names(
    request: pytest.FixtureRequest,
    doctest_namespace: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Doctests that mention ``est`` get the model, and a folder of their own to write to."""
    doctest = getattr(request.node, "dtest", None)
    doctest_namespace["countless"] = countless
    if doctest is not None and any("est." in example.source for example in doctest.examples):
        monkeypatch.chdir(tmp_path)
        doctest_namespace["est"] = request.getfixturevalue("small_model")
