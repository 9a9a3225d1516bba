"""Pieces that the strings of a set have or lack, known from their LIKE patterns without a search of the automaton."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple


class LetterPiece(NamedTuple):
    """Consecutive letters, each one of a set, perhaps at the beginning or at the end of a string."""

    letters: tuple[tuple[int, ...], ...]
    begins: bool
    ends: bool


@dataclass(frozen=True)
class KnownPieces:
    """Pieces that each string of a set has (``required``), and pieces that none has (``excluded``).

    If ``exact``, the set is all strings that have the required and lack the excluded pieces. It is ``gapped`` if the
    pattern has several pieces with any text between them.
    """

    required: tuple[LetterPiece, ...] = ()
    excluded: tuple[LetterPiece, ...] = ()
    exact: bool = True
    gapped: bool = False

    def __and__(self, other: KnownPieces) -> KnownPieces:
        """The pieces of the intersection of both sets."""
        return KnownPieces(
            self.required + other.required,
            self.excluded + other.excluded,
            self.exact and other.exact,
            self.gapped or other.gapped,
        )

    @property
    def deciding_piece(self) -> LetterPiece | None:
        """The required piece, if a string is in the set if and only if it has this piece; else None."""
        return self.required[0] if self.exact and not self.excluded and len(self.required) == 1 else None

    @property
    def complement(self) -> KnownPieces | None:
        """The pieces of the complement; None if the set is not decided by one piece."""
        if not self.exact or len(self.required) + len(self.excluded) != 1:
            return None
        return replace(self, required=self.excluded, excluded=self.required)


def pieces_of_like(pieces: Sequence[Sequence[str]], letters: Mapping[str, tuple[int, ...]]) -> KnownPieces | None:
    """The pieces of a LIKE pattern, in which "" is any character; ``letters`` has the letters of each character.

    None if the pattern has a character that no string has.

    >>> pieces_of_like([["a", "", "b"], []], {"a": (0,), "b": (1, 2)}).required
    (LetterPiece(letters=((0,),), begins=True, ends=False), LetterPiece(letters=((1, 2),), begins=False, ends=False))
    """
    if any(character not in letters for piece in pieces for character in piece if character):
        return None
    required: list[LetterPiece] = []
    for index, piece in enumerate(pieces):
        run: list[tuple[int, ...]] = []
        begins, ends = index == 0, index == len(pieces) - 1
        for character in piece:
            if character:
                run.append(letters[character])
                continue
            if run:
                required.append(LetterPiece(tuple(run), begins, ends=False))
            run, begins = [], False
        if run or (begins and ends):
            required.append(LetterPiece(tuple(run), begins, ends))
    gapped = len([piece for piece in pieces if piece]) > 1
    return KnownPieces(tuple(required), exact=not gapped and all(map(all, pieces)), gapped=gapped)
