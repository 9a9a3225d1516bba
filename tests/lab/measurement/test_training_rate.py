"""``countless bench rate``: training alone and beside busy loops."""

from __future__ import annotations

import json

from tests.cli.test_cli import Run, run  # noqa: F401 - a fixture


def test_both_rates_are_measured(run: Run) -> None:  # noqa: F811
    result = run("bench", "rate", "adult", "--exclude", "fnlwgt", "--seconds", 1, "--rounds", 1, "--json")
    record = json.loads(result.out)
    assert record["alone"] > 0
    assert record["busy"] > 0
    assert record["ratio"] == round(record["busy"] / record["alone"], 3)
