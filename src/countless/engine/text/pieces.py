"""Pieces of an automaton: substrings, perhaps anchored at an end of strings, that decide what it accepts.

The beginning and the end count as letters: ``LIKE 'abc%'`` accepts the strings that contain the beginning and ``abc``.
Many automata accept exactly the strings that contain one of some pieces; then counts of the pieces are the answer.
Other automata require some pieces, whose counts are bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from countless.arrays import BoolArray, IntArray
from countless.automata.dfa import same_columns
from countless.automata.language import Automaton
from countless.cached_property import cached_property

MOST_STATES = 1_000  # of an automaton that is searched
MOST_PIECES = 64  # of a union
MOST_BRANCHES = 16  # letters that may precede a piece, before the search for a union is given up
MOST_LETTERS = 256  # of a piece
MOST_PAIRS = 5_000  # pairs of a state and an offset in a piece, in the search for a string without the piece
MOST_TARGETS = 16  # states that are tested for being on the path of every string

Piece = tuple[int, ...]  # letters; len(characters) is the end, len(characters) + 1 the beginning


@dataclass(frozen=True, eq=False)
class AnchoredAutomaton:
    """An automaton that also reads the beginning and the end of strings.

    ``next`` (states, letters + 2) has two more states than the automaton: the end of an accepted string leads to
    ``accepted``, the end of another string and everything invalid to the last. State 0 comes after the beginning.
    """

    letters: int
    next: IntArray
    accepted: int

    @classmethod
    def of(cls, strings: Automaton) -> AnchoredAutomaton:
        """The automaton with anchors."""
        states, letters = strings.next.shape
        accepted, refused = states, states + 1
        transitions = np.full((states + 2, letters + 2), refused, dtype=np.int64)
        transitions[:states, :letters] = strings.next
        transitions[:states, letters] = np.where(strings.accepts, accepted, refused)
        return cls(letters, transitions, accepted)

    @property
    def end(self) -> int:
        """The letter of the end."""
        return self.letters

    @property
    def begin(self) -> int:
        """The letter of the beginning, which comes before state 0."""
        return self.letters + 1

    @cached_property
    def classes(self) -> tuple[IntArray, IntArray]:
        """Classes of letters with equal transitions: a letter of each class, and the class of each letter."""
        representatives, class_of = same_columns(self.next[:, : self.letters + 1])
        return representatives, class_of

    @cached_property
    def table(self) -> IntArray:
        """The next state for each state and class of letters."""
        table: IntArray = self.next[:, : self.letters + 1][:, self.classes[0]]
        return table

    @cached_property
    def _successors(self) -> list[set[int]]:
        return [set(row) for row in self.table[: self.accepted].tolist()]

    @cached_property
    def full(self) -> BoolArray:
        """Whether every string is accepted from each state."""
        predecessors: list[list[int]] = [[] for _ in self.next]
        for state, successors in enumerate(self._successors):
            for successor in successors:
                predecessors[successor].append(state)
        is_full: BoolArray = np.ones(len(self.next), dtype=np.bool_)
        todo = [self.accepted + 1]
        is_full[todo] = False
        for state in todo:
            newly_refusing = [predecessor for predecessor in predecessors[state] if is_full[predecessor]]
            is_full[newly_refusing] = False
            todo += newly_refusing
        return is_full

    @cached_property
    def undecided(self) -> BoolArray:
        """The states that can be reached before every string is accepted or refused."""
        decided = set(np.flatnonzero(self.full).tolist()) | {self.accepted, self.accepted + 1}
        visited = set() if 0 in decided else {0}
        todo = list(visited)
        for state in todo:
            new = self._successors[state] - visited - decided
            visited |= new
            todo += new
        is_undecided: BoolArray = np.zeros(len(self.next), dtype=np.bool_)
        is_undecided[list(visited)] = True
        return is_undecided

    def accepts_all_with(self, piece: Piece) -> bool:
        """Whether all strings that contain the piece are accepted."""
        fails = ~self.full
        for letter in reversed(piece[piece[0] == self.begin :]):
            fails = self.fails_before(letter, fails)
        return not (fails[0] if piece[0] == self.begin else (fails & self.undecided).any())

    def fails_before(self, letter: int, fails: BoolArray) -> BoolArray:
        """The states from which ``letter`` leads to a state that ``fails`` and does not accept every string."""
        after = self.next[:, letter]
        failing: BoolArray = fails[after] & ~self.full[after]
        return failing


def union(strings: Automaton) -> list[Piece] | None:
    """Pieces such that ``strings`` are exactly those with one of them; None if there are none, or too many."""
    if len(strings.accepts) > MOST_STATES:
        return None
    if strings.is_finite:
        return _pieces_of_list(strings)
    return _pieces_by_search(strings)


def _pieces_of_list(strings: Automaton) -> list[Piece] | None:
    """Each of finitely many strings as a piece, with the beginning and the end; None if there are too many."""
    letters = strings.next.shape[1]
    alive = ~strings.dead
    states, letters_read = np.nonzero(alive[strings.next] & alive[:, None])
    following: dict[int, list[tuple[int, int]]] = {}
    targets = strings.next[states, letters_read].tolist()
    for state, letter, target in zip(states.tolist(), letters_read.tolist(), targets, strict=True):
        following.setdefault(state, []).append((letter, target))
    accepts = strings.accepts.tolist()
    pieces: list[Piece] = []
    todo: list[tuple[list[int], int]] = [([letters + 1], 0)] if alive[0] else []
    while todo:
        piece, state = todo.pop()
        if accepts[state]:
            pieces.append((*piece, letters))
        branches = following.get(state, [])
        if len(pieces) + len(todo) + len(branches) > MOST_PIECES or len(piece) >= MOST_LETTERS:
            return None
        for letter, target in branches[1:]:
            todo.append(([*piece, letter], target))
        if branches:  # most states have one branch, which extends this piece
            piece.append(branches[0][0])
            todo.append((piece, branches[0][1]))
    return sorted(pieces, key=len)


def _pieces_by_search(strings: Automaton) -> list[Piece] | None:
    """The pieces of any automaton, searched from their ends backwards. This is the definition."""
    anchored = AnchoredAutomaton.of(strings)
    if anchored.full[0]:
        return None
    pieces: list[Piece] = []
    todo: list[tuple[Piece, BoolArray, BoolArray]] = [
        ((), anchored.full, ~anchored.full)
    ]  # piece, goal states, failing states
    while todo:
        piece, goal, fails = todo.pop()
        if piece and not (fails & anchored.undecided).any():
            pieces.append(piece)
            continue
        leading = _leading_letters(anchored, goal)
        if piece and goal[0]:
            pieces.append((anchored.begin, *piece))
            if not leading:
                continue
        piece_count = len(pieces) + len(todo) + len(leading)
        limit = MOST_PIECES if not piece else MOST_BRANCHES
        if not leading or len(leading) > limit or piece_count > MOST_PIECES or len(piece) >= MOST_LETTERS:
            return None
        todo += [((letter, *piece), states, anchored.fails_before(letter, fails)) for letter, states in leading]
    return shortest(pieces)


def _leading_letters(anchored: AnchoredAutomaton, goal: BoolArray) -> list[tuple[int, BoolArray]]:
    """The letters that lead from an undecided state to a goal, each with the states before it."""
    arriving = anchored.undecided[:, None] & goal[anchored.table]
    is_leading_class: BoolArray = np.any(arriving, axis=0)
    letters = np.flatnonzero(is_leading_class[anchored.classes[1]])[: MOST_PIECES + 1]
    return [(letter, arriving[:, anchored.classes[1][letter]]) for letter in letters.tolist()]


def shortest(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that contain no other piece."""
    minimal: list[Piece] = []
    for piece in sorted(set(pieces), key=len):
        if not any(is_part(shorter, piece) for shorter in minimal):
            minimal.append(piece)
    return minimal


def is_part(part: Piece, piece: Piece) -> bool:
    """Whether ``piece`` contains ``part``.

    >>> is_part((2, 3), (1, 2, 3)), is_part((1, 3), (1, 2, 3))
    (True, False)
    """
    return any(piece[start : start + len(part)] == part for start in range(len(piece) - len(part) + 1))


def required(strings: Automaton) -> list[Piece]:
    """Pieces that every string contains, those at the beginning first. The list may be incomplete."""
    if len(strings.accepts) > MOST_STATES or strings.dead[0]:
        return []
    anchored = AnchoredAutomaton.of(strings)
    last = [piece for piece in _last_pieces(anchored) if _requires(anchored, piece)]
    pieces = longest([_first_piece(anchored, strings.dead), *_pieces_before_bottlenecks(anchored), *last])
    return [piece for piece in pieces if len(piece) > 1 or piece[0] < anchored.letters]


def sufficient(strings: Automaton) -> list[Piece]:
    """Pieces such that all strings with one of them are in ``strings``. The list may be incomplete."""
    if len(strings.accepts) > MOST_STATES:
        return []
    anchored = AnchoredAutomaton.of(strings)
    return (
        []
        if anchored.full[0]
        else shortest([piece for piece in _last_pieces(anchored) if anchored.accepts_all_with(piece)])
    )


def _first_piece(anchored: AnchoredAutomaton, dead: BoolArray) -> Piece:
    """The beginning that all strings share."""
    piece, state = [anchored.begin], 0
    while len(piece) < MOST_LETTERS and anchored.next[state, anchored.end] != anchored.accepted:
        letters = np.flatnonzero(~dead[anchored.next[state, : anchored.letters]])
        if len(letters) != 1:
            break
        piece.append(int(letters[0]))
        state = int(anchored.next[state, letters[0]])
    return tuple(piece)


def _last_pieces(anchored: AnchoredAutomaton) -> list[Piece]:
    """The letters read just before acceptance is certain: one piece for each last letter."""
    leading = _leading_letters(anchored, anchored.full)
    if len(leading) > MOST_BRANCHES:
        return []
    pieces = []
    for letter, goal in leading:
        piece: Piece = (letter,)
        states = goal
        while len(piece) < MOST_LETTERS and not states[0]:
            longer = _leading_letters(anchored, states)
            if len(longer) != 1:
                break
            piece, states = (longer[0][0], *piece), longer[0][1]
        pieces.append(piece)
    return pieces


def _requires(anchored: AnchoredAutomaton, piece: Piece) -> bool:
    """Whether every accepted string contains the piece."""
    progress = _progress(piece, anchored.letters + 1)
    is_outside = np.ones(anchored.letters + 2, dtype=np.bool_)  # letters that are not in the piece
    is_outside[list(piece)] = False
    other_letters = np.flatnonzero(is_outside[: anchored.letters + 1])
    one_of_each_class = other_letters[np.unique(anchored.classes[1][other_letters], return_index=True)[1]].tolist()
    letters = sorted({*one_of_each_class, *(letter for letter in piece if letter <= anchored.letters)})
    table = anchored.next[:, letters].tolist()
    todo = [(0, 0)]
    visited = set(todo)
    for state, read in todo:
        for letter, next_state in zip(letters, table[state], strict=True):
            read_after = progress[read][letter]
            if read_after == len(piece) or next_state > anchored.accepted:
                continue
            if next_state == anchored.accepted or len(visited) > MOST_PAIRS:
                return False
            if (next_state, read_after) not in visited:
                visited.add((next_state, read_after))
                todo.append((next_state, read_after))
    return True


def _progress(piece: Piece, letters: int) -> list[list[int]]:
    """The Knuth-Morris-Pratt automaton of a piece: how much of it is read after each prefix and letter."""
    table = [[0] * letters for _ in piece]
    fallback = 0  # the state after the piece so far without its first letter
    for read, letter in enumerate(piece):
        table[read] = list(table[fallback]) if read else [0] * letters
        table[read][letter] = read + 1
        fallback = table[fallback][letter] if read else 0
    return table


def _pieces_before_bottlenecks(anchored: AnchoredAutomaton) -> list[Piece]:
    """Pieces before states that every accepted string visits."""
    pieces: list[Piece] = []
    goal, sources, path = anchored.full, anchored.undecided, _shortest_path(anchored)
    for _ in range(MOST_TARGETS):
        piece = _piece_before(anchored, goal, sources)
        if piece:
            pieces.append(piece)
        path = path[: -max(1, len(piece))]
        while len(path) > 1 and _is_avoidable(anchored, path[-1]):
            path.pop()
        if len(path) <= 1:
            break
        goal = np.zeros(len(anchored.next), dtype=bool)
        goal[path[-1]] = True
        sources = _reachable_without(anchored, goal)
    return pieces[::-1]


def longest(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that are in no other piece."""
    distinct = list(dict.fromkeys(pieces))
    return [piece for piece in distinct if not any(piece != longer and is_part(piece, longer) for longer in distinct)]


def _piece_before(anchored: AnchoredAutomaton, goal: BoolArray, sources: BoolArray) -> Piece:
    """The letters that every string reads just before it first reaches a goal."""
    piece: Piece = ()
    while len(piece) < MOST_LETTERS:
        if goal[0] and piece:
            arriving = sources[:, None] & goal[anchored.next[:, : anchored.letters + 1]]
            return piece if arriving.any() else (anchored.begin, *piece)
        arriving = sources[:, None] & goal[anchored.next[:, : anchored.letters + 1]]
        letters = np.flatnonzero(arriving.any(axis=0))
        if len(letters) != 1:
            break
        piece = (int(letters[0]), *piece)
        goal = np.asarray(arriving[:, letters[0]])
    return piece


def _reachable_without(anchored: AnchoredAutomaton, target: BoolArray) -> BoolArray:
    """The states that can be reached without visiting a target."""
    reached = np.zeros(len(target), dtype=bool)
    reached[0] = not target[0]
    newest = np.flatnonzero(reached)
    while len(newest):
        is_next = np.zeros(len(target), dtype=bool)
        is_next[anchored.next[newest]] = True
        is_next &= ~(reached | target)
        is_next[anchored.accepted + 1] = False
        reached |= is_next
        newest = np.flatnonzero(is_next)
    reached[anchored.accepted] = False
    return reached


def _is_avoidable(anchored: AnchoredAutomaton, state: int) -> bool:
    """Whether some string is accepted without visiting ``state``."""
    target = np.zeros(len(anchored.next), dtype=bool)
    target[state] = True
    reached = _reachable_without(anchored, target)
    return bool((anchored.next[np.flatnonzero(reached)][:, anchored.end] == anchored.accepted).any())


def _shortest_path(anchored: AnchoredAutomaton) -> list[int]:
    """The states on a shortest path from the start to a state from which every string is accepted."""
    representatives, _ = same_columns(anchored.next[:, : anchored.letters + 1])
    table = anchored.next[:, : anchored.letters + 1][:, representatives].tolist()
    origin, todo = {0: 0}, [0]
    for state in todo:
        if anchored.full[state]:
            path = [state]
            while path[-1]:
                path.append(origin[path[-1]])
            return path[::-1]
        for next_state in table[state]:
            if next_state not in origin and next_state <= anchored.accepted:
                origin[next_state] = state
                todo.append(next_state)
    return []
