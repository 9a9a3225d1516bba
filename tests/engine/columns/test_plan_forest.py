"""Boxes that begin alike share their steps."""

from __future__ import annotations

import numpy as np

from countless.engine.columns.plan_forest import Node, forest
from countless.region import Box, DigitSet, Filter
from tests.mocks import box_of, value_set

SIZES = (3, 4, 5, 6)
ORDER = (2, 0, 3, 1)


def steps(nodes: tuple[Node, ...]) -> list[tuple[int, int, list[int]]]:
    return [(node.depth, node.step.position, node.ends) for node in nodes]


def test_one_box_is_one_way_down() -> None:
    nodes = forest([box_of({0: [1], 1: [2], 2: [3]}, SIZES)], ORDER)
    assert steps(nodes.nodes) == [(0, 2, []), (1, 0, []), (2, 1, [0])]
    assert nodes.depth == 3


def test_equal_beginnings_are_shared_whichever_objects_they_are() -> None:
    boxes = [
        box_of({2: [1], 0: [0]}, SIZES),
        box_of({2: [1]}, SIZES),
        box_of({2: [1], 1: [0, 1]}, SIZES),
        box_of({2: [2], 0: [0]}, SIZES),
        box_of({2: [1], 0: [0]}, SIZES),
    ]
    nodes = forest(boxes, ORDER)
    by_depth = [len([node for node in nodes.nodes if node.depth == depth]) for depth in range(2)]
    assert by_depth == [2, 3]
    assert sorted(index for node in nodes.nodes for index in node.ends) == [0, 1, 2, 3, 4]
    assert next(node.ends for node in nodes.nodes if 0 in node.ends) == [0, 4]


def test_siblings_stand_by_rank() -> None:
    nodes = forest([box_of({2: [1], p: [0]}, SIZES) for p in (1, 3, 0, 1)], ORDER)
    assert [node.step.position for node in nodes.nodes] == [2, 0, 3, 1]


def test_boxes_that_ask_nothing() -> None:
    nodes = forest([Box(), box_of({0: [0, 1, 2]}, SIZES), box_of({0: [0]}, SIZES)], ORDER)
    assert nodes.whole == (0, 1)
    assert len(nodes.nodes) == 1
    assert forest([Box()], ORDER).nodes == ()
    assert forest([], ORDER).depth == 0


def test_filters_of_several_positions_keep_their_state_apart() -> None:
    one, two = (Filter((p, p + 1), DigitSet(np.arange(6) % 2 == 0, (2, 3))) for p in (0, 2))
    nodes = forest([Box((one, two, value_set(4, [0], 2)))], (0, 2, 4, 1, 3)).nodes
    assert [(node.step.position, node.slot, node.is_first) for node in nodes] == [
        (0, 0, True),
        (2, 1, True),
        (4, -1, True),
        (1, 0, False),
        (3, 1, False),
    ]
