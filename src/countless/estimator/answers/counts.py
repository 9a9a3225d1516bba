"""Row counts with error bars from the engine's densities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from countless.engine.density import Density
from countless.engine.methods import METHODS
from countless.errors import CountlessError, NoTextModelError
from countless.estimator.answers.estimate import Estimate
from countless.estimator.answers.evidence import Evidence
from countless.estimator.arguments import whole
from countless.estimator.calibration.conformal import Calibration, CalibrationQuery, Shape, interval, is_refuted
from countless.estimator.calibration.posterior import SampleCount
from countless.query.question import Question


def estimate_of(
    question: Question,
    density: Density,
    calibration: Calibration,
    rows: int,
    method: str,
    ms: float,
    table_rows: int | None = None,
    hits: SampleCount | None = None,
) -> Estimate:
    """The answer to ``question`` in a table of ``rows`` rows; with ``table_rows``, scaled to the table's current rows.

    A count is certain only as long as the table has the rows that were counted. The estimate shows the ``hits`` among
    evidence rows, if these were counted.
    """
    now = rows if table_rows is None else table_rows
    count, certain = density.value * rows, is_certain(question, density)
    if certain and now == rows:
        answer = low = high = float(round(count))
    else:
        factor, shape = now / rows, shape_of(question, density)
        factors = calibration.factors(count, shape)
        low, high = interval(count, rows, factors)
        if question.certain and not certain:
            least, most = density.least * rows, density.most * rows
            refuted = is_refuted(max(count * density.excess, 1.0), factors, least, most)
            low, high = (least, most) if refuted else (max(low, least), min(high, most))
        bound = question.region.most if METHODS[method].uses_counts else None
        if bound is not None:  # filters on unique columns
            count, low, high = min(count, bound), min(low, bound), min(high, bound)
        answer, low, high = factor * count, factor * low, min(float(now), factor * high)
    return Estimate(
        where=question.where,
        rows=answer,
        selectivity=min(density.value, count / max(rows, 1)),
        low=low,
        high=high,
        level=calibration.level,
        method=method,
        exact=certain and now == rows,
        ms=ms,
        forward_rows=sum([box_answer.forward_rows for box_answer in density.answers]),
        sampled=not density.exact,
        hits=None if hits is None else hits.count,
        evidence_rows=None if hits is None else hits.rows,
        model_rows=count,
        calibrated=certain or calibration.knows(shape_of(question, density)),
    )


def known_queries(
    answers: Sequence[tuple[Question, Density] | CountlessError],
    truths: Sequence[int],
    rows: int,
    evidence: Evidence | None,
) -> list[CalibrationQuery]:
    """Questions and their true counts, with the answers of a model of ``rows`` rows; without those it is certain of."""
    queries = []
    errors = [answer for answer in answers if isinstance(answer, CountlessError)]
    if errors and len(errors) == len(answers) and not isinstance(errors[0], NoTextModelError):
        raise errors[0]
    for answer, truth in zip(answers, truths, strict=True):
        if isinstance(answer, CountlessError):  # a question as people ask it, which has no answer
            continue
        question, density = answer
        if not question.beyond and not is_certain(question, density):
            estimate = float(f"{density.value * rows:.6g}")  # as far as it is stored
            hits = 0 if evidence is None else evidence.hits(question).count
            queries.append(CalibrationQuery(question.where, truth, estimate, shape_of(question, density), hits))
    return queries


def is_certain(question: Question, density: Density) -> bool:
    """Whether the answer is no estimate: rows that were counted, or none at all."""
    return question.certain and all(answer.counted for answer in density.answers)


def shape_of(question: Question, density: Density | None = None) -> Shape:
    """What a question looks like, and how many steps it took to find its density."""
    shape = Shape.of(question.region, vague=not question.certain)
    return replace(shape, steps=density.steps) if density is not None and density.steps else shape


def today(table_rows: int | None) -> int | None:
    """Check the caller's current row count."""
    return None if table_rows is None else whole(table_rows, "the number of rows of the table", 1)
