"""A forest of plans: boxes that start with the same steps share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from countless.arrays import FloatArray
from countless.engine.columns.plan import Step, hint_of, walk
from countless.region import Box, Transitions

FEW = 3  # boxes, of which to compare the tables would cost more than it saves


@dataclass(eq=False)
class Node:
    """A step, how deep it stands, and which boxes end with it.

    A filter of several positions keeps its state between them in a ``slot``; with only one it has none, which is -1.
    """

    step: Step
    depth: int
    slot: int
    opens: bool  # whether this is its filter's first position
    start: int  # the state in which that filter opens
    hint: FloatArray | None = None  # of every symbol, MASK last
    ends: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Forest:
    """Nodes in depth-first order, siblings by rank. ``whole`` are the boxes that ask nothing at all."""

    nodes: tuple[Node, ...]
    whole: tuple[int, ...]

    @property
    def depth(self) -> int:
        """The number of steps on the longest way down."""
        return 1 + max((node.depth for node in self.nodes), default=-1)


def forest(boxes: Sequence[Box], order: tuple[int, ...], hinted: bool = False) -> Forest:
    """The steps of all ``boxes``, each way down once; if ``hinted``, every box has a way of its own, with its hints."""
    names = _Names(by_content=len(boxes) > FEW)
    paths = [(walk(box, order), index) for index, box in enumerate(boxes)]
    alone = hinted or len(boxes) == 1
    named = [([], *path) if alone else (names.of(path[0], order), *path) for path in paths]
    named.sort(key=lambda item: (item[0], item[2]))
    nodes: list[Node] = []
    way: list[Node] = []  # from a root to the last node
    before: list[tuple[int, int]] = []
    whole: list[int] = []
    for name, steps, index in named:
        shared = next((d for d, (a, b) in enumerate(zip(name, before, strict=False)) if a != b), len(before))
        shared = min(shared, len(name))
        del way[shared:]
        for place, step in enumerate(steps[shared:], shared):
            way.append(_node(boxes[index], step, len(way), way))
            way[-1].hint = hint_of(boxes[index], steps, place) if hinted else None
            nodes.append(way[-1])
        (way[-1].ends if way else whole).append(index)
        before = name
    return Forest(tuple(nodes), tuple(whole))


def _node(box: Box, step: Step, depth: int, way: list[Node]) -> Node:
    item = box.filters[step.filter]
    if len(item.positions) == 1:
        return Node(step, depth, -1, True, item.constraint.start)
    opens = step.position == item.positions[0]
    if opens:
        slot = sum(node.opens and node.slot >= 0 for node in way)
    else:
        slot = next(node.slot for node in way if node.step.position == item.positions[0])
    return Node(step, depth, slot, opens, item.constraint.start)


class _Names:
    """Names for paths: equal beginnings have equal names, and equal tables the same number.

    Unless they are compared ``by_content``, only a table itself is equal to it.
    """

    def __init__(self, by_content: bool) -> None:
        self._reads = by_content
        self._by_content: dict[tuple[bytes, bytes], int] = {}
        self._by_identity: dict[int, tuple[int, Transitions]] = {}  # holds on to them, so that no identity is re-used

    def of(self, steps: list[Step], order: tuple[int, ...]) -> list[tuple[int, int]]:
        ranks = {position: rank for rank, position in enumerate(order)}
        return [(ranks[step.position], self._number(step.transitions)) for step in steps]

    def _number(self, transitions: Transitions) -> int:
        known = self._by_identity.get(id(transitions))
        if known is None:
            number = len(self._by_identity)
            if self._reads:
                content = (transitions.weights.tobytes(), transitions.next.tobytes())
                number = self._by_content.setdefault(content, number)
            known = number, transitions
            self._by_identity[id(transitions)] = known
        return known[0]
