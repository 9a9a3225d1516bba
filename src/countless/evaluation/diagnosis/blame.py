"""Blame: the smallest part of a badly estimated query that is as wrong as the whole.

The model and the table are asked about each filter alone, then about each pair; if none explains the error, the pair
that comes nearest grows, by the filter that helps most, and then loses what it can do without. A part explains the
error if its own, in the same direction, is at least half of it in logarithms. All parts of a query, and of all queries,
are counted together.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from countless.data.sources.source import Source
from countless.engine.methods import MODEL_METHOD
from countless.estimator.answers.estimate import q_error
from countless.estimator.estimator import Estimator
from countless.evaluation.diagnosis.answered import AnsweredQuery, Tell, signed_error
from countless.query.parsing.conjuncts import Conjunct, together

HALF = 0.5  # of the error, in logarithms
SCANNED = 256  # parts that are counted in one scan
MOST_FILTERS = 40  # of a query whose pairs are tried: 780 of them
PARTS = "asking about parts of the worst queries"

Places = tuple[int, ...]  # filters of a query, by their places in it


@dataclass(frozen=True)
class Blame:
    """The filters to blame, the columns they are about, and how wrong they are by themselves.

    ``share`` is how much of the query's error they explain. If it took every filter, no smaller part explains it.
    """

    filters: tuple[str, ...]
    columns: tuple[str, ...]
    truth: int
    estimate: float
    share: float
    whole: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "q_error": q_error(self.estimate, self.truth)}


@dataclass(frozen=True)
class Blamed:
    """A bad answer and what is to blame: some of its filters or, if ``blame`` is None, the sampler."""

    answered: AnsweredQuery
    blame: Blame | None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**self.answered.to_json(), "blame": None if self.blame is None else self.blame.to_json()}


def blamed(estimator: Estimator, source: Source, worst: Sequence[AnsweredQuery], tell: Tell) -> tuple[Blamed, ...]:
    """What is to blame for each of these answers."""
    ledger = _Ledger(estimator, source)
    cases = {index: _BlamedQuery(item) for index, item in enumerate(worst) if not item.is_samplers}
    while waiting := [case for case in cases.values() if case.blame is None]:
        tell(PARTS, len(cases) - len(waiting), len(cases))
        wanted = [(case, case.wanted()) for case in waiting]
        ledger.look_up(case.clause(places) for case, parts in wanted for places in parts)
        for case, parts in wanted:
            case.judge({places: ledger.known[case.clause(places)] for places in parts})
    tell(PARTS, len(cases), len(cases))
    return tuple(Blamed(item, cases[index].blame if index in cases else None) for index, item in enumerate(worst))


class _Ledger:
    """True count and estimate of every part that was asked about."""

    def __init__(self, estimator: Estimator, source: Source) -> None:
        self._estimator, self._source = estimator, source
        self.known: dict[str, tuple[int, float]] = {}

    def look_up(self, clauses: Iterable[str]) -> None:
        new = [clause for clause in dict.fromkeys(clauses) if clause not in self.known]
        counts = self._source.counts(new, SCANNED)
        for clause, count, answer in zip(
            new, counts, self._estimator.estimate_many(new, method=MODEL_METHOD, summary=False), strict=True
        ):
            self.known[clause] = (count, answer.rows)


class _BlamedQuery:
    """One query on the way to its blame: small parts first, then one that grows, then what it does not need goes."""

    def __init__(self, item: AnsweredQuery) -> None:
        self._filters: tuple[Conjunct, ...] = item.question.filters
        self._whole: Places = tuple(range(len(self._filters)))
        self._error = signed_error(item.own.rows, item.question.truth)
        self._known = {self._whole: (item.question.truth, item.own.rows)}
        self._growing: Places | None = None  # what comes nearest so far
        self._enough: Places | None = None  # what explains the error, with filters that it may not need
        self.blame: Blame | None = None
        if len(self._filters) < 2:
            self.blame = self._blame(self._whole)

    def clause(self, places: Places) -> str:
        return together(self._filters[place] for place in places)

    def wanted(self) -> list[Places]:
        """The parts to ask about next."""
        if self._enough is not None:
            return [tuple(place for place in self._enough if place != one) for one in self._enough]
        if self._growing is not None:
            return [tuple(sorted((*self._growing, one))) for one in self._whole if one not in self._growing]
        singles: list[Places] = [(place,) for place in self._whole]
        few = 2 < len(self._whole) <= MOST_FILTERS
        return [*singles, *itertools.combinations(self._whole, 2)] if few else singles

    def judge(self, found: Mapping[Places, tuple[int, float]]) -> None:
        """Blame the best of the smallest parts that explain the error, or choose the next parts to ask about."""
        self._known |= found
        best = self._whole
        for size in sorted({len(places) for places in found}):
            best = max((places for places in found if len(places) == size), key=self._share)
            if self._share(best) >= HALF:
                break
        explains = self._share(best) >= HALF
        if explains and self._growing is None and self._enough is None:
            self.blame = self._blame(best)
        elif explains:
            self._enough = best
        elif self._enough is not None:
            self.blame = self._blame(self._enough)
        elif len(best) < len(self._whole) - 1:
            self._growing = best
        else:
            self._enough = self._whole

    def _share(self, places: Places) -> float:
        """How much of the error the part explains."""
        truth, rows = self._known[places]
        return signed_error(rows, truth) / self._error

    def _blame(self, places: Places) -> Blame:
        filters = [self._filters[place] for place in places]
        columns = dict.fromkeys(name for part in filters for name in part.columns)
        truth, rows = self._known[places]
        share = self._share(places)
        return Blame(
            tuple(part.sql for part in filters), tuple(columns), truth, rows, share, whole=places == self._whole
        )
