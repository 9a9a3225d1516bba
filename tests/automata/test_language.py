"""Automata against brute force over all short strings."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.automata import dfa as machines
from countless.automata.language import Automaton, Language, Letters
from countless.errors import QueryTooLargeError

WORDS = ["".join(word) for length in range(6) for word in product("abc", repeat=length)]


def letters_of(characters: str, stop: float = 0.25) -> Letters:
    count = len(characters)
    return Letters(characters, np.arange(count), np.ones(count), np.arange(1.0, count + 1), stop)


LETTERS = letters_of("abc")


@st.composite
def automata(draw: st.DrawFn) -> Automaton:
    states = draw(st.integers(1, 6))
    state = st.integers(0, states - 1)
    table = draw(st.lists(st.lists(state, min_size=3, max_size=3), min_size=states, max_size=states))
    accepts = draw(st.lists(st.booleans(), min_size=states, max_size=states))
    return Automaton(LETTERS, np.array(table, dtype=np.int64), np.array(accepts))


def words(automaton: Automaton) -> set[str]:
    return {word for word in WORDS if automaton.accepts_string(word)}


def anywhere(automaton: Automaton) -> Automaton:
    """The strings that end in one of ``automaton``: a left ideal, by subsets."""
    subsets = [frozenset([0])]
    rows: list[list[int]] = []
    for subset in subsets:
        row = []
        for letter in range(3):
            after = frozenset(int(automaton.next[state, letter]) for state in subset) | {0}
            if after not in subsets:
                subsets.append(after)
            row.append(subsets.index(after))
        rows.append(row)
    accepts = np.array([any(automaton.accepts[state] for state in subset) for subset in subsets])
    return Automaton(automaton.letters, np.array(rows), accepts)


@given(automata(), automata())
def test_the_algebra_of_sets(one: Automaton, two: Automaton) -> None:
    assert words(one & two) == words(one) & words(two)
    assert words(one | two) == words(one) | words(two)
    assert words(~one) == set(WORDS) - words(one)
    assert one.any() == bool((one & one).minimal().accepts.any())
    assert (one | ~one).all()
    assert not (one & ~one).any()


@given(automata())
def test_a_minimal_automaton_is_the_least_of_its_strings(automaton: Automaton) -> None:
    least = automaton.minimal()
    assert words(least) == words(automaton)
    assert len(least.accepts) <= len(automaton.accepts)
    for one in range(len(least.accepts)):  # no two states accept the same strings
        for two in range(one):
            assert words(started(least, one)) != words(started(least, two))


@given(automata(), st.integers(0, 3))
def test_merging_backward_is_the_same_as_refinement(automaton: Automaton, sinks: int) -> None:
    """Of a machine whose letters lead to later states, and at last to sinks."""
    count = len(automaton.accepts)
    later = np.arange(count)[:, None] + 1 + automaton.next  # a state may skip some
    table = np.concatenate(
        [np.minimum(later, count + sinks), np.arange(count, count + sinks + 1)[:, None].repeat(3, 1)]
    )
    accepts = np.resize(automaton.accepts, len(table))
    _, reached = machines.explore(0, table.tolist().__getitem__)
    accepts = accepts[: len(reached)]
    backward = machines._backward(reached)
    assert backward is not None
    merged, refined = machines._merged(reached, accepts, backward), machines._refined(reached, accepts)
    assert merged.tolist() == refined.tolist()


def started(automaton: Automaton, state: int) -> Automaton:
    """The strings that are accepted from ``state``."""
    swap = np.arange(len(automaton.accepts))
    swap[[0, state]] = state, 0
    return Automaton(automaton.letters, swap[automaton.next[swap]], automaton.accepts[swap])


@given(automata())
def test_dead_and_full_states(automaton: Automaton) -> None:
    for state in range(len(automaton.accepts)):
        accepted = words(started(automaton, state))
        assert automaton.dead[state] == (not accepted)
        assert automaton.full[state] == (len(accepted) == len(WORDS))


@given(automata())
def test_left_ideals(automaton: Automaton) -> None:
    accepted = words(automaton)
    closed = all(letter + word in accepted for word in accepted if len(word) < 5 for letter in "abc")
    if not closed:
        assert not automaton.is_left_ideal
    assert anywhere(automaton).is_left_ideal


@given(automata())
@settings(max_examples=200)
def test_a_string_of_an_ideal_matches_last_at_one_offset(automaton: Automaton) -> None:
    ideal = anywhere(automaton)
    last = ideal.last()
    if ideal.all():
        assert not last.any()
        return
    for word in WORDS:
        offsets = [start for start in range(len(word) + 1) if last.accepts_string(word[start:])]
        assert len(offsets) == ideal.accepts_string(word)
        if offsets:
            assert not ideal.accepts_string(word[offsets[0] + 1 :])


@given(automata(), st.sampled_from([1.0, 0.5, 0.05]))
def test_weights_of_strings_that_were_cut(automaton: Automaton, stop: float) -> None:
    automaton = Automaton(letters_of("abc", stop), automaton.next, automaton.accepts)
    chances = np.array([1, 2, 3]) / 6
    reached = np.eye(len(automaton.accepts))  # from each state: where the string may be, if it has not ended
    accepted = np.zeros(len(automaton.accepts))
    for _ in range(600):
        step = np.zeros_like(reached)
        for letter, chance in enumerate(chances):
            np.add.at(step.T, automaton.next[:, letter], chance * reached.T)
        accepted += stop * step @ automaton.accepts
        reached = (1 - stop) * step
    np.testing.assert_allclose(automaton.cut_weights(), accepted, atol=1e-9)
    assert set(automaton.cut_weights()[automaton.dead]) <= {0.0}
    assert set(automaton.cut_weights()[automaton.full]) <= {1.0}


def test_letters_that_never_occur_are_as_likely_as_each_other() -> None:
    letters = Letters("ab", np.arange(2), np.ones(2), np.zeros(2), 1.0)
    ends_in_a = Automaton(letters, np.array([[1, 0], [1, 0]]), np.array([False, True]))
    assert ends_in_a.cut_weights().tolist() == [0.5, 0.5]


def test_a_reading_merges_letters_of_one_symbol() -> None:
    letters = Letters("abxyz", np.array([0, 1, 2, 2, 2]), np.array([1, 1, 0.5, 0.25, 0.25]), np.ones(5), 0.5)
    has_y = Automaton(letters, np.array([[0, 0, 0, 1, 0], [1, 1, 1, 1, 1]]), np.array([False, True]))
    reading = has_y.reading()
    assert reading.symbols.tolist() == [0, 1, 2, 2]
    assert reading.shares.tolist() == [1, 1, 0.75, 0.25]
    assert reading.next.tolist() == [[0, 0, 0, 1], [1, 1, 1, 1]]


def test_too_many_states() -> None:
    chains = [
        Automaton(LETTERS, np.repeat((np.arange(size)[:, None] + 1) % size, 3, axis=1), np.arange(size) == 0)
        for size in (101, 103)
    ]
    with pytest.raises(QueryTooLargeError, match="more than 10,000 states together: simplify"):
        chains[0] & chains[1]


@pytest.mark.parametrize("has_null", [False, True])
@given(one=automata(), two=automata(), nulls=st.tuples(st.booleans(), st.booleans()))
def test_languages_are_sets_of_values(has_null: bool, one: Automaton, two: Automaton, nulls: tuple[bool, bool]) -> None:
    left, right = (Language(part, null and has_null, has_null) for part, null in zip((one, two), nulls, strict=True))
    every: set[str | None] = {*WORDS, None} if has_null else set(WORDS)

    def values(language: Language) -> set[str | None]:
        return words(language.strings) | ({None} if language.null else set())

    assert values(left & right) == values(left) & values(right)
    assert values(left | right) == values(left) | values(right)
    assert values(~left) == every - values(left)
    assert left.any() == bool(values(left))
    assert left.all() == (values(left) == every)
    assert (left | ~left).all()
