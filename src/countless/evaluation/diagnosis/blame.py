"""Blame: the smallest part of a badly estimated query that is as wrong as the whole.

The model and the table answer each filter alone, then each pair. If none explains the error, the best pair grows by the
filter that helps most until it explains the error, and then loses the filters that it does not need. A part explains
the error if its own error has the same direction and at least half the logarithm. The parts of all queries are counted
together.
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

HALF = 0.5  # least share of the error, in logarithms, that a part must explain
SCANNED = 256  # parts that are counted in one scan
MOST_FILTERS = 40  # pairs are tried only for queries with at most so many filters: 780 pairs
PARTS = "asking about parts of the worst queries"

FilterIndices = tuple[int, ...]  # a part of a query: the indices of its filters


@dataclass(frozen=True)
class Blame:
    """The filters to blame, their columns, and the truth and estimate of these filters alone.

    ``share`` is the share of the query's error that they explain. ``whole`` says that no smaller part explains it.
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
    """A bad answer and its cause: some of its filters or, if ``blame`` is None, the sampler."""

    answered: AnsweredQuery
    blame: Blame | None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**self.answered.to_json(), "blame": None if self.blame is None else self.blame.to_json()}


def blamed(estimator: Estimator, source: Source, worst: Sequence[AnsweredQuery], tell: Tell) -> tuple[Blamed, ...]:
    """The cause of each of these bad answers."""
    ledger = _Ledger(estimator, source)
    cases = {index: _BlamedQuery(answer) for index, answer in enumerate(worst) if not answer.is_samplers}
    while open_cases := [case for case in cases.values() if case.blame is None]:
        tell(PARTS, len(cases) - len(open_cases), len(cases))
        needed = [(case, case.needed_parts()) for case in open_cases]
        ledger.look_up(case.clause(part) for case, parts in needed for part in parts)
        for case, parts in needed:
            case.use({part: ledger.results[case.clause(part)] for part in parts})
    tell(PARTS, len(cases), len(cases))
    return tuple(Blamed(answer, cases[index].blame if index in cases else None) for index, answer in enumerate(worst))


class _Ledger:
    """True counts and estimates of parts of queries, each computed once."""

    def __init__(self, estimator: Estimator, source: Source) -> None:
        self._estimator, self._source = estimator, source
        self.results: dict[str, tuple[int, float]] = {}

    def look_up(self, clauses: Iterable[str]) -> None:
        new = [clause for clause in dict.fromkeys(clauses) if clause not in self.results]
        counts = self._source.counts(new, SCANNED)
        for clause, count, answer in zip(
            new, counts, self._estimator.estimate_many(new, method=MODEL_METHOD, summary=False), strict=True
        ):
            self.results[clause] = (count, answer.rows)


class _BlamedQuery:
    """The search for the blame of one query: small parts first, then a part that grows, then one that shrinks."""

    def __init__(self, answer: AnsweredQuery) -> None:
        self._filters: tuple[Conjunct, ...] = answer.question.filters
        self._whole: FilterIndices = tuple(range(len(self._filters)))
        self._error = signed_error(answer.model_answer.rows, answer.question.truth)
        self._results = {self._whole: (answer.question.truth, answer.model_answer.rows)}
        self._growing: FilterIndices | None = None  # the part that explains most so far
        self._sufficient: FilterIndices | None = None  # a part that explains the error, perhaps with needless filters
        self.blame: Blame | None = None
        if len(self._filters) < 2:
            self.blame = self._blame(self._whole)

    def clause(self, part: FilterIndices) -> str:
        return together(self._filters[index] for index in part)

    def needed_parts(self) -> list[FilterIndices]:
        """The parts whose truth and estimate are needed next."""
        if self._sufficient is not None:
            return [tuple(index for index in self._sufficient if index != removed) for removed in self._sufficient]
        if self._growing is not None:
            return [tuple(sorted((*self._growing, removed))) for removed in self._whole if removed not in self._growing]
        singles: list[FilterIndices] = [(index,) for index in self._whole]
        few = 2 < len(self._whole) <= MOST_FILTERS
        return [*singles, *itertools.combinations(self._whole, 2)] if few else singles

    def use(self, results: Mapping[FilterIndices, tuple[int, float]]) -> None:
        """Blame the best of the smallest parts that explain the error, or prepare the next step of the search."""
        self._results |= results
        best = self._whole
        for size in sorted({len(part) for part in results}):
            best = max((part for part in results if len(part) == size), key=self._share)
            if self._share(best) >= HALF:
                break
        explains = self._share(best) >= HALF
        if explains and self._growing is None and self._sufficient is None:
            self.blame = self._blame(best)
        elif explains:
            self._sufficient = best
        elif self._sufficient is not None:
            self.blame = self._blame(self._sufficient)
        elif len(best) < len(self._whole) - 1:
            self._growing = best
        else:
            self._sufficient = self._whole

    def _share(self, part: FilterIndices) -> float:
        """The share of the error that the part explains."""
        truth, rows = self._results[part]
        return signed_error(rows, truth) / self._error

    def _blame(self, part: FilterIndices) -> Blame:
        filters = [self._filters[index] for index in part]
        columns = dict.fromkeys(name for conjunct in filters for name in conjunct.columns)
        truth, rows = self._results[part]
        share = self._share(part)
        return Blame(
            tuple(conjunct.sql for conjunct in filters), tuple(columns), truth, rows, share, whole=part == self._whole
        )
