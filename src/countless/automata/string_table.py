"""Many strings that are searched together, for LIKE patterns and by automata.

Their UTF-8 bytes are one buffer, which compiled loops read (``string_scan.c``). Without the compiled module the same is
done in Python and NumPy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray
from countless.automata.dfa import distance, same_columns
from countless.cached_property import cached_property

SWITCH_OFF = "COUNTLESS_NO_KERNEL"  # an environment variable: if it is set, no compiled module is used
ANY_TEXT, ANY_CHARACTER = b"\xfe", b"\xff"  # of a pattern; no bytes of UTF-8
SPECIAL = re.compile(rb"[\xfe\xff]")
WORD = 8  # bytes at either end of a string that are compared at once
PADDING = b"\xff" * WORD
SAMPLED = 100_000  # bytes from which rare bytes are found
MOST_NEEDLES = 2  # parts of a pattern that are searched in all strings
MOST_LETTERS = 2**16
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


class StringTable:
    """Strings in one buffer. What is derived from them is made when it is first needed.

    >>> table = StringTable(["/etc/passwd", "/usr/lib", "é"])
    >>> table.like(like_pattern([["/", "e"], ["s"], []])).tolist(), table.like(like_pattern([[""]])).tolist()
    ([True, False, False], [False, False, True])
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._module = compiled_scan()

    @cached_property
    def _encoded(self) -> list[bytes]:
        return [text.encode("utf-8", "surrogatepass") for text in self.texts]

    @cached_property
    def _data(self) -> NDArray[np.uint8]:
        return np.frombuffer(b"".join(self._encoded), dtype=np.uint8)

    @cached_property
    def _starts(self) -> IntArray:
        return _starts([len(text) for text in self._encoded])

    @cached_property
    def is_ascii(self) -> bool:
        """Whether every character is one byte."""
        return not len(self._data) or int(self._data.max()) < 128

    @cached_property
    def letters(self) -> str | None:
        """The characters that the strings may have, as :meth:`run` numbers them; None if they are too many."""
        if self.is_ascii:
            return "".join(map(chr, range(128)))
        found = np.flatnonzero(np.bincount(self._points)).tolist()
        return "".join(map(chr, found)) if len(found) <= MOST_LETTERS else None

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

    @cached_property
    def _frequencies(self) -> IntArray:
        step = max(1, len(self._data) // SAMPLED)
        return np.bincount(self._data[::step], minlength=256)

    @cached_property
    def _heads(self) -> NDArray[np.uint64]:
        words = b"".join([(text[:WORD] + PADDING)[:WORD] for text in self._encoded])
        return np.frombuffer(words, dtype=">u8").astype(np.uint64)

    @cached_property
    def _tails(self) -> NDArray[np.uint64]:
        words = b"".join([(PADDING + text[-WORD:])[-WORD:] for text in self._encoded])
        return np.frombuffer(words, dtype="<u8").astype(np.uint64)

    def like(self, pattern: bytes) -> BoolArray:
        """Which strings match a pattern: its ends or longest parts are searched first, the rest only where they are."""
        if self._module is None:
            return self.like_by_python(pattern)
        head, tail = SPECIAL.split(pattern)[0], SPECIAL.split(pattern)[-1]
        found: BoolArray | None = None
        if head:
            found = _ends_alike(self._heads, head[:WORD], "big")
        if tail:
            last = _ends_alike(self._tails, tail[-WORD:], "little")
            found = last if found is None else found & last
        rest = pattern[len(head) : len(pattern) - len(tail)] if head != pattern else b""
        if head != pattern and max(len(head), len(tail)) <= WORD and not rest.strip(ANY_TEXT):
            whole = found if found is not None else np.ones(len(self.texts), dtype=np.bool_)
            if not (head and tail):  # or they could overlap
                return whole
        needles = sorted({needle for needle in SPECIAL.split(pattern) if needle}, key=len)[-MOST_NEEDLES:]
        if found is None and needles:
            found = np.logical_and.reduce([self.find(needle) for needle in needles])
            if pattern == ANY_TEXT + needles[0] + ANY_TEXT:
                return found
        marks: BoolArray = np.empty(len(self.texts), dtype=np.bool_)
        self._module.like(self._data, self._starts, pattern, found, marks)
        return marks

    def like_by_python(self, pattern: bytes) -> BoolArray:
        """The same, without the compiled module."""
        any_character = b"(?:[\\x00-\\x7f]|[\\xc0-\\xff][\\x80-\\xbf]*)"
        parts = {ANY_TEXT: b".*", ANY_CHARACTER: any_character}
        tokens = re.findall(rb"[\xfe\xff]|[^\xfe\xff]+", pattern)
        compiled = re.compile(b"".join(parts.get(token) or re.escape(token) for token in tokens), re.DOTALL)
        return np.array([compiled.fullmatch(text) is not None for text in self._encoded], dtype=np.bool_)

    def find(self, needle: bytes) -> BoolArray:
        """Which strings have ``needle``."""
        if self._module is None or not needle:
            return np.array([needle in text for text in self._encoded], dtype=np.bool_)
        rarest = np.argsort(self._frequencies[np.frombuffer(needle, dtype=np.uint8)], kind="stable").tolist()
        one, two = rarest[0], rarest[min(1, len(rarest) - 1)]
        marks: BoolArray = np.zeros(len(self.texts), dtype=np.bool_)
        self._module.find(self._data, self._starts, needle, one, two, marks)
        return marks

    def run(self, following: IntArray, accepts: BoolArray, among: BoolArray | None = None) -> BoolArray:
        """Which strings an automaton accepts, of those ``among`` which it is asked.

        ``following`` (states, letters) has the state after each of :attr:`letters`, and 0 is the first state.
        """
        first, kind = same_columns(following)
        narrow = following[:, first]
        if self._module is None:
            return self.run_by_numpy(narrow, kind, accepts, among)
        letters, starts = self._letters
        columns = len(first)
        table = np.empty((len(accepts), columns + 1), dtype=np.int32)
        table[:, :columns] = narrow * (columns + 1)
        unsure = distance(narrow, accepts), distance(narrow, ~accepts)
        decided = (unsure[0] == len(accepts)) | (unsure[1] == len(accepts))
        table[:, columns] = ACCEPTED * accepts + DECIDED * decided
        kinds = np.zeros(256 if letters.dtype == np.uint8 else MOST_LETTERS, dtype=np.uint16)
        kinds[: len(kind)] = kind
        marks: BoolArray = np.zeros(len(self.texts), dtype=np.bool_)
        self._module.run(letters, starts, kinds, table, columns, among, marks)
        return marks

    def run_by_numpy(
        self, narrow: IntArray, kind: IntArray, accepts: BoolArray, among: BoolArray | None = None
    ) -> BoolArray:
        """The same without the compiled module, of an automaton that reads kinds of letters: one character of all."""
        letters, starts = self._letters
        lengths = np.diff(starts)
        states: IntArray = np.zeros(len(self.texts), dtype=np.int64)
        going: IntArray = np.flatnonzero(lengths if among is None else lengths * among)
        place = 0
        while len(going):
            states[going] = narrow[states[going], kind[letters[starts[going] + place]]]
            place += 1
            going = going[lengths[going] > place]
        marks: BoolArray = accepts[states]
        return marks if among is None else marks & among


def _starts(lengths: Sequence[int]) -> IntArray:
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
