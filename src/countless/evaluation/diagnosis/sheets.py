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

SHOWN = 12  # suspects in a table
SURE_NOTE = "strong: more than two standard errors"
SAMPLER = "the sampler"


def findings(diagnosis: Diagnosis) -> list[str]:
    """The diagnosis in a few sentences."""
    total, errors = len(diagnosis.answers), diagnosis.q_error
    sentences = [
        f"{total:,} queries; q-error " + ", ".join(f"{name} {number(errors[name])}" for name in QUANTILES) + "."
    ]
    if diagnosis.passed_over:
        sentences.append(f"{_queries(diagnosis.passed_over)} about text passed over: only columns are diagnosed.")
    shares = {group.label: group.share for group in diagnosis.by_direction}
    sentences.append(
        f"Too much was answered in {shares.get('over', 0):.0%}, too little in {shares.get('under', 0):.0%}."
    )
    sampler_sentence = f"The sampler's is the larger part of the error in {diagnosis.samplers:,} of {total:,}"
    if diagnosis.worst:
        sampler_sentence += (
            f", and in {sum(entry.blame is None for entry in diagnosis.worst)} of the worst {len(diagnosis.worst)}"
        )
    sentences.append(f"{sampler_sentence}.")
    for suspects, singular, plural in (
        (diagnosis.columns, "Column that stands out", "Columns that stand out"),
        (diagnosis.pairs, "Pair that stands out", "Pairs that stand out"),
    ):
        outstanding = [_names(entry.columns) for entry in suspects if entry.stands_out]
        if outstanding:
            sentences.append(f"{singular if len(outstanding) == 1 else plural}: {_first_names(outstanding)}.")
    blamed = [f"{_names(columns)} ({times})" for columns, times in diagnosis.blamed_columns]
    if blamed:
        sentences.append(f"To blame among the worst: {_first_names(blamed)}.")
    return sentences


def sheets(diagnosis: Diagnosis) -> list[Sheet]:
    """All tables, in reading order."""
    return [
        _groups("q-error by number of filters", "filters", diagnosis.by_filters),
        _groups("q-error by true count", "rows", diagnosis.by_truth),
        _groups("q-error of answers that are too large and too small", "answer", diagnosis.by_direction),
        sampler_sheet(diagnosis),
        _suspects("Columns", diagnosis.columns, COLUMN_DEFINITION),
        _suspects("Pairs of columns", diagnosis.pairs, PAIR_DEFINITION),
        worst_sheet(diagnosis.worst),
    ]


def markdown(diagnosis: Diagnosis, title: str, picture: str | None = None) -> str:
    """The whole diagnosis as a page."""
    head = [f"# {title}", "\n".join(f"- {sentence}" for sentence in findings(diagnosis))]
    if picture is not None:
        head.append(f"![the errors in pictures]({picture})")
    return "\n\n".join([*head, *(sheet.markdown() for sheet in sheets(diagnosis))]) + "\n"


def sampler_sheet(diagnosis: Diagnosis) -> Sheet:
    """The sampler's error beside the model's."""
    counts, limit = diagnosis.model_answer_counts, f"{diagnosis.effort.most:,}"
    exact, settled, moving = (_queries(counts[how]) for how in ("exact", "settled", "moving"))
    rows = {"all": diagnosis.q_error, "sampler": diagnosis.sampler_error, "model": diagnosis.model_error}
    return Sheet(
        "Whose error is it?",
        ("error", *QUANTILES),
        tuple((name, *(number(errors[quantile]) for quantile in QUANTILES)) for name, errors in rows.items()),
        notes=(
            "sampler: the answer against the model's own; model: its own answer against the truth; "
            f"the sampler's is larger in {diagnosis.samplers:,} of {len(diagnosis.answers):,} queries",
            f"the model's own answer: exact in {exact}; in {settled} from more particles, until two seeds agreed "
            f"within {diagnosis.effort.agree - 1:.0%}; in {moving} it still moved with {limit} particles, and is the "
            "mean of two",
        ),
    )


def worst_sheet(worst: Sequence[Blamed]) -> Sheet:
    """The worst queries, and what is to blame."""
    rows = [
        (
            str(index),
            _names(blamed.blame.columns) if blamed.blame is not None and not blamed.blame.whole else _no_part(blamed),
            blamed.answered.question.where,
            number(blamed.answered.q_error),
            format_rows(blamed.answered.question.truth),
            format_rows(blamed.answered.estimate),
            format_rows(blamed.answered.model_answer.rows)
            + ("?" if blamed.answered.model_answer.how == "moving" else ""),
            "" if blamed.blame is None else f"{blamed.blame.share:.0%}",
        )
        for index, blamed in enumerate(worst, 1)
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


def _no_part(blamed: Blamed) -> str:
    return SAMPLER if blamed.blame is None else "all together"


def _groups(title: str, heading: str, groups: Sequence[Group]) -> Sheet:
    rows = (
        (group.label, f"{group.queries:,}", f"{group.share:.1%}", *(number(group.q_error[name]) for name in QUANTILES))
        for group in groups
    )
    return Sheet(title, (heading, "queries", "share", *QUANTILES), tuple(rows))


def _suspects(title: str, suspects: Sequence[Suspect], definition: str) -> Sheet:
    rows = []
    for suspect in suspects[:SHOWN]:
        factor = f"{suspect.factor:.2f}"
        error = f"{suspect.factor * suspect.standard_error:.2f}"  # of the factor, to first order
        rows.append(
            (_names(suspect.columns), f"{suspect.queries:,}", Strong(factor) if suspect.stands_out else factor, error)
        )
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


def _first_names(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
