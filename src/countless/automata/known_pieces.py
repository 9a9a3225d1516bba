"""What is known of a set of strings from the patterns it was made of, before its automaton is searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple


class LetterPiece(NamedTuple):
    """Letters in a row, perhaps at the beginning or the end of a string: for each place the letters that it may be."""

    letters: tuple[tuple[int, ...], ...]
    begins: bool
    ends: bool


@dataclass(frozen=True)
class KnownPieces:
    """Pieces that each string of a set has (``required``), and pieces that none has (``excluded``).

    If ``exact``, the set is all strings with the first and without the others. It is ``gapped`` if any text may come
    between two pieces that must follow each other.
    """

    required: tuple[LetterPiece, ...] = ()
    excluded: tuple[LetterPiece, ...] = ()
    exact: bool = True
    gapped: bool = False

    def __and__(self, other: KnownPieces) -> KnownPieces:
        """What is known of the strings that are in both sets."""
        return KnownPieces(
            self.required + other.required,
            self.excluded + other.excluded,
            self.exact and other.exact,
            self.gapped or other.gapped,
        )

    @property
    def only(self) -> LetterPiece | None:
        """The piece that decides alone whether a string is in the set; None if there are more, or other things do."""
        return self.required[0] if self.exact and not self.excluded and len(self.required) == 1 else None

    @property
    def others(self) -> KnownPieces | None:
        """What is known of all other strings, if that can be said so: those without the one piece that is required."""
        if not self.exact or len(self.required) + len(self.excluded) != 1:
            return None
        return replace(self, required=self.excluded, excluded=self.required)


def pieces_of_like(pieces: Sequence[Sequence[str]], letters: Mapping[str, tuple[int, ...]]) -> KnownPieces | None:
    """What a LIKE pattern tells, in whose ``pieces`` "" is any character; ``letters`` are those of each character.

    None if it has a character that no string has.

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
