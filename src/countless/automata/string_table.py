"""Many strings that are searched together, for LIKE patterns and by automata.

Their UTF-8 bytes are one buffer, which compiled loops read (``string_scan.c``). Neighbours mostly begin alike, and what
they have in common is searched once. Without the compiled module the same is done in Python and NumPy.
"""

from __future__ import annotations

import itertools
import operator
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray
from countless.automata.byte_automata import ASCII, on_bytes
from countless.automata.dfa import distance, same_columns
from countless.cached_property import cached_property

SWITCH_OFF = "COUNTLESS_NO_KERNEL"  # an environment variable: if it is set, no compiled module is used
ANY_TEXT, ANY_CHARACTER = b"\xfe", b"\xff"  # of a pattern; no bytes of UTF-8
SPECIAL = re.compile(rb"[\xfe\xff]")
WORD = 8  # bytes at either end of a string that are compared at once
OVERLAP = 7  # bytes of what a string has in common with the one before it that its rest repeats; as in front_coded.h
STEP = 64  # bytes of the rests: every STEP-th has a record of its string; as in front_coded.h
POINTS = 0x110000  # of Unicode
JOINED = 10_000  # strings that are encoded together
SAMPLED = 100_000  # bytes from which rare bytes are found
MOST_NEEDLES = 2  # parts of a pattern that are searched in all strings
FEW = 8  # if at most one string in this many is left, those are read one by one and not searched for parts
MOST_LETTERS = 2**16
ASCII_LETTERS = frozenset(map(chr, range(ASCII)))
ACCEPTED, DECIDED = 1, 2  # of a state: its string is accepted; whatever follows, that stays so


def compiled_scan() -> ModuleType | None:
    """The compiled module, unless it was not built or is switched off."""
    if os.environ.get(SWITCH_OFF):
        return None
    try:
        from countless.automata import _string_scan
    except ImportError:
        return None
    module: ModuleType = _string_scan
    return module


def like_pattern(pieces: Sequence[Sequence[str]]) -> bytes:
    """A LIKE pattern for :meth:`StringTable.like`: its ``pieces`` between any text, "" being any character.

    >>> like_pattern([["a", "", "b"], []])
    b'a\\xffb\\xfe'
    """
    return ANY_TEXT.join(
        b"".join(character.encode("utf-8", "surrogatepass") or ANY_CHARACTER for character in piece) for piece in pieces
    )


@dataclass(frozen=True, eq=False)
class StringFacets:
    """What searches need of strings: eight bytes from either end of each, and how many it shares with the one before.

    ``points`` are the characters beyond ASCII that occur.
    """

    heads: NDArray[np.uint64]
    tails: NDArray[np.uint64]
    shared: NDArray[np.uint8]
    points: IntArray
    sorted: bool


@dataclass(frozen=True, eq=False)
class Rests:
    """The strings without most of what they share with the one before them, one after the other in ``data``.

    Each begins at its place in ``starts``, and ``owners`` has the string of every STEP-th byte.
    """

    data: NDArray[np.uint8]
    starts: IntArray
    owners: NDArray[np.int32]
    frequencies: IntArray


class StringTable:
    """Strings in one buffer. What is derived from them is made when it is first needed.

    >>> table = StringTable(["/etc/passwd", "/usr/lib", "é"])
    >>> table.like(like_pattern([["/", "e"], ["s"], []])).tolist(), table.like(like_pattern([[""]])).tolist()
    ([True, False, False], [False, False, True])
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._given: Sequence[str] | None = texts  # None if they are read from the buffer when they are asked for
        self._count = len(texts)
        self._module = compiled_scan()
        self._last: tuple[bytes, BoolArray] | None = None  # pattern, and what it was found in

    @classmethod
    def _of_bytes(cls, data: NDArray[np.uint8], starts: IntArray) -> StringTable:
        """The strings in a buffer, which begin at ``starts``; the last number is its end."""
        found = cls(())
        found._given, found._count = None, len(starts) - 1
        vars(found).update(_data=data, _starts=starts)
        return found

    def __len__(self) -> int:
        return self._count

    @cached_property
    def texts(self) -> Sequence[str]:
        """The strings."""
        if self._given is not None:
            return self._given
        data, starts = self._data.tobytes(), self._starts.tolist()
        return [data[start:end].decode("utf-8", "surrogatepass") for start, end in itertools.pairwise(starts)]

    @cached_property
    def _encoded(self) -> list[bytes]:
        return [text.encode("utf-8", "surrogatepass") for text in self.texts]

    @cached_property
    def _data(self) -> NDArray[np.uint8]:
        parts = ("".join(self.texts[start : start + JOINED]) for start in range(0, self._count, JOINED))
        return np.frombuffer(b"".join(part.encode("utf-8", "surrogatepass") for part in parts), dtype=np.uint8)

    @cached_property
    def _starts(self) -> IntArray:
        lengths = list(map(len, self.texts))
        if sum(lengths) < len(self._data):
            lengths = [
                length if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
                for text, length in zip(self.texts, lengths, strict=True)
            ]
        return _starts(lengths)

    @cached_property
    def _survey(self) -> StringFacets:
        assert self._module is not None
        count = self._count
        heads, tails = np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.uint64)
        shared, points = np.empty(count, dtype=np.uint8), np.zeros(POINTS, dtype=np.uint8)
        in_order: bool = self._module.survey(self._data, self._starts, heads, tails, shared, points)
        return StringFacets(heads, tails, shared, np.flatnonzero(points), in_order)

    @cached_property
    def _rests(self) -> Rests:
        assert self._module is not None
        own, lengths = self._survey, np.diff(self._starts)
        starts = _starts(lengths - np.maximum(own.shared.astype(np.int64) - OVERLAP, 0))
        data = np.zeros(starts[-1] + WORD, dtype=np.uint8)
        self._module.cut(self._data, self._starts, starts, data)
        places = np.arange(0, starts[-1] + 1, STEP)
        owners = np.maximum(np.searchsorted(starts[:-1], places, side="right") - 1, 0).astype(np.int32)
        step = max(1, len(data) // SAMPLED)
        return Rests(data, starts, owners, np.bincount(data[::step], minlength=256))

    @cached_property
    def is_ascii(self) -> bool:
        """Whether every character is one byte."""
        return not len(self._data) or int(self._data.max()) < 128

    @cached_property
    def letters(self) -> str | None:
        """The characters that the strings may have, as :meth:`run` numbers them; None if they are too many.

        Those of ASCII come first, all of them.
        """
        found = [*map(chr, range(ASCII)), *self.letters_beyond_ascii]
        return "".join(found) if len(found) <= MOST_LETTERS else None

    @cached_property
    def letters_beyond_ascii(self) -> tuple[str, ...]:
        """The characters that the strings have, but those of ASCII."""
        if self._module is None:
            return tuple(sorted(set().union(*(text for text in self.texts if not text.isascii())) - ASCII_LETTERS))
        return tuple(map(chr, self._survey.points.tolist()))

    @cached_property
    def is_sorted(self) -> bool:
        """Whether no string is before the one before it, by code points."""
        if self._module is None:
            return all(map(operator.le, self.texts, self.texts[1:]))
        return self._survey.sorted

    def folded(self, lower: bool, changed: Mapping[str, str]) -> StringTable:
        """The strings in lower or upper case; ``changed`` says what becomes of characters beyond ASCII."""
        plain = str.lower if lower else str.upper
        moved = {old: new for old, new in changed.items() if old != new}
        pairs = [tuple(each.encode("utf-8", "surrogatepass") for each in pair) for pair in moved.items()]
        if any(len(old) != len(new) for old, new in pairs) or not moved.keys().isdisjoint(moved.values()):
            table = str.maketrans({letter: plain(letter) for letter in ASCII_LETTERS} | moved)
            return StringTable([plain(text) if text.isascii() else text.translate(table) for text in self.texts])
        every = [ord(plain(chr(byte))) if byte < ASCII else byte for byte in range(256)]
        data = np.array(every, dtype=np.uint8)[self._data]
        beyond = np.flatnonzero(self._data >= ASCII) if pairs else np.zeros(0, dtype=np.int64)
        for old, new in pairs:
            here = beyond
            for place, byte in enumerate(old):
                here = here[self._data[here + place] == byte]
            for place, byte in enumerate(new):
                data[here + place] = byte
        return self._of_bytes(data, self._starts)

    @cached_property
    def _points(self) -> NDArray[np.uint32]:
        return np.frombuffer("".join(self.texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)

    @cached_property
    def _letters(self) -> tuple[NDArray[Any], IntArray]:
        """The letter of every character, and where each string starts."""
        if self.is_ascii:
            return self._data, self._starts
        assert self.letters is not None
        number = np.zeros(ord(self.letters[-1]) + 1, dtype=np.uint16)
        number[[ord(letter) for letter in self.letters]] = np.arange(len(self.letters))
        return number[self._points], _starts([len(text) for text in self.texts])

    def like(self, pattern: bytes) -> BoolArray:
        """Which strings match a pattern: its ends or longest parts are searched first, the rest only where they are."""
        last = self._last
        if last is not None and last[0] == pattern:  # a question asks several times
            return last[1]
        found = self.like_by_python(pattern) if self._module is None else self._like(pattern)
        found.setflags(write=False)
        self._last = pattern, found
        return found

    def _like(self, pattern: bytes) -> BoolArray:
        """The same, by the compiled module."""
        assert self._module is not None
        head, tail = SPECIAL.split(pattern)[0], SPECIAL.split(pattern)[-1]
        own, first, last = self._survey, 0, self._count
        placed = own.sorted and self._given is not None
        if head and placed:
            text = head.decode("utf-8", "surrogatepass")
            first = bisect_left(self.texts, text)
            last = bisect_right(self.texts, text, first, key=lambda each: each[: len(text)])
        marks: BoolArray = np.zeros(self._count, dtype=np.bool_)
        found = marks[first:last]
        found[:] = _ends_alike(own.heads, head[:WORD], "big") if head and not placed else True
        decided = placed or len(head) <= WORD
        between = pattern[len(head) : len(pattern) - len(tail)] if head != pattern else b""
        if head == pattern:
            found &= self._lengths(first, last) == len(head)
        else:
            if tail:
                found &= _ends_alike(own.tails[first:last], tail[-WORD:], "little")
                decided = decided and len(tail) <= WORD
            if head and tail:
                found &= self._lengths(first, last) >= len(head) + len(tail)
        if decided and not between.strip(ANY_TEXT):
            return marks
        needles = sorted({needle for needle in SPECIAL.split(between) if needle}, key=len)
        for needle in needles[: -1 - MOST_NEEDLES : -1]:
            if np.count_nonzero(found) * FEW > last - first:
                found &= self.find(needle, first, last)[first:last]
        if pattern != ANY_TEXT + b"".join(needles) + ANY_TEXT:
            self._module.like(self._data, self._starts, pattern, marks, marks)
        return marks

    def _lengths(self, first: int, last: int) -> IntArray:
        """The bytes of some of the strings."""
        return np.diff(self._starts[first : last + 1])

    def like_by_python(self, pattern: bytes) -> BoolArray:
        """The same, without the compiled module."""
        any_character = b"(?:[\\x00-\\x7f]|[\\xc0-\\xff][\\x80-\\xbf]*)"
        parts = {ANY_TEXT: b".*", ANY_CHARACTER: any_character}
        tokens = re.findall(rb"[\xfe\xff]|[^\xfe\xff]+", pattern)
        compiled = re.compile(b"".join(parts.get(token) or re.escape(token) for token in tokens), re.DOTALL)
        return np.array([compiled.fullmatch(text) is not None for text in self._encoded], dtype=np.bool_)

    def find(self, needle: bytes, first: int = 0, last: int | None = None) -> BoolArray:
        """Which strings from ``first`` to ``last`` have ``needle``."""
        last = self._count if last is None else last
        marks: BoolArray = np.zeros(self._count, dtype=np.bool_)
        if self._module is None or not needle:
            marks[first:last] = [needle in text for text in self._encoded[first:last]]
            return marks
        rests = self._rests
        piece = np.frombuffer(needle[-WORD:], dtype=np.uint8)
        rarest = np.argsort(rests.frequencies[piece], kind="stable").tolist()
        one, two = rarest[0], rarest[min(1, len(rarest) - 1)]
        places = rests.data, rests.starts, rests.owners, self._survey.shared
        self._module.find(self._data, self._starts, *places, needle, one, two, first, last, marks)
        return marks

    def run(self, following: IntArray, accepts: BoolArray, among: BoolArray | None = None) -> BoolArray:
        """Which strings an automaton accepts, of those ``among`` which it is asked.

        ``following`` (states, letters) has the state after each of :attr:`letters`, and 0 is the first state.
        """
        first, kind = same_columns(following)
        narrow = following[:, first]
        if self._module is None:
            return self.run_by_numpy(narrow, kind, accepts, among)
        assert self.letters is not None
        table, kinds = on_bytes(narrow, kind, self.letters)
        unsure = distance(narrow, accepts), distance(narrow, ~accepts)
        decided = (unsure[0] == len(accepts)) | (unsure[1] == len(accepts))
        flags = np.repeat(ACCEPTED * accepts + DECIDED * decided, len(table) // len(accepts))
        states, columns = table.shape
        rows = np.column_stack([table * (columns + 1), flags]).astype(np.int32)
        marks: BoolArray = np.zeros(self._count, dtype=np.bool_)
        self._module.run(self._data, self._starts, self._survey.shared, kinds, rows, states, columns, among, marks)
        return marks

    def run_by_numpy(
        self, narrow: IntArray, kind: IntArray, accepts: BoolArray, among: BoolArray | None = None
    ) -> BoolArray:
        """The same without the compiled module, of an automaton that reads kinds of letters: one character of all."""
        letters, starts = self._letters
        lengths = np.diff(starts)
        states: IntArray = np.zeros(self._count, dtype=np.int64)
        going: IntArray = np.flatnonzero(lengths if among is None else lengths * among)
        place = 0
        while len(going):
            states[going] = narrow[states[going], kind[letters[starts[going] + place]]]
            place += 1
            going = going[lengths[going] > place]
        marks: BoolArray = accepts[states]
        return marks if among is None else marks & among


def _starts(lengths: Sequence[int] | IntArray) -> IntArray:
    starts: IntArray = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _ends_alike(words: NDArray[np.uint64], piece: bytes, order: Any) -> BoolArray:
    """Which words begin with ``piece``, of up to eight bytes; in ``order`` its first byte, or its last, is the highest.

    Padding is no byte of UTF-8, so that shorter strings do not match.
    """
    shift = np.uint64(8 * (WORD - len(piece)))
    found: BoolArray = (words >> shift) == np.uint64(int.from_bytes(piece, order))
    return found
