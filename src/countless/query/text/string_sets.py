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
Pieces = tuple[tuple[str, ...], ...]
"""A LIKE pattern: the characters of each piece, "" being any character; between two pieces any text may come."""


@dataclass(frozen=True, eq=False)
class Script:
    """The letters of a column as a predicate reads them: as they are, or in lower or upper case."""

    letters: Letters
    characters: tuple[str, ...]

    @cached_property
    def letters_of(self) -> dict[str, tuple[int, ...]]:
        """The letters that are read as each character."""
        letters: dict[str, tuple[int, ...]] = {}
        for letter, character in enumerate(self.characters):
            letters[character] = (*letters.get(character, ()), letter)
        return letters


def compared(script: Script, operator: type[exp.Expr], text: str) -> Automaton:
    """The strings that compare so with ``text``, by code points.

    A state for each prefix of ``text`` that a string may have, then one for the smaller strings and one for the larger.
    """
    count = len(text)
    less, more = count + 1, count + 2
    following = np.repeat(np.array([*[more] * (count + 1), less, more])[:, None], len(script.characters), axis=1)
    characters = np.array([ord(character) for character in script.characters], dtype=np.int64)
    for index, character in enumerate(text):
        following[index, characters < ord(character)] = less
        following[index, characters == ord(character)] = index + 1
    order = np.array([*[-1] * count, 0, -1, 1])  # of the strings that end in each state
    return Automaton(script.letters, following, FUNCTIONS[operator](order, 0)).minimal()


def one_of(script: Script, texts: Sequence[str]) -> Automaton:
    """The strings that are one of ``texts``: a tree of their characters, with a state for each prefix."""
    known = set(script.characters)
    possible = [text for text in texts if known.issuperset(text)]
    tree = _tree(possible)
    if tree is None:
        raise _too_long(possible)
    branches, ends = tree
    kinds, kind = _kinds(script, "".join(possible))
    dead = len(branches)
    following = np.full((dead + 1, len(kinds)), dead, dtype=np.int64)
    column = {character: index for index, character in enumerate(kinds) if character is not None}
    for state, branch in enumerate(branches):
        for character, after in branch.items():
            following[state, column[character]] = after
    accepts = np.isin(np.arange(dead + 1), ends)
    return Automaton.of_kinds(script.letters, following, kind, accepts)


def _tree(texts: Iterable[str]) -> tuple[list[dict[str, int]], list[int]] | None:
    """The state after each character that may follow on a state, and the state of each text; None if too many."""
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
    """The error for a list that is too long, with a number of its texts by which it can be asked in parts."""
    if max(map(len, texts)) >= MOST_STATES - 1:
        return QueryTooLargeError(f"a text has more than {MOST_STATES:,} characters: use LIKE with its start")
    share = MOST_STATES
    while any(_tree(texts[start : start + share]) is None for start in range(0, len(texts), share)):
        share //= 2
    return QueryTooLargeError(
        f"the list has {len(texts):,} texts, too many for one question: "
        f"ask for {share:,} at a time with IN, and add up the rows; NOT IN has the other rows that are not NULL"
    )


def like_pieces(pattern: str, escape: str = "") -> Pieces:
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


def having_pieces(script: Script, pieces: Pieces) -> Automaton:
    """The strings that match a LIKE pattern with these pieces.

    A state is a set of places in the pattern, as the bits of a number: where the text so far may have led.
    """
    wanted = [character for piece in pieces for character in piece]
    kinds, kind = _kinds(script, "".join(wanted))
    plain = "" not in wanted and None in kinds and len(kinds) > len(set(wanted))
    filled = [piece for piece in pieces if piece]
    if plain and len(filled) == 1 and len(wanted) + 2 <= MOST_STATES:
        following, accepts = _of_one_piece(
            list(map(kinds.index, wanted)), len(kinds), bool(pieces[0]), bool(pieces[-1])
        )
    else:
        following, accepts = _of_pieces(pieces, kinds, plain)
    if plain:  # the least already
        automaton = Automaton(script.letters, following[:, kind], accepts)
    else:
        automaton = Automaton.of_kinds(script.letters, following, kind, accepts)
    return automaton.knowing(pieces_of_like(pieces, script.letters_of))


def _of_pieces(pieces: Pieces, kinds: Sequence[str | None], plain: bool) -> tuple[IntArray, BoolArray]:
    """What follows on each state, and where strings may end, of any pattern: the definition."""
    wanted = [character for piece in pieces for character in piece]
    stays = 0  # the places where any text may come
    for end in accumulate(map(len, pieces[:-1])):
        stays |= 1 << end
    fits = [sum(1 << index for index, each in enumerate(wanted) if each in ("", one)) for one in kinds]
    end = 1 << len(wanted)
    full = stays & end

    def after(places: int) -> list[int]:
        if places & full:  # whatever follows, it matches
            return [places] * len(fits)
        return [(places & fit) << 1 | (places & stays) for fit in fits]

    def after_last(places: int) -> list[int]:
        """The same without places before the last one where any text may come: there, all is left that was before."""
        return [each & -max(1, 1 << (each & stays).bit_length() >> 1) for each in after(places)]

    states, following = explore(1, after_last if plain else after)
    return following, np.array([state & end > 0 for state in states])


def _of_one_piece(wanted: Sequence[int], kinds: int, begins: bool, ends: bool) -> tuple[IntArray, BoolArray]:
    """The same of a pattern with one piece of the kinds ``wanted``, at the beginning or the end of strings or not.

    A state is how much of the piece was read; after another beginning there is one more state.
    """
    last = len(wanted)
    following = np.zeros((last + 1 + begins, kinds), dtype=np.int64)
    accepts = np.zeros(len(following), dtype=np.bool_)
    if begins:
        dead = 1 if wanted[0] else 2  # states are numbered as they are come to
        numbers = [state + (state >= dead) for state in range(last + 1)]
        following[:] = dead
        following[numbers[:-1], wanted] = numbers[1:]
        if not ends:
            following[numbers[-1]] = numbers[-1]
        accepts[numbers[-1]] = True
        return following, accepts
    back = 0  # where the piece so far leads without its first character
    for state, one in enumerate(wanted):
        following[state] = following[back]
        back = int(following[back, one]) if state else 0
        following[state, one] = state + 1
    following[last] = following[back] if ends else last
    accepts[last] = True
    return following, accepts


def _kinds(script: Script, used: str) -> tuple[list[str | None], list[int]]:
    """The characters of ``used`` that are in the script, and None for the others; which of them each letter is."""
    known = set(used)
    read = [character if character in known else None for character in script.characters]
    kinds = list(dict.fromkeys(read))
    number = {character: index for index, character in enumerate(kinds)}
    return kinds, [number[character] for character in read]
