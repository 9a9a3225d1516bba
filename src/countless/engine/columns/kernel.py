"""The compiled particle walk of a ResMADE: :mod:`countless.engine.columns.particles` in C.

It reads the same arrays, copied with each row padded to whole vectors, and takes the same random numbers, so its
answers differ by rounding only. If the compiled module was not built, everything runs on NumPy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import FloatArray, IntArray, Weights
from countless.engine.answer import Answer, Effort, PartDensity, Trace, Traced, symbol_rows
from countless.engine.columns.plan_forest import Forest, Node, forest
from countless.engine.columns.thinning import THINNING_POWER
from countless.region import FREE, Box, DigitSet, Transitions, flat_weights

LANES = 16  # as in the C source
FAR_BELOW = -1e30  # the logit of a symbol that does not exist
PackedStep = tuple[Any, ...]  # position, depth, is_end, slot, is_first, start, weights, next, hint
End = tuple[tuple[int, ...], Sequence[int]]  # the visited positions, and the boxes that end there
WHOLE = Answer(1.0, exact=True, particles=1, visited=(), forward_rows=0)  # of a box without filters
SWITCH_OFF = "COUNTLESS_NO_KERNEL"  # an environment variable: if it is set, everything runs on NumPy


def compiled() -> ModuleType | None:
    """The compiled module, unless it was not built or is switched off."""
    return None if os.environ.get(SWITCH_OFF) else _built()


@cache
def _built() -> ModuleType | None:
    try:
        from countless.engine import _kernel
    except ImportError:
        return None
    module: ModuleType = _kernel
    return module


class Kernel:
    """A ResMADE, loaded into the compiled module. Threads may share it; it releases the interpreter's lock.

    ``first`` (hidden) has the sums of the first layer and ``units`` (layers + 1, hidden) the units of every layer when
    all positions are MASK. ``hidden`` has each layer's weight (out, in) and bias.
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
        row_width = _row_width(count)
        features = positions[0].out.shape[0]
        self._model = module.load(
            count,
            features,
            _padded_rows(first, row_width),
            _padded_rows(units, row_width),
            [_padded_rows(weight.T, row_width) for weight, _ in hidden],
            [_padded_rows(bias, row_width) for _, bias in hidden],
            [position.packed() for position in positions],
            order,
        )

    def plan(self, boxes: Sequence[Box], hinted: bool = False) -> CompiledBoxes:
        """The boxes, prepared for any number of walks; if ``hinted``, with their hints."""
        self._tabulate(boxes)
        return CompiledBoxes(self._module, self._model, *_packed_forest(forest(boxes, self._order, hinted)), len(boxes))

    def ask(
        self, question: object, star: tuple[tuple[int, ...], float] | None, effort: Effort, rare: float
    ) -> tuple[Answer, Sequence[PartDensity]]:
        """The answer of filters with pair counts. Below ``rare`` rows it comes with the densities of its parts.

        A ``star`` of filters, whose density is known, is one of them. It walks as
        :func:`countless.engine.columns.particle_budget.adaptive` does.
        """
        density, exact, most, visited, rows, variance, parts = self._module.ask(
            self._model,
            question,
            star,
            effort.budget,
            effort.most,
            effort.target,
            THINNING_POWER,
            effort.offsets,
            effort.retry_offsets,
            rare,
        )
        return Answer(density, exact, most, visited, rows, None if exact else math.sqrt(variance)), parts

    def _tabulate(self, boxes: Sequence[Box]) -> None:
        """Compute the transitions of digit sets in compiled code."""
        for constraint in [box_filter.constraint for box in boxes for box_filter in box.filters]:
            if isinstance(constraint, DigitSet) and constraint.start != FREE and not constraint.is_tabulated:
                constraint.adopt(tabulated(constraint, self._module))

    def trace(self, request: Trace, budget: int, offsets: FloatArray) -> Traced:
        """The rows that :func:`countless.engine.columns.trace.trace` returns."""
        self._tabulate([request.box])
        nodes = forest([request.box], self._order, hinted=True).nodes
        positions = [node.step.position for node in nodes]
        labelled = np.array([position in request.labels for position in positions], dtype=np.int64)
        expand = request.expands(positions[-1])
        masses, packed_levels, exact, _, rows = self._module.trace(
            self._model,
            np.array(request.budgets(positions, budget), dtype=np.int64),
            request.power,
            offsets,
            [_packed_step(node) for node in nodes],
            labelled,
            expand,
            request.scattered,
        )
        levels = [
            (position, _int64(parents), _int64(symbols))
            for position, (parents, symbols) in zip(positions, packed_levels, strict=False)
        ]
        row_masses = np.frombuffer(masses)
        return Traced(symbol_rows(levels, len(row_masses), self._sizes), row_masses, exact, int(rows))


class CompiledBoxes:
    """Boxes that are prepared for walks: their ``steps``, and where each of ``count`` boxes ends."""

    def __init__(
        self, module: ModuleType, model: object, steps: list[PackedStep], ends: Sequence[End], count: int
    ) -> None:
        self._module, self._model, self._steps, self._ends, self._count = module, model, steps, ends, count

    def walk(self, budget: int, power: float, offsets: FloatArray) -> list[Answer]:
        """The answer of every box, as :func:`countless.engine.columns.particles.particles` gives it."""
        results = self._module.walk(self._model, budget, power, offsets, self._steps)
        answers = [WHOLE] * self._count
        for (visited, boxes), (density, exact, most, rows, variance) in zip(self._ends, results, strict=True):
            error = None if exact else math.sqrt(variance)
            answer = Answer(density, exact, most, visited, int(rows), error)
            for index in boxes:
                answers[index] = answer
        return answers


class PositionArrays:
    """The weights of one position: from its symbols to units, and from units to its logits.

    ``delta`` is what each symbol adds to the first layer, as :func:`padded_units`. ``out`` (features, cut) and
    ``out_bias`` map units to features, ``tied`` (size, features) and ``bias`` map features to logits.
    """

    def __init__(self, delta: Weights, out: Weights, out_bias: Weights, tied: Weights, bias: Weights) -> None:
        self.delta, self.out, self.out_bias, self.tied, self.bias = delta, out, out_bias, tied, bias

    def packed(self) -> tuple[Any, ...]:
        """The arrays in the order and layout that the compiled module takes.

        If it saves work, the two linear maps are multiplied into one that leads from units straight to logits.
        """
        size, features = self.tied.shape
        cut = self.out.shape[1]
        if cut * _padded(size) <= cut * _padded(features) + features * _padded(size):
            straight = self.tied @ self.out  # (size, cut)
            bias = self.tied @ self.out_bias + self.bias
            return size, cut, True, self.delta, _padded_rows(straight.T, _padded(size)), _logit_row(bias), None, None
        out, out_bias = _padded_rows(self.out.T, _padded(features)), _padded_rows(self.out_bias, _padded(features))
        tied = _padded_rows(self.tied.T, _padded(size))
        return size, cut, False, self.delta, out, out_bias, tied, _logit_row(self.bias)


def tabulated(constraint: DigitSet, module: ModuleType) -> tuple[Transitions, ...]:
    """The transitions of a constraint, computed in compiled code."""
    radices = constraint.radices
    tables_by_digit = module.digits(flat_weights(constraint), radices, constraint.listed)
    transitions = []
    for radix, (weights, following) in zip(radices, tables_by_digit, strict=True):
        states = np.frombuffer(following, dtype=np.int64).reshape(-1, radix + 1)
        transitions.append(Transitions(np.frombuffer(weights).reshape(-1, radix + 1), states))
    return tuple(transitions)


def _packed_forest(trees: Forest) -> tuple[list[PackedStep], list[End]]:
    """The steps of a forest as the compiled module takes them, and where boxes end."""
    ends: list[End] = []
    branch: list[int] = []
    for node in trees.nodes:
        branch[node.depth :] = [node.step.position]
        if node.ends:
            ends.append((tuple(branch), node.ends))
    return [_packed_step(node) for node in trees.nodes], ends


def _packed_step(node: Node) -> PackedStep:
    transitions = node.step.transitions
    return (
        node.step.position,
        node.depth,
        bool(node.ends),
        node.slot,
        node.is_first,
        node.start,
        transitions.weights,
        transitions.next,
        node.hint,
    )


def _int64(data: bytes) -> IntArray:
    return np.frombuffer(data, dtype=np.int32).astype(np.int64)


def padded_units(rows: Weights) -> Weights:
    """Rows of hidden units (rows, hidden), padded as the compiled module reads them."""
    return _padded_rows(rows, _row_width(rows.shape[-1]))


def _row_width(hidden: int) -> int:
    return _padded(hidden) + LANES


def _padded(width: int) -> int:
    return -(-width // LANES) * LANES


def _padded_rows(array: NDArray[np.float32], width: int, fill: float = 0.0) -> NDArray[np.float32]:
    """The array with its last axis padded to ``width``."""
    padded = np.full((*array.shape[:-1], width), fill, dtype=np.float32)
    padded[..., : array.shape[-1]] = array
    return padded


def _logit_row(bias: Weights) -> Weights:
    return _padded_rows(bias, _padded(len(bias)), FAR_BELOW)
