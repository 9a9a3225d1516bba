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

import numpy as np

from countless.arrays import BoolArray, FloatArray
from countless.cached_property import cached_property
from countless.data.summaries.pair_counts import Pairs
from countless.engine.answer import Answer, Effort, PartDensity
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
class KnownPart:
    """Some filters of a box, by their indices, as a box of their own, and the density that they have in the table."""

    filters: tuple[int, ...]
    box: Box
    density: float
    is_star: bool = False


@dataclass(frozen=True)
class CountedPart:
    """Some filters of a box, of which about ``rows`` rows are known, and at most ``most``."""

    box: Box
    rows: float
    most: float


@dataclass(eq=False)
class BoxCounts:
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
    stars: Sequence[Star] = ()
    counted: Sequence[tuple[int, int, int]] = ()

    @cached_property
    def parts(self) -> tuple[KnownPart, ...]:
        """The parts of the box whose density is known, by which the model's answer is corrected; the star is last."""
        if self.answer is not None:
            return ()
        star, crossed = self.star, self.box.hints
        assert isinstance(crossed, Crossed | CompiledCrossed)
        pairs = _parts(crossed.arrays if isinstance(crossed, CompiledCrossed) else crossed)
        parts = [KnownPart(filters, _subbox(self.box, filters), density) for filters, density in pairs]
        if star is not None:
            filters = tuple(sorted(star.filters))
            parts.append(KnownPart(filters, _subbox(self.box, filters), star.rows / self.rows, is_star=True))
        return tuple(parts)

    @cached_property
    def star(self) -> Star | None:
        """The rarest star whose rows are known, if it is a part of the box."""
        rarest = None
        for star in self.stars:
            if star.most > NEAR * star.least or len(star.filters) == len(self.columns):
                continue
            if rarest is None or (star.most, -len(star.filters)) < (rarest.most, -len(rarest.filters)):
                rarest = star
        return rarest

    def rarest_part(self, whole: bool) -> CountedPart | None:
        """The filters of which the fewest rows are known; all of them only if the ``whole`` is asked for."""
        parts: list[tuple[float, int, tuple[int, ...], int]] = [
            (star.rows, -len(star.filters), star.filters, star.most)
            for star in self.stars
            if star.most <= NEAR * star.least
        ]
        parts += [(float(rows), -1 if one == two else -2, (one, two), rows) for one, two, rows in self.counted]
        count = len(self.columns)
        parts = [part for part in parts if whole or -part[1] < count]
        if not parts:
            return None
        rows, _, filters, most = min(parts, key=lambda part: part[:2])
        return CountedPart(_subbox(self.box, sorted(set(filters))), rows, most)

    def improve(self, answer: Answer, checks: Sequence[PartDensity]) -> Answer:
        """The model's answer, corrected by its answers of parts that are known, and within the bounds."""
        floor = LEAST_ROWS / self.rows
        spent, worst = answer.forward_rows, 0.0
        corrected: tuple[int, ...] = ()
        for filters, counted, density, forward_rows in checks:
            spent += forward_rows
            ratio = max(counted, floor) / max(density, floor)
            if ratio > worst:
                worst, corrected = ratio, filters
        if worst <= TRUSTED:
            return self.clip(answer, spent)
        return self.clip(answer, spent, worst / TRUSTED, tuple([self.columns[index] for index in corrected]))

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
        self._columns = {spans: column for column, spans in enumerate(positions)}
        self._cache: dict[tuple[int, int], FloatArray] = {}

    def answers(self, boxes: Sequence[BoxCounts], ask: Callable[[Sequence[Box]], list[Answer]]) -> list[Answer]:
        """The answers of boxes that have filters; ``ask`` gives the model's, of those that counts leave open."""
        open_boxes = [box for box in boxes if box.answer is None]
        walked = ask([box.box for box in open_boxes]) if open_boxes else []
        are_rare = [answer.density * self.pairs.rows < RARE for answer in walked]
        parts = [part for box, is_rare in zip(open_boxes, are_rare, strict=True) if is_rare for part in box.parts]
        densities = iter(ask([self._hinted(part) for part in parts]) if parts else [])
        answers = iter(
            box.improve(answer, [_check(part, next(densities)) for part in box.parts] if is_rare else [])
            for box, answer, is_rare in zip(open_boxes, walked, are_rare, strict=True)
        )
        return [next(answers) if box.answer is None else box.clip(box.answer, 0) for box in boxes]

    @property
    def are_compiled(self) -> bool:
        """Whether filters are read by the compiled module."""
        return self._module is not None

    def answer(self, box: BoxCounts, kernel: CompiledWalk, effort: Effort) -> Answer:
        """The answer of one box, as :meth:`answers` gives it, in one compiled call."""
        if box.answer is not None:
            return box.clip(box.answer, 0)
        crossed, star = box.box.hints, box.star
        assert isinstance(crossed, CompiledCrossed)
        rays = None if star is None else (tuple(sorted(star.filters)), star.rows / box.rows)
        return box.improve(*kernel.ask(crossed.compiled, rays, effort, RARE))

    def cached(self, pair: tuple[int, int], make: Callable[[], FloatArray]) -> FloatArray:
        """A table about two columns that is made when it is first asked for."""
        if pair not in self._cache:
            self._cache[pair] = make()
        return self._cache[pair]

    def filter_counts(self, item: Filter) -> FilterCounts:
        """What counts say of one filter, found once while the filter is kept."""
        derived = item.constraint.derived
        counts: FilterCounts | None = derived.get(self)
        if counts is None:
            counts = derived[self] = self._count(item)
        return counts

    def _count(self, item: Filter) -> FilterCounts:
        constraint, column = item.constraint, self._columns[item.positions]
        weights = flat_weights(constraint)
        if self._module is None:
            inside: BoolArray = weights if weights.dtype == np.bool_ else weights > 0
            is_split = inside is not weights and not np.array_equal(inside, weights == 1.0)
            rows = None if is_split else int(np.add.reduce(self.pairs.counts[column][inside]))
            return FilterCounts(rows, int(np.count_nonzero(weights)))
        reading, most, values, split_codes = self._module.reading(
            self._tables,
            column,
            weights,
            item.positions,
            constraint.radices,
            constraint.start == FREE,
            constraint.listed,
        )
        return FilterCounts(None if split_codes else most, values, reading)

    def crossed(self, filters: Sequence[Filter]) -> Crossed | CompiledCrossed:
        """The filters of a box among the counts."""
        columns = [self._columns[item.positions] for item in filters]
        if self._module is None:
            return Crossed.by_numpy(self.pairs, self._sums, list(zip(columns, filters, strict=True)))
        readings = tuple([(item.constraint.derived.get(self) or self.filter_counts(item)).reading for item in filters])
        return CompiledCrossed(self._module, readings, self.pairs, self._sums, columns)

    def _hinted(self, part: KnownPart) -> Box:
        """A part of a box; with hints if it is a star, since pairs have too few filters to need them."""
        return Box(part.box.filters, (), self.crossed(part.box.filters)) if part.is_star else part.box

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

    def of_box(self, box: Box) -> BoxCounts:
        """What the counts say of a box that has filters."""
        rows, filters = self.pairs.rows, box.filters
        columns = tuple([self._columns[item.positions] for item in filters])
        if len(filters) == 1 and (counted := self.filter_counts(filters[0]).rows) is not None:
            share = counted / rows
            answer: Answer | None = _answer_of(box, share, counted=True)
            return BoxCounts(box, rows, share, share, columns, columns, answer, (), [(0, 0, counted)])
        crossed = self.crossed(filters)
        least, most, one, two, counted_parts = crossed.bounds()
        tightest: tuple[int, ...] = (columns[one],) if one == two else (columns[one], columns[two])
        if isinstance(crossed, CompiledCrossed):
            stars = crossed.stars
        else:
            stars = self._wide.stars(list(zip(columns, filters, strict=True)))
        star_of_all = None
        for star in stars:
            if len(star.filters) == len(columns):
                least, star_of_all = max(least, star.least), star
            if star.most < most:
                most, tightest = star.most, tuple([columns[index] for index in star.filters])
        least = min(most, least)
        answer = None
        if least == most:
            answer = _answer_of(box, most / rows, counted=True)
        elif star_of_all is not None:
            answer = _answer_of(box, min(max(star_of_all.rows, least), most) / rows, counted=False)
        elif len(columns) == 1:
            share = float(self.pairs.counts[columns[0]] @ filters[0].constraint.weights) / rows
            answer = _answer_of(box, share, counted=False)
        hinted = Box(filters, box.texts, crossed)
        return BoxCounts(hinted, rows, least / rows, most / rows, columns, tightest, answer, stars, counted_parts)


def _check(part: KnownPart, answer: Answer) -> PartDensity:
    return part.filters, part.density, answer.density, answer.forward_rows


def _parts(crossed: Crossed) -> list[tuple[tuple[int, ...], float]]:
    """The rarest filter, and the pairs of filters that have most to do with each other, where these are known."""
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
    return [(filters, float(counts[filters[0], filters[-1]]) / crossed.rows) for filters in parts]


def _subbox(box: Box, filters: Sequence[int]) -> Box:
    return Box(tuple([box.filters[index] for index in filters]))


def _answer_of(box: Box, density: float, counted: bool) -> Answer:
    positions = tuple([position for item in box.filters for position in item.positions])
    return Answer(density, exact=True, particles=0, visited=positions, forward_rows=0, counted=counted)
