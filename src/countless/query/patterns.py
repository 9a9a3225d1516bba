"""The strings that match a regular expression, as automata."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from countless.automaton import Automaton
from countless.errors import QueryTooLargeError, UnsupportedQueryError
from countless.machines import MOST_STATES, explore
from countless.query import regex_job
from countless.query.regexes import BEGIN, END, FRAME, LEAD, Regex
from countless.query.strings import Script

MOST_CHARACTERS = 10_000
MOST_WEIGHT = 10  # of an expression whose automaton is made in this process
SECONDS = 2.0
TOO_MANY = f"the pattern needs too many states (more than {MOST_STATES:,}, or {SECONDS:g} s): simplify it"


def matching(script: Script, regex: Regex) -> Automaton:
    """The strings that match ``regex`` in its frame."""
    characters = "".join(dict.fromkeys(script.characters)).translate({ord(part): None for part in FRAME}) + FRAME
    start, finals, transitions = _built(regex, characters)
    place = {character: number for number, character in enumerate(characters)}

    def after(state: int | None, path: str) -> int | None:
        for character in path:
            state = None if state is None else transitions[state].get(place[character])
        return state

    plain = range(len(characters) - len(FRAME))
    begin = after(start, LEAD + BEGIN * regex.begins)
    states, following = explore(
        begin, lambda state: [None if state is None else transitions[state].get(letter) for letter in plain]
    )
    final = set(finals)
    accepts = np.array([after(state, END * regex.ends + LEAD) in final for state in states])
    return Automaton(script.letters, following[:, [place[one] for one in script.characters]], accepts).minimal()


def _built(regex: Regex, characters: str) -> tuple[int, list[int], dict[int, dict[int, int]]]:
    if len(regex.text) > 10 * MOST_CHARACTERS:
        raise QueryTooLargeError(f"the pattern has more than {MOST_CHARACTERS:,} characters: simplify it")
    found: Any
    if regex.weight <= MOST_WEIGHT:
        try:
            found = regex_job.build(regex.text, characters)
        except ValueError as error:
            found = str(error)
    else:
        found = _in_a_process(regex.text, characters)
    if isinstance(found, str):
        if "limit" in found:
            raise QueryTooLargeError(TOO_MANY)
        raise UnsupportedQueryError(f"the pattern has no automaton ({found}): write it in another way")
    start, finals, transitions = found
    if len(transitions) > 2 * MOST_STATES:
        raise QueryTooLargeError(TOO_MANY)
    return start, finals, transitions


def _in_a_process(text: str, characters: str) -> Any:
    job = {"regex": text, "characters": characters, "path": sys.path, "states": 2 * MOST_STATES}
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(Path(regex_job.__file__))],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise QueryTooLargeError(TOO_MANY) from None
    found = json.loads(done.stdout) if done.returncode == 0 else None
    if found is None:
        raise QueryTooLargeError(TOO_MANY)
    if isinstance(found, str):
        return found
    start, finals, transitions = found
    numbered = {int(state): {int(letter): after for letter, after in row.items()} for state, row in transitions.items()}
    return start, finals, numbered
