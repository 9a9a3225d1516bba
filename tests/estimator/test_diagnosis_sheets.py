"""A diagnosis as it is read: sentences and tables."""

from __future__ import annotations

from dataclasses import replace

from countless.evaluation.diagnosis.answered import AnsweredQuery, DiagnosedQuery, Settled
from countless.evaluation.diagnosis.blame import Blame, Blamed
from countless.evaluation.diagnosis.convergence import ConvergenceLimits
from countless.evaluation.diagnosis.diagnosis import Diagnosis
from countless.evaluation.diagnosis.sheets import findings, markdown, sheets
from countless.evaluation.diagnosis.suspects import Suspect
from countless.query.parsing.conjuncts import Conjunct

FILTERS = (Conjunct("a = 1", ("a",)), Conjunct('"b|$x$" = 2', ("b|$x$",)), Conjunct("年 = 3", ("年",)))


def answered(truth: int, estimate: float, own: float, how: str = "exact") -> AnsweredQuery:
    where = " AND ".join(part.sql for part in FILTERS)
    return AnsweredQuery(DiagnosedQuery(where, FILTERS, truth), estimate, Settled(own, how))


MODELS = answered(10, 100, 98)
SAMPLERS = answered(1_000, 100, 900, "settled")
MOVING = answered(5, 5, 6, "moving")
FOUND = Diagnosis(
    answers=(MODELS, SAMPLERS, MOVING, answered(0, 0, 0)),
    columns=(Suspect(("a",), 30, 0.7, 0.1), Suspect(("年",), 30, 0.1, 0.1)),
    pairs=(Suspect(("a", "b|$x$"), 25, 0.5, 0.1),),
    worst=(
        Blamed(MODELS, Blame(("a = 1", "b = 2"), ("a", "b|$x$"), 20, 160, 0.9)),
        Blamed(SAMPLERS, None),
        Blamed(MOVING, Blame(("a = 1",), ("a",), 5, 6, 1.0, whole=True)),
    ),
    effort=ConvergenceLimits(),
    passed_over=1,
)
NOTHING = Diagnosis((answered(7, 7, 7),), (), (), (), ConvergenceLimits())


def test_findings() -> None:
    assert findings(FOUND) == [
        "4 queries; q-error p50 5.50, p95 10.0, p99 10.0, max 10.0.",
        "1 query about text passed over: only columns are diagnosed.",
        "Too much was answered in 25%, too little in 25%.",
        "The sampler's is the larger part of the error in 1 of 4, and in 1 of the worst 3.",
        "Column that stands out: a.",
        "Pair that stands out: a + b|$x$.",
        "To blame among the worst: a + b|$x$ (1).",
    ]
    assert findings(NOTHING)[-1] == "The sampler's is the larger part of the error in 0 of 1."


def test_the_worst() -> None:
    rows = sheets(FOUND)[-1].rows
    assert [row[1] for row in rows] == ["a + b|$x$", "the sampler", "all together"]
    assert [row[3:] for row in rows] == [
        ("10.0", "10", "100", "98", "90%"),
        ("10.0", "1,000", "100", "900", ""),
        ("1.00", "5", "5", "6?", "100%"),
    ]


def test_suspects_with_their_definition() -> None:
    columns = sheets(FOUND)[4]
    assert columns.rows == (("a", "30", "2.01", "0.20"), ("年", "30", "1.11", "0.11"))
    assert "with as many filters" in columns.notes[0]
    many = replace(FOUND, pairs=FOUND.pairs * 50)
    assert "the first 12 of 50" in sheets(many)[5].notes[1]


def test_a_page() -> None:
    page = markdown(FOUND, "Diagnosis of m", "diagnosis.svg")
    assert page.startswith("# Diagnosis of m\n\n- 4 queries")
    assert "![the errors in pictures](diagnosis.svg)" in page
    assert "a + b\\|$x$" in page
    assert "exact in 2 queries; in 1 query from more particles" in page
    nothing = markdown(NOTHING, "t")
    assert "No query is answered wrongly" in nothing
    assert "Too few queries" in nothing
