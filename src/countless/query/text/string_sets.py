"""Automata of string comparisons, LIKE patterns and length conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from sqlglot import exp

from countless.arrays import BoolArray, IntArray
from countless.automata.dfa import MOST_STATES, explore
from countless.automata.known_pieces import pieces_of_like
from countless.automata.language import Automaton, Letters
from countless.cached_property import cached_property
from countless.errors import QueryTooLargeError, QueryTypeError
from countless.query.domains.comparisons import FUNCTIONS

ANY_TEXT, ANY_CHARACTER = "%", "_"
LikePieces = tuple[tuple[str, ...], ...]
"""A LIKE pattern: the characters of each piece, "" for any character; any text may stand between two pieces."""


@dataclass(frozen=True, eq=False)
class Script:
    """The letters of a column, and the character that a predicate reads for each: itself, lower or upper case."""

    letters: Letters
    characters: tuple[str, ...]

    @cached_property
    def letters_of(self) -> dict[str, tuple[int, ...]]:
        """For each character, the letters that are read as it."""
        letters: dict[str, tuple[int, ...]] = {}
        for letter, character in enumerate(self.characters):
            letters[character] = (*letters.get(character, ()), letter)
        return letters


def compared(script: Script, operator: type[exp.Expr], text: str) -> Automaton:
    """The strings that compare with ``text`` by the operator, by code points.

    A state for each prefix of ``text`` that a string may have, then one for the smaller strings and one for the larger.
    """
    count = len(text)
    less, more = count + 1, count + 2
    next_states = np.repeat(np.array([*[more] * (count + 1), less, more])[:, None], len(script.characters), axis=1)
    characters = np.array([ord(character) for character in script.characters], dtype=np.int64)
    for index, character in enumerate(text):
        next_states[index, characters < ord(character)] = less
        next_states[index, characters == ord(character)] = index + 1
    order = np.array([*[-1] * count, 0, -1, 1])  # of the strings that end in each state
    return Automaton(script.letters, next_states, FUNCTIONS[operator](order, 0)).minimal()


def one_of(script: Script, texts: Sequence[str]) -> Automaton:
    """The strings that are one of ``texts``: a tree of their characters, with a state for each prefix."""
    letters_read = set(script.characters)
    possible = [text for text in texts if letters_read.issuperset(text)]
    tree = _tree(possible)
    if tree is None:
        raise _too_long(possible)
    branches, ends = tree
    kinds, kind = _kinds(script, "".join(possible))
    dead = len(branches)
    next_states = np.full((dead + 1, len(kinds)), dead, dtype=np.int64)
    column_of = {character: index for index, character in enumerate(kinds) if character is not None}
    for state, branch in enumerate(branches):
        for character, next_state in branch.items():
            next_states[state, column_of[character]] = next_state
    accepts = np.isin(np.arange(dead + 1), ends)
    return Automaton.of_kinds(script.letters, next_states, kind, accepts)


def _tree(texts: Iterable[str]) -> tuple[list[dict[str, int]], list[int]] | None:
    """The tree of ``texts``: for each state, the state after each character; and the state of each text.

    None if there are too many states.
    """
    branches: list[dict[str, int]] = [{}]
    ends = []
    for text in texts:
        state = 0
        for character in text:
            state = branches[state].setdefault(character, len(branches))
            if state == len(branches):
                branches.append({})
        ends.append(state)
        if len(branches) >= MOST_STATES:
            return None
    return branches, ends


def _too_long(texts: Sequence[str]) -> QueryTooLargeError:
    """The error for a list that is too long. It names a number of texts that one question can have."""
    if max(map(len, texts)) >= MOST_STATES - 1:
        return QueryTooLargeError(f"a text has more than {MOST_STATES:,} characters: use LIKE with its start")
    share = MOST_STATES
    while any(_tree(texts[start : start + share]) is None for start in range(0, len(texts), share)):
        share //= 2
    return QueryTooLargeError(
        f"the list has {len(texts):,} texts, too many for one question: "
        f"ask for {share:,} at a time with IN, and add up the rows; NOT IN has the other rows that are not NULL"
    )


def like_pieces(pattern: str, escape: str = "") -> LikePieces:
    """The pieces of a LIKE pattern.

    >>> like_pieces("a_%b!%%", "!")
    (('a', ''), ('b', '%'), ())
    """
    pieces: list[list[str]] = [[]]
    plain = False
    for character in pattern:
        if character == escape and not plain:
            plain = True
        elif character == ANY_TEXT and not plain:
            pieces.append([])
        else:
            pieces[-1].append("" if character == ANY_CHARACTER and not plain else character)
            plain = False
    if plain:
        raise QueryTypeError("the pattern ends with its ESCAPE character: write it twice to match it")
    return tuple(map(tuple, pieces))


def like(script: Script, pattern: str, escape: str = "") -> Automaton:
    """The strings that match a LIKE pattern: ``%`` is any text, ``_`` any character."""
    return having_pieces(script, like_pieces(pattern, escape))


def having_pieces(script: Script, pieces: LikePieces) -> Automaton:
    """The strings that match a LIKE pattern with these pieces.

    A state is the set of positions in the pattern that the text so far may have led to, as the bits of a number.
    """
    characters = [character for piece in pieces for character in piece]
    kinds, kind = _kinds(script, "".join(characters))
    is_simple = "" not in characters and None in kinds and len(kinds) > len(set(characters))
    nonempty = [piece for piece in pieces if piece]
    if is_simple and len(nonempty) == 1 and len(characters) + 2 <= MOST_STATES:
        next_states, accepts = _of_one_piece(
            list(map(kinds.index, characters)), len(kinds), bool(pieces[0]), bool(pieces[-1])
        )
    else:
        next_states, accepts = _of_pieces(pieces, kinds, is_simple)
    if is_simple:  # the least already
        automaton = Automaton(script.letters, next_states[:, kind], accepts)
    else:
        automaton = Automaton.of_kinds(script.letters, next_states, kind, accepts)
    return automaton.with_known_pieces(pieces_of_like(pieces, script.letters_of))


def _of_pieces(pieces: LikePieces, kinds: Sequence[str | None], is_simple: bool) -> tuple[IntArray, BoolArray]:
    """The next states and the accepting states of any pattern: the definition."""
    characters = [character for piece in pieces for character in piece]
    stays = 0  # the positions where any text may stand
    for end in accumulate(map(len, pieces[:-1])):
        stays |= 1 << end
    fits = [sum(1 << index for index, character in enumerate(characters) if character in ("", kind)) for kind in kinds]
    end = 1 << len(characters)
    full = stays & end

    def next_positions(positions: int) -> list[int]:
        if positions & full:  # it matches, whatever follows
            return [positions] * len(fits)
        return [(positions & fit) << 1 | (positions & stays) for fit in fits]

    def next_positions_from_last(positions: int) -> list[int]:
        """The same without positions before the last one where any text may stand: they no longer matter."""
        return [reached & -max(1, 1 << (reached & stays).bit_length() >> 1) for reached in next_positions(positions)]

    states, next_states = explore(1, next_positions_from_last if is_simple else next_positions)
    return next_states, np.array([state & end > 0 for state in states])


def _of_one_piece(piece_kinds: Sequence[int], kinds: int, begins: bool, ends: bool) -> tuple[IntArray, BoolArray]:
    """The same for a pattern with one piece, which may have to stand at the beginning or at the end of the string.

    A state is how much of the piece was read. If the string must begin with the piece, there is one more state for
    strings that do not.
    """
    last = len(piece_kinds)
    next_states = np.zeros((last + 1 + begins, kinds), dtype=np.int64)
    accepts = np.zeros(len(next_states), dtype=np.bool_)
    if begins:
        dead = 1 if piece_kinds[0] else 2  # states are numbered in the order in which they are reached
        numbers = [state + (state >= dead) for state in range(last + 1)]
        next_states[:] = dead
        next_states[numbers[:-1], piece_kinds] = numbers[1:]
        if not ends:
            next_states[numbers[-1]] = numbers[-1]
        accepts[numbers[-1]] = True
        return next_states, accepts
    restart = 0  # the state after the piece so far without its first character
    for state, kind in enumerate(piece_kinds):
        next_states[state] = next_states[restart]
        restart = int(next_states[restart, kind]) if state else 0
        next_states[state, kind] = state + 1
    next_states[last] = next_states[restart] if ends else last
    accepts[last] = True
    return next_states, accepts


def _kinds(script: Script, used: str) -> tuple[list[str | None], list[int]]:
    """The characters of ``used`` in the script, and None for all others; and the index of each letter's kind."""
    used_characters = set(used)
    read = [character if character in used_characters else None for character in script.characters]
    kinds = list(dict.fromkeys(read))
    number = {character: index for index, character in enumerate(kinds)}
    return kinds, [number[character] for character in read]
