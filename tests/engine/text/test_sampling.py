"""Strings that are drawn: each in the language, each as often as the model has it."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.automata.language import Automaton, Language
from countless.engine.text.sampling import Drawn, _WeightedStrings, sample
from countless.errors import CountlessError
from countless.query.text.string_sets import like
from tests.engine.text.table import TableRuntime, script_of
from tests.engine.text.test_methods import MODELS, PATTERNS, automata, models

SEEDS = 250
Value = tuple[str | None, bool]  # the text, and whether it is cut


def languages(runtime: TableRuntime) -> dict[str, Language]:
    by_name = {
        name: Language(PATTERNS[name](runtime.letters), False, runtime.has_null)
        for name in ("%ab%", "%aa%", "a%b", "NOT %x%", "%yb%", "%ay", "<", "IN", "length > 2", "(a|bb)+x?")
    }
    every = Language(Automaton.constant(runtime.letters, True), runtime.has_null, runtime.has_null)
    return by_name | {"everything": every, "NULL or %ab%": by_name["%ab%"] | ~(by_name["%ab%"] | ~every)}


def conditional(runtime: TableRuntime, language: Language) -> dict[Value, float]:
    """The values of a language with their probabilities."""
    letters, spec, cut = runtime.letters, runtime.spec, language.strings.cut_weights()
    spelled = [np.flatnonzero(letters.symbols == symbol).tolist() for symbol in range(spec.symbols)]
    probs: dict[Value, float] = {}
    for string, mass in zip(runtime.strings.tolist(), runtime.masses.tolist(), strict=True):
        symbols = [symbol for symbol in string if symbol <= spec.unknown]
        if string[0] == spec.null:
            probs[None, False] = mass * language.null
            continue
        for choice in product(*(spelled[symbol] for symbol in symbols)):
            state = 0
            for letter in choice:
                state = int(language.strings.next[state, letter])
            is_cut = string[-1] == spec.cut
            chance = cut[state] if is_cut else float(language.strings.accepts[state])
            text = "".join(letters.characters[letter] for letter in choice)
            probs[text, is_cut] = float(mass * np.prod(letters.shares[list(choice)]) * chance)
    return {value: mass for value, mass in probs.items() if mass > 0}


def value_of(drawn: Drawn) -> Value:
    return drawn.text, drawn.cut


@models
@pytest.mark.parametrize("name", list(languages(MODELS["rare"])))
def test_every_value_is_in_the_language_and_has_its_probability(model: str, name: str) -> None:
    runtime = MODELS[model]
    language = languages(runtime)[name]
    whole = conditional(runtime, Language(Automaton.constant(runtime.letters, True), True, runtime.has_null))
    expected = conditional(runtime, language)
    if not expected:
        with pytest.raises(CountlessError, match="no string"):
            sample(runtime, language, 1, np.random.default_rng(0))
        return
    for drawn in sample(runtime, language, 30, np.random.default_rng(0)):
        assert value_of(drawn) in expected
        assert math.exp(drawn.log_probability) == pytest.approx(whole[value_of(drawn)], rel=1e-4)


@given(st.data(), st.sampled_from(sorted(MODELS)), st.booleans(), st.integers(0, 2**32))
@settings(deadline=None)
def test_any_language(data: st.DataObject, model: str, null: bool, seed: int) -> None:
    runtime = MODELS[model]
    language = Language(data.draw(automata(runtime.letters)), null and runtime.has_null, runtime.has_null)
    expected = conditional(runtime, language)
    if expected:
        drawn = sample(runtime, language, 5, np.random.default_rng(seed))
        assert len(drawn) == 5
        assert {value_of(each) for each in drawn} <= set(expected)


@pytest.mark.parametrize("model", ["rare", "null", "cut soon"])
@pytest.mark.parametrize("name", ["everything", "%ab%", "a%b", "%yb%", "NULL or %ab%"])
def test_a_thinned_walk_is_unbiased(model: str, name: str) -> None:
    """The masses that are found add up to the truth in the mean."""
    runtime = MODELS[model]
    language = languages(runtime)[name]
    totals = []
    for seed in range(SEEDS // 2):
        strings = _WeightedStrings(runtime, language)
        strings.find(4, np.random.default_rng(seed))
        totals.append(strings.total)
    error = np.std(totals, ddof=1) / math.sqrt(len(totals))
    assert abs(np.mean(totals) - runtime.truth(language)) < 4.5 * error + 1e-6


@pytest.mark.parametrize("budget", [16, 10_000])
@pytest.mark.parametrize("model", ["rare", "null", "cut soon"])
@pytest.mark.parametrize("name", ["everything", "%ab%", "a%b", "NULL or %ab%", "(a|bb)+x?"])
def test_values_come_as_often_as_the_model_has_them(
    monkeypatch: pytest.MonkeyPatch, budget: int, model: str, name: str
) -> None:
    for bound in ("LEAST", "MOST"):
        monkeypatch.setattr(f"countless.engine.text.sampling.{bound}", budget)
    runtime = MODELS[model]
    language = languages(runtime)[name]
    expected = conditional(runtime, language)
    total = sum(expected.values())
    draws = [
        value_of(each) for seed in range(SEEDS) for each in sample(runtime, language, 4, np.random.default_rng(seed))
    ]
    counts = Counter(draws)
    usual = [value for value, mass in expected.items() if mass / total > 0.02]
    for value in usual:
        share = expected[value] / total
        error = math.sqrt(share * (1 - share) / SEEDS)
        assert counts[value] / len(draws) == pytest.approx(share, abs=4.5 * error)


def test_a_rare_match_is_found_by_few_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countless.engine.text.sampling.MOST", 128)
    runtime = TableRuntime(9, characters="abcd", rare="", length=6)
    strings = like(script_of(runtime.letters), "%abcd%")
    assert runtime.truth(strings) < 0.02
    drawn = sample(runtime, Language(strings, False, False), 20, np.random.default_rng(1))
    assert all(each.text is not None and "abcd" in each.text for each in drawn)
    assert len({each.text for each in drawn}) > 3


def test_many_values_at_once() -> None:
    runtime = MODELS["rare"]
    drawn = sample(runtime, languages(runtime)["everything"], 600, np.random.default_rng(0))
    assert len(drawn) == 600
    assert len(set(drawn)) > 100


def test_none_at_all() -> None:
    runtime = MODELS["rare"]
    assert sample(runtime, languages(runtime)["everything"], 0, np.random.default_rng(0)) == []


def test_the_same_seed_draws_the_same_values() -> None:
    runtime = MODELS["cut"]
    language = languages(runtime)["a%b"]
    one, two, other = (sample(runtime, language, 20, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert one == two != other


def test_an_alphabet_without_characters() -> None:
    runtime = TableRuntime(2, characters="", rare="", length=2, null=True)
    drawn = sample(runtime, languages(runtime)["everything"], 40, np.random.default_rng(0))
    assert {each.text for each in drawn} == {"", None}


def test_nothing_to_draw() -> None:
    runtime = MODELS["rare"]
    none = Language(Automaton.constant(runtime.letters, False), False, False)
    with pytest.raises(CountlessError, match="nothing to draw"):
        sample(runtime, none, 1, np.random.default_rng(0))


def test_giving_up() -> None:
    runtime = MODELS["plain"]
    long = Language(like(script_of(runtime.letters), "a" * 50), False, False)
    with pytest.raises(CountlessError, match=r"no string that matches was found: .* a probability of about 0"):
        sample(runtime, long, 1, np.random.default_rng(0))
