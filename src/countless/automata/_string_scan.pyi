"""The compiled module; its source is string_scan.c."""

from typing import Any

def survey(data: Any, starts: Any, heads: Any, tails: Any, shared: Any, points: Any, /) -> bool: ...
def cut(data: Any, starts: Any, rest_starts: Any, rests: Any, /) -> None: ...
def find(
    data: Any,
    starts: Any,
    rests: Any,
    rest_starts: Any,
    owners: Any,
    shared: Any,
    needle: bytes,
    first_offset: int,
    second_offset: int,
    first: int,
    last: int,
    matches: Any,
    /,
) -> None: ...
def like(data: Any, starts: Any, pattern: bytes, candidates: Any | None, matches: Any, /) -> None: ...
def run(
    data: Any,
    starts: Any,
    shared: Any,
    kinds: Any,
    table: Any,
    states: int,
    columns: int,
    candidates: Any | None,
    matches: Any,
    /,
) -> None: ...
