"""Front coding: a list of strings that begin alike, each as what it shares with the one before it, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

END = b"\xff"  # of a string's rest: no byte of UTF-8
MOST_SHARED = 255  # bytes


def front_coded(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The bytes of all rests, each with an end, and of each string how many bytes it shares with the one before.

    >>> rests, shared = front_coded(["apple", "apply", "bat"])
    >>> rests.tobytes(), shared.tolist()
    (b'apple\\xffy\\xffbat\\xff', [0, 4, 0])
    """
    shared, rests, before = [], [], b""
    for text in texts:
        own = text.encode()
        same = _shared(before[:MOST_SHARED], own[:MOST_SHARED])
        shared.append(same)
        rests.append(own[same:] + END)
        before = own
    return np.frombuffer(b"".join(rests), dtype=np.uint8), np.array(shared, dtype=np.uint8)


def _shared(one: bytes, other: bytes) -> int:
    """How many bytes two strings have in common at their beginnings."""
    return next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def front_decoded(rests: NDArray[Any], shared: NDArray[Any]) -> tuple[str, ...]:
    """The strings that :func:`front_coded` wrote; a ValueError if it cannot have written this."""
    if {rests.dtype, shared.dtype} != {np.dtype(np.uint8)} or {rests.ndim, shared.ndim} != {1}:
        raise ValueError("these are no bytes")
    try:
        from countless.data import _substrings
    except ImportError:
        return front_decoded_by_python(rests, shared)
    return tuple(_substrings.front_decode(np.ascontiguousarray(rests), np.ascontiguousarray(shared)))


def front_decoded_by_python(rests: NDArray[Any], shared: NDArray[Any]) -> tuple[str, ...]:
    """The same, of bytes, without the compiled module."""
    *parts, last = rests.tobytes().split(END)
    if last or len(parts) != len(shared):
        raise ValueError("these are not all strings")
    found, before = [], b""
    for part, same in zip(parts, shared.tolist(), strict=True):
        if same > len(before):
            raise ValueError("more is shared than there is")
        before = before[:same] + part
        found.append(before.decode())
    return tuple(found)
