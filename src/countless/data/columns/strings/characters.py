"""Vectorized access to the characters of many strings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray
from countless.data.sources.arrow_batches import Vector

ASCII = 128


@dataclass(frozen=True, eq=False)
class Characters:
    """The code points of strings, one string after the other; the length of each, and which are not NULL."""

    points: NDArray[Any]
    lengths: IntArray
    present: BoolArray

    @classmethod
    def of(cls, strings: Vector) -> Characters:
        """The characters of a batch of strings in UTF-8."""
        assert strings.offsets is not None
        offsets = strings.offsets.astype(np.int64)
        data = strings.values[offsets[0] : offsets[-1]]
        present = np.ones(len(strings), dtype=bool) if strings.valid is None else strings.valid
        if data.max(initial=0) < ASCII:
            return cls(data, np.diff(offsets), present)
        characters_before = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])  # that begin before each byte
        points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), dtype=np.uint32)
        return cls(points, np.diff(characters_before[offsets - offsets[0]]), present)

    @classmethod
    def of_texts(cls, texts: list[str | None]) -> Characters:
        """The characters of Python strings."""
        points = np.frombuffer("".join(text or "" for text in texts).encode("utf-32-le"), dtype=np.uint32)
        lengths = np.array([len(text or "") for text in texts], dtype=np.int64)
        return cls(points, lengths, np.array([text is not None for text in texts], dtype=bool))

    def subset(self, mask: BoolArray) -> Characters:
        """The strings where ``mask`` is true."""
        return Characters(self.points[np.repeat(mask, self.lengths)], self.lengths[mask], self.present[mask])

    def cut(self, length: int) -> NDArray[Any]:
        """The code points of the first ``length`` characters of each string."""
        if self.lengths.max(initial=0) <= length:
            return self.points
        starts = np.cumsum(self.lengths) - self.lengths
        offsets = np.arange(len(self.points)) - np.repeat(starts, self.lengths)
        points: NDArray[Any] = self.points[offsets < length]
        return points
