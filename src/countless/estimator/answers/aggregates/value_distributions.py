"""Distributions of the rows of groups over the values of a column: by the model, or fused with evidence rows."""

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
SQUARES_CAUTION = 1.3  # widens bars of variances: a sample has too few large squares to tell how much they vary
HITS_ALONE = 0.999  # weight of the hits from which the model's values are ignored


class GroupValueDistribution:
    """The distribution of each group's rows over the values of one column, by the model.

    ``group_ids``, ``codes`` and ``rows`` have an element for each value of each group that is not NULL and has rows,
    sorted by group and code. ``bars`` are the error bars of the joint counts that they are from.
    """

    def __init__(
        self, values: Values, groups: int, group_ids: IntArray, codes: IntArray, rows: FloatArray, bars: Bars
    ) -> None:
        self.values = values
        self.groups = groups
        self.bars = bars
        self.has_any = np.bincount(group_ids, rows, groups) > 0
        non_null = (codes != values.column.null) & (rows > 0)
        self.group_ids, self.codes, self.rows = group_ids[non_null], codes[non_null], rows[non_null]
        self.non_null = self.sum_per_group(np.ones(len(self.codes)))
        self.count = np.rint(self.non_null).astype(np.int64)

    def sum_per_group(self, amounts: FloatArray) -> FloatArray:
        """For each group the sum over its rows of ``amounts``, which has an element for each value."""
        with np.errstate(invalid="ignore"):  # infinity is a value too
            return np.bincount(self.group_ids, self.rows * amounts, self.groups).astype(np.float64)

    @cached_property
    def numbers(self) -> FloatArray:
        """The number that each code stands for."""
        numbers: FloatArray = self.values.means[self.codes]
        return numbers

    @cached_property
    def sums(self) -> FloatArray:
        """For each group the sum of its values."""
        return self.sum_per_group(self.numbers)

    @cached_property
    def means(self) -> FloatArray:
        """For each group the mean of its values."""
        return self._per_row(self.sums)

    @cached_property
    def squares(self) -> FloatArray:
        """For each code of each group, the mean squared distance of its values from the group's mean."""
        with np.errstate(invalid="ignore"):
            squares: FloatArray = self.values.variances[self.codes] + (self.numbers - self.means[self.group_ids]) ** 2
        return squares

    @cached_property
    def variances(self) -> FloatArray:
        """For each group the variance of its values."""
        return self._per_row(self.sum_per_group(self.squares))

    def mean_ends(self) -> Ends:
        """The ends of the error bars of the means."""
        return self.bars.of_mean(self.group_ids, self.rows, self.numbers, self.means)

    def variance_ends(self) -> Ends:
        """The ends of the error bars of the variances."""
        return self.bars.of_mean(self.group_ids, self.rows, self.squares, self.variances)

    def quantiles(self, aggregate: Aggregate, kind: str) -> Texts:
        """For each group the quantile, as DuckDB prints it."""
        return [ranked.quantile(aggregate, kind) for ranked in self.ranked]

    def quantile_ends(self, aggregate: Aggregate, kind: str) -> tuple[Texts, Texts]:
        """The ends of the error bars of the quantiles."""
        ends = [ranked.bar(aggregate, kind, self.bars) for ranked in self.ranked]
        return [low for low, _ in ends], [high for _, high in ends]

    @cached_property
    def ranked(self) -> list[Ranked]:
        """For each group its values in their order."""
        ends = np.searchsorted(self.group_ids, np.arange(self.groups + 1))
        return [
            Ranked(self.values, self.codes[start:end], self.rows[start:end], int(count))
            for start, end, count in zip(ends[:-1], ends[1:], self.count, strict=True)
        ]

    def _per_row(self, sums: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            per_row: FloatArray = sums / self.non_null
        return per_row


@dataclass(frozen=True, eq=False)
class ColumnSample:
    """The hits that are not NULL in one column, sorted by group: their ``codes``, which index the sample's ``values``.

    ``hits`` has the number of hits of each group, NULLs included; ``cells`` has the model's code of each hit, if the
    model has the column.
    """

    values: Values
    group_ids: IntArray
    codes: IntArray
    hits: IntArray
    cells: IntArray | None = None

    @classmethod
    def of(
        cls, values: Values, groups: int, group_ids: IntArray, codes: IntArray, cells: IntArray | None = None
    ) -> ColumnSample:
        """The sample of hits with a group and a code each; the group -1 is none."""
        hits = np.bincount(group_ids[group_ids >= 0], minlength=groups)
        non_null = (group_ids >= 0) & (codes != values.column.null)
        order = np.lexsort([codes[non_null], group_ids[non_null]])
        sorted_cells = None if cells is None else cells[non_null][order]
        return cls(values, group_ids[non_null][order], codes[non_null][order], hits, sorted_cells)


class FusedValueDistribution:
    """A model's distribution, fused with the hits; the groups have ``rows`` rows, and at most ``most``."""

    def __init__(self, model: GroupValueDistribution, sample: ColumnSample, rows: FloatArray, most: FloatArray) -> None:
        self.model = model
        self.sample = sample
        self.rows = rows
        self.most = most
        self.bars = model.bars
        self.level = model.bars.calibration.level
        self.has_any = model.has_any | bool(sample.hits.any())
        self.count = np.rint(self.non_null).astype(np.int64)

    @cached_property
    def _non_null_shares(self) -> FusedMeans:
        """The share of each group's rows that are not NULL."""
        model, hits = self.model, self.sample.hits
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.clip(np.where(model.has_any, model.non_null / self.rows, np.nan), 0.0, 1.0)
            fewer = np.minimum(model.non_null, np.maximum(self.rows - model.non_null, 0.0))
            deviation = np.sqrt(share * (1 - share))
            error = deviation**2 * self.bars.factors(fewer)
        non_null_hits = np.bincount(self.sample.group_ids, minlength=len(hits))
        group_ids = np.repeat(np.arange(len(hits)), hits)
        is_non_null = np.concatenate(
            [np.arange(count) < non_null for count, non_null in zip(hits, non_null_hits, strict=True)] or [[]]
        )
        amounts: FloatArray = is_non_null.astype(np.float64)
        return fused_means((share, error, deviation), group_ids, amounts, (self.rows, self.most), self.level)

    @cached_property
    def non_null(self) -> FloatArray:
        """How many rows of each group are not NULL."""
        if not self.sample.values.column.has_null and not self.model.values.column.has_null:
            return self.rows
        return np.nan_to_num(self._non_null_shares.means) * self.rows

    @cached_property
    def _non_null_rows(self) -> Rows:
        """How many rows are not NULL, and how many may be."""
        with np.errstate(invalid="ignore", divide="ignore"):
            spare_rows = np.nan_to_num(self.non_null / self.rows) * (self.most - self.rows)
        return self.non_null, self.non_null + np.maximum(spare_rows, 0.0)

    def non_null_ends(self, low: FloatArray, high: FloatArray) -> Ends:
        """The error bars of the rows that are not NULL; ``low`` and ``high`` are those of all rows."""
        least, most = self._non_null_shares.ends(0.0, 1.0)
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
            distances = model.numbers - model.means[model.group_ids]
            errors = self.bars.errors(model.group_ids, model.rows, distances, model.groups)
            model_moments = model.means, errors, np.sqrt(model.variances)
        return fused_means(model_moments, self.sample.group_ids, self.numbers, self._non_null_rows, self.level)

    @property
    def means(self) -> FloatArray:
        """For each group the mean of its values."""
        return self._means.means

    @cached_property
    def sums(self) -> FloatArray:
        """For each group the sum of its values: of the hits, and of the other rows by their mean."""
        group_ids = self.sample.group_ids
        unseen_means = np.nan_to_num(self._means.unseen_means, posinf=np.inf, neginf=-np.inf)
        unseen_rows = np.maximum(self.non_null - np.bincount(group_ids, minlength=len(self.rows)), 0.0)
        with np.errstate(invalid="ignore"):
            sums: FloatArray = np.bincount(group_ids, self.numbers, len(self.rows)).astype(np.float64)
            return sums + np.where(unseen_rows > 0, unseen_rows * unseen_means, 0.0)

    @cached_property
    def _variances(self) -> FusedMeans:
        model, group_ids = self.model, self.sample.group_ids
        hits = np.bincount(group_ids, minlength=model.groups).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            unseen_share = np.clip(1 - hits / self.non_null, 0.0, 1.0)
            center = np.bincount(group_ids, self.numbers, model.groups) / hits
            # A sample varies less around its own mean than the rows do.
            squares = (self.numbers - center[group_ids]) ** 2 * (1 + unseen_share / np.maximum(hits - 1, 1))[group_ids]
            distances = model.squares - model.variances[model.group_ids]
            errors = self.bars.errors(model.group_ids, model.rows, distances, model.groups)
            deviations = np.sqrt(np.bincount(model.group_ids, model.rows * distances**2, model.groups) / model.non_null)
            model_moments = model.variances, errors, deviations
        return fused_means(model_moments, group_ids, squares, self._non_null_rows, self.level)

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
        below, above = self.variances - low, high - self.variances
        return np.maximum(self.variances - SQUARES_CAUTION * below, 0.0), self.variances + SQUARES_CAUTION * above

    def quantiles(self, aggregate: Aggregate, kind: str) -> Texts:
        """For each group the quantile, as DuckDB prints it."""
        return [ranked.quantile(aggregate, kind) for ranked, _ in self._ranked(aggregate)]

    def quantile_ends(self, aggregate: Aggregate, kind: str) -> tuple[Texts, Texts]:
        """The ends of the error bars of the quantiles."""
        share = float(aggregate.share)
        lows, highs = [], []
        for ranked, error in self._ranked(aggregate):
            low, high = ranked.ends(aggregate, error) if error > 0 else (ranked.quantile(aggregate, kind),) * 2
            lows.append(self._extend(low, 0, error >= share > 0))
            highs.append(self._extend(high, -1, share + error >= 1 > share))
        return lows, highs

    def _extend(self, end: str | None, index: int, is_open: bool) -> str | None:
        """The end of a bar. An open end extends to the value at ``index`` (0 or -1) of all hits, if that is further."""
        codes, _ = self._all_hits
        if end is None or not is_open or not len(codes):
            return end
        kind = self.sample.values.column.type
        text = self.sample.values.texts[int(codes[index])]
        assert text is not None
        read, furthest = scale_of(kind).read, min if index == 0 else max
        return furthest(end, text, key=lambda value: read(kind, value))

    def _ranked(self, aggregate: Aggregate) -> list[tuple[Ranked, float]]:
        """For each group its values in order, and the error of the share of rows that are below the quantile."""
        if aggregate.share not in self._by_share:
            self._by_share[aggregate.share] = self._rank(float(aggregate.share))
        return self._by_share[aggregate.share]

    @cached_property
    def _by_share(self) -> dict[str, list[tuple[Ranked, float]]]:
        return {}

    def _rank(self, share: float) -> list[tuple[Ranked, float]]:
        """The values and the error of each group, for the quantile at ``share``."""
        sample, groups = self.sample, self.model.groups
        below: FloatArray = np.full(len(sample.group_ids), share)
        model_shares, errors = np.full(groups, share), np.full(groups, np.sqrt(share * (1 - share)))
        ends = np.searchsorted(sample.group_ids, np.arange(groups + 1))
        for group, ranked in enumerate(self.model.ranked):
            hit_range = slice(ends[group], ends[group + 1])
            if ranked.count and sample.cells is not None:
                errors[group] = ranked.share_error(share, self.bars)
                below[hit_range] = ranked.below(share, sample.cells[hit_range])
        deviations = np.full(groups, max(np.sqrt(share * (1 - share)), 1e-3))
        model_moments = model_shares, errors, deviations
        fused = fused_means(
            model_moments, sample.group_ids, below, self._non_null_rows, self.level, share * (1 - share)
        )
        error = np.nan_to_num(fused.reach * fused.errors, nan=1.0)
        return [
            (self._mix(group, slice(ends[group], ends[group + 1]), float(fused.weights[group])), float(error[group]))
            for group in range(groups)
        ]

    def _mix(self, group: int, hit_range: slice, weight: float) -> Ranked:
        """The values of a group: its hits with this ``weight``, and the model's values with the rest.

        If the model knows nothing of the group, the hits of all groups replace it, with the weight of one hit.
        """
        sample, model, count = self.sample, self.model.ranked[group], int(self.count[group])
        codes, counts = np.unique(sample.codes[hit_range], return_counts=True)
        hits, rows = int(counts.sum()), float(self.non_null[group])
        if hits and weight > HITS_ALONE:
            return Ranked(sample.values, codes, (counts * (rows / hits)).astype(np.float64), count)
        if not model.count or sample.cells is None:
            all_codes, all_rows = self._all_hits
            mixed_rows: FloatArray = all_rows * (rows / (hits + 1))
            mixed_rows[np.searchsorted(all_codes, codes)] += counts * (rows / (hits + 1))
            return Ranked(sample.values, all_codes, mixed_rows, count if len(all_codes) else 0)
        all_codes = np.union1d(model.codes, sample.cells[hit_range])
        mixed_rows = np.zeros(len(all_codes))
        mixed_rows[np.searchsorted(all_codes, model.codes)] += (1 - weight) * model.rows / model.rows.sum()
        np.add.at(mixed_rows, np.searchsorted(all_codes, sample.cells[hit_range]), weight / max(hits, 1))
        values = CellValues(self.model.values, sample.values, sample.cells[hit_range], sample.codes[hit_range])
        return Ranked(values, all_codes, mixed_rows * rows, count)

    @cached_property
    def _all_hits(self) -> tuple[IntArray, FloatArray]:
        """The codes of all hits, and the share of each."""
        codes, counts = np.unique(self.sample.codes, return_counts=True)
        shares: FloatArray = counts / max(1.0, float(counts.sum()))
        return codes, shares


class CellValues:
    """A model's values, but a grid's cell that has hits has the values of these hits.

    ``cells``, which are sorted, are the model's codes of the hits, and ``codes`` the hits' codes in ``hit_values``.
    """

    def __init__(self, model: Values, hit_values: Values, cells: IntArray, codes: IntArray) -> None:
        self.column = model.column
        self._model, self._hit_values, self._cells, self._codes = model, hit_values, cells, codes

    def value_at(self, code: int, point: float) -> str | None:
        """The value of ``code``, as :meth:`Values.value_at`."""
        start, end = np.searchsorted(self._cells, [code, code + 1]).tolist()
        if self.column.grid is None or start == end:
            return self._model.value_at(code, point)
        return self._hit_values.texts[int(self._codes[start + min(int(point * (end - start)), end - start - 1)])]
