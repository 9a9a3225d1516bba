"""Searches many strings at once, for LIKE patterns and by automata.

Their UTF-8 bytes are in one buffer, which compiled loops read (``string_scan.c``). Neighbouring strings often share a
prefix, which is searched once. Without the compiled module the same is done in Python and NumPy.
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
ANY_TEXT, ANY_CHARACTER = b"\xfe", b"\xff"  # in a pattern; neither is a byte of UTF-8
SPECIAL = re.compile(rb"[\xfe\xff]")
WORD = 8  # bytes at each end of a string that are compared at once
OVERLAP = 7  # bytes of the prefix shared with the string before that a front-coded string repeats; see front_coded.h
STEP = 64  # every STEP-th byte of front-coded strings has a record of its string; see front_coded.h
CODE_POINTS = 0x110000  # in Unicode
ENCODING_BATCH = 10_000  # strings that are joined and encoded at once
SAMPLED_BYTES = 100_000  # bytes from which the frequencies of bytes are estimated
MOST_PART_SEARCHES = 2  # longest parts of a pattern that are searched in all strings
FEW_CANDIDATES = 8  # if at most one string in this many remains, they are matched one by one
MOST_LETTERS = 2**16
ASCII_LETTERS = frozenset(map(chr, range(ASCII)))
ACCEPTED, DECIDED = 1, 2  # flags of a state: accepting; the same for everything that may follow


def compiled_scan() -> ModuleType | None:
    """The compiled module; None if it was not built or is switched off."""
    if os.environ.get(SWITCH_OFF):
        return None
    try:
        from countless.automata import _string_scan
    except ImportError:
        return None
    module: ModuleType = _string_scan
    return module


def like_pattern(pieces: Sequence[Sequence[str]]) -> bytes:
    """A LIKE pattern for :meth:`StringTable.like` with any text between its ``pieces``, in which "" is any character.

    >>> like_pattern([["a", "", "b"], []])
    b'a\\xffb\\xfe'
    """
    return ANY_TEXT.join(
        b"".join(character.encode("utf-8", "surrogatepass") or ANY_CHARACTER for character in piece) for piece in pieces
    )


@dataclass(frozen=True, eq=False)
class StringFacets:
    """Properties of strings for searches: eight bytes of each end, and how many bytes it shares with the previous.

    ``points`` are the characters beyond ASCII that occur.
    """

    heads: NDArray[np.uint64]
    tails: NDArray[np.uint64]
    shared: NDArray[np.uint8]
    points: IntArray
    sorted: bool


@dataclass(frozen=True, eq=False)
class FrontCodedStrings:
    """The strings without most of the prefix that each shares with the previous one, one after the other in ``data``.

    ``starts`` has the offset of each string, and ``owners`` the string of every STEP-th byte.
    """

    data: NDArray[np.uint8]
    starts: IntArray
    owners: NDArray[np.int32]
    frequencies: IntArray


class StringTable:
    """Strings in one buffer. What is derived from them is computed when first needed.

    >>> table = StringTable(["/etc/passwd", "/usr/lib", "é"])
    >>> table.like(like_pattern([["/", "e"], ["s"], []])).tolist(), table.like(like_pattern([[""]])).tolist()
    ([True, False, False], [False, False, True])
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._listed_texts: Sequence[str] | None = texts  # None if they are decoded from the buffer
        self._count = len(texts)
        self._module = compiled_scan()
        self._last_match: tuple[bytes, BoolArray] | None = None  # a pattern and the strings that match it

    @classmethod
    def _of_bytes(cls, data: NDArray[np.uint8], starts: IntArray) -> StringTable:
        """The strings in a buffer, at the offsets ``starts``, of which the last is the end of the buffer."""
        table = cls(())
        table._listed_texts, table._count = None, len(starts) - 1
        vars(table).update(_data=data, _starts=starts)
        return table

    def __len__(self) -> int:
        return self._count

    @cached_property
    def texts(self) -> Sequence[str]:
        """The strings."""
        if self._listed_texts is not None:
            return self._listed_texts
        data, starts = self._data.tobytes(), self._starts.tolist()
        return [data[start:end].decode("utf-8", "surrogatepass") for start, end in itertools.pairwise(starts)]

    @cached_property
    def _encoded(self) -> list[bytes]:
        return [text.encode("utf-8", "surrogatepass") for text in self.texts]

    @cached_property
    def _data(self) -> NDArray[np.uint8]:
        batches = (
            "".join(self.texts[start : start + ENCODING_BATCH]) for start in range(0, self._count, ENCODING_BATCH)
        )
        return np.frombuffer(b"".join(batch.encode("utf-8", "surrogatepass") for batch in batches), dtype=np.uint8)

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
    def _facets(self) -> StringFacets:
        assert self._module is not None
        count = self._count
        heads, tails = np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.uint64)
        shared, points = np.empty(count, dtype=np.uint8), np.zeros(CODE_POINTS, dtype=np.uint8)
        in_order: bool = self._module.survey(self._data, self._starts, heads, tails, shared, points)
        return StringFacets(heads, tails, shared, np.flatnonzero(points), in_order)

    @cached_property
    def _front_coded(self) -> FrontCodedStrings:
        assert self._module is not None
        facets, lengths = self._facets, np.diff(self._starts)
        starts = _starts(lengths - np.maximum(facets.shared.astype(np.int64) - OVERLAP, 0))
        data = np.zeros(starts[-1] + WORD, dtype=np.uint8)
        self._module.cut(self._data, self._starts, starts, data)
        offsets = np.arange(0, starts[-1] + 1, STEP)
        owners = np.maximum(np.searchsorted(starts[:-1], offsets, side="right") - 1, 0).astype(np.int32)
        step = max(1, len(data) // SAMPLED_BYTES)
        return FrontCodedStrings(data, starts, owners, np.bincount(data[::step], minlength=256))

    @cached_property
    def is_ascii(self) -> bool:
        """Whether every character is ASCII."""
        return not len(self._data) or int(self._data.max()) < 128

    @cached_property
    def letters(self) -> str | None:
        """The letters that :meth:`run` reads: all of ASCII, then the others that occur; None if too many."""
        letters = [*map(chr, range(ASCII)), *self.non_ascii_letters]
        return "".join(letters) if len(letters) <= MOST_LETTERS else None

    @cached_property
    def non_ascii_letters(self) -> tuple[str, ...]:
        """The characters of the strings that are not ASCII."""
        if self._module is None:
            return tuple(sorted(set().union(*(text for text in self.texts if not text.isascii())) - ASCII_LETTERS))
        return tuple(map(chr, self._facets.points.tolist()))

    @cached_property
    def is_sorted(self) -> bool:
        """Whether the strings are sorted by code points."""
        if self._module is None:
            return all(map(operator.le, self.texts, self.texts[1:]))
        return self._facets.sorted

    def folded(self, lower: bool, folded_letters: Mapping[str, str]) -> StringTable:
        """The strings in lower or upper case; ``folded_letters`` maps the characters beyond ASCII."""
        fold = str.lower if lower else str.upper
        changed = {old: new for old, new in folded_letters.items() if old != new}
        pairs = [tuple(letter.encode("utf-8", "surrogatepass") for letter in pair) for pair in changed.items()]
        if any(len(old) != len(new) for old, new in pairs) or not changed.keys().isdisjoint(changed.values()):
            table = str.maketrans({letter: fold(letter) for letter in ASCII_LETTERS} | changed)
            return StringTable([fold(text) if text.isascii() else text.translate(table) for text in self.texts])
        byte_map = [ord(fold(chr(byte))) if byte < ASCII else byte for byte in range(256)]
        data = np.array(byte_map, dtype=np.uint8)[self._data]
        non_ascii = np.flatnonzero(self._data >= ASCII) if pairs else np.zeros(0, dtype=np.int64)
        for old, new in pairs:
            starts = non_ascii
            for offset, byte in enumerate(old):
                starts = starts[self._data[starts + offset] == byte]
            for offset, byte in enumerate(new):
                data[starts + offset] = byte
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
        """The strings that match a pattern. The ends and longest parts are searched first, all else later."""
        last_match = self._last_match
        if last_match is not None and last_match[0] == pattern:  # a question asks for the same pattern several times
            return last_match[1]
        matches = self.like_by_python(pattern) if self._module is None else self._like(pattern)
        matches.setflags(write=False)
        self._last_match = pattern, matches
        return matches

    def _like(self, pattern: bytes) -> BoolArray:
        """The same, by the compiled module."""
        assert self._module is not None
        head, tail = SPECIAL.split(pattern)[0], SPECIAL.split(pattern)[-1]
        facets, first, last = self._facets, 0, self._count
        is_head_searched = facets.sorted and self._listed_texts is not None
        if head and is_head_searched:
            text = head.decode("utf-8", "surrogatepass")
            first = bisect_left(self.texts, text)
            last = bisect_right(self.texts, text, first, key=lambda each: each[: len(text)])
        matches: BoolArray = np.zeros(self._count, dtype=np.bool_)
        candidates = matches[first:last]
        candidates[:] = _ends_alike(facets.heads, head[:WORD], "big") if head and not is_head_searched else True
        is_decided = is_head_searched or len(head) <= WORD
        middle = pattern[len(head) : len(pattern) - len(tail)] if head != pattern else b""
        if head == pattern:
            candidates &= self._lengths(first, last) == len(head)
        else:
            if tail:
                candidates &= _ends_alike(facets.tails[first:last], tail[-WORD:], "little")
                is_decided = is_decided and len(tail) <= WORD
            if head and tail:
                candidates &= self._lengths(first, last) >= len(head) + len(tail)
        if is_decided and not middle.strip(ANY_TEXT):
            return matches
        needles = sorted({needle for needle in SPECIAL.split(middle) if needle}, key=len)
        for needle in needles[: -1 - MOST_PART_SEARCHES : -1]:
            if np.count_nonzero(candidates) * FEW_CANDIDATES > last - first:
                candidates &= self.find(needle, first, last)[first:last]
        if pattern != ANY_TEXT + b"".join(needles) + ANY_TEXT:
            self._module.like(self._data, self._starts, pattern, matches, matches)
        return matches

    def _lengths(self, first: int, last: int) -> IntArray:
        """The lengths in bytes of the strings from ``first`` to ``last``."""
        return np.diff(self._starts[first : last + 1])

    def like_by_python(self, pattern: bytes) -> BoolArray:
        """The same, without the compiled module."""
        any_character = b"(?:[\\x00-\\x7f]|[\\xc0-\\xff][\\x80-\\xbf]*)"
        parts = {ANY_TEXT: b".*", ANY_CHARACTER: any_character}
        tokens = re.findall(rb"[\xfe\xff]|[^\xfe\xff]+", pattern)
        compiled = re.compile(b"".join(parts.get(token) or re.escape(token) for token in tokens), re.DOTALL)
        return np.array([compiled.fullmatch(text) is not None for text in self._encoded], dtype=np.bool_)

    def find(self, needle: bytes, first: int = 0, last: int | None = None) -> BoolArray:
        """The strings from ``first`` to ``last`` that contain ``needle``."""
        last = self._count if last is None else last
        matches: BoolArray = np.zeros(self._count, dtype=np.bool_)
        if self._module is None or not needle:
            matches[first:last] = [needle in text for text in self._encoded[first:last]]
            return matches
        strings = self._front_coded
        needle_end = np.frombuffer(needle[-WORD:], dtype=np.uint8)
        rarest = np.argsort(strings.frequencies[needle_end], kind="stable").tolist()
        rarest_byte, second_rarest = rarest[0], rarest[min(1, len(rarest) - 1)]
        front_coded = strings.data, strings.starts, strings.owners, self._facets.shared
        self._module.find(
            self._data, self._starts, *front_coded, needle, rarest_byte, second_rarest, first, last, matches
        )
        return matches

    def run(self, next_states: IntArray, accepts: BoolArray, candidates: BoolArray | None = None) -> BoolArray:
        """The strings that an automaton accepts, among the ``candidates`` if there are any given.

        ``next_states`` (states, letters) has the state after each of :attr:`letters`, and 0 is the first state.
        """
        first, kind = same_columns(next_states)
        next_by_kind = next_states[:, first]
        if self._module is None:
            return self.run_by_numpy(next_by_kind, kind, accepts, candidates)
        assert self.letters is not None
        table, kinds = on_bytes(next_by_kind, kind, self.letters)
        distances = distance(next_by_kind, accepts), distance(next_by_kind, ~accepts)
        is_decided = (distances[0] == len(accepts)) | (distances[1] == len(accepts))
        flags = np.repeat(ACCEPTED * accepts + DECIDED * is_decided, len(table) // len(accepts))
        states, columns = table.shape
        rows = np.column_stack([table * (columns + 1), flags]).astype(np.int32)
        matches: BoolArray = np.zeros(self._count, dtype=np.bool_)
        self._module.run(
            self._data, self._starts, self._facets.shared, kinds, rows, states, columns, candidates, matches
        )
        return matches

    def run_by_numpy(
        self, next_by_kind: IntArray, kind: IntArray, accepts: BoolArray, candidates: BoolArray | None = None
    ) -> BoolArray:
        """The same by NumPy, for an automaton that reads kinds of letters: all strings in parallel."""
        letters, starts = self._letters
        lengths = np.diff(starts)
        states: IntArray = np.zeros(self._count, dtype=np.int64)
        unfinished: IntArray = np.flatnonzero(lengths if candidates is None else lengths * candidates)
        offset = 0
        while len(unfinished):
            states[unfinished] = next_by_kind[states[unfinished], kind[letters[starts[unfinished] + offset]]]
            offset += 1
            unfinished = unfinished[lengths[unfinished] > offset]
        matches: BoolArray = accepts[states]
        return matches if candidates is None else matches & candidates


def _starts(lengths: Sequence[int] | IntArray) -> IntArray:
    starts: IntArray = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _ends_alike(words: NDArray[np.uint64], piece: bytes, order: Any) -> BoolArray:
    """Which words begin with ``piece``, up to eight bytes; by ``order`` its first or its last byte is the highest.

    The padding is no byte of UTF-8, so that shorter strings do not match.
    """
    shift = np.uint64(8 * (WORD - len(piece)))
    matches: BoolArray = (words >> shift) == np.uint64(int.from_bytes(piece, order))
    return matches
