"""The steps of boxes that share none, as the compiled walk takes them: :mod:`.plan_forest` without sharing.

A single question has no other to share steps with, and boxes with hints do not share theirs. So most plans are made
here: a set of values is handed over as it is, and the tables of digits and all hints are made in compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import FloatArray, IntArray
from countless.engine.columns.plan import LEAST_HINT, ranks_of
from countless.region import FREE, Box, Constraint, DigitSet, Transitions, ValueSet, flat_weights

Packed = tuple[Any, ...]  # a step: position, depth, whether it ends its box, slot, opens, start, weights, next, hint
Read = tuple[int, int, int, int, NDArray[Any], IntArray | None]  # rank, position, filter, digit or -1, weights, next
End = tuple[tuple[int, ...], Sequence[int]]  # the positions on the way to an end, and the boxes that end there


def packed_alone(
    boxes: Sequence[Box], order: tuple[int, ...], hinted: bool, module: ModuleType
) -> tuple[list[Packed], list[End]]:
    """The steps of all boxes, one box after the other, and where each ends, but for boxes that ask nothing."""
    ranks = ranks_of(order)
    steps: list[Packed] = []
    ends: list[End] = []
    for number, box in enumerate(boxes):
        reads: list[Read] = []
        for index, item in enumerate(box.filters):
            constraint = item.constraint
            if constraint.start == FREE:
                continue
            if isinstance(constraint, ValueSet):
                (position,) = item.positions
                reads.append((ranks[position], position, index, -1, flat_weights(constraint), None))
                continue
            tables = tabulated(constraint, module)
            for digit, (position, table) in enumerate(zip(item.positions, tables, strict=True)):
                reads.append((ranks[position], position, index, digit, table.weights, table.next))
        if not reads:
            continue
        reads.sort(key=itemgetter(0))
        hints = _hints(box, reads) if hinted else [None] * len(reads)
        slots: dict[int, int] = {}
        for depth, (_, position, index, digit, weights, following) in enumerate(reads):
            slot = -1 if digit < 0 or len(box.filters[index].positions) == 1 else slots.setdefault(index, len(slots))
            start, last = box.filters[index].constraint.start, depth + 1 == len(reads)
            steps.append((position, depth, last, slot, digit <= 0, start, weights, following, hints[depth]))
        ends.append((tuple(map(itemgetter(1), reads)), (number,)))
    return steps, ends


def _hints(box: Box, reads: Sequence[Read]) -> list[FloatArray | None]:
    """What :func:`.plan.hint_of` tells of each step."""
    hints: list[FloatArray | None] = [None] * len(reads)
    if box.hints is None:
        return hints
    asked, places = [], []
    filters = [read[2] for read in reads]
    for place, (_, _, index, digit, weights, following) in enumerate(reads):
        if digit > 0:
            continue
        later = dict.fromkeys(filters[place + 1 :])
        later.pop(index, None)
        symbols = len(weights) if following is None else weights.shape[1] - 1
        asked.append((index, later, symbols))
        places.append(place)
    for place, hint in zip(places, box.hints.along(asked, LEAST_HINT), strict=True):
        hints[place] = hint
    return hints


def tabulated(constraint: Constraint, module: ModuleType) -> tuple[Transitions, ...]:
    """The transitions of a constraint; those of digits are made in compiled code."""
    if isinstance(constraint, DigitSet) and not (constraint.listed or constraint.is_tabulated):
        radices = constraint.radices
        tables = module.digits(flat_weights(constraint), radices)
        constraint.adopt(
            tuple(
                Transitions(
                    np.frombuffer(weights).reshape(-1, radix + 1),
                    np.frombuffer(following, dtype=np.int64).reshape(-1, radix + 1),
                )
                for radix, (weights, following) in zip(radices, tables, strict=True)
            )
        )
    return constraint.transitions
