"""The compiled particle walk, if it was built: :mod:`countless.engine.columns.particles` in C, for a ResMADE.

It reads the same arrays, laid out anew with each row padded to whole vectors, and takes the same random numbers, so it
comes to the same answers but for rounding. Without the compiled module everything runs on NumPy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import FloatArray, IntArray, Weights
from countless.engine.answer import Answer, Effort, PartDensity, Trace, Traced, unrolled
from countless.engine.columns.plan_forest import Forest, Node, forest
from countless.engine.columns.thinning import THINNING_POWER
from countless.region import FREE, Box, DigitSet, Transitions, flat_weights

LANES = 16  # as in the C source
FAR_BELOW = -1e30  # the logit of a symbol that does not exist
Packed = tuple[Any, ...]  # a step: position, depth, whether it ends its box, slot, opens, start, weights, next, hint
End = tuple[tuple[int, ...], Sequence[int]]  # the positions on the way to an end, and the boxes that end there
WHOLE = Answer(1.0, exact=True, particles=1, visited=(), forward_rows=0)  # of a box that asks nothing
SWITCH_OFF = "COUNTLESS_NO_KERNEL"  # an environment variable: if it is set, everything runs on NumPy


def compiled() -> ModuleType | None:
    """The compiled module, unless it was not built or is switched off."""
    if os.environ.get(SWITCH_OFF):
        return None
    try:
        from countless.engine import _kernel
    except ImportError:
        return None
    module: ModuleType = _kernel
    return module


class Kernel:
    """A ResMADE in the compiled module's hands. Safe to share by threads, and it does not hold the interpreter's lock.

    ``first`` (hidden) and ``units`` (layers + 1, hidden) are the first layer's sums and every layer's units when all
    positions are MASK; ``hidden`` has each layer's weight (out, in) and bias.
    """

    def __init__(
        self,
        module: ModuleType,
        order: tuple[int, ...],
        first: Weights,
        units: Weights,
        hidden: Sequence[tuple[Weights, Weights]],
        positions: Sequence[PositionArrays],
    ) -> None:
        self._module = module
        self._order = order
        self._sizes = tuple(len(position.bias) for position in positions)
        count = len(first)
        row = _row(count)
        features = positions[0].out.shape[0]
        self._model = module.load(
            count,
            features,
            _rows(first, row),
            _rows(units, row),
            [_rows(weight.T, row) for weight, _ in hidden],
            [_rows(bias, row) for _, bias in hidden],
            [position.packed() for position in positions],
            order,
        )

    def plan(self, boxes: Sequence[Box], hinted: bool = False) -> CompiledBoxes:
        """The boxes made ready, to be walked as often as one likes; if ``hinted``, with their hints."""
        self._tabulate(boxes)
        return CompiledBoxes(self._module, self._model, *_packed(forest(boxes, self._order, hinted)), len(boxes))

    def ask(
        self, question: object, star: tuple[tuple[int, ...], float] | None, effort: Effort, rare: float
    ) -> tuple[Answer, Sequence[PartDensity]]:
        """The answer of filters that the module has crossed and, if that is below ``rare`` rows, its parts.

        A ``star`` of filters, whose density is known, is one of them. It walks as
        :func:`countless.engine.columns.particle_budget.adaptive` does.
        """
        own = effort
        density, exact, most, visited, rows, variance, parts = self._module.ask(
            self._model, question, star, own.budget, own.most, own.target, THINNING_POWER, own.offsets, own.again, rare
        )
        return Answer(density, exact, most, visited, rows, None if exact else math.sqrt(variance)), parts

    def _tabulate(self, boxes: Sequence[Box]) -> None:
        """Make the tables of digits in compiled code."""
        for constraint in [item.constraint for box in boxes for item in box.filters]:
            if isinstance(constraint, DigitSet) and constraint.start != FREE and not constraint.is_tabulated:
                constraint.adopt(tabulated(constraint, self._module))

    def trace(self, asked: Trace, budget: int, offsets: FloatArray) -> Traced:
        """What :func:`countless.engine.columns.trace.trace` finds."""
        self._tabulate([asked.box])
        nodes = forest([asked.box], self._order, hinted=True).nodes
        positions = [node.step.position for node in nodes]
        labelled = np.array([position in asked.labels for position in positions], dtype=np.int64)
        expand = asked.expands(positions[-1])
        masses, levels, exact, _, rows = self._module.trace(
            self._model,
            np.array(asked.budgets(positions, budget), dtype=np.int64),
            asked.power,
            offsets,
            [_packed_step(node) for node in nodes],
            labelled,
            expand,
            asked.scattered,
        )
        read = [
            (position, _numbers(parents), _numbers(symbols))
            for position, (parents, symbols) in zip(positions, levels, strict=False)
        ]
        found = np.frombuffer(masses)
        return Traced(unrolled(read, len(found), self._sizes), found, exact, int(rows))


class CompiledBoxes:
    """Boxes that are ready to be walked: their ``steps``, and where each of ``count`` boxes ends."""

    def __init__(self, module: ModuleType, model: object, steps: list[Packed], ends: Sequence[End], count: int) -> None:
        self._module, self._model, self._steps, self._ends, self._count = module, model, steps, ends, count

    def walk(self, budget: int, power: float, offsets: FloatArray) -> list[Answer]:
        """The answer of every box, as :func:`countless.engine.columns.particles.particles` gives it."""
        found = self._module.walk(self._model, budget, power, offsets, self._steps)
        answers = [WHOLE] * self._count
        for (visited, boxes), (density, exact, most, rows, variance) in zip(self._ends, found, strict=True):
            error = None if exact else math.sqrt(variance)
            answer = Answer(density, exact, most, visited, int(rows), error)
            for index in boxes:
                answers[index] = answer
        return answers


class PositionArrays:
    """What leads from units to one position's logits, and from its symbols to the units.

    ``delta`` is what each symbol adds to the first layer, as :func:`padded_units`; ``out`` (features, cut) and
    ``out_bias`` lead to features, ``tied`` (size, features) and ``bias`` from there to logits.
    """

    def __init__(self, delta: Weights, out: Weights, out_bias: Weights, tied: Weights, bias: Weights) -> None:
        self.delta, self.out, self.out_bias, self.tied, self.bias = delta, out, out_bias, tied, bias

    def packed(self) -> tuple[Any, ...]:
        """The arrays in the order and layout that the compiled module takes.

        The two linear maps are made one where that is less work: a small position's units lead straight to its logits.
        """
        size, features = self.tied.shape
        cut = self.out.shape[1]
        if cut * _padded(size) <= cut * _padded(features) + features * _padded(size):
            straight = self.tied @ self.out  # (size, cut)
            bias = self.tied @ self.out_bias + self.bias
            return size, cut, True, self.delta, _rows(straight.T, _padded(size)), _logit_row(bias), None, None
        out, out_bias = _rows(self.out.T, _padded(features)), _rows(self.out_bias, _padded(features))
        return size, cut, False, self.delta, out, out_bias, _rows(self.tied.T, _padded(size)), _logit_row(self.bias)


def tabulated(constraint: DigitSet, module: ModuleType) -> tuple[Transitions, ...]:
    """The transitions of a constraint, made in compiled code."""
    radices = constraint.radices
    found = module.digits(flat_weights(constraint), radices, constraint.listed)
    tables = []
    for radix, (weights, following) in zip(radices, found, strict=True):
        states = np.frombuffer(following, dtype=np.int64).reshape(-1, radix + 1)
        tables.append(Transitions(np.frombuffer(weights).reshape(-1, radix + 1), states))
    return tuple(tables)


def _packed(trees: Forest) -> tuple[list[Packed], list[End]]:
    """The steps of a forest, and where boxes end."""
    ends: list[End] = []
    way: list[int] = []
    for node in trees.nodes:
        way[node.depth :] = [node.step.position]
        if node.ends:
            ends.append((tuple(way), node.ends))
    return [_packed_step(node) for node in trees.nodes], ends


def _packed_step(node: Node) -> Packed:
    transitions = node.step.transitions
    return (
        node.step.position,
        node.depth,
        bool(node.ends),
        node.slot,
        node.opens,
        node.start,
        transitions.weights,
        transitions.next,
        node.hint,
    )


def _numbers(data: bytes) -> IntArray:
    return np.frombuffer(data, dtype=np.int32).astype(np.int64)


def padded_units(rows: Weights) -> Weights:
    """Rows of hidden units (rows, hidden), each padded as the compiled module reads them."""
    return _rows(rows, _row(rows.shape[-1]))


def _row(hidden: int) -> int:
    return _padded(hidden) + LANES


def _padded(width: int) -> int:
    return -(-width // LANES) * LANES


def _rows(array: NDArray[np.float32], width: int, fill: float = 0.0) -> NDArray[np.float32]:
    """The array with its last axis padded to ``width``."""
    padded = np.full((*array.shape[:-1], width), fill, dtype=np.float32)
    padded[..., : array.shape[-1]] = array
    return padded


def _logit_row(bias: Weights) -> Weights:
    return _rows(bias, _padded(len(bias)), FAR_BELOW)
