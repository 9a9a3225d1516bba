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
ALIKE = st.lists(st.text(alphabet="ab/é", max_size=12), min_size=1, max_size=4).flatmap(
    lambda parts: st.lists(st.lists(st.sampled_from(parts), max_size=4).map("".join), min_size=1, max_size=30).flatmap(
        lambda texts: st.sampled_from([texts, sorted(texts)])
    )
)
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
    values = table.like(pattern).tolist()
    assert values[texts.index(text)]
    assert values == table.like_by_python(pattern).tolist()
    assert table.find(text[start:end].encode()).tolist() == [text[start:end] in each for each in texts]


@given(ALIKE, st.data())
def test_strings_that_begin_alike_are_searched_from_where_they_differ(texts: list[str], data: st.DataObject) -> None:
    table = StringTable(texts)
    text = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(texts))] * 2)))
    needle = text[start:end]
    expected = [needle in each and first <= index < last for index, each in enumerate(texts)]
    assert table.find(needle.encode(), first, last).tolist() == expected
    patterns = [
        "%" * (start > 0) + needle + "%" * (end < len(text)),
        f"{text[:start]}%{needle}",
        f"%{needle}_%{text[end:]}",
    ]
    for pattern in (like_pattern(like_pieces(each)) for each in patterns):
        assert table.like(pattern).tolist() == table.like_by_python(pattern).tolist()


@given(TEXTS | ALIKE, st.sampled_from([{}, {"é": "É"}, {"中": "ab", "é": "e"}, {"é": "中", "中": "é"}]), st.booleans())
def test_folded_strings(texts: list[str], changed: dict[str, str], lower: bool) -> None:
    every = str.maketrans({letter: letter.lower() if lower else letter.upper() for letter in "abA_/"} | changed)
    expected = [text.translate(every) for text in texts]
    folded = StringTable(texts).folded(lower, changed)
    assert list(folded.texts) == expected
    for piece in ("a", "B", "e", "É", "中"):
        pattern = like_pattern(like_pieces(f"%{piece}%"))
        assert folded.like(pattern).tolist() == [piece in text for text in expected]
        assert folded.like(like_pattern(like_pieces(f"{piece}%"))).tolist() == [t.startswith(piece) for t in expected]
    assert folded.is_sorted == (expected == sorted(expected))


def test_more_is_shared_than_a_byte_can_tell() -> None:
    texts = ["a" * 300, "a" * 300 + "b", "a" * 300 + "bc", "a" * 300 + "c"]
    table = StringTable(texts)
    assert table.find(b"aab").tolist() == [False, True, True, False]
    assert table.like(like_pattern(like_pieces("a" * 300 + "%"))).tolist() == [True] * 4
    odd = np.tile(np.array([[1], [0]]), (1, 128))
    assert table.run(odd, np.array([False, True])).tolist() == [False, True, False, True]


@given(TEXTS | ALIKE, AUTOMATA, st.booleans())
def test_automata(texts: list[str], automaton: tuple[list[list[int]], list[bool]], some: bool) -> None:
    table = StringTable(texts)
    assert table.letters is not None
    kind = np.array([ord(letter) % 4 for letter in table.letters])
    narrow, accepts = np.array(automaton[0]), np.array(automaton[1])
    among = np.arange(len(texts)) % 3 > 0 if some else None
    expected = []
    for index, text in enumerate(texts):
        state = 0
        for character in text:
            state = narrow[state, ord(character) % 4]
        expected.append(bool(accepts[state]) and (among is None or bool(among[index])))
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
