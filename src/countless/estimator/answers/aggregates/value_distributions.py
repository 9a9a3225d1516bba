"""How the rows of groups are spread over the values of a column, by the model or with the evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.cached_property import cached_property
from countless.estimator.answers.aggregates.aggregate_intervals import Bars, Ends
from countless.estimator.answers.aggregates.mean_fusion import FusedMeans, Rows, fused_means
from countless.estimator.answers.aggregates.quantiles import Ranked
from countless.estimator.answers.distributions.values import Values
from countless.query.grids.scale import scale_of
from countless.query.select.selection import Aggregate

Texts = list[str | None]
SQUARES_CAUTION = 1.3  # a sample hardly knows how much its squares vary: few of them are large
NEARLY_ALL = 0.999  # of the weight is on the hits: their own values are all that counts


class GroupValueDistribution:
    """How the rows of each group are spread over the values of one column.

    ``owner``, ``codes`` and ``rows`` have an element for each value of each group that is not NULL and has rows, in
    this order. ``bars`` are those of what they were found in.
    """

    def __init__(
        self, values: Values, groups: int, owner: IntArray, codes: IntArray, rows: FloatArray, bars: Bars
    ) -> None:
        self.values = values
        self.groups = groups
        self.bars = bars
        self.has_any = np.bincount(owner, rows, groups) > 0
        known = (codes != values.column.null) & (rows > 0)
        self.owner, self.codes, self.rows = owner[known], codes[known], rows[known]
        self.known = self.summed(np.ones(len(self.codes)))
        self.whole = np.rint(self.known).astype(np.int64)

    def summed(self, amounts: FloatArray) -> FloatArray:
        """For each group the sum of amounts, one for each value, over its rows."""
        with np.errstate(invalid="ignore"):  # infinity is a value too
            return np.bincount(self.owner, self.rows * amounts, self.groups).astype(np.float64)

    @cached_property
    def numbers(self) -> FloatArray:
        """The number that each code stands for."""
        numbers: FloatArray = self.values.means[self.codes]
        return numbers

    @cached_property
    def sums(self) -> FloatArray:
        """For each group the sum of its values."""
        return self.summed(self.numbers)

    @cached_property
    def means(self) -> FloatArray:
        """For each group the mean of its values."""
        return self._shared(self.sums)

    @cached_property
    def squares(self) -> FloatArray:
        """For each code of each group, the mean squared distance of its values from the group's mean."""
        with np.errstate(invalid="ignore"):
            squares: FloatArray = self.values.variances[self.codes] + (self.numbers - self.means[self.owner]) ** 2
        return squares

    @cached_property
    def variances(self) -> FloatArray:
        """For each group the variance of its values."""
        return self._shared(self.summed(self.squares))

    def mean_ends(self) -> Ends:
        """The ends of the error bars of the means."""
        return self.bars.of_mean(self.owner, self.rows, self.numbers, self.means)

    def variance_ends(self) -> Ends:
        """The ends of the error bars of the variances."""
        return self.bars.of_mean(self.owner, self.rows, self.squares, self.variances)

    def quantiles(self, aggregate: Aggregate, kind: str) -> Texts:
        """For each group the quantile, as DuckDB prints it."""
        return [ranked.quantile(aggregate, kind) for ranked in self.ranked]

    def quantile_ends(self, aggregate: Aggregate, kind: str) -> tuple[Texts, Texts]:
        """The ends of the error bars of the quantiles."""
        found = [ranked.bar(aggregate, kind, self.bars) for ranked in self.ranked]
        return [low for low, _ in found], [high for _, high in found]

    @cached_property
    def ranked(self) -> list[Ranked]:
        """For each group its values in their order."""
        ends = np.searchsorted(self.owner, np.arange(self.groups + 1))
        return [
            Ranked(self.values, self.codes[start:end], self.rows[start:end], int(whole))
            for start, end, whole in zip(ends[:-1], ends[1:], self.whole, strict=True)
        ]

    def _shared(self, sums: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            shared: FloatArray = sums / self.known
        return shared


@dataclass(frozen=True, eq=False)
class ColumnSample:
    """The hits of each group that are not NULL in one column, by group: their ``codes`` among the sample's ``values``.

    ``hits`` has how many each group has, those with NULL too; ``cells`` the model's code of each, if it has the column.
    """

    values: Values
    owner: IntArray
    codes: IntArray
    hits: IntArray
    cells: IntArray | None = None

    @classmethod
    def of(
        cls, values: Values, groups: int, owner: IntArray, codes: IntArray, cells: IntArray | None = None
    ) -> ColumnSample:
        """That of hits with an ``owner`` and a code each; an owner of -1 is no group."""
        hits = np.bincount(owner[owner >= 0], minlength=groups)
        known = (owner >= 0) & (codes != values.column.null)
        order = np.lexsort([codes[known], owner[known]])
        return cls(
            values, owner[known][order], codes[known][order], hits, None if cells is None else cells[known][order]
        )


class FusedValueDistribution:
    """The same from a model's distribution and a sample of the groups, which have ``rows`` rows, at most ``most``."""

    def __init__(self, model: GroupValueDistribution, sample: ColumnSample, rows: FloatArray, most: FloatArray) -> None:
        self.model = model
        self.sample = sample
        self.rows = rows
        self.most = most
        self.bars = model.bars
        self.level = model.bars.calibration.level
        self.has_any = model.has_any | bool(sample.hits.any())
        self.whole = np.rint(self.known).astype(np.int64)

    @cached_property
    def _known_shares(self) -> FusedMeans:
        """The share of each group's rows that are not NULL."""
        model, hits = self.model, self.sample.hits
        with np.errstate(invalid="ignore", divide="ignore"):
            said = np.clip(np.where(model.has_any, model.known / self.rows, np.nan), 0.0, 1.0)
            fewer = np.minimum(model.known, np.maximum(self.rows - model.known, 0.0))
            deviation = np.sqrt(said * (1 - said))
            error = deviation**2 * self.bars.factors(fewer)
        seen = np.bincount(self.sample.owner, minlength=len(hits))
        owner = np.repeat(np.arange(len(hits)), hits)
        known = np.concatenate([np.arange(count) < own for count, own in zip(hits, seen, strict=True)] or [[]])
        amounts: FloatArray = known.astype(np.float64)
        return fused_means((said, error, deviation), owner, amounts, (self.rows, self.most), self.level)

    @cached_property
    def known(self) -> FloatArray:
        """How many rows of each group are not NULL."""
        if not self.sample.values.column.has_null and not self.model.values.column.has_null:
            return self.rows
        return np.nan_to_num(self._known_shares.means) * self.rows

    @cached_property
    def _known_rows(self) -> Rows:
        """How many rows are not NULL, and how many may be."""
        with np.errstate(invalid="ignore", divide="ignore"):
            more = np.nan_to_num(self.known / self.rows) * (self.most - self.rows)
        return self.known, self.known + np.maximum(more, 0.0)

    def known_ends(self, low: FloatArray, high: FloatArray) -> Ends:
        """The ends of their error bars, where ``low`` and ``high`` are those of all rows."""
        least, most = self._known_shares.ends(0.0, 1.0)
        return np.nan_to_num(least) * low, np.nan_to_num(most) * high

    @cached_property
    def numbers(self) -> FloatArray:
        """The number of each hit."""
        numbers: FloatArray = self.sample.values.means[self.sample.codes]
        return numbers

    @cached_property
    def _means(self) -> FusedMeans:
        model = self.model
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = self.bars.errors(model.owner, model.rows, model.numbers - model.means[model.owner], model.groups)
            said = model.means, errors, np.sqrt(model.variances)
        return fused_means(said, self.sample.owner, self.numbers, self._known_rows, self.level)

    @property
    def means(self) -> FloatArray:
        """For each group the mean of its values."""
        return self._means.means

    @cached_property
    def sums(self) -> FloatArray:
        """For each group the sum of its values: of the hits, and of other rows that have the mean."""
        owner, others = self.sample.owner, np.nan_to_num(self._means.others, posinf=np.inf, neginf=-np.inf)
        unseen = np.maximum(self.known - np.bincount(owner, minlength=len(self.rows)), 0.0)
        with np.errstate(invalid="ignore"):
            sums: FloatArray = np.bincount(owner, self.numbers, len(self.rows)).astype(np.float64)
            return sums + np.where(unseen > 0, unseen * others, 0.0)

    @cached_property
    def _variances(self) -> FusedMeans:
        model, owner = self.model, self.sample.owner
        hits = np.bincount(owner, minlength=model.groups).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            unseen = np.clip(1 - hits / self.known, 0.0, 1.0)
            center = np.bincount(owner, self.numbers, model.groups) / hits
            # A sample varies less around its own mean than the rows do.
            squares = (self.numbers - center[owner]) ** 2 * (1 + unseen / np.maximum(hits - 1, 1))[owner]
            distances = model.squares - model.variances[model.owner]
            errors = self.bars.errors(model.owner, model.rows, distances, model.groups)
            deviations = np.sqrt(np.bincount(model.owner, model.rows * distances**2, model.groups) / model.known)
            said = model.variances, errors, deviations
        return fused_means(said, owner, squares, self._known_rows, self.level)

    @property
    def variances(self) -> FloatArray:
        """For each group the variance of its values."""
        return self._variances.means

    def mean_ends(self) -> Ends:
        """The ends of the error bars of the means."""
        numbers = [*self.numbers.tolist(), *self.model.numbers.tolist()]
        return self._means.ends(min(numbers, default=-np.inf), max(numbers, default=np.inf))

    def variance_ends(self) -> Ends:
        """The ends of the error bars of the variances."""
        low, high = self._variances.ends(0.0, np.inf)
        off = self.variances - low, high - self.variances
        return np.maximum(self.variances - SQUARES_CAUTION * off[0], 0.0), self.variances + SQUARES_CAUTION * off[1]

    def quantiles(self, aggregate: Aggregate, kind: str) -> Texts:
        """For each group the quantile, as DuckDB prints it."""
        return [ranked.quantile(aggregate, kind) for ranked, _ in self._ranked(aggregate)]

    def quantile_ends(self, aggregate: Aggregate, kind: str) -> tuple[Texts, Texts]:
        """The ends of the error bars of the quantiles."""
        share = float(aggregate.share)
        lows, highs = [], []
        for ranked, off in self._ranked(aggregate):
            low, high = ranked.ends(aggregate, off) if off > 0 else (ranked.quantile(aggregate, kind),) * 2
            lows.append(self._further(low, 0, off >= share > 0))
            highs.append(self._further(high, -1, share + off >= 1 > share))
        return lows, highs

    def _further(self, end: str | None, place: int, open_end: bool) -> str | None:
        """The end of a bar; if it is ``open_end``, the first or last value of all groups' hits, if that is further."""
        if end is None or not open_end or not len(self._everywhere[0]):
            return end
        kind = self.sample.values.column.type
        text = self.sample.values.texts[int(self._everywhere[0][place])]
        assert text is not None
        read, furthest = scale_of(kind).read, min if place == 0 else max
        return furthest(end, text, key=lambda each: read(kind, each))

    def _ranked(self, aggregate: Aggregate) -> list[tuple[Ranked, float]]:
        """For each group its values in their order, and how far off the share of rows below the quantile may be."""
        if aggregate.share not in self._by_share:
            self._by_share[aggregate.share] = self._made(float(aggregate.share))
        return self._by_share[aggregate.share]

    @cached_property
    def _by_share(self) -> dict[str, list[tuple[Ranked, float]]]:
        return {}

    def _made(self, share: float) -> list[tuple[Ranked, float]]:
        sample, groups = self.sample, self.model.groups
        below: FloatArray = np.full(len(sample.owner), share)
        said, errors = np.full(groups, share), np.full(groups, np.sqrt(share * (1 - share)))
        ends = np.searchsorted(sample.owner, np.arange(groups + 1))
        for group, ranked in enumerate(self.model.ranked):
            own = slice(ends[group], ends[group + 1])
            if ranked.whole and sample.cells is not None:
                errors[group] = ranked.share_error(share, self.bars)
                below[own] = ranked.below(share, sample.cells[own])
        deviations = np.full(groups, max(np.sqrt(share * (1 - share)), 1e-3))
        said_shares = said, errors, deviations
        fused = fused_means(said_shares, sample.owner, below, self._known_rows, self.level, share * (1 - share))
        off = np.nan_to_num(fused.reach * fused.errors, nan=1.0)
        return [
            (self._mixed(group, slice(ends[group], ends[group + 1]), float(fused.weights[group])), float(off[group]))
            for group in range(groups)
        ]

    def _mixed(self, group: int, own: slice, weight: float) -> Ranked:
        """The values of a group: so much ``weight`` is on its hits, and the rest on what the model says.

        Where the model says nothing, the hits of all groups stand for it, as one more hit.
        """
        sample, model, whole = self.sample, self.model.ranked[group], int(self.whole[group])
        codes, counts = np.unique(sample.codes[own], return_counts=True)
        hits, rows = int(counts.sum()), float(self.known[group])
        if hits and weight > NEARLY_ALL:
            return Ranked(sample.values, codes, (counts * (rows / hits)).astype(np.float64), whole)
        if not model.whole or sample.cells is None:
            every, all_rows = self._everywhere
            mixed: FloatArray = all_rows * (rows / (hits + 1))
            mixed[np.searchsorted(every, codes)] += counts * (rows / (hits + 1))
            return Ranked(sample.values, every, mixed, whole if len(every) else 0)
        every = np.union1d(model.codes, sample.cells[own])
        mixed = np.zeros(len(every))
        mixed[np.searchsorted(every, model.codes)] += (1 - weight) * model.rows / model.rows.sum()
        np.add.at(mixed, np.searchsorted(every, sample.cells[own]), weight / max(hits, 1))
        texts = CellValues(self.model.values, sample.values, sample.cells[own], sample.codes[own])
        return Ranked(texts, every, mixed * rows, whole)

    @cached_property
    def _everywhere(self) -> tuple[IntArray, FloatArray]:
        """The codes of all hits, and the share of each."""
        codes, counts = np.unique(self.sample.codes, return_counts=True)
        shares: FloatArray = counts / max(1.0, float(counts.sum()))
        return codes, shares


class CellValues:
    """A model's values; a grid's cell that has hits takes its values from these."""

    def __init__(self, model: Values, own: Values, cells: IntArray, codes: IntArray) -> None:
        """``cells``, which rise, are the model's codes of the hits, and ``codes`` those of their ``own`` values."""
        self.column = model.column
        self._model, self._own, self._cells, self._codes = model, own, cells, codes

    def at(self, code: int, point: float) -> str | None:
        """The value of ``code``, as :meth:`Values.at`."""
        start, end = np.searchsorted(self._cells, [code, code + 1]).tolist()
        if self.column.grid is None or start == end:
            return self._model.at(code, point)
        return self._own.texts[int(self._codes[start + min(int(point * (end - start)), end - start - 1)])]
