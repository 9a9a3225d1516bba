"""Every text method against the sum over all strings of a model that is a table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from countless.automata.language import Automaton, Language, Letters
from countless.data.columns.schema import Column, Schema
from countless.engine.methods import for_text
from countless.engine.text.automaton_steps import SymbolAutomaton
from countless.engine.text.density import FEWER, text_density
from countless.engine.text.methods import TextMethod
from countless.engine.text.tree_search import StringSearchPlan
from countless.errors import QueryTooLargeError
from countless.query.domains.domain_evaluation import DomainTables
from countless.query.text.regex_automata import matching
from countless.query.text.regex_syntax import full_match, search
from countless.query.text.string_sets import compared, like, one_of
from tests.engine.text.table import TableRuntime, letters_of, script_of

SEEDS = 120
TEXT_METHODS = for_text()
PARTICLES, EXACT = TEXT_METHODS["particles"], TEXT_METHODS["exact"]
MEMBERS = DomainTables(Schema(1, (Column("n", "INTEGER", ("1",), False),))).members
ENOUGH = 100_000  # particles, with which nothing is thinned
SAMPLERS = [("naive", 6), ("progressive", 4), ("skipping", 6), ("particles", 2), ("particles", 4)]

Pattern = Callable[[Letters], Automaton]


def likes(pattern: str) -> Pattern:
    return lambda letters: like(script_of(letters), pattern)


def nots(pattern: str) -> Pattern:
    return lambda letters: ~like(script_of(letters), pattern)


def compares(operator: type[exp.Expr], text: str) -> Pattern:
    return lambda letters: compared(script_of(letters), operator, text)


def among(*texts: str) -> Pattern:
    return lambda letters: one_of(script_of(letters), texts)


def sized(*allowed_lengths: bool) -> Pattern:
    return lambda letters: Language(Automaton.constant(letters, True), False, False, np.array(allowed_lengths)).strings


def finds(pattern: str) -> Pattern:
    return lambda letters: matching(script_of(letters), search(pattern), MEMBERS)


def is_all(pattern: str) -> Pattern:
    return lambda letters: matching(script_of(letters), full_match(pattern), MEMBERS)


def both(one: Pattern, two: Pattern) -> Pattern:
    return lambda letters: (one(letters) & two(letters)).minimal()


def either(one: Pattern, two: Pattern) -> Pattern:
    return lambda letters: (one(letters) | two(letters)).minimal()


PATTERNS = {
    "%ab%": likes("%ab%"),
    "%aa%": likes("%aa%"),
    "%aba%": likes("%aba%"),
    "%b%": likes("%b%"),
    "ab%": likes("ab%"),
    "%ab": likes("%ab"),
    "%aa": likes("%aa"),
    "a": likes("a"),
    "=": compares(exp.EQ, "aba"),
    "= nothing": compares(exp.EQ, ""),
    "= too long": compares(exp.EQ, "abababab"),
    "<>": compares(exp.NEQ, "ab"),
    "%a%b%": likes("%a%b%"),
    "%a_b%": likes("%a_b%"),
    "a%b": likes("a%b"),
    "a%b%a": likes("a%b%a"),
    "_": likes("_"),
    "_%": likes("_%"),
    "%x%": likes("%x%"),
    "%yb%": likes("%yb%"),
    "z%": likes("z%"),
    "%ay": likes("%ay"),
    "xyz": likes("xyz"),
    "NOT %ab%": nots("%ab%"),
    "NOT %x%": nots("%x%"),
    "NOT a%": nots("a%"),
    "<": compares(exp.LT, "b"),
    ">=": compares(exp.GTE, "abx"),
    "BETWEEN": both(compares(exp.GTE, "aa"), compares(exp.LTE, "bab")),
    "IN": among("", "a", "ab", "bx", "aabba"),
    "length = 3": sized(False, False, False, True, False),
    "length <= 1": sized(True, True, False),
    "length > 2": sized(False, False, False, True),
    "length > 7": sized(*[False] * 8, True),
    "OR": either(likes("%aa%"), likes("%bx%")),
    "OR of anchored": either(likes("a%"), likes("%b")),
    "AND": both(likes("%ab%"), likes("%x%")),
    "a+b": finds("a+b"),
    "(ab|ba)$": finds("(ab|ba)$"),
    "^[^b]*$": finds("^[^b]*$"),
    "(ab)*": is_all("(ab)*"),
    "(a|bb)+x?": is_all("(a|bb)+x?"),
}
MODELS = {
    "plain": TableRuntime(1, rare="", length=6),
    "three letters": TableRuntime(2, characters="abx", rare="", length=4),
    "rare": TableRuntime(3, length=5),
    "one rare": TableRuntime(4, rare="x", length=5),
    "null": TableRuntime(5, length=4, null=True),
    "cut": TableRuntime(6, length=4, stop=0.3),
    "cut soon": TableRuntime(7, rare="xy", length=2, stop=0.6, null=True),
    "one character": TableRuntime(8, length=1, stop=1.0, null=True),
}

models = pytest.mark.parametrize("model", MODELS)
patterns = pytest.mark.parametrize("pattern", PATTERNS)


def ask(method: str, runtime: TableRuntime, strings: Automaton, budget: int | None, seed: int = 0) -> float:
    """The mass that a method finds; not clipped, which would bias the mean."""
    return TEXT_METHODS[method].ask(runtime, strings, budget, seed, None).density


@st.composite
def automata(draw: st.DrawFn, letters: Letters) -> Automaton:
    states = draw(st.integers(1, 5))
    row = st.lists(st.integers(0, states - 1), min_size=len(letters.characters), max_size=len(letters.characters))
    table = draw(st.lists(row, min_size=states, max_size=states))
    accepts = draw(st.lists(st.booleans(), min_size=states, max_size=states))
    return Automaton(letters, np.array(table, dtype=np.int64), np.array(accepts))


@models
@patterns
def test_exact_is_the_sum_over_strings(model: str, pattern: str) -> None:
    runtime = MODELS[model]
    strings = PATTERNS[pattern](runtime.letters)
    density = text_density(runtime, Language(strings, False, runtime.has_null), EXACT, None, 0)
    assert density.exact
    assert density.density == pytest.approx(runtime.truth(strings), abs=1e-6)


@models
@patterns
def test_particles_with_room_for_all_are_exact(model: str, pattern: str) -> None:
    runtime = MODELS[model]
    strings = PATTERNS[pattern](runtime.letters)
    density = text_density(runtime, Language(strings, False, runtime.has_null), PARTICLES, ENOUGH, 0)
    assert density.exact
    assert density.density == pytest.approx(runtime.truth(strings), abs=1e-6)


@given(st.data(), st.sampled_from(sorted(MODELS)), st.booleans())
@settings(deadline=None)
def test_any_automaton(data: st.DataObject, model: str, null: bool) -> None:
    runtime = MODELS[model]
    automaton = data.draw(automata(runtime.letters))
    language = Language(automaton, null and runtime.has_null, runtime.has_null)
    truth = runtime.truth(language)
    for method in (EXACT, PARTICLES):
        assert text_density(runtime, language, method, ENOUGH, 0).density == pytest.approx(truth, abs=1e-6)


@given(st.data(), st.sampled_from(sorted(MODELS)))
@settings(deadline=None)
def test_any_left_ideal(data: st.DataObject, model: str) -> None:
    runtime = MODELS[model]
    inside = data.draw(automata(runtime.letters))
    ideal = anywhere(inside)
    truth = runtime.truth(ideal)
    if ideal.any() and not ideal.all():
        assert StringSearchPlan(runtime, ideal).skips
        for method in ("exact", "particles"):
            assert ask(method, runtime, ideal, ENOUGH) == pytest.approx(truth, abs=1e-6)


def anywhere(automaton: Automaton) -> Automaton:
    """The strings that end in one of ``automaton``, by subsets."""
    subsets = [frozenset([0])]
    rows = []
    for subset in subsets:
        following = [frozenset(automaton.next[sorted(subset), letter].tolist()) | {0} for letter in _letters(automaton)]
        subsets += [one for one in dict.fromkeys(following) if one not in subsets]
        rows.append([subsets.index(one) for one in following])
    accepts = np.array([automaton.accepts[sorted(subset)].any() for subset in subsets])
    return Automaton(automaton.letters, np.array(rows), accepts)


def _letters(automaton: Automaton) -> range:
    return range(len(automaton.letters.characters))


@pytest.mark.parametrize(("method", "budget"), SAMPLERS)
@pytest.mark.parametrize("model", ["rare", "cut", "null"])
@pytest.mark.parametrize("pattern", ["%ab%", "%aa%", "a%b", "NOT %ab%", "%yb%", "<", "length > 2", "(a|bb)+x?"])
def test_sampled_means_are_unbiased(method: str, budget: int, model: str, pattern: str) -> None:
    runtime = MODELS[model]
    strings = PATTERNS[pattern](runtime.letters)
    assert_unbiased(method, budget, runtime, strings)


@pytest.mark.parametrize(("method", "budget"), SAMPLERS)
@given(st.data(), st.sampled_from(["rare", "cut soon"]))
@settings(deadline=None, max_examples=5, derandomize=True)
def test_sampled_means_of_any_automaton_are_unbiased(method: str, budget: int, data: st.DataObject, model: str) -> None:
    runtime = MODELS[model]
    strings = data.draw(automata(runtime.letters).filter(lambda automaton: not automaton.all()))
    assert_unbiased(method, budget, runtime, strings)


def assert_unbiased(method: str, budget: int, runtime: TableRuntime, strings: Automaton) -> None:
    answers = [ask(method, runtime, strings, budget, seed) for seed in range(SEEDS)]
    error = np.std(answers, ddof=1) / np.sqrt(SEEDS)
    assert abs(np.mean(answers) - runtime.truth(strings)) < 4.5 * error + 1e-6


@pytest.mark.parametrize("method", TEXT_METHODS)
def test_a_symbol_that_no_letter_stands_for_is_in_no_set(method: str) -> None:
    runtime = MODELS["one rare"]
    letters = letters_of("ab", "")
    strings = like(script_of(letters), "a%b")
    assert 0 < runtime.truth(strings) < runtime.truth(like(script_of(runtime.letters), "a%b"))
    assert_unbiased(method, 4, runtime, strings)


class TestNull:
    @pytest.mark.parametrize("method", ["exact", "particles"])
    @pytest.mark.parametrize("null", [False, True])
    @pytest.mark.parametrize("strings", ["%ab%", "everything", "nothing"])
    def test_it_is_counted_once(self, method: str, null: bool, strings: str) -> None:
        runtime = MODELS["null"]
        automaton = {
            "everything": Automaton.constant(runtime.letters, True),
            "nothing": Automaton.constant(runtime.letters, False),
        }.get(strings) or like(script_of(runtime.letters), strings)
        language = Language(automaton, null, True)
        density = text_density(runtime, language, TEXT_METHODS[method], None, 0)
        assert density.density == pytest.approx(runtime.truth(language), abs=1e-6)
        if strings != "%ab%":
            assert (density.exact, density.forward_rows) == (True, 0)

    def test_a_column_without_it_has_every_string(self) -> None:
        runtime = MODELS["rare"]
        every = Language(Automaton.constant(runtime.letters, True), False, False)
        assert text_density(runtime, every, PARTICLES, None, 0).density == 1.0

    def test_estimates_leave_room_for_it(self) -> None:
        runtime = MODELS["null"]
        most = Language(~like(script_of(runtime.letters), "abab"), True, True)
        for seed in range(20):
            assert text_density(runtime, most, PARTICLES, 2, seed).density <= 1.0


@models
@pytest.mark.parametrize("pattern", ["%ab%", "%a%b%", "%ab", "a+b", "AND"])
def test_a_pattern_and_its_negation_are_all_strings(model: str, pattern: str) -> None:
    runtime = MODELS[model]
    language = Language(PATTERNS[pattern](runtime.letters), False, runtime.has_null)
    some, others = (text_density(runtime, each, PARTICLES, 3, 1).density for each in (language, ~language))
    assert some + others == pytest.approx(1.0, abs=1e-6 if some <= FEWER else 0.2)


class TestPlan:
    @pytest.mark.parametrize(
        "pattern", ["%ab%", "%aa%", "%ab", "%a%b%", "%a_b%", "_%", "length > 2", "OR", "a+b", "AND"]
    )
    def test_skips_to_where_a_match_may_begin(self, pattern: str) -> None:
        runtime = MODELS["rare"]
        plan = StringSearchPlan(runtime, PATTERNS[pattern](runtime.letters))
        assert plan.skips
        assert plan.starts.nodes.tolist() == list(range(runtime.spec.length))

    @pytest.mark.parametrize("pattern", ["ab%", "=", "a%b", "NOT %ab%", "<", "IN", "length = 3", "(ab)*", "^[^b]*$"])
    def test_reads_from_the_start_what_must_begin_there(self, pattern: str) -> None:
        runtime = MODELS["rare"]
        plan = StringSearchPlan(runtime, PATTERNS[pattern](runtime.letters))
        assert not plan.skips
        assert plan.starts.nodes.tolist() == [0]
        assert plan.mass_after_cut.tolist() == [0.0]

    @patterns
    def test_skips_only_sets_that_are_closed_under_what_comes_before(self, pattern: str) -> None:
        letters = letters_of()
        strings = PATTERNS[pattern](letters)
        short = ["", *letters.characters, *(one + two for one in "abx" for two in "abxy"), "aba", "abb", "bab", "aab"]
        closed = all(
            strings.accepts_string(letter + text) for text in short if strings.accepts_string(text) for letter in "abx"
        )
        assert strings.is_left_ideal <= closed

    def test_a_match_beyond_the_cut_counts(self) -> None:
        runtime = MODELS["one character"]
        plan = StringSearchPlan(runtime, like(script_of(runtime.letters), "%b%"))
        assert 0 < plan.mass_after_cut[0] < 1


class TestMachine:
    def machine(self, pattern: Pattern, stop: float = 0.0) -> SymbolAutomaton:
        runtime = TableRuntime(0, stop=stop)
        return SymbolAutomaton(pattern(runtime.letters), runtime.spec)

    def test_what_is_forced_is_spelled(self) -> None:
        machine = self.machine(likes("abba%"))
        spelling = machine.spelled(0)
        assert machine.forced[0]
        assert spelling.symbols.tolist() == [0, 1, 1, 0]
        assert spelling.weight == 1.0
        assert machine.full[spelling.state]

    def test_rare_letters_have_their_share(self) -> None:
        spelling = self.machine(likes("axy")).spelled(0)
        assert spelling.symbols.tolist() == [0, 2, 2]
        assert spelling.weight == pytest.approx(3 / 6 * 2 / 6)

    def test_a_choice_ends_it(self) -> None:
        machine = self.machine(among("aba", "abb"))
        assert machine.spelled(0).symbols.tolist() == [0, 1]
        assert not machine.forced[machine.spelled(0).state]

    def test_nothing_is_forced_where_a_string_may_end(self) -> None:
        machine = self.machine(among("a", "aba"))
        assert machine.spelled(0).symbols.tolist() == [0]

    def test_what_does_not_fit_is_spelled_no_further_than_a_string(self) -> None:
        machine = self.machine(compares(exp.EQ, "ab" * 10))
        assert len(machine.spelled(0).symbols) == machine.spec.length + 1

    def test_strings_end_where_they_are_accepted_and_are_cut_by_weight(self) -> None:
        machine = self.machine(likes("%b"), stop=0.5)
        assert machine.cuts
        assert machine.ending[:, machine.spec.end].tolist() == machine.accepting.tolist()
        assert np.all((machine.ending[:, machine.spec.cut] > 0) & (machine.ending[:, machine.spec.cut] < 1))
        assert not machine.ending[:, : machine.spec.end].any()
        assert not machine.ending[:, machine.spec.null].any()


class TestWork:
    """How many rows are computed: what is not asked is not read."""

    @pytest.mark.parametrize("method", ["exact", "particles"])
    @pytest.mark.parametrize(
        ("pattern", "rows"),
        [
            (likes("abx%"), 2),  # after the last one nobody asks what follows
            (likes("a%"), 0),
            (compares(exp.EQ, "abx"), 3),
            (compares(exp.EQ, ""), 0),
            (compares(exp.EQ, "ababababab"), 0),
            (sized(True, False), 0),
        ],
    )
    def test_anchored_patterns(self, method: str, pattern: Pattern, rows: int) -> None:
        runtime = MODELS["rare"]
        answer = TEXT_METHODS[method].ask(runtime, pattern(runtime.letters), None, 0, None)
        assert answer.exact
        assert answer.forward_rows == rows

    def test_an_end_is_exact(self) -> None:
        runtime = MODELS["rare"]
        strings = like(script_of(runtime.letters), "%abx")
        answer = TEXT_METHODS["particles"].ask(runtime, strings, 1, 0, None)
        assert answer.exact
        assert answer.forward_rows == 3 * 3  # from each offset at which it fits
        assert answer.density == pytest.approx(runtime.truth(strings), abs=1e-6)

    def test_the_samplers_count_their_rows(self) -> None:
        runtime = MODELS["rare"]
        strings = like(script_of(runtime.letters), "abx%")
        assert TEXT_METHODS["progressive"].ask(runtime, strings, 5, 0, None).forward_rows == 2 * 5
        assert TEXT_METHODS["naive"].ask(runtime, strings, 5, 0, None).forward_rows <= runtime.spec.length * 5


def test_few_particles_hold_few_prefixes() -> None:
    runtime = MODELS["rare"]
    answer = TEXT_METHODS["particles"].ask(runtime, like(script_of(runtime.letters), "a%b"), 3, 0, None)
    assert not answer.exact
    assert answer.particles <= 6


@pytest.mark.parametrize(("one", "two"), [("%ab%", "%bc%"), ("%abc%", "%ca%"), ("%ba%", "%cc%")])
def test_two_pieces_are_found_by_what_has_read_a_part_of_them(
    one: str, two: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = TableRuntime(3, characters="abc", rare="", length=6)
    strings = both(likes(one), likes(two))(runtime.letters)

    def spread() -> float:
        densities = [TEXT_METHODS["particles"].ask(runtime, strings, 8, seed, None).density for seed in range(60)]
        return float(np.std(densities))

    hinted = spread()
    monkeypatch.setattr(SymbolAutomaton, "hints", property(lambda machine: np.ones(len(machine.next))))
    assert hinted < 0.8 * spread()


def test_a_prefix_is_worth_more_the_more_it_has_read_of_what_is_looked_for() -> None:
    runtime = TableRuntime(0, length=5)
    machine = SymbolAutomaton(likes("%abba%")(runtime.letters), runtime.spec)
    state, hints = 0, [machine.hints[0]]
    for letter in "abba":
        column = int(np.flatnonzero(machine.symbols == "ab".index(letter))[0])
        state = int(machine.next[state, column])
        hints.append(machine.hints[state])
    assert hints == sorted(hints)
    assert (hints[0] > 0, hints[-1]) == (True, pytest.approx(1.0))


def test_the_same_seed_gives_the_same_answer() -> None:
    runtime = MODELS["cut"]
    strings = like(script_of(runtime.letters), "a%b")
    for method in TEXT_METHODS:
        assert ask(method, runtime, strings, 3, seed=7) == ask(method, runtime, strings, 3, seed=7)


def test_exact_refuses_to_enumerate_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countless.engine.text.enumeration.MOST_PREFIXES", 20)
    runtime = MODELS["rare"]
    with pytest.raises(QueryTooLargeError, match="use the method particles"):
        ask("exact", runtime, like(script_of(runtime.letters), "a%b"), None)


def test_what_rewrites_needs_a_walk() -> None:
    with pytest.raises(ValueError, match="needs a walk"):
        TextMethod(TEXT_METHODS["naive"].ask, rewrites=True)


@pytest.mark.parametrize("lengths", [(True, False), (False, True, True, False), (False, False, True), (False, True)])
@pytest.mark.parametrize("pattern", [None, "%ab%", "a%", "%b", "%a_a%"])
@pytest.mark.parametrize("model", [name for name in MODELS if name != "one character"])
def test_lengths_beside_a_pattern_are_as_the_automaton_of_both(
    model: str, pattern: str | None, lengths: tuple[bool, ...]
) -> None:
    runtime = MODELS[model]
    letters = runtime.letters
    automaton = Automaton.constant(letters, True) if pattern is None else like(script_of(letters), pattern)
    language = Language(automaton, False, runtime.has_null, np.array(lengths))
    density = text_density(runtime, language, PARTICLES, ENOUGH, 0)
    assert density.density == pytest.approx(runtime.truth(language), abs=1e-6)


@pytest.mark.parametrize("pattern", ["a%b%", "ab%a%", "a%b", "b%ab%", "a%aa%", "ab%", "_a%b%"])
@pytest.mark.parametrize("method", ["particles", "exact"])
def test_a_model_that_has_learned_gaps_skips_after_a_beginning(method: str, pattern: str) -> None:
    for runtime in (
        TableRuntime(9, length=5, gaps=True),
        TableRuntime(10, length=4, stop=0.4, null=True, gaps=True),
    ):
        strings = like(script_of(runtime.letters), pattern)
        density = text_density(runtime, Language(strings, False, runtime.has_null), TEXT_METHODS[method], ENOUGH, 0)
        assert density.density == pytest.approx(runtime.truth(strings), abs=1e-6)
        assert StringSearchPlan(runtime, strings).skips == (pattern in ("a%b%", "ab%a%", "a%b", "b%ab%", "a%aa%"))
