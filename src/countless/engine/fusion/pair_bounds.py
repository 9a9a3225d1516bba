"""Bounds and corrections of a box's estimate from exact counts of columns and of pairs of columns.

No box has more rows than any pair of its columns, nor fewer than all its filters leave over; where the two meet, no
model is asked. Counts also tell where among the values of one filter the others hold, which guides the sampler. And
where the model finds far too little in a part of a box, a column or a pair whose rows are known, it finds too little in
the box by about as much: an answer of few rows is raised by the part that the model is most wrong about. The pairs of
filters that have most to do with each other tell as much as all pairs, so that few are asked (docs/accuracy.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from countless.arrays import BoolArray, FloatArray
from countless.cached_property import cached_property
from countless.data.summaries.pair_counts import Pairs
from countless.engine.answer import Answer
from countless.engine.columns.kernel import compiled
from countless.engine.fusion.pair_filters import Crossed, Sums
from countless.engine.fusion.wide_columns import WideColumns
from countless.region import Box, Constraint, Filter

PAIRS_ASKED = 2  # of a box
TRUSTED = 1.25  # a factor by which the model may find too little in a part, and its answer is left as it is
NEAR = 1.25  # a factor between bounds within which a count passes for known
RARE = 1_000.0  # rows, from which an answer is not checked: a model is seldom far off there
LEAST_ROWS = 0.5  # that a count and the model's have in a ratio


@dataclass(frozen=True)
class FilterDensity:
    """Some filters of a box, one or two or a star, and the density that they have in the table, or about."""

    columns: tuple[int, ...]
    box: Box
    density: float
    is_star: bool = False


@dataclass(frozen=True)
class CountedPart:
    """Some filters of a box, of which about ``rows`` rows are known, and at most ``most``."""

    box: Box
    rows: float
    most: float


@dataclass(frozen=True, eq=False)
class Known:
    """What counts say of a box: its density at least and at most; the ``box`` has them as hints.

    ``columns`` are the one or two whose counts say how much at most. ``answer`` is there if counts alone give it.
    """

    box: Box
    rows: int
    least: float
    most: float
    columns: tuple[int, ...]
    answer: Answer | None = None

    @cached_property
    def parts(self) -> tuple[FilterDensity, ...]:
        """The parts of the box whose density is known, by which the model's answer is corrected."""
        if self.answer is not None:
            return ()
        assert isinstance(self.box.hints, Crossed)
        return tuple(_parts(self.box, self.box.hints))

    def improve(self, answer: Answer, checks: Sequence[tuple[FilterDensity, Answer]]) -> Answer:
        """The model's answer, corrected by its answers of parts that are known, and within the bounds."""
        floor = LEAST_ROWS / self.rows
        ratios = [max(part.density, floor) / max(found.density, floor) for part, found in checks]
        spent = answer.forward_rows + sum(found.forward_rows for _, found in checks)
        star = next((place for place, (part, _) in enumerate(checks) if part.is_star), None)
        if star is not None:  # the model tells how many of its rows satisfy the other filters
            factor, corrected = ratios[star], checks[star][0].columns
            return self.clip(answer, factor, forward_rows=spent, factor=factor, corrected=corrected)
        worst = max(range(len(ratios)), key=ratios.__getitem__, default=None)
        if worst is None or ratios[worst] <= TRUSTED:
            return self.clip(answer, forward_rows=spent)
        factor, corrected = ratios[worst] / TRUSTED, checks[worst][0].columns
        return self.clip(answer, factor, forward_rows=spent, factor=factor, corrected=corrected)

    def clip(self, answer: Answer, times: float = 1.0, **changes: Any) -> Answer:
        """The answer, so many ``times``, within the bounds, and with other ``changes``."""
        raised = answer.density * times
        density = min(max(raised, self.least), self.most)
        clipped = self.columns if density < raised else ()
        excess = raised / density if density > 0 else 1.0
        return replace(
            answer, density=density, least=self.least, most=self.most, clipped=clipped, excess=excess, **changes
        )


class Counts:
    """Counts of columns and of pairs, as the engine asks them; ``positions`` are those of each column."""

    def __init__(self, pairs: Pairs, positions: Sequence[tuple[int, ...]]) -> None:
        self.pairs = pairs
        self._sums = Sums(pairs, compiled())
        self._wide = WideColumns(pairs)
        self._columns = {own: column for column, own in enumerate(positions)}
        self._kept: dict[tuple[int, int], FloatArray] = {}
        self._rows: WeakKeyDictionary[Constraint, int | None] = WeakKeyDictionary()

    def answers(self, known: Sequence[Known], ask: Callable[[Sequence[Box]], list[Answer]]) -> list[Answer]:
        """The answers of boxes that have filters; ``ask`` gives the model's, of those that counts leave open."""
        left = [told for told in known if told.answer is None]
        found = ask([told.box for told in left]) if left else []
        rare = [
            answer.density * self.pairs.rows < RARE or any(part.is_star for part in told.parts)
            for told, answer in zip(left, found, strict=True)
        ]
        parts = [part for told, few in zip(left, rare, strict=True) if few for part in told.parts]
        checks = zip(parts, ask([part.box for part in parts]) if parts else [], strict=True)
        answers = iter(
            told.improve(answer, list(islice(checks, len(told.parts)))) if few else told.clip(answer)
            for told, answer, few in zip(left, found, rare, strict=True)
        )
        return [next(answers) if told.answer is None else told.clip(told.answer) for told in known]

    def kept(self, pair: tuple[int, int], make: Callable[[], FloatArray]) -> FloatArray:
        """A table about two columns that is made when it is first asked for."""
        if pair not in self._kept:
            self._kept[pair] = make()
        return self._kept[pair]

    def crossed(self, box: Box) -> Crossed:
        """The filters of a box among the counts."""
        filters = [(self._columns[item.positions], item) for item in box.filters]
        crossed = Crossed(self.pairs, self._sums, filters)
        crossed.stars = self._wide.refine(crossed, filters)
        return crossed

    def table(self, filters: Sequence[Filter]) -> FloatArray | None:
        """The density of every code of one filter, or of every two codes of two, by the rows that have them.

        None if there are more filters, or if the two are no pair that was counted code by code.
        """
        columns = [self._columns[item.positions] for item in filters]
        weights = [np.asarray(item.constraint.weights, dtype=np.float64) for item in filters]
        if len(filters) == 1:
            alone: FloatArray = self.pairs.counts[columns[0]] * weights[0] / self.pairs.rows
            return alone
        counts = self.pairs.code_by_code(*columns) if len(filters) == 2 else None
        return None if counts is None else counts * np.multiply.outer(*weights) / self.pairs.rows

    def rows_of(self, item: Filter) -> int | None:
        """How many rows satisfy one filter; None if it splits the rows of a code: such parts are not counted."""
        constraint = item.constraint
        if constraint not in self._rows:  # found once while the filter is kept
            counts, weights = self.pairs.counts[self._columns[item.positions]], constraint.weights
            inside: BoolArray = weights if weights.dtype == np.bool_ else weights > 0
            split = inside is not weights and not np.array_equal(inside, weights == 1.0)
            self._rows[constraint] = None if split else int(np.add.reduce(counts[inside]))
        return self._rows[constraint]

    def rarest_part(self, known: Known, whole: bool) -> CountedPart | None:
        """The filters of a box of which the fewest rows are known; all of them only if the ``whole`` is asked for."""
        crossed, filters = known.box.hints, known.box.filters
        assert isinstance(crossed, Crossed)
        parts = [(set(each.places), each.rows, each.most) for each in crossed.stars if each.most <= NEAR * each.least]
        for one, two in np.argwhere(np.triu(crossed.least == crossed.most)).tolist():
            counted = int(crossed.most[one, two])
            parts.append(({one, two}, float(counted), counted))
        parts = [each for each in parts if whole or len(each[0]) < len(filters)]
        if not parts:
            return None
        places, rows, most = min(parts, key=lambda each: each[1])
        return CountedPart(Box(tuple(filters[place] for place in sorted(places))), rows, most)

    def known(self, box: Box) -> Known:
        """What the counts say of a box that has filters."""
        rows, crossed = self.pairs.rows, self.crossed(box)
        upper = crossed.most.ravel().tolist()
        most = min(upper)
        tightest: Sequence[int] = divmod(upper.index(most), len(box.filters))
        star = min(crossed.stars, key=lambda each: each.most, default=None)
        if star is not None and star.most < most:
            most, tightest = star.most, star.places
        columns = tuple(dict.fromkeys(crossed.columns[place] for place in tightest))
        least = min(most, crossed.least_of_all)
        whole = [each for each in crossed.stars if len(each.places) == len(box.filters)]
        answer = None
        if least == most:
            answer = _told(box, most / rows, counted=True)
        elif whole:
            nearest = min(whole, key=lambda each: each.most - each.least)
            answer = _told(box, min(max(nearest.rows, least), most) / rows, counted=False)
        elif len(box.filters) == 1:
            share = float(self.pairs.counts[columns[0]] @ box.filters[0].constraint.weights) / rows
            answer = _told(box, share, counted=False)
        hinted = Box(box.filters, box.texts, crossed)
        return Known(hinted, rows, least / rows, most / rows, columns, answer)


def _parts(box: Box, crossed: Crossed) -> list[FilterDensity]:
    """A star whose rows are known; or else the rarest filter, and the pairs of filters that have most to do with each
    other, where they are known.
    """
    star = min(crossed.stars, key=lambda each: each.most, default=None)
    if star is not None and star.most <= NEAR * star.least:
        return [_part(box, crossed, sorted(star.places), star.rows, is_star=True)]
    known = crossed.most <= NEAR * crossed.least
    counts = np.sqrt(np.maximum(crossed.least, LEAST_ROWS) * np.maximum(crossed.most, LEAST_ROWS))
    alone = counts.diagonal()
    rarest = int(alone.argmin())
    parts: list[tuple[int, ...]] = [(rarest,)] if known[rarest, rarest] else []
    ones, twos = np.nonzero(np.triu(known, 1))
    if len(ones):
        bonds = np.abs(np.log(counts[ones, twos] * crossed.rows / (alone[ones] * alone[twos])))
        strongest = np.argsort(-bonds, kind="stable")[:PAIRS_ASKED]
        parts += zip(ones[strongest].tolist(), twos[strongest].tolist(), strict=True)
    return [_part(box, crossed, part, float(counts[part[0], part[-1]])) for part in parts]


def _part(box: Box, crossed: Crossed, places: Sequence[int], rows: float, is_star: bool = False) -> FilterDensity:
    columns = tuple(crossed.columns[place] for place in places)
    filters = tuple(box.filters[place] for place in places)
    return FilterDensity(columns, Box(filters), rows / crossed.rows, is_star)


def _told(box: Box, density: float, counted: bool) -> Answer:
    positions = tuple(position for item in box.filters for position in item.positions)
    return Answer(density, exact=True, particles=0, visited=positions, forward_rows=0, counted=counted)
