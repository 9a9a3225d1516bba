"""Front coding of sorted strings: of each, the length of the prefix it shares with the one before, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

END = b"\xff"  # after the rest of a string; no byte of UTF-8
MOST_SHARED = 255  # bytes


def front_coded(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The bytes of all rests, each followed by END, and the number of bytes each string shares with its predecessor.

    >>> rests, shared = front_coded(["apple", "apply", "bat"])
    >>> rests.tobytes(), shared.tolist()
    (b'apple\\xffy\\xffbat\\xff', [0, 4, 0])
    """
    shared, rests, before = [], [], b""
    for text in texts:
        encoded = text.encode()
        common = _common_prefix(before[:MOST_SHARED], encoded[:MOST_SHARED])
        shared.append(common)
        rests.append(encoded[common:] + END)
        before = encoded
    return np.frombuffer(b"".join(rests), dtype=np.uint8), np.array(shared, dtype=np.uint8)


def _common_prefix(first: bytes, second: bytes) -> int:
    """The length of the longest common prefix."""
    differing = (index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    return next(differing, min(len(first), len(second)))


def front_decoded(rests: NDArray[Any], shared: NDArray[Any]) -> tuple[str, ...]:
    """The strings that :func:`front_coded` wrote; a ValueError if it did not write this."""
    if {rests.dtype, shared.dtype} != {np.dtype(np.uint8)} or {rests.ndim, shared.ndim} != {1}:
        raise ValueError("these are no bytes")
    try:
        from countless.data import _substrings
    except ImportError:
        return front_decoded_by_python(rests, shared)
    return tuple(_substrings.front_decode(np.ascontiguousarray(rests), np.ascontiguousarray(shared)))


def front_decoded_by_python(rests: NDArray[Any], shared: NDArray[Any]) -> tuple[str, ...]:
    """The strings of these bytes, without the compiled module."""
    *parts, last = rests.tobytes().split(END)
    if last or len(parts) != len(shared):
        raise ValueError("these are not all strings")
    texts, before = [], b""
    for rest, common in zip(parts, shared.tolist(), strict=True):
        if common > len(before):
            raise ValueError("more is shared than there is")
        before = before[:common] + rest
        texts.append(before.decode())
    return tuple(texts)
