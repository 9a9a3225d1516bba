"""A forest of plans: boxes that start with the same steps share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from countless.arrays import FloatArray
from countless.engine.columns.plan import Step, hint_of, walk
from countless.region import Box, Transitions

FEW_BOXES = 3  # with no more boxes, comparing the content of tables costs more than it saves


@dataclass(eq=False)
class Node:
    """A step in the forest, its depth, and the indices of the boxes that end with it.

    A filter of several positions keeps its state in a ``slot`` between them. A filter of one position has slot -1.
    """

    step: Step
    depth: int
    slot: int
    is_first: bool  # whether this is the filter's first position
    start: int  # the filter's first state
    hint: FloatArray | None = None  # for every symbol, MASK last
    ends: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Forest:
    """Nodes in depth-first order, siblings by rank. ``whole`` are the boxes without a step."""

    nodes: tuple[Node, ...]
    whole: tuple[int, ...]

    @property
    def depth(self) -> int:
        """The number of steps of the longest branch."""
        return 1 + max((node.depth for node in self.nodes), default=-1)


def forest(boxes: Sequence[Box], order: tuple[int, ...], hinted: bool = False) -> Forest:
    """The steps of all ``boxes``, with equal beginnings shared. If ``hinted``, every box has a branch of its own."""
    names = _PathNames(by_content=len(boxes) > FEW_BOXES)
    paths = [(walk(box, order), index) for index, box in enumerate(boxes)]
    is_unshared = hinted or len(boxes) == 1
    named_paths = [([], *path) if is_unshared else (names.name_of(path[0], order), *path) for path in paths]
    named_paths.sort(key=lambda named_path: (named_path[0], named_path[2]))
    nodes: list[Node] = []
    branch: list[Node] = []  # from a root to the last node
    previous_path: list[tuple[int, int]] = []
    whole: list[int] = []
    for path_name, steps, index in named_paths:
        shared = _shared_steps(path_name, previous_path)
        del branch[shared:]
        for step_index, step in enumerate(steps[shared:], shared):
            branch.append(_node(boxes[index], step, len(branch), branch))
            branch[-1].hint = hint_of(boxes[index], steps, step_index) if hinted else None
            nodes.append(branch[-1])
        (branch[-1].ends if branch else whole).append(index)
        previous_path = path_name
    return Forest(tuple(nodes), tuple(whole))


def _shared_steps(path: list[tuple[int, int]], other_path: list[tuple[int, int]]) -> int:
    """How many steps two named paths share from their start."""
    for depth, (step, other_step) in enumerate(zip(path, other_path, strict=False)):
        if step != other_step:
            return depth
    return min(len(path), len(other_path))


def _node(box: Box, step: Step, depth: int, branch: list[Node]) -> Node:
    box_filter = box.filters[step.filter]
    if len(box_filter.positions) == 1:
        return Node(step, depth, -1, True, box_filter.constraint.start)
    is_first = step.position == box_filter.positions[0]
    if is_first:
        slot = sum(node.is_first and node.slot >= 0 for node in branch)
    else:
        slot = next(node.slot for node in branch if node.step.position == box_filter.positions[0])
    return Node(step, depth, slot, is_first, box_filter.constraint.start)


class _PathNames:
    """Sortable names of paths: equal beginnings have equal names, since equal tables have the same number.

    Tables are compared by identity, or also by their content (``by_content``).
    """

    def __init__(self, by_content: bool) -> None:
        self._compares_content = by_content
        self._by_content: dict[tuple[bytes, bytes], int] = {}
        self._by_identity: dict[int, tuple[int, Transitions]] = {}  # keeps the tables alive, so that no id is reused

    def name_of(self, steps: list[Step], order: tuple[int, ...]) -> list[tuple[int, int]]:
        ranks = {position: rank for rank, position in enumerate(order)}
        return [(ranks[step.position], self._table_number(step.transitions)) for step in steps]

    def _table_number(self, transitions: Transitions) -> int:
        numbered = self._by_identity.get(id(transitions))
        if numbered is None:
            number = len(self._by_identity)
            if self._compares_content:
                content = (transitions.weights.tobytes(), transitions.next.tobytes())
                number = self._by_content.setdefault(content, number)
            numbered = number, transitions
            self._by_identity[id(transitions)] = numbered
        return numbered[0]
