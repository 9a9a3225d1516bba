"""The compiled module of src/countless/data/substrings_c."""

from typing import Any

from numpy.typing import NDArray

def grow(
    text: NDArray[Any], starts: NDArray[Any], threshold: int, deepest: int, most: int
) -> tuple[int, bytes, bytes, bytes]: ...
def automaton(parents: NDArray[Any], symbols: NDArray[Any]) -> object: ...
def occur(automaton: object, text: NDArray[Any], starts: NDArray[Any], counts: NDArray[Any]) -> None: ...
def longest(
    labels: NDArray[Any],
    heads: NDArray[Any],
    starts: NDArray[Any],
    after: NDArray[Any],
    symbols: tuple[int, ...],
    start: int,
    child: int,
) -> tuple[int, int]: ...
def next_of_level(levels: NDArray[Any], after: NDArray[Any]) -> None: ...
def front_decode(rests: NDArray[Any], shared: NDArray[Any]) -> list[str]: ...
