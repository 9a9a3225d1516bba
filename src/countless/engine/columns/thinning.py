"""Unbiased thinning: reduces the number of weighted particles."""

from __future__ import annotations

import numpy as np

from countless.arrays import FloatArray, IntArray

THINNING_POWER = 0.75  # the default exponent of the masses


def thin(
    masses: FloatArray, keep: int, offset: float, power: float = 1.0, hints: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """Choose about ``keep`` of the positive ``masses`` and weights for them, so that every sum keeps its mean.

    Mass ``m`` is included with probability ``pi = min(1, m**power / c)``, where ``c`` makes the probabilities add up
    to ``keep``, and gets the weight ``m / pi``; so heavy masses do not change. ``power=1`` is Fearnhead and Clifford's
    rule, which has the least variance for the sum so far. A smaller power keeps more of the light masses, which later
    filters may favour. ``hints``, one for each mass, estimate how much they do: ``m**power * hint`` then replaces
    ``m**power``.

    The choice is systematic over the whole list as one population, from one random ``offset`` in [0, 1).

    >>> survivors, weights = thin(np.array([8.0, 1.0, 1.0]), 2, 0.3)
    >>> survivors[0], weights.tolist()
    (np.int64(0), [8.0, 2.0])
    """
    if len(masses) <= keep:
        return np.arange(len(masses)), masses
    sizes = masses if power == 1.0 else masses**power
    inclusion = inclusion_probabilities(sizes if hints is None else sizes * hints, keep)
    edges = np.cumsum(inclusion)
    # Points are 1 apart, from one shared offset. A mass survives if a point lies in [previous edge, edge).
    points = np.floor(edges - offset).astype(np.int64)
    survivors = np.flatnonzero(np.concatenate([points[:1] >= 0, points[1:] > points[:-1]]))
    return survivors, masses[survivors] / inclusion[survivors]


def thin_scattered(
    masses: FloatArray, keep: int, offset: float, power: float = 1.0, hints: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """Like :func:`thin`, but over the masses in a scattered order. The survivors are returned in ascending order.

    Parents of equal mass have children that fill equal intervals of the systematic choice. With one shared offset every
    parent would keep the child at the same quantile, and the particles would be far from independent.
    """
    if len(masses) <= keep:
        return np.arange(len(masses)), masses
    order = scattered(len(masses), offset)
    survivors, weights = thin(masses[order], keep, offset, power, None if hints is None else hints[order])
    ascending = np.argsort(order[survivors])
    return order[survivors][ascending], weights[ascending]


def scattered(count: int, offset: float) -> IntArray:
    """The numbers below ``count`` in an order in which neighbours are far apart. Each ``offset`` has its own order.

    >>> scattered(8, 0.3).tolist()
    [6, 5, 4, 2, 0, 3, 7, 1]
    """
    bits = max(1, (count - 1).bit_length())
    mask, shift = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
    numbers = np.arange(1 << bits, dtype=np.uint64)
    numbers = (numbers * np.uint64(2654435761) + np.uint64(int(offset * 2**32))) & mask
    numbers ^= numbers >> shift
    numbers = numbers * np.uint64(2246822507) & mask
    numbers ^= numbers >> shift
    return numbers[numbers < count].astype(np.int64)


def even_hints(masses: FloatArray, labels: IntArray, power: float, hints: FloatArray) -> FloatArray:
    """Hints that give each label a number of particles in proportion to the square root of its mass.

    >>> even_hints(np.array([8.0, 8.0, 1.0]), np.array([0, 0, 1]), 1.0, np.ones(3)).tolist()
    [0.25, 0.25, 1.0]
    """
    sums = np.bincount(labels, masses**power * hints)
    scale = np.where(sums > 0, 1.0 / np.sqrt(np.where(sums > 0, sums, 1.0)), 0.0)
    evened: FloatArray = hints * scale[labels]
    return evened


def inclusion_probabilities(sizes: FloatArray, keep: int) -> FloatArray:
    """``min(1, size / c)`` with ``c`` such that they add up to ``keep``.

    >>> inclusion_probabilities(np.array([6.0, 1.0, 1.0, 2.0]), 2).tolist()
    [1.0, 0.25, 0.25, 0.5]
    """
    descending = np.sort(sizes)[::-1]
    rest = np.cumsum(descending[::-1])[::-1]  # rest[k]: sum without the k largest
    certain = np.arange(keep)
    # With k masses kept for certain, c = rest[k] / (keep - k). The first k whose next mass is below c is right.
    thresholds = rest[:keep] / (keep - certain)
    fits = np.flatnonzero(descending[:keep] < thresholds)
    threshold = thresholds[fits[0]] if len(fits) else descending[keep - 1]
    probabilities: FloatArray = np.minimum(1.0, sizes / threshold)
    return probabilities
