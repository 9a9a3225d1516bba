"""The report of a diagnosis: sentences and tables."""

from __future__ import annotations

from collections.abc import Sequence

from countless.estimator.answers.estimate import format_rows
from countless.evaluation.diagnosis.blame import HALF, Blamed
from countless.evaluation.diagnosis.diagnosis import Diagnosis
from countless.evaluation.diagnosis.groups import QUANTILES, Group
from countless.evaluation.diagnosis.suspects import COLUMN_DEFINITION, PAIR_DEFINITION, Suspect
from countless.human_format import number
from countless.sheet import Sheet, Strong

SHOWN = 12  # suspects of each kind
SURE_NOTE = "strong: more than two standard errors"
SAMPLER = "the sampler"


def findings(found: Diagnosis) -> list[str]:
    """The diagnosis in a few sentences."""
    total, errors = len(found.answers), found.q_error
    told = [f"{total:,} queries; q-error " + ", ".join(f"{name} {number(errors[name])}" for name in QUANTILES) + "."]
    if found.passed_over:
        told.append(f"{_queries(found.passed_over)} about text passed over: only columns are diagnosed.")
    shares = {group.label: group.share for group in found.by_direction}
    told.append(f"Too much was answered in {shares.get('over', 0):.0%}, too little in {shares.get('under', 0):.0%}.")
    whose = f"The sampler's is the larger part of the error in {found.samplers:,} of {total:,}"
    if found.worst:
        whose += f", and in {sum(item.blame is None for item in found.worst)} of the worst {len(found.worst)}"
    told.append(f"{whose}.")
    for suspects, one, several in (
        (found.columns, "Column that stands out", "Columns that stand out"),
        (found.pairs, "Pair that stands out", "Pairs that stand out"),
    ):
        sure = [_names(item.columns) for item in suspects if item.stands_out]
        if sure:
            told.append(f"{one if len(sure) == 1 else several}: {_some(sure)}.")
    often = [f"{_names(columns)} ({times})" for columns, times in found.blamed_columns]
    if often:
        told.append(f"To blame among the worst: {_some(often)}.")
    return told


def sheets(found: Diagnosis) -> list[Sheet]:
    """All tables, in the order in which they are read."""
    return [
        _groups("q-error by number of filters", "filters", found.by_filters),
        _groups("q-error by true count", "rows", found.by_truth),
        _groups("q-error of answers that are too large and too small", "answer", found.by_direction),
        sampler_sheet(found),
        _suspects("Columns", found.columns, COLUMN_DEFINITION),
        _suspects("Pairs of columns", found.pairs, PAIR_DEFINITION),
        worst_sheet(found.worst),
    ]


def markdown(found: Diagnosis, title: str, picture: str | None = None) -> str:
    """The whole diagnosis as a page."""
    head = [f"# {title}", "\n".join(f"- {sentence}" for sentence in findings(found))]
    if picture is not None:
        head.append(f"![the errors in pictures]({picture})")
    return "\n\n".join([*head, *(sheet.markdown() for sheet in sheets(found))]) + "\n"


def sampler_sheet(found: Diagnosis) -> Sheet:
    """The sampler's error beside the model's."""
    own, limit = found.own, f"{found.effort.most:,}"
    rows = {"all": found.q_error, "sampler": found.sampler_error, "model": found.model_error}
    return Sheet(
        "Whose error is it?",
        ("error", *QUANTILES),
        tuple((name, *(number(errors[place]) for place in QUANTILES)) for name, errors in rows.items()),
        notes=(
            "sampler: the answer against the model's own; model: its own answer against the truth; "
            f"the sampler's is larger in {found.samplers:,} of {len(found.answers):,} queries",
            f"the model's own answer: exact in {_queries(own['exact'])}; in {_queries(own['settled'])} from more "
            f"particles, until two seeds agreed within {found.effort.agree - 1:.0%}; in {_queries(own['moving'])} it "
            f"still moved with {limit} particles, and is the mean of two",
        ),
    )


def worst_sheet(worst: Sequence[Blamed]) -> Sheet:
    """The worst queries, and what is to blame."""
    rows = [
        (
            str(index),
            _names(item.blame.columns) if item.blame is not None and not item.blame.whole else _no_part(item),
            item.answered.question.where,
            number(item.answered.q_error),
            format_rows(item.answered.question.truth),
            format_rows(item.answered.estimate),
            format_rows(item.answered.own.rows) + ("?" if item.answered.own.how == "moving" else ""),
            "" if item.blame is None else f"{item.blame.share:.0%}",
        )
        for index, item in enumerate(worst, 1)
    ]
    return Sheet(
        f"The worst {len(rows)} queries" if rows else "No query is answered wrongly",
        ("", "to blame", "where", "q-error", "truth", "answer", "own", "explained"),
        tuple(rows),
        labels=3,
        notes=(
            "own: the model's own answer (?: still moving); to blame: the columns of the fewest filters whose error by "
            f"themselves is at least {HALF:.0%} of the query's, in logarithms and in the same direction",
        ),
    )


def _no_part(item: Blamed) -> str:
    return SAMPLER if item.blame is None else "all together"


def _groups(title: str, heading: str, groups: Sequence[Group]) -> Sheet:
    rows = (
        (group.label, f"{group.queries:,}", f"{group.share:.1%}", *(number(group.q_error[name]) for name in QUANTILES))
        for group in groups
    )
    return Sheet(title, (heading, "queries", "share", *QUANTILES), tuple(rows))


def _suspects(title: str, suspects: Sequence[Suspect], definition: str) -> Sheet:
    rows = []
    for item in suspects[:SHOWN]:
        factor = f"{item.factor:.2f}"
        error = f"{item.factor * item.standard_error:.2f}"  # of the factor, to first order
        rows.append((_names(item.columns), f"{item.queries:,}", Strong(factor) if item.stands_out else factor, error))
    notes = [definition, SURE_NOTE]
    if len(suspects) > SHOWN:
        notes[1] += f"; the first {SHOWN} of {len(suspects):,}, of which one in forty is strong by chance"
    if not suspects:
        notes = ["Too few queries, or all have the same columns: ask more (--queries) or others (--filters)."]
    return Sheet(title, ("filters on", "queries", "excess", "±"), tuple(rows), notes=tuple(notes))


def _names(columns: Sequence[str]) -> str:
    return " + ".join(columns)


def _queries(count: int) -> str:
    return f"{count:,} quer{'y' if count == 1 else 'ies'}"


def _some(items: Sequence[str], most: int = 5) -> str:
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")
