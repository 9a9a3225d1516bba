"""The compiled module; its source is in kernel_c/."""

from typing import Any

def load(
    hidden: int,
    features: int,
    first: Any,
    units: Any,
    weights: list[Any],
    biases: list[Any],
    positions: list[Any],
    order: tuple[int, ...],
    /,
) -> object: ...
def ask(
    model: object,
    crossed: object,
    star: tuple[tuple[int, ...], float] | None,
    budget: int,
    most: int,
    target: float,
    power: float,
    offsets: Any,
    again: Any,
    rare: float,
    /,
) -> tuple[float, bool, int, tuple[int, ...], int, float, tuple[tuple[tuple[int, ...], float, float, int], ...]]: ...
def pairs(before: Any, known: Any, members: int, rows: int, columns: list[Any], sparse: list[Any], /) -> object: ...
def reading(
    tables: object,
    column: int,
    weights: Any,
    positions: tuple[int, ...],
    radices: tuple[int, ...],
    free: bool,
    listed: bool,
    /,
) -> tuple[object, int, int, int]: ...
def cross(
    readings: tuple[object, ...], /
) -> tuple[
    object,
    int,
    int,
    int,
    int,
    list[tuple[int, int, int]],
    list[tuple[tuple[int, ...], float, int, int]],
]: ...
def crossed(crossed: object, /) -> tuple[bytes, bytes, bytes]: ...
def walk(
    model: object, budget: int, power: float, offsets: Any, steps: list[Any], /
) -> list[tuple[float, bool, int, float]]: ...
def trace(
    model: object,
    budgets: Any,
    power: float,
    offsets: Any,
    steps: list[Any],
    labelled: Any,
    expand: bool,
    scatter: bool,
    /,
) -> tuple[bytes, list[tuple[bytes, bytes]], bool, int, float]: ...
def text_load(sizes: tuple[int, ...], grams: Any, hash_ids: Any, arrays: list[Any], /) -> object: ...
def text_tree(model: object, base: object | None, shifts: Any | None, starts: Any | None, /) -> object: ...
def text_extend(tree: object, parents: Any, tokens: Any, positions: Any | None, out: Any, /) -> int: ...
def text_roots(tree: object, out: Any, /) -> None: ...
def text_places(tree: object, contexts: bool, out: Any, /) -> None: ...
