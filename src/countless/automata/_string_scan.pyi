"""The compiled module; its source is string_scan.c."""

from typing import Any

def survey(data: Any, starts: Any, heads: Any, tails: Any, shared: Any, points: Any, /) -> bool: ...
def cut(data: Any, starts: Any, places: Any, rests: Any, /) -> None: ...
def find(
    data: Any,
    starts: Any,
    rests: Any,
    places: Any,
    owners: Any,
    shared: Any,
    needle: bytes,
    one: int,
    two: int,
    first: int,
    last: int,
    marks: Any,
    /,
) -> None: ...
def like(data: Any, starts: Any, pattern: bytes, among: Any | None, marks: Any, /) -> None: ...
def run(
    data: Any,
    starts: Any,
    shared: Any,
    kinds: Any,
    table: Any,
    states: int,
    columns: int,
    among: Any | None,
    marks: Any,
    /,
) -> None: ...
