"""What counted n-grams make of an estimate, against the rows themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.automata.language import Automaton, Language
from countless.data.columns.schema import Schema
from countless.data.columns.text import TextColumn, encode
from countless.data.summaries.ngrams import NGrams, count_ngrams
from countless.engine.answer import Answer
from countless.engine.density import densities
from countless.engine.methods import METHODS, Method, for_text
from countless.engine.runtimes import Runtimes
from countless.engine.text import ngram_answers as module
from countless.engine.text.density import text_density
from countless.engine.text.methods import PARTICLES
from countless.engine.text.ngram_answers import Piece, contained, containing, refine, required
from countless.engine.text.runtime import TextRuntime
from countless.query.compile import Compiler
from countless.spec import TextSpec
from tests.engine.text.test_runtime import arrays

LENGTH = 12
COLUMN = TextColumn("t", "VARCHAR", "ABabc", LENGTH, True, 9, (("é", 2), ("ü", 3)), (9, 9, 9, 9, 9))
COMPILER = Compiler(Schema(100, (COLUMN,)))
SPEC = TextSpec(len(COLUMN.characters), LENGTH, width=8, blocks=1, heads=2, inner=12, buckets=31)


@cache
def language(where: str) -> Language:
    """What a clause says of the column t."""
    (box,) = COMPILER.compile(where).region.boxes
    return box.texts[0].language


def named(letters: Iterable[int]) -> str:
    return "".join(COLUMN.letters.characters[letter] for letter in letters)


def said(density: float) -> Callable[[Automaton], Answer]:
    """An estimate that is always the same."""
    return lambda strings: Answer(density, exact=False, particles=7, visited=(), forward_rows=3)


def summed(texts: list[str | None], threshold: int = 2) -> NGrams:
    """The summary of ``texts``, without what has fewer rows than ``threshold``."""
    full = count_ngrams(encode(COLUMN, texts).symbols, len(COLUMN.characters))
    kept = [counts >= threshold for counts in full.counts]
    return NGrams(
        full.characters,
        full.rows,
        full.nulls,
        full.cut,
        threshold,
        tuple(codes[keep] for codes, keep in zip(full.codes, kept, strict=True)),
        tuple(counts[keep] for counts, keep in zip(full.counts, kept, strict=True)),
    )


def true_share(texts: list[str | None], asked: Language) -> float:
    return sum(text is not None and asked.strings.accepts_string(text) for text in texts) / len(texts)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("t LIKE '%a%'", "a"),
        ("t LIKE '%aba%'", "aba"),
        ("t LIKE '%aaaaaaa%'", "aaaaaaa"),
        ("t LIKE '%abcabcab%'", "abcabcab"),
        ("contains(t, 'aé')", "aé"),
        ("t LIKE '%%ab%%'", "ab"),
        ("regexp_matches(t, 'ab')", "ab"),
        ("regexp_matches(t, '(x|a)bc*')", "ab"),
        ("t LIKE '%ab%' AND t LIKE '%b%'", "ab"),
        ("t LIKE '%ab%' OR t LIKE '%cabc%'", "ab"),
        ("t ILIKE '%c%'", "c"),  # there is no C
        *((where, None) for where in ("t LIKE 'ab%'", "t LIKE '%ab'", "t LIKE '%a_b%'", "t LIKE '%a%b%'", "t = 'ab'")),
        *((where, None) for where in ("t ILIKE '%a%'", "t LIKE '%a%' OR t LIKE '%b%'", "t NOT LIKE '%a%'", "t <> ''")),
        *((where, None) for where in ("t LIKE '_%'", "length(t) = 3", "t LIKE '%ab%' AND t LIKE '%c%'", "t > 'a'")),
    ],
)
def test_texts_that_are_contained(where: str, text: str | None) -> None:
    strings = language(where).strings
    found = contained(strings)
    assert (None if found is None else named(found)) == text
    if found is not None:
        assert contained(~strings) is None
        again = containing(strings.letters, found)
        assert not ((again & ~strings) | (strings & ~again)).any()


@pytest.mark.parametrize(
    ("where", "pieces"),
    [
        ("t LIKE '%ab%cb%'", ["cb", "ab"]),
        ("t LIKE '%ab%cb'", ["cb", "ab"]),
        ("t LIKE 'ab%cb%a'", ["a", "cb", "ab"]),
        ("t LIKE 'abc%'", ["abc"]),
        ("t = 'abcabc'", ["abcabc"]),
        ("t LIKE '%ab'", ["ab"]),
        ("t LIKE '%b_______c%'", ["c", "b"]),
        ("t ILIKE '%ab%'", ["[Aa][Bb]"]),
        ("regexp_matches(t, 'a[bc]a')", ["a[bc]a"]),
        ("t IN ('ab', 'cb')", ["[ac]b"]),
        ("t NOT LIKE '%a%'", []),
        ("length(t) > 3", []),
        ("t < 'a'", []),
    ],
)
def test_pieces_that_are_required(where: str, pieces: list[str]) -> None:
    def written(piece: Piece) -> str:
        return "".join(named(place) if len(place) == 1 else f"[{named(place)}]" for place in piece)

    assert [written(piece) for piece in required(language(where).strings)] == pieces


TEXTS = st.lists(st.none() | st.text("ABabcéü", max_size=LENGTH) | st.text("ab", max_size=LENGTH), min_size=1)
WORDS = st.text("abcAé", min_size=1, max_size=3) | st.text("ab", min_size=1, max_size=8)
PATTERNS = st.lists(WORDS | st.sampled_from("%_"), min_size=1, max_size=4).map("".join)
LIKES = st.builds("t {} '{}'".format, st.sampled_from(["LIKE", "NOT LIKE", "ILIKE"]), PATTERNS)
LIKES |= st.builds("t LIKE '%{}%'".format, WORDS) | st.builds("t NOT LIKE '%{}%'".format, WORDS)
CLAUSES = LIKES | st.builds("({}) {} ({})".format, LIKES, st.sampled_from(["AND", "OR"]), LIKES)


@given(TEXTS, CLAUSES, st.integers(2, 5))
def test_the_truth_is_between_the_bounds(texts: list[str | None], where: str, threshold: int) -> None:
    column = _frequencies(texts)
    (box,) = Compiler(Schema(100, (column,))).compile(where).region.boxes or (None,)
    if box is None or not box.texts:
        return
    asked = box.texts[0].language
    summary, truth = summed(texts, threshold), true_share(texts, asked)
    found = [refine(asked.strings, summary, said(density)).density for density in (0.0, 1.0)]
    assert min(found) - 1e-9 <= truth <= max(found) + 1e-9
    for density in (0.0, truth, 1.0):
        answer = refine(asked.strings, summary, said(density))
        assert 0.0 <= answer.density <= 1.0
        if answer.counted:
            assert answer.density == pytest.approx(truth)
            assert answer.exact
            assert answer.forward_rows == 0


def _frequencies(texts: list[str | None]) -> TextColumn:
    """The column of ``texts``, whose rare letters occur as often as they do."""
    every = "".join(text for text in texts if text)
    rare = tuple((letter, every.count(letter)) for letter in "éü" if letter in every)
    return TextColumn("t", "VARCHAR", COLUMN.characters, LENGTH, True, 9, rare, COLUMN.frequencies)


ROWS: list[str | None] = ["abcabc", "abcab", "cabca", "bcabcab", "ab", "AB", None, "é", "éé", "aé"]


@pytest.mark.parametrize(("text", "count"), [("a", 6), ("ab", 5), ("abca", 4), ("cab", 4), ("bcab", 3), ("bcabc", 2)])
def test_a_short_text_is_counted(text: str, count: int) -> None:
    def never(strings: Automaton) -> Answer:
        raise AssertionError("the model was asked")

    asked = language(f"t LIKE '%{text}%'").strings
    assert refine(asked, summed(ROWS), never) == Answer(count / 10, True, 1, (), 0, counted=True)
    others = refine(~asked, summed(ROWS), never)
    assert others.density == pytest.approx(0.9 - count / 10)
    assert others.counted


def test_a_short_text_that_is_not_there_is_rare() -> None:
    asked = language("t LIKE '%bb%'").strings
    assert refine(asked, summed(ROWS), said(0.05)).density == 0.05
    assert refine(asked, summed(ROWS), said(0.5)).density == 0.1
    assert refine(~asked, summed(ROWS), said(0.5)).density == pytest.approx(0.8)
    assert not refine(asked, summed(ROWS), said(0.5)).counted


def test_a_rare_letter_has_no_more_rows_than_it_occurs() -> None:
    assert refine(language("t LIKE '%aé%'").strings, summed(ROWS), said(0.9)).density == pytest.approx(0.2)
    assert refine(language("t LIKE '%é%'").strings, summed(ROWS), said(0.01)).density == 0.01


def test_a_longer_text_is_a_part_of_its_rarest_five_letters() -> None:
    asked = language("t LIKE '%abcabc%'").strings
    # abcab: 3 rows, bcabc: 2; the model has seen the first twice as often as it should.
    densities = {"abcabc": 0.2, "bcabc": 0.4}

    def estimate(strings: Automaton) -> Answer:
        found = contained(strings)
        assert found is not None
        return Answer(densities[named(found)], exact=True, particles=len(found), visited=(), forward_rows=10)

    found = refine(asked, summed(ROWS), estimate)
    assert found.density == pytest.approx(0.1)
    assert (found.exact, found.particles, found.forward_rows, found.counted) == (True, 6, 20, False)
    densities["bcabc"] = 0.1  # no part is larger than the whole
    assert refine(asked, summed(ROWS), estimate).density == pytest.approx(0.2)
    densities["bcabc"] = 0.0
    assert refine(asked, summed(ROWS), estimate).density == pytest.approx(0.2)
    assert refine(language("t LIKE '%abcabca%'").strings, summed(ROWS, 3), said(0.9)).density == pytest.approx(0.2)


def test_cut_strings_may_match_later() -> None:
    texts: list[str | None] = ["ab" * LENGTH, "ab", "ba", "a" * 2 * LENGTH, "c"]
    letters = TextColumn(
        "t", "VARCHAR", COLUMN.characters, LENGTH, True, 9, (), (1, 1, 1, 1, 1), cut=2, beyond=12.0
    ).letters
    summary = summed(texts)
    assert summary.cut == 2
    found = refine(containing(letters, np.array([2, 3])), summary, said(0.0))
    assert 0.4 < found.density < 0.8  # two rows, and each of the others that were cut perhaps
    assert not found.counted
    assert refine(containing(letters, np.array([4, 4])), summary, said(1.0)).density == pytest.approx(0.6)


class TestTheDoor:
    """The summary by way of the engine's method."""

    runtime = TextRuntime(SPEC, arrays(SPEC))

    def density(self, where: str, summary: NGrams | None = None) -> Answer:
        return text_density(self.runtime, language(where), PARTICLES, 20, 0, summary)

    def by(self, method: str, summary: NGrams | None) -> Answer:
        region = COMPILER.compile("t LIKE '%ab%'").region
        ((answer,),) = (
            found.answers for found in densities(Runtimes((), (self.runtime,), (summary,)), [region], method, 20, 0)
        )
        return answer

    def test_counts_are_for_methods_that_use_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        summary = summed(ROWS)
        assert self.density("t LIKE '%ab%'", summary) == Answer(0.5, True, 1, (), 0, counted=True)
        assert self.by("particles", summary).counted
        for method, text in for_text().items():
            if not METHODS[method].uses_counts and not text.enumerates:  # which would take too long
                assert self.by(method, summary) == self.by(method, None)
            monkeypatch.setitem(METHODS, "mine", Method(text=text, uses_counts=True))
            assert self.by("mine", summary) == self.by("particles", summary)

    @pytest.mark.parametrize(
        ("where", "share"),
        [
            ("t IS NULL", 0.1),
            ("t IS NOT NULL", 0.9),
            ("t NOT LIKE '%ab%'", 0.4),
            ("t IS NULL OR t LIKE '%ab%'", 0.6),
            ("t IS NULL OR t NOT LIKE '%ab%'", 0.5),
        ],
    )
    def test_nulls_are_counted(self, where: str, share: float) -> None:
        found = self.density(where, summary=summed(ROWS))
        assert found.density == pytest.approx(share)
        assert found.counted

    @pytest.mark.parametrize("where", ["t LIKE '%ab%ca%'", "t LIKE 'ab%'", "t LIKE '%abcabc%'", "t ILIKE '%bb%'"])
    def test_the_model_answers_the_rest(self, where: str) -> None:
        alone, found = self.density(where), self.density(where, summary=summed(ROWS))
        assert found.forward_rows >= alone.forward_rows > 0
        assert not found.counted
        assert 0 <= found.density <= 0.9

    def test_no_rows(self) -> None:
        assert self.density("t LIKE '%ab%'", summary=summed([])) == self.density("t LIKE '%ab%'")


def test_an_automaton_of_many_states_is_left_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STATES", 2)
    strings = language("t LIKE '%ab%'").strings
    assert refine(strings, summed(ROWS), said(0.7)).density == 0.7
    assert required(strings) == []
