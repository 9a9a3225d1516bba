"""Rows that are drawn from an estimator."""

from __future__ import annotations

import math

import pytest

from countless.errors import CountlessError, UnknownColumnError, UnsupportedQueryError
from countless.estimator.estimator import Estimator
from countless.query.predicate import col
from tests.texts import NOTE, URL, random_estimator


@pytest.fixture(scope="module")
def pages() -> Estimator:
    return random_estimator(URL, NOTE)


def test_rows_have_every_column(pages: Estimator) -> None:
    rows = pages.sample(40)
    assert len(rows) == 40
    assert all(list(row.row) == ["url", "note"] for row in rows)
    assert all(0 < row.probability < 1 for row in rows)
    assert len({row.row["url"] for row in rows}) > 10


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("url LIKE '%ab%'", lambda url, note: "ab" in url),
        ("url LIKE 'w%.%' AND note LIKE 'x%'", lambda url, note: url[0] == "w" and "." in url and note[0] == "x"),
        ("url LIKE '%é%'", lambda url, note: "é" in url),
        ("note IS NULL", lambda url, note: note is None),
        ("length(url) < 3 AND note IS NOT NULL", lambda url, note: len(url) < 3 and note is not None),
        ("url LIKE 'a%' OR note LIKE '%z%'", lambda url, note: url[:1] == "a" or "z" in (note or "")),
        ("url LIKE 'a%' OR note IS NULL", lambda url, note: url[:1] == "a" or note is None),
        ("true", lambda url, note: True),
    ],
)
def test_rows_match_the_clause(pages: Estimator, where: str, holds: object) -> None:
    assert callable(holds)
    for row in pages.sample(25, where=where, seed=1):
        assert holds(row.row["url"], row.row["note"]) or row.cut


def test_a_predicate_made_in_python(pages: Estimator) -> None:
    assert all((row.row["url"] or "")[:1] == "b" for row in pages.sample(5, where=col("url").like("b%")))


def test_the_probability_is_that_of_the_row(pages: Estimator) -> None:
    for row in pages.sample(8, seed=2):
        if row.cut:
            continue
        url, note = (None if text is None else text.replace("'", "''") for text in row.row.values())
        parts = [pages.estimate(f"url = '{url}'", method="exact").selectivity]
        condition = "note IS NULL" if note is None else f"note = '{note}'"
        parts.append(pages.estimate(condition, method="exact").selectivity)
        assert row.probability == pytest.approx(math.prod(parts), rel=1e-3)


def test_texts_that_are_cut_say_so(pages: Estimator) -> None:
    rows = pages.sample(100, where="length(note) > 4")
    assert all(row.cut == ("note",) and len(row.row["note"] or "") == NOTE.length for row in rows)


def test_boxes_are_chosen_by_their_density(pages: Estimator) -> None:
    part = pages.estimate("url LIKE 'a%'").selectivity / pages.estimate("url LIKE 'a%' OR note IS NULL").selectivity
    rows = pages.sample(600, where="url LIKE 'a%' OR note IS NULL")
    share = sum((row.row["url"] or "").startswith("a") for row in rows) / len(rows)
    assert share == pytest.approx(part, abs=0.1)


def test_seeds(pages: Estimator) -> None:
    assert pages.sample(5) == pages.sample(5)
    assert pages.sample(5, seed=3) == pages.sample(5, seed=3) != pages.sample(5, seed=4)


def test_plain_data(pages: Estimator) -> None:
    (row,) = pages.sample(1)
    assert row.to_json() == {"row": row.row, "probability": row.probability, "cut": list(row.cut)}


def test_mistakes(pages: Estimator, estimator: Estimator) -> None:
    with pytest.raises(UnsupportedQueryError, match='every column is modelled as text; not so: "age", "city"'):
        estimator.sample()
    with pytest.raises(CountlessError, match="at least 1, not 0"):
        pages.sample(0)
    with pytest.raises(CountlessError, match="there is nothing to draw"):
        pages.sample(where="url = 'a' AND url = 'b'")
    with pytest.raises(CountlessError, match="no string that matches was found"):
        pages.sample(where="length(url) > 50")
    with pytest.raises(UnknownColumnError):
        pages.sample(where="urll = 'a'")
