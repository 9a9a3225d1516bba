"""The automaton of one regular expression, from the library that makes it; also as a process of its own.

The making cannot be interrupted, so an expression that may need very many states is given to a process that can be
ended. Its file runs alone, without the rest of the package.
"""

from __future__ import annotations

import json
import sys
from typing import Any

MOST_BYTES = 2 * 1024**3


def build(regex: str, characters: str) -> tuple[int, list[int], dict[int, dict[int, int]]]:
    """The start, the states in which ``regex`` has matched, and from each state: place of a character -> next state."""
    from outlines_core import Index, Vocabulary

    places: dict[str | bytes, list[int]] = {character: [place] for place, character in enumerate(characters)}
    index = Index(regex, Vocabulary(len(characters), places))
    return index.get_initial_state(), list(index.get_final_states()), index.get_transitions()


def main() -> None:
    """Read a job as JSON, do it, and write what came of it."""
    job: dict[str, Any] = json.load(sys.stdin)
    sys.path[:] = job["path"]
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    try:
        result: Any = build(job["regex"], job["characters"])
    except ValueError as error:
        result = str(error)
    if isinstance(result, tuple) and len(result[2]) > job["states"]:
        result = None
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
