"""Pieces of an automaton: rows of letters, perhaps with the beginning or the end of strings, that these contain.

The beginning and the end are letters too: ``LIKE 'abc%'`` is all strings that contain the beginning and ``abc``. Many
automata are a union of such sets; then counts of the pieces tell all. Of others, some pieces are required, which bounds
them.
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
MOST_BRANCHES = 16  # letters that a piece may begin with, before a union is given up
MOST_LETTERS = 256  # of a piece
MOST_PAIRS = 5_000  # states and places of a piece that are searched for a string without it
MOST_TARGETS = 16  # states that are asked whether all strings lead there

Piece = tuple[int, ...]  # letters; len(characters) is the end, and one more the beginning


@dataclass(frozen=True, eq=False)
class Anchored:
    """An automaton that reads the beginning and the end of strings too.

    ``next`` (states, letters + 2) has two states more than the automaton: the last but one is reached by the end of a
    string that is accepted, the last by that of another, and by what is no string. State 0 comes after the beginning.
    """

    letters: int
    next: IntArray
    accepted: int

    @classmethod
    def of(cls, strings: Automaton) -> Anchored:
        """The automaton with anchors."""
        states, letters = strings.next.shape
        accepted, refused = states, states + 1
        following = np.full((states + 2, letters + 2), refused, dtype=np.int64)
        following[:states, :letters] = strings.next
        following[:states, letters] = np.where(strings.accepts, accepted, refused)
        return cls(letters, following, accepted)

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
        """Letters that are read alike: one of each class, and the class of each letter."""
        first, which = same_columns(self.next[:, : self.letters + 1])
        return first, which

    @cached_property
    def table(self) -> IntArray:
        """What follows each state by each class of letters."""
        table: IntArray = self.next[:, : self.letters + 1][:, self.classes[0]]
        return table

    @cached_property
    def _successors(self) -> list[set[int]]:
        return [set(row) for row in self.table[: self.accepted].tolist()]

    @cached_property
    def full(self) -> BoolArray:
        """Of each state: whether every string is accepted from there."""
        before: list[list[int]] = [[] for _ in self.next]
        for state, following in enumerate(self._successors):
            for after in following:
                before[after].append(state)
        is_full: BoolArray = np.ones(len(self.next), dtype=np.bool_)
        todo = [self.accepted + 1]
        is_full[todo] = False
        for state in todo:
            new = [other for other in before[state] if is_full[other]]
            is_full[new] = False
            todo += new
        return is_full

    @cached_property
    def early(self) -> BoolArray:
        """The states that a way leads to on which not every string is accepted yet."""
        ends = set(np.flatnonzero(self.full).tolist()) | {self.accepted, self.accepted + 1}
        seen = set() if 0 in ends else {0}
        todo = list(seen)
        for state in todo:
            new = self._successors[state] - seen - ends
            seen |= new
            todo += new
        is_early: BoolArray = np.zeros(len(self.next), dtype=np.bool_)
        is_early[list(seen)] = True
        return is_early

    def leads(self, piece: Piece) -> bool:
        """Whether all that contain the piece are accepted."""
        fails = ~self.full
        for letter in reversed(piece[piece[0] == self.begin :]):
            fails = self.fails_before(letter, fails)
        return not (fails[0] if piece[0] == self.begin else (fails & self.early).any())

    def fails_before(self, letter: int, fails: BoolArray) -> BoolArray:
        """The states from which ``letter`` leads to one that ``fails``, and from which not every string is accepted."""
        after = self.next[:, letter]
        failing: BoolArray = fails[after] & ~self.full[after]
        return failing


def union(strings: Automaton) -> list[Piece] | None:
    """Pieces such that ``strings`` are all that contain one of them; None if there are none, or too many."""
    if len(strings.accepts) > MOST_STATES:
        return None
    if strings.is_finite:
        return _listed(strings)
    return _searched(strings)


def _listed(strings: Automaton) -> list[Piece] | None:
    """Each of finitely many strings as a piece, with the beginning and the end; None if there are too many."""
    letters = strings.next.shape[1]
    alive = ~strings.dead
    states, read = np.nonzero(alive[strings.next] & alive[:, None])
    following: dict[int, list[tuple[int, int]]] = {}
    after = strings.next[states, read].tolist()
    for state, letter, target in zip(states.tolist(), read.tolist(), after, strict=True):
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
        if branches:  # most states have one branch: its piece is written on
            piece.append(branches[0][0])
            todo.append((piece, branches[0][1]))
    return sorted(pieces, key=len)


def _searched(strings: Automaton) -> list[Piece] | None:
    """The pieces of any automaton, found from their ends on; the definition."""
    own = Anchored.of(strings)
    if own.full[0]:
        return None
    pieces: list[Piece] = []
    todo: list[tuple[Piece, BoolArray, BoolArray]] = [((), own.full, ~own.full)]  # the last: from where it fails
    while todo:
        piece, goal, fails = todo.pop()
        if piece and not (fails & own.early).any():
            pieces.append(piece)
            continue
        before = _before(own, goal)
        if piece and goal[0]:
            pieces.append((own.begin, *piece))
            if not before:
                continue
        spent = len(pieces) + len(todo) + len(before)
        limit = MOST_PIECES if not piece else MOST_BRANCHES
        if not before or len(before) > limit or spent > MOST_PIECES or len(piece) >= MOST_LETTERS:
            return None
        todo += [((letter, *piece), states, own.fails_before(letter, fails)) for letter, states in before]
    return shortest(pieces)


def _before(own: Anchored, goal: BoolArray) -> list[tuple[int, BoolArray]]:
    """The letters that lead to a goal from where not every string is accepted yet, each with the states before it."""
    arriving = own.early[:, None] & goal[own.table]
    alike: BoolArray = np.any(arriving, axis=0)
    letters = np.flatnonzero(alike[own.classes[1]])[: MOST_PIECES + 1]
    return [(letter, arriving[:, own.classes[1][letter]]) for letter in letters.tolist()]


def shortest(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that contain none of the others."""
    chosen: list[Piece] = []
    for piece in sorted(set(pieces), key=len):
        if not any(is_part(other, piece) for other in chosen):
            chosen.append(piece)
    return chosen


def is_part(part: Piece, piece: Piece) -> bool:
    """Whether ``piece`` contains ``part``.

    >>> is_part((2, 3), (1, 2, 3)), is_part((1, 3), (1, 2, 3))
    (True, False)
    """
    return any(piece[start : start + len(part)] == part for start in range(len(piece) - len(part) + 1))


def required(strings: Automaton) -> list[Piece]:
    """Pieces that each of the strings contains, those at the beginning first, though perhaps not all there are."""
    if len(strings.accepts) > MOST_STATES or strings.dead[0]:
        return []
    own = Anchored.of(strings)
    last = [piece for piece in _last_pieces(own) if _requires(own, piece)]
    pieces = longest([_first_piece(own, strings.dead), *_pieces_on_the_way(own), *last])
    return [piece for piece in pieces if len(piece) > 1 or piece[0] < own.letters]


def sufficient(strings: Automaton) -> list[Piece]:
    """Pieces such that all strings with one of them are among ``strings``, though perhaps not all there are."""
    if len(strings.accepts) > MOST_STATES:
        return []
    own = Anchored.of(strings)
    return [] if own.full[0] else shortest([piece for piece in _last_pieces(own) if own.leads(piece)])


def _first_piece(own: Anchored, dead: BoolArray) -> Piece:
    """The beginning that all strings have."""
    piece, state = [own.begin], 0
    while len(piece) < MOST_LETTERS and own.next[state, own.end] != own.accepted:
        letters = np.flatnonzero(~dead[own.next[state, : own.letters]])
        if len(letters) != 1:
            break
        piece.append(int(letters[0]))
        state = int(own.next[state, letters[0]])
    return tuple(piece)


def _last_pieces(own: Anchored) -> list[Piece]:
    """What strings may have read just before it was clear that they are accepted, one piece for each last letter."""
    before = _before(own, own.full)
    if len(before) > MOST_BRANCHES:
        return []
    pieces = []
    for letter, goal in before:
        piece: Piece = (letter,)
        states = goal
        while len(piece) < MOST_LETTERS and not states[0]:
            more = _before(own, states)
            if len(more) != 1:
                break
            piece, states = (more[0][0], *piece), more[0][1]
        pieces.append(piece)
    return pieces


def _requires(own: Anchored, piece: Piece) -> bool:
    """Whether no string is accepted that does not contain the piece."""
    following = _progress(piece, own.letters + 1)
    is_other = np.ones(own.letters + 2, dtype=np.bool_)  # letters that the piece reads alike
    is_other[list(piece)] = False
    others = np.flatnonzero(is_other[: own.letters + 1])
    alike = others[np.unique(own.classes[1][others], return_index=True)[1]].tolist()
    letters = sorted({*alike, *(letter for letter in piece if letter <= own.letters)})
    table = own.next[:, letters].tolist()
    todo = [(0, 0)]
    seen = set(todo)
    for state, place in todo:
        for letter, after in zip(letters, table[state], strict=True):
            done = following[place][letter]
            if done == len(piece) or after > own.accepted:
                continue
            if after == own.accepted or len(seen) > MOST_PAIRS:
                return False
            if (after, done) not in seen:
                seen.add((after, done))
                todo.append((after, done))
    return True


def _progress(piece: Piece, letters: int) -> list[list[int]]:
    """How much of a piece has been read, after so much and each letter: as Knuth, Morris and Pratt."""
    table = [[0] * letters for _ in piece]
    back = 0  # where the piece so far leads without its first letter
    for read, letter in enumerate(piece):
        table[read] = list(table[back]) if read else [0] * letters
        table[read][letter] = read + 1
        back = table[back][letter] if read else 0
    return table


def _pieces_on_the_way(own: Anchored) -> list[Piece]:
    """Pieces before states that every string comes to."""
    pieces: list[Piece] = []
    goal, early, path = own.full, own.early, _shortest_way(own)
    for _ in range(MOST_TARGETS):
        piece = _piece_before(own, goal, early)
        if piece:
            pieces.append(piece)
        path = path[: -max(1, len(piece))]
        while len(path) > 1 and _avoids(own, path[-1]):
            path.pop()
        if len(path) <= 1:
            break
        goal = np.zeros(len(own.next), dtype=bool)
        goal[path[-1]] = True
        early = _reached(own, goal)
    return pieces[::-1]


def longest(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that are in none of the others."""
    distinct = list(dict.fromkeys(pieces))
    return [piece for piece in distinct if not any(piece != other and is_part(piece, other) for other in distinct)]


def _piece_before(own: Anchored, goal: BoolArray, early: BoolArray) -> Piece:
    """What every string has read just before it first comes to a goal."""
    piece: Piece = ()
    while len(piece) < MOST_LETTERS:
        if goal[0] and piece:
            arriving = early[:, None] & goal[own.next[:, : own.letters + 1]]
            return piece if arriving.any() else (own.begin, *piece)
        arriving = early[:, None] & goal[own.next[:, : own.letters + 1]]
        letters = np.flatnonzero(arriving.any(axis=0))
        if len(letters) != 1:
            break
        piece = (int(letters[0]), *piece)
        goal = np.asarray(arriving[:, letters[0]])
    return piece


def _reached(own: Anchored, target: BoolArray) -> BoolArray:
    """The states to which a way leads that never comes to a target."""
    reached = np.zeros(len(target), dtype=bool)
    reached[0] = not target[0]
    newest = np.flatnonzero(reached)
    while len(newest):
        after = np.zeros(len(target), dtype=bool)
        after[own.next[newest]] = True
        after &= ~(reached | target)
        after[own.accepted + 1] = False
        reached |= after
        newest = np.flatnonzero(after)
    reached[own.accepted] = False
    return reached


def _avoids(own: Anchored, state: int) -> bool:
    """Whether some string is accepted on a way that never comes to a state."""
    target = np.zeros(len(own.next), dtype=bool)
    target[state] = True
    reached = _reached(own, target)
    return bool((own.next[np.flatnonzero(reached)][:, own.end] == own.accepted).any())


def _shortest_way(own: Anchored) -> list[int]:
    """The states on a shortest way from the start to where every string is accepted."""
    first, _ = same_columns(own.next[:, : own.letters + 1])
    table = own.next[:, : own.letters + 1][:, first].tolist()
    origin, todo = {0: 0}, [0]
    for state in todo:
        if own.full[state]:
            path = [state]
            while path[-1]:
                path.append(origin[path[-1]])
            return path[::-1]
        for after in table[state]:
            if after not in origin and after <= own.accepted:
                origin[after] = state
                todo.append(after)
    return []
