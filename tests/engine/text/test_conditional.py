"""Text in the context of its row: against sums over all strings of a table, and contexts together as one by one."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

from countless.arrays import IntArray
from countless.automata.language import Automaton, Language
from countless.data.columns.strings.characters import Characters
from countless.data.columns.strings.text import TextColumn
from countless.data.summaries.substring_counting import StringScans, count_substrings
from countless.data.summaries.substrings import Substrings
from countless.engine.text.conditional import given, log_probabilities
from countless.engine.text.density import text_density
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.sampling import sample, sample_each
from countless.query.text.string_sets import like
from countless.spec import TextSpec
from tests.engine.text.table import TableRuntime, letters_of, script_of
from tests.engine.text.test_methods import ENOUGH, EXACT, PARTICLES, PATTERNS, TEXT_METHODS
from tests.engine.text.test_runtime import arrays, fast, plain

CONTEXTS = 3
TABLES = {
    "rare": TableRuntime(3, length=4, contexts=CONTEXTS),
    "null": TableRuntime(5, length=4, null=True, contexts=CONTEXTS),
    "cut soon": TableRuntime(7, rare="xy", length=2, stop=0.6, null=True, contexts=CONTEXTS),
    "gaps": TableRuntime(11, length=4, null=True, gaps=True, contexts=CONTEXTS),
}
EVERY = np.arange(CONTEXTS + 1)[:, None]  # each symbol, and MASK
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4])
tables = pytest.mark.parametrize("table", TABLES)
SPEC = TextSpec(2, 4, width=8, blocks=2, heads=2, inner=12, buckets=31, context=(3, 2), context_width=6)
ROWS = np.array([[0, 1], [3, 2], [2, 0], [0, 2]])  # the second of nothing but MASK


def languages(table: TableRuntime) -> dict[str, Language]:
    by_name = {name: Language(make(table.letters), False, table.has_null) for name, make in PATTERNS.items()}
    every = Language(Automaton.constant(table.letters, True), False, table.has_null)
    odd = np.array([False, True, False, True, False])
    by_name |= {"everything": every, "nothing": Language(~every.pattern, False, table.has_null)}
    by_name["odd and %a%"] = Language(PATTERNS["%b%"](table.letters), False, table.has_null, odd)
    by_name["odd"] = Language(every.pattern, False, table.has_null, odd)
    if table.has_null:
        by_name |= {"NULL or %ab%": Language(by_name["%ab%"].pattern, True, True), "NULL": ~every}
    return by_name


@tables
@pytest.mark.parametrize("method", ["particles", "exact"])
def test_every_context_has_the_sum_over_its_strings(table: str, method: str) -> None:
    runtime = TABLES[table]
    for name, language in languages(runtime).items():
        if language.lengths is not None and runtime.letters.stop:
            continue  # beyond the cut, what matches and how long it is are taken for independent
        conditionals = given(runtime, language, EVERY, WEIGHTS, TEXT_METHODS[method], ENOUGH)
        pattern = Language(language.strings, language.null, runtime.has_null)
        truths = [runtime.truth(pattern, context) for context in range(CONTEXTS + 1)]
        np.testing.assert_allclose(conditionals.probabilities, truths, rtol=1e-4, atol=1e-6, err_msg=name)
        assert conditionals.exact


@tables
@pytest.mark.parametrize("method", ["skipping", "progressive", "naive"])
def test_the_other_methods_take_one_context_after_the_other(table: str, method: str) -> None:
    runtime = TABLES[table]
    language = languages(runtime)["%ab%"]
    conditionals = given(runtime, language, EVERY, WEIGHTS, TEXT_METHODS[method], 4000, seed=1)
    truths = [runtime.truth(language, context) for context in range(CONTEXTS + 1)]
    np.testing.assert_allclose(conditionals.probabilities, truths, atol=0.04)
    assert not conditionals.exact


@pytest.mark.parametrize("name", ["%ab%", "NOT %ab%", "a%b", "%a_b%", "(a|bb)+x?"])
def test_the_mean_of_thinned_contexts_is_unbiased(name: str) -> None:
    runtime = TABLES["rare"]
    language = languages(runtime)[name]
    runs = [given(runtime, language, EVERY, WEIGHTS, budget=6, seed=seed) for seed in range(150)]
    assert not all(run.exact for run in runs)
    assert all(np.all((run.probabilities >= 0) & (run.probabilities <= 1)) for run in runs)
    means = np.array([WEIGHTS @ run.probabilities for run in runs])
    truth = WEIGHTS @ [runtime.truth(language, context) for context in range(CONTEXTS + 1)]
    assert abs(means.mean() - truth) < 4.5 * means.std(ddof=1) / math.sqrt(len(means)) + 1e-6


def test_equal_contexts_are_asked_once_and_those_of_no_weight_not_at_all() -> None:
    runtime = TABLES["null"]
    language = languages(runtime)["%ab%"]
    conditionals = given(runtime, language, [[2], [0], [2], [1]], [1.0, 2.0, 3.0, 0.0], budget=ENOUGH)
    once = given(runtime, language, [[0], [2]], [2.0, 4.0], budget=ENOUGH)
    one, two = once.probabilities
    assert conditionals.probabilities.tolist() == [two, one, two, 0.0]
    assert conditionals.forward_rows == once.forward_rows


@pytest.mark.parametrize("make", [plain, fast])
@pytest.mark.parametrize("pattern", ["%ab%", "a%b", "%ab", "ab%", "= nothing", "NOT %ab%", "length <= 1"])
def test_contexts_together_are_as_one_by_one(make: Any, pattern: str) -> None:
    runtime: TextRuntime = make(SPEC, arrays(SPEC))
    language = Language(PATTERNS[pattern](letters_of(rare="")), False, True)
    together = given(runtime, language, ROWS, np.ones(4), budget=ENOUGH)
    alone = [text_density(runtime, language, PARTICLES, ENOUGH, 0, context=row).density for row in ROWS]
    np.testing.assert_allclose(together.probabilities, alone, rtol=1e-5)
    nothing = text_density(runtime, language, PARTICLES, ENOUGH, 0).density
    assert together.probabilities[1] == pytest.approx(nothing, rel=1e-5)
    assert len(set(together.probabilities.round(6))) == 4


def test_a_model_without_a_context_says_the_same_in_all() -> None:
    runtime = TableRuntime(3, length=4)
    language = languages(runtime)["%ab%"]
    conditionals = given(runtime, language, np.zeros((3, 7), dtype=np.int64), np.ones(3), budget=ENOUGH)
    np.testing.assert_allclose(conditionals.probabilities, runtime.truth(language), rtol=1e-4)
    strings = np.array([[0, 1, 3, 3, 3]])
    with_rows, without = (log_probabilities(runtime, strings, [3], rows) for rows in (np.zeros((1, 7)), None))
    assert with_rows == without
    assert len(sample_each(runtime, runtime.letters, np.zeros((5, 0), dtype=np.int64), np.random.default_rng(0))) == 5


def summary_of(count: int, seed: int = 0) -> tuple[Substrings, float]:
    """Counts of rows of "ab", of which some contain it, and their share."""
    rng = np.random.default_rng(seed)
    texts = ["ab"[one] + "ab"[two] for one, two in rng.integers(2, size=(count, 2))]
    column = TextColumn("t", "VARCHAR", "ab", 4, False, 4, (), (count, count))
    summary = count_substrings(StringScans(lambda: iter([Characters.of_texts([*texts])]), count), column)
    return summary, texts.count("ab") / count


def test_a_summary_changes_all_contexts_by_the_factor_that_it_brings_to_all_rows() -> None:
    runtime = TableRuntime(3, rare="", length=4, contexts=CONTEXTS)
    summary, share = summary_of(400)
    language = languages(runtime)["%ab%"]
    conditionals = given(runtime, language, EVERY, WEIGHTS, budget=ENOUGH, summary=summary)
    truths = np.array([runtime.truth(language, context) for context in range(CONTEXTS + 1)])
    np.testing.assert_allclose(conditionals.probabilities, np.minimum(1.0, truths * share / truths[-1]), rtol=1e-3)
    plain_answers = given(runtime, language, EVERY, WEIGHTS, EXACT)
    np.testing.assert_allclose(plain_answers.probabilities, truths, rtol=1e-4)


class TestMistakes:
    LANGUAGE = Language(like(script_of(letters_of(rare="")), "%ab%"), False, False)

    @pytest.mark.parametrize(
        ("contexts", "weights", "match"),
        [
            ([[0, 1]], [1.0, 1.0], "one weight"),
            ([0, 1], [1.0, 1.0], "one weight"),
            (np.zeros((0, 2), dtype=int), [], "one weight"),
            ([[0, 1]], [-1.0], "not negative"),
            ([[0, 1]], [0.0], "not all 0"),
            ([[0, 1]], [float("nan")], "finite"),
            ([[0, 3]], [1.0], "neither"),
            ([[0.0, 1.0]], [1.0], "context"),
            ([[0, 1, 1]], [1.0], "2 positions"),
        ],
    )
    def test_contexts_and_weights(self, contexts: Any, weights: Any, match: str) -> None:
        with pytest.raises(ValueError, match=match):
            given(fast(SPEC, arrays(SPEC)), self.LANGUAGE, contexts, weights)

    @pytest.mark.parametrize(
        ("strings", "lengths", "contexts", "match"),
        [
            ([[0, 1]], [1], None, "5 symbols"),
            ([[0, 1, 3, 3, 3]], [1, 1], None, "a length"),
            ([[0, 1, 3, 3, 3]], [0], None, "no symbol"),
            ([[0, 1, 3, 3, 3]], [6], None, "no symbol"),
            ([[0, 1, 6, 3, 3]], [3], None, "none of the model's"),
            ([[0, -1, 3, 3, 3]], [3], None, "none of the model's"),
            ([[0, 1, 3, 3, 3]], [3], ROWS, "one context"),
            ([[0, 1, 3, 3, 3]], [3], [[9, 9]], "neither"),
        ],
    )
    def test_strings(self, strings: Any, lengths: Any, contexts: Any, match: str) -> None:
        with pytest.raises(ValueError, match=match):
            log_probabilities(fast(SPEC, arrays(SPEC)), strings, lengths, contexts)


def every_string(spec: TextSpec) -> tuple[IntArray, IntArray]:
    """All that a model may write, and more that it should not: characters up to its length, and what ends them."""
    rows = [
        [*string, last, *[spec.end] * (spec.length - size)]
        for size in range(spec.length + 1)
        for string in product(range(spec.unknown + 1), repeat=size)
        for last in range(spec.unknown + 1, spec.symbols)
    ]
    symbols = np.array(rows)
    return symbols, np.argmax(symbols > spec.unknown, axis=1) + 1


@pytest.mark.parametrize("make", [plain, fast])
@pytest.mark.parametrize("at_once", [40, 1000, 16_384])
def test_the_probabilities_of_all_strings_add_up_to_one(
    monkeypatch: pytest.MonkeyPatch, make: Any, at_once: int
) -> None:
    monkeypatch.setattr("countless.engine.text.conditional.BATCH_NODES", at_once)
    runtime: TextRuntime = make(SPEC, arrays(SPEC))
    symbols, lengths = every_string(SPEC)
    order = np.random.default_rng(0).permutation(len(ROWS) * len(symbols))
    rows = np.repeat(ROWS, len(symbols), axis=0)[order]
    logs = np.empty(len(order))
    logs[order] = log_probabilities(
        runtime, np.tile(symbols, (len(ROWS), 1))[order], np.tile(lengths, len(ROWS))[order], rows
    )
    totals = np.exp(logs).reshape(len(ROWS), -1)
    # what follows the last character, but for the characters that have no room there
    full = lengths == SPEC.length + 1
    for row, total in zip(ROWS, totals, strict=True):
        tree = runtime.tree(row[None])
        beyond = 0.0
        for string in product(range(SPEC.unknown + 1), repeat=SPEC.length):
            nodes = [0, *range(tree.size, tree.size + SPEC.length - 1)]
            before = np.concatenate([tree.starts, tree.extend(nodes, string)])
            chance = before[np.arange(SPEC.length), list(string)].astype(float).prod()
            beyond += chance * float(before[-1, : SPEC.unknown + 1].sum())
        assert total.sum() + beyond == pytest.approx(1.0, rel=1e-4)
        assert total[full].sum() > 0
    np.testing.assert_allclose(totals[1], np.exp(log_probabilities(runtime, symbols, lengths)), rtol=1e-5)


@tables
def test_whole_strings_have_the_table_s_probabilities(table: str) -> None:
    runtime = TABLES[table]
    lengths = np.argmax(runtime.strings > runtime.spec.unknown, axis=1) + 1
    for context in range(CONTEXTS + 1):
        rows = np.full((len(lengths), 1), context)
        probs = np.exp(log_probabilities(runtime, runtime.strings, lengths, rows))
        np.testing.assert_allclose(probs, runtime.given[context], rtol=1e-3, atol=1e-7)


def test_no_strings() -> None:
    none = np.empty((0, 5), dtype=np.int64)
    assert log_probabilities(fast(SPEC, arrays(SPEC)), none, none[:, 0], none[:, :2]).shape == (0,)
    letters = letters_of(rare="")
    assert sample_each(fast(SPEC, arrays(SPEC)), letters, none[:, :2], np.random.default_rng(0)) == []


@pytest.mark.parametrize("table", ["rare", "null", "cut soon"])
def test_one_value_for_each_context(monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    monkeypatch.setattr("countless.engine.text.sampling.BATCH_STRINGS", 700)
    runtime, count = TABLES[table], 1500
    contexts = np.tile(EVERY, (count, 1))
    drawn = sample_each(runtime, runtime.letters, contexts, np.random.default_rng(1))
    assert len(drawn) == len(contexts)
    for context in range(CONTEXTS + 1):
        mine = drawn[context :: CONTEXTS + 1]
        counts = Counter((value.text, value.cut) for value in mine)
        logs = {(value.text, value.cut): value.log_probability for value in mine}
        for value, log in logs.items():
            share = math.exp(log)
            error = math.sqrt(share * (1 - share) / count)
            assert counts[value] / count == pytest.approx(share, abs=5.5 * error + 1 / count)
        assert sum(math.exp(log) for log in logs.values()) == pytest.approx(1.0, abs=0.15)
    assert drawn == sample_each(runtime, runtime.letters, contexts, np.random.default_rng(1))


def test_values_of_a_language_in_one_context() -> None:
    runtime = TABLES["rare"]
    language = languages(runtime)["%ab%"]
    for context in range(CONTEXTS + 1):
        drawn = sample(runtime, language, 200, np.random.default_rng(0), np.array([context]))
        chances = {value.text: math.exp(value.log_probability) for value in drawn}
        assert sum(chances.values()) <= runtime.truth(language, context) * 1.001
        best = max(chances, key=lambda text: chances[text])
        share = chances[best] / runtime.truth(language, context)
        assert sum(value.text == best for value in drawn) / 200 == pytest.approx(share, abs=0.05)


@tables
@pytest.mark.parametrize("pattern", ["%ab%", "%b%"])
def test_few_places_to_start_from_have_the_same_mean(table: str, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countless.engine.text.tree_search.MOST_STARTS", 6)
    runtime = TABLES[table]
    language = languages(runtime)[pattern]
    means = []
    for seed in range(400):
        conditionals = given(runtime, language, EVERY, WEIGHTS, PARTICLES, ENOUGH, seed)
        means.append(float(conditionals.probabilities @ WEIGHTS))
        assert not conditionals.exact
    truths = [runtime.truth(language, context) for context in range(CONTEXTS + 1)]
    error = float(np.std(means)) / math.sqrt(len(means))
    assert np.mean(means) == pytest.approx(np.dot(truths, WEIGHTS), abs=4 * error + 1e-6)
