"""Filling in hidden values: against all rows of a joint distribution, and all strings of a small model."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from countless.arrays import FloatArray
from countless.engine.text.runtime import TextRuntime, shapes
from countless.spec import TextSpec
from countless_lab.paper.completion import ColumnHole, TextHole, fill_column, fill_text
from tests.mocks import JointRuntime

SIZES = (4, 3, 5, 2, 3)
SPEC = TextSpec(characters=2, length=5, width=8, blocks=1, heads=2, inner=8, grams=(2,), buckets=7)


def joint() -> FloatArray:
    masses: FloatArray = np.random.default_rng(0).gamma(0.5, size=SIZES) + 1e-3
    masses /= masses.sum()
    return masses


def truth(hole: ColumnHole) -> FloatArray:
    """The shares of the target's symbols among the rows that have what is known."""
    where = tuple(int(hole.codes[p]) if p in hole.known else slice(None) for p in range(len(SIZES)))
    rest = [p for p in range(len(SIZES)) if p not in hole.known]
    masses: FloatArray = joint()[where].sum(axis=tuple(i for i, p in enumerate(rest) if p != hole.target))
    masses /= masses.sum()
    return masses


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (3, 1, 4, 0, 2)])
@pytest.mark.parametrize("known", [(), (0,), (3, 4), (0, 1, 3, 4)])
def test_columns(order: tuple[int, ...], known: tuple[int, ...]) -> None:
    """A model whose MASK is the true marginal says the truth at once; samples come near it."""
    hole = ColumnHole(np.array([1, 2, 0, 1, 2]), frozenset(known), 2)
    runtime, rng = JointRuntime(joint(), order), np.random.default_rng(1)
    masked = fill_column(runtime, hole, 1, True, rng)
    assert masked.chances == pytest.approx(truth(hole), abs=1e-9)
    sampled = fill_column(runtime, hole, 20_000, False, rng)
    assert sampled.chances == pytest.approx(truth(hole), abs=0.03)
    assert sampled.forward_rows > masked.forward_rows


def text_runtime() -> TextRuntime:
    rng = np.random.default_rng(3)
    return TextRuntime(
        SPEC, {name: rng.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes(SPEC).items()}
    )


def chance_of(runtime: TextRuntime, symbols: tuple[int, ...], start: int) -> float:
    """The chance of these symbols from ``start`` on: after nothing, or after MASK."""
    tree = runtime.tree()
    node, following, chance = start, tree.roots[start] if start else tree.starts[0], 1.0
    for symbol in symbols:
        chance *= float(following[symbol])
        following, node = tree.extend([node], [symbol])[0], tree.size - 1
    return chance


def test_text() -> None:
    runtime = text_runtime()
    letters, start = range(SPEC.characters + 1), 2
    hole = TextHole(np.array([1, 0, 2]), start, 1)
    filled = [(1, letter, 2) for letter in letters]
    masked = np.array([chance_of(runtime, symbols, start) for symbols in filled])
    found = fill_text(runtime, hole, 1, True, np.random.default_rng(0))
    assert found.chances == pytest.approx(masked / masked.sum(), rel=1e-4)
    plain = np.array(
        [
            sum(chance_of(runtime, prefix + symbols, 0) for prefix in product(letters, repeat=start))
            for symbols in filled
        ]
    )
    found = fill_text(runtime, hole, 20_000, False, np.random.default_rng(0))
    assert found.chances == pytest.approx(plain / plain.sum(), abs=0.03)
