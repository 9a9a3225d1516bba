"""Bounds and corrections of a box's estimate from exact counts of columns and of pairs of columns.

No box has more rows than any pair of its columns, nor fewer than all its filters leave over; where the two meet, no
model is asked. Counts also tell where among the values of one filter the others hold, which guides the sampler. And
where the model finds far too little in a part of a box, a column or a pair whose rows are known, it finds too little in
the box by about as much: an answer of few rows is raised by the part that the model is most wrong about. The pairs of
filters that have most to do with each other tell as much as all pairs, so that few are asked (docs/accuracy.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from countless.arrays import BoolArray, FloatArray
from countless.cached_property import cached_property
from countless.data.summaries.pair_counts import Pairs
from countless.engine.answer import Answer, Effort
from countless.engine.columns.kernel import compiled
from countless.engine.columns.runtime import CompiledWalk
from countless.engine.fusion.pair_filters import CompiledCrossed, Crossed, Sums
from countless.engine.fusion.wide_columns import Star, WideColumns
from countless.region import FREE, Box, Filter, flat_weights

PAIRS_ASKED = 2  # of a box
TRUSTED = 1.25  # a factor by which the model may find too little in a part, and its answer is left as it is
NEAR = 1.25  # a factor between bounds within which a count passes for known
RARE = 1_000.0  # rows, from which an answer is not checked: a model is seldom far off there
LEAST_ROWS = 0.5  # that a count and the model's have in a ratio


@dataclass(frozen=True)
class FilterDensity:
    """Some filters of a box, one or two, and the density that they have in the table, or about."""

    columns: tuple[int, ...]
    box: Box
    density: float


class PartCheck(NamedTuple):
    """A part of a box, one filter or two on these ``columns``: its density, and the one that the model ``found``."""

    columns: tuple[int, ...]
    density: float
    found: float
    forward_rows: int


@dataclass(frozen=True)
class CountedPart:
    """Some filters of a box, of which about ``rows`` rows are known, and at most ``most``."""

    box: Box
    rows: float
    most: float


@dataclass(eq=False)
class Known:
    """What counts say of a box: its density at least and at most; the ``box`` has them as hints.

    ``columns`` are those of its filters, and ``tightest`` those whose counts say how much at most. ``stars`` are
    filters around a column with many values, and ``counted`` as in :class:`RowBounds`. ``answer`` is there if counts
    alone give it.
    """

    box: Box
    rows: int
    least: float
    most: float
    columns: tuple[int, ...]
    tightest: tuple[int, ...]
    answer: Answer | None = None
    stars: tuple[Star, ...] = ()
    counted: Sequence[tuple[int, int, int]] = ()

    @cached_property
    def parts(self) -> tuple[FilterDensity, ...]:
        """The parts of the box whose density is known, by which the model's answer is corrected."""
        if self.answer is not None:
            return ()
        star, crossed = self.star, self.box.hints
        assert isinstance(crossed, Crossed | CompiledCrossed)
        pairs = _parts(self, crossed.arrays if isinstance(crossed, CompiledCrossed) else crossed)
        return (*pairs, *([] if star is None else [star]))

    @cached_property
    def star(self) -> FilterDensity | None:
        """The rarest star whose rows are known, if it is a part of the box."""
        known = [star for star in self.stars if star.most <= NEAR * star.least and len(star.places) < len(self.columns)]
        if self.answer is not None or not known:
            return None
        star = min(known, key=lambda each: (each.most, -len(each.places)))
        return _part(self, sorted(star.places), star.rows / self.rows)

    def rarest_part(self, whole: bool) -> CountedPart | None:
        """The filters of which the fewest rows are known; all of them only if the ``whole`` is asked for."""
        parts = [(set(star.places), star.rows, star.most) for star in self.stars if star.most <= NEAR * star.least]
        parts += [({one, two}, float(rows), rows) for one, two, rows in self.counted]
        parts = [each for each in parts if whole or len(each[0]) < len(self.columns)]
        if not parts:
            return None
        places, rows, most = min(parts, key=lambda each: (each[1], -len(each[0])))
        return CountedPart(Box(tuple(self.box.filters[place] for place in sorted(places))), rows, most)

    def improve(self, answer: Answer, checks: Sequence[PartCheck]) -> Answer:
        """The model's answer, corrected by its answers of parts that are known, and within the bounds."""
        floor = LEAST_ROWS / self.rows
        ratios = [max(part.density, floor) / max(part.found, floor) for part in checks]
        spent = answer.forward_rows + sum([part.forward_rows for part in checks])
        worst = max(ratios, default=0.0)
        if worst <= TRUSTED:
            return self.clip(answer, spent)
        return self.clip(answer, spent, worst / TRUSTED, checks[ratios.index(worst)].columns)

    def clip(self, answer: Answer, spent: int, times: float = 1.0, corrected: tuple[int, ...] = ()) -> Answer:
        """The answer, multiplied by ``times``, within the bounds. It took ``spent`` rows of logits in all."""
        raised = answer.density * times
        density = min(max(raised, self.least), self.most)
        clipped = self.tightest if density < raised else ()
        excess = raised / density if density > 0 else 1.0
        return Answer(  # of all fields: to replace some would take longer
            density,
            answer.exact,
            answer.particles,
            answer.visited,
            spent,
            answer.sampling_error,
            answer.texts,
            answer.counted,
            self.least,
            self.most,
            clipped,
            excess,
            times,
            corrected,
            answer.contexts,
            answer.steps,
        )


@dataclass(frozen=True, eq=False)
class FilterCounts:
    """What counts say of one filter: how many ``rows`` satisfy it, and how many ``values`` of its column do.

    ``rows`` is None if it splits the rows of a code: such parts are not counted. ``reading`` is the filter as the
    compiled module has read it, if there is one.
    """

    rows: int | None
    values: int
    reading: object = None


class Counts:
    """Counts of columns and of pairs, as the engine asks them; ``positions`` are those of each column.

    Where there is the compiled module, filters are read there.
    """

    def __init__(self, pairs: Pairs, positions: Sequence[tuple[int, ...]]) -> None:
        self.pairs = pairs
        self._sums, self._module = Sums(pairs), compiled()
        self._wide = WideColumns(pairs)
        self._tables = None if self._module is None else self._sums.compiled(self._module, pairs)
        self._columns = {own: column for column, own in enumerate(positions)}
        self._kept: dict[tuple[int, int], FloatArray] = {}

    def answers(self, known: Sequence[Known], ask: Callable[[Sequence[Box]], list[Answer]]) -> list[Answer]:
        """The answers of boxes that have filters; ``ask`` gives the model's, of those that counts leave open."""
        left = [each for each in known if each.answer is None]
        walked = ask([each.box for each in left]) if left else []
        rare = [answer.density * self.pairs.rows < RARE for answer in walked]
        parts = [part for each, few in zip(left, rare, strict=True) if few for part in each.parts]
        told_of = iter(ask([part.box for part in parts]) if parts else [])
        answers = iter(
            each.improve(answer, [_check(part, next(told_of)) for part in each.parts] if few else [])
            for each, answer, few in zip(left, walked, rare, strict=True)
        )
        return [next(answers) if each.answer is None else each.clip(each.answer, 0) for each in known]

    @property
    def are_compiled(self) -> bool:
        """Whether filters are read by the compiled module."""
        return self._module is not None

    def answer(self, known: Known, kernel: CompiledWalk, effort: Effort) -> Answer:
        """The answer of one box, as :meth:`answers` gives it, in one compiled call."""
        if known.answer is not None:
            return known.clip(known.answer, 0)
        crossed = known.box.hints
        assert isinstance(crossed, CompiledCrossed)
        answer, parts = kernel.ask(crossed.compiled, effort, RARE)
        columns = known.columns
        checks = [
            PartCheck(
                (columns[part.first],) if part.first == part.last else (columns[part.first], columns[part.last]),
                part.counted,
                part.density,
                int(part.forward_rows),
            )
            for part in parts
        ]
        star = known.star
        if star is not None and answer.density * self.pairs.rows < RARE:
            own = self.crossed(star.box.filters)
            assert isinstance(own, CompiledCrossed)
            checks.append(_check(star, kernel.ask(own.compiled, effort, 0.0)[0]))
        return known.improve(answer, checks)

    def kept(self, pair: tuple[int, int], make: Callable[[], FloatArray]) -> FloatArray:
        """A table about two columns that is made when it is first asked for."""
        if pair not in self._kept:
            self._kept[pair] = make()
        return self._kept[pair]

    def filter_counts(self, item: Filter) -> FilterCounts:
        """What counts say of one filter, found once while the filter is kept."""
        derived = item.constraint.derived
        counts: FilterCounts | None = derived.get(self)
        if counts is None:
            counts = derived[self] = self._counted(item)
        return counts

    def _counted(self, item: Filter) -> FilterCounts:
        constraint, column = item.constraint, self._columns[item.positions]
        weights = flat_weights(constraint)
        if self._module is None:
            inside: BoolArray = weights if weights.dtype == np.bool_ else weights > 0
            split = inside is not weights and not np.array_equal(inside, weights == 1.0)
            rows = None if split else int(np.add.reduce(self.pairs.counts[column][inside]))
            return FilterCounts(rows, int(np.count_nonzero(weights)))
        reading_of = item.positions, constraint.radices, constraint.start == FREE, constraint.listed
        reading, most, values, parts = self._module.reading(self._tables, column, weights, *reading_of)
        return FilterCounts(None if parts else most, values, reading)

    def crossed(self, filters: Sequence[Filter]) -> Crossed | CompiledCrossed:
        """The filters of a box among the counts."""
        columns = [self._columns[item.positions] for item in filters]
        if self._module is None:
            return Crossed.by_numpy(self.pairs, self._sums, list(zip(columns, filters, strict=True)))
        readings = tuple([(item.constraint.derived.get(self) or self.filter_counts(item)).reading for item in filters])
        return CompiledCrossed(self._module, readings, self.pairs, self._sums, columns)

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

    def known(self, box: Box) -> Known:
        """What the counts say of a box that has filters."""
        rows, crossed = self.pairs.rows, self.crossed(box.filters)
        columns = tuple([self._columns[item.positions] for item in box.filters])
        least, most, one, two, counted = crossed.bounds()
        tightest: tuple[int, ...] = (columns[one],) if one == two else (columns[one], columns[two])
        if isinstance(crossed, CompiledCrossed):
            stars = crossed.stars
        else:
            stars = self._wide.stars(list(zip(columns, box.filters, strict=True)))
        whole = None
        for star in stars:
            if len(star.places) == len(columns):
                least, whole = max(least, star.least), star
            if star.most < most:
                most, tightest = star.most, tuple([columns[place] for place in star.places])
        least = min(most, least)
        answer = None
        if least == most:
            answer = _answer_of(box, most / rows, counted=True)
        elif whole is not None:
            answer = _answer_of(box, min(max(whole.rows, least), most) / rows, counted=False)
        elif len(columns) == 1:
            share = float(self.pairs.counts[columns[0]] @ box.filters[0].constraint.weights) / rows
            answer = _answer_of(box, share, counted=False)
        hinted = Box(box.filters, box.texts, crossed)
        return Known(hinted, rows, least / rows, most / rows, columns, tightest, answer, tuple(stars), counted)


def _check(part: FilterDensity, answer: Answer) -> PartCheck:
    return PartCheck(part.columns, part.density, answer.density, answer.forward_rows)


def _parts(known: Known, crossed: Crossed) -> list[FilterDensity]:
    """The rarest filter, and the pairs of filters that have most to do with each other, where they are known."""
    is_known = crossed.most <= NEAR * crossed.least
    counts = np.sqrt(np.maximum(crossed.least, LEAST_ROWS) * np.maximum(crossed.most, LEAST_ROWS))
    alone = counts.diagonal()
    rarest = int(alone.argmin())
    parts: list[tuple[int, ...]] = [(rarest,)] if is_known[rarest, rarest] else []
    ones, twos = np.nonzero(np.triu(is_known, 1))
    if len(ones):
        bonds = np.abs(np.log(counts[ones, twos] * crossed.rows / (alone[ones] * alone[twos])))
        strongest = np.argsort(-bonds, kind="stable")[:PAIRS_ASKED]
        parts += zip(ones[strongest].tolist(), twos[strongest].tolist(), strict=True)
    return [_part(known, part, float(counts[part[0], part[-1]]) / crossed.rows) for part in parts]


def _part(known: Known, chosen: Sequence[int], density: float) -> FilterDensity:
    columns, filters = known.columns, known.box.filters
    box = Box(tuple([filters[index] for index in chosen]))
    return FilterDensity(tuple([columns[index] for index in chosen]), box, density)


def _answer_of(box: Box, density: float, counted: bool) -> Answer:
    positions = tuple([position for item in box.filters for position in item.positions])
    return Answer(density, exact=True, particles=0, visited=positions, forward_rows=0, counted=counted)
