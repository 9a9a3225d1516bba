"""Models with known probabilities, which test the engine with no training."""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.engine.columns.row_runtime import RowsRuntime
from countless.region import Box, DigitSet, Filter, ValueSet


class MockRuntime(RowsRuntime):
    """Asks :meth:`row_logits` for each row."""

    def __init__(self, sizes: tuple[int, ...], order: tuple[int, ...] | None = None) -> None:
        super().__init__(sizes, order or tuple(range(len(sizes))))

    def row_logits(self, row: tuple[int, ...], position: int) -> FloatArray:
        raise AssertionError

    def conditional(self, codes: IntArray, position: int) -> FloatArray:
        return np.stack([self.row_logits(self._past(row, position), position) for row in codes.tolist()])

    def _past(self, row: list[int], position: int) -> tuple[int, ...]:
        """The row with MASK at ``position`` and everything after it in the order."""
        rank = self._order.index(position)
        past = set(self._order[:rank])
        return tuple(symbol if p in past else self._sizes[p] for p, symbol in enumerate(row))


class PrefixRuntime(MockRuntime):
    """Arbitrary conditionals that depend on the whole past, MASKs included: no joint need agree with them."""

    def __init__(self, sizes: tuple[int, ...], seed: int, order: tuple[int, ...] | None = None) -> None:
        super().__init__(sizes, order)
        self._seed = seed

    def row_logits(self, row: tuple[int, ...], position: int) -> FloatArray:
        digest = hashlib.blake2b(repr((self._seed, row, position)).encode(), digest_size=8).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "little"))
        return rng.normal(scale=1.5, size=self.sizes[position])


class JointRuntime(MockRuntime):
    """A known joint distribution, whose MASK is exact marginalisation: what a perfectly trained model would be."""

    def __init__(self, joint: FloatArray, order: tuple[int, ...] | None = None) -> None:
        super().__init__(joint.shape, order)
        self.joint = joint / joint.sum()

    def row_logits(self, row: tuple[int, ...], position: int) -> FloatArray:
        index = tuple(
            slice(None) if symbol == size else slice(symbol, symbol + 1)
            for symbol, size in zip(row, self.sizes, strict=True)
        )
        others = tuple(axis for axis in range(len(self.sizes)) if axis != position)
        with np.errstate(divide="ignore"):
            logits: FloatArray = np.log(self.joint[index].sum(axis=others))
        return np.maximum(logits, -700.0)


def digit_range(low: int, high: int, radices: tuple[int, ...]) -> DigitSet:
    """``low <= code <= high`` over the digits of a code."""
    codes = np.arange(int(np.prod(radices)))
    return DigitSet((codes >= low) & (codes <= high), radices)


def value_set(position: int, allowed: list[int], size: int) -> Filter:
    """A filter that allows the given symbols of one position."""
    return Filter((position,), ValueSet(np.isin(np.arange(size), allowed).astype(np.float64)))


def brute_force(joint: FloatArray, allowed: dict[int, list[int]]) -> float:
    """The mass of a box of a joint distribution, one cell at a time."""
    choices = [allowed.get(axis, list(range(size))) for axis, size in enumerate(joint.shape)]
    return math.fsum(float(joint[cell]) for cell in itertools.product(*choices)) / float(joint.sum())


def box_of(allowed: dict[int, list[int]], sizes: tuple[int, ...]) -> Box:
    """A box from allowed symbols by position."""
    return Box(tuple(value_set(position, symbols, sizes[position]) for position, symbols in allowed.items()))
