"""Searches in many strings at once: the compiled loops, Python's and automata agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.automata.string_table import SWITCH_OFF, StringTable, like_pattern
from countless.errors import QueryError
from countless.query.text.string_sets import like_pieces

TEXTS = st.lists(st.text(alphabet="ab/\0é中", max_size=40), min_size=1, max_size=30)
PIECES = st.lists(st.text(alphabet="ab/\0é_", max_size=10), min_size=1, max_size=4)
AUTOMATA = st.integers(1, 6).flatmap(
    lambda states: st.tuples(
        st.lists(st.lists(st.integers(0, states - 1), min_size=4, max_size=4), min_size=states, max_size=states),
        st.lists(st.booleans(), min_size=states, max_size=states),
    )
)


@given(TEXTS, PIECES)
def test_patterns(texts: list[str], pieces: list[str]) -> None:
    table, pattern = StringTable(texts), like_pattern(like_pieces("%".join(pieces)))
    assert table.like(pattern).tolist() == table.like_by_python(pattern).tolist()


@given(TEXTS, st.data())
def test_pieces_of_the_strings_themselves(texts: list[str], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(texts))
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    before, after = data.draw(st.tuples(st.sampled_from([text[:start], "%"]), st.sampled_from([text[end:], "%"])))
    table, pattern = StringTable(texts), like_pattern(like_pieces(before + text[start:end] + after))
    found = table.like(pattern).tolist()
    assert found[texts.index(text)]
    assert found == table.like_by_python(pattern).tolist()
    assert table.find(text[start:end].encode()).tolist() == [text[start:end] in each for each in texts]


@given(TEXTS, AUTOMATA, st.booleans())
def test_automata(texts: list[str], automaton: tuple[list[list[int]], list[bool]], some: bool) -> None:
    table = StringTable(texts)
    assert table.letters is not None
    kind = np.array([ord(letter) % 4 for letter in table.letters])
    narrow, accepts = np.array(automaton[0]), np.array(automaton[1])
    among = np.arange(len(texts)) % 3 > 0 if some else None
    expected = []
    for place, text in enumerate(texts):
        state = 0
        for character in text:
            state = narrow[state, ord(character) % 4]
        expected.append(bool(accepts[state]) and (among is None or bool(among[place])))
    assert table.run(narrow[:, kind], accepts, among).tolist() == expected
    assert table.run_by_numpy(narrow, kind, accepts, among).tolist() == expected


def test_without_the_compiled_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH_OFF, "1")
    table = StringTable(["/etc/passwd", "/usr/lib", ""])
    assert table.like(like_pattern(like_pieces("%s_%"))).tolist() == [True, True, False]
    assert table.find(b"lib").tolist() == [False, True, False]
    odd_length = np.tile(np.array([[1], [0]]), (1, 128))
    assert table.run(odd_length, np.array([False, True])).tolist() == [True, False, False]


def test_no_strings() -> None:
    table = StringTable([])
    assert not len(table.like(like_pattern(like_pieces("%a%"))))
    assert not len(table.run(np.zeros((1, 128), dtype=np.int64), np.array([True])))


def test_an_escape_at_the_end() -> None:
    with pytest.raises(QueryError, match="write it twice"):
        like_pieces("a!", "!")
