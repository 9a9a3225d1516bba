"""Hints on filters that likely mean something else than what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from countless.cli.main import main
from countless.data.sources.source import connect
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.options import Network
from countless.query.hints import nearest

ORDERS = """
SELECT ['Zürich', 'Basel', 'O''Brien'][1 + range % 3] AS Ort, TIMESTAMP '2024-01-01' + INTERVAL (range) HOUR AS "at it",
    TIMESTAMP '2024-01-01' + INTERVAL (range % 9) DAY AS day, CASE WHEN range % 2 = 0 THEN 'x' || range % 5 END AS note,
    TIMESTAMP '2024-01-01' + INTERVAL (range % 9) HOUR AS few
FROM range(3000)
"""
EMPTY = 'empty fields are NULL; use "note" IS NULL'
MIDNIGHT = "'2024-01-02' means midnight: for the whole day write {0} >= '2024-01-02' AND {0} < '2024-01-03'"


@pytest.fixture(scope="module")
def orders() -> Estimator:
    small = Network(hidden=16, blocks=1, embedding=8)
    return fit(connect().sql(ORDERS), epochs=1, evidence=100, network=small, max_distinct=1000, calibrate=False)


@pytest.mark.parametrize(
    ("where", "unseen"),
    [
        ("Ort = 'Zurich'", "'Zurich' does not occur in Ort: did you mean 'Zürich'?"),
        ("t.ORT IN ('zürich', 'Basel')", "'zürich' does not occur in Ort: did you mean 'Zürich'?"),
        ("'o''brian' = Ort", "'o''brian' does not occur in Ort: did you mean 'O''Brien'?"),
        ("Ort = 'Oslo'", "'Oslo' does not occur in Ort"),
        ("lower(Ort) = 'zurich'", "'zurich' does not occur in Ort"),  # 'Zürich' would be no help
        ("note = ''", f"'' does not occur in note: {EMPTY}"),
        ("Ort = ''", "'' does not occur in Ort"),
    ],
)
def test_a_value_that_does_not_occur_has_a_hint(orders: Estimator, where: str, unseen: str) -> None:
    explanation = orders.explain(where)
    assert explanation.unseen == (unseen,)
    assert f"unseen    {unseen}\n" in str(explanation)


def test_long_lists_and_strings_are_not_compared_letter_by_letter() -> None:
    many = [f"value {number}" for number in range(6000)]
    assert nearest("VALUE 7", many) == "value 7"
    assert nearest("walue 7", many) is None
    assert nearest("x" * 100_000 + "y", ["x" * 100_000]) is None


@pytest.mark.parametrize(
    ("where", "column"),
    [
        ("\"at it\" = '2024-01-02'", '"at it"'),
        ("\"at it\" IN ('2024-01-01 10:00', DATE '2024-01-02')", '"at it"'),
        ("few = '2024-01-02'", '"few"'),
        ("\"at it\" = '2024-01-02 00:00:00'", None),
        ("\"at it\" >= '2024-01-02'", None),
        ("\"at it\"::DATE = '2024-01-02'", None),
        ("day = '2024-01-02'", None),  # all its times are midnight
        ("\"at it\" = '9999-12-31'", None),
    ],
)
def test_a_date_without_a_time_is_midnight(orders: Estimator, where: str, column: str | None) -> None:
    notes = orders.explain(where).notes
    assert notes == (() if column is None else (MIDNIGHT.format(column),))


def test_estimate_notes_it_too(orders: Estimator, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["estimate", str(orders.save(tmp_path / "m.countless")), "\"at it\" = '2024-01-02'"])
    assert "note: " + MIDNIGHT.format('"at it"') + "\n" in capsys.readouterr().err


def test_names_with_spaces_are_quoted_in_functions(orders: Estimator) -> None:
    text = str(orders.explain("hour(\"at it\") = 3 AND Ort = 'Basel'"))
    assert 'filter    hour("at it") = 3: 1 of 24 values of hour("at it")' in text
