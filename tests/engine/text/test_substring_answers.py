"""What counted substrings say of patterns, against the rows themselves."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.automata.language import Automaton, Language
from countless.data.columns.schema import Schema
from countless.data.columns.strings.characters import Characters
from countless.data.columns.strings.text import TextColumn
from countless.data.summaries.substring_counting import StringScans, count_substrings
from countless.data.summaries.substrings import Substrings
from countless.engine.answer import Answer
from countless.engine.density import counts_answer, counts_estimate, densities
from countless.engine.methods import METHODS, for_text
from countless.engine.runtimes import Runtimes
from countless.engine.text import pieces as module
from countless.engine.text.density import text_density
from countless.engine.text.methods import PARTICLES
from countless.engine.text.piece_reader import LEAST, PieceReader
from countless.engine.text.pieces import Piece, required, union
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.substring_answers import refine, rows_of
from countless.query.compile import Compiler
from countless.spec import TextSpec
from tests.engine.text.test_runtime import arrays

LENGTH = 12
EVEN = "regexp_matches(t, '^([^ab]*[ab][^ab]*[ab])*[^ab]*$')"  # of a and b together: no piece tells that
COLUMN = TextColumn("t", "VARCHAR", "ABabc", LENGTH, True, 9, (("é", 2), ("ü", 3)), (9, 9, 9, 9, 9))
COMPILER = Compiler(Schema(100, (COLUMN,)))
SPEC = TextSpec(len(COLUMN.characters), LENGTH, width=8, blocks=1, heads=2, inner=12, buckets=31)


@cache
def language(where: str) -> Language:
    """What a clause says of the column t."""
    (box,) = COMPILER.compile(where).region.boxes
    return box.texts[0].language


def never(strings: Automaton) -> Answer:
    raise AssertionError("the network was asked")


def summed(texts: list[str | None], size: int | None = None, column: TextColumn = COLUMN) -> Substrings:
    return count_substrings(StringScans(lambda: iter([Characters.of_texts(texts)]), len(texts)), column, size=size)


def written(piece: Piece) -> str:
    return "".join((COLUMN.letters.characters + "$^")[letter] for letter in piece)


@pytest.mark.parametrize(
    ("where", "pieces"),
    [
        ("t LIKE '%aba%'", ["aba"]),
        ("t LIKE '%aaaaaaa%'", ["aaaaaaa"]),
        ("contains(t, 'aé')", ["aé"]),
        ("t LIKE 'ab%'", ["^ab"]),
        ("t LIKE '%ab'", ["ab$"]),
        ("t = 'ab'", ["^ab$"]),
        ("t = ''", ["^$"]),
        ("t LIKE '%ab%' OR t LIKE '%cb%'", ["ab", "cb"]),
        ("t LIKE '%ab%' OR t LIKE '%cabc%'", ["ab"]),
        ("t LIKE 'a%' OR t LIKE '%c'", ["^a", "c$"]),
        ("t IN ('ab', 'cb')", ["^ab$", "^cb$"]),
        ("regexp_matches(t, 'a[bc]a')", ["aba", "aca"]),
        ("t LIKE '%ab%' AND t LIKE '%b%'", ["ab"]),
        ("t ILIKE '%ab'", ["AB$", "Ab$", "aB$", "ab$"]),
        *((where, None) for where in ("t LIKE '%a%b%'", "t LIKE 'a%b'", "t NOT LIKE '%a%'")),
        *((where, None) for where in ("length(t) = 3", "t LIKE '%ab%' AND t LIKE '%c%'")),
    ],
)
def test_unions_of_pieces(where: str, pieces: list[str] | None) -> None:
    parts = union(language(where).strings)
    assert (None if parts is None else sorted(map(written, parts))) == pieces


@pytest.mark.parametrize(
    ("where", "pieces"),
    [
        ("t LIKE '%ab%cb%'", ["ab", "cb"]),
        ("t LIKE 'ab%cb%a'", ["^ab", "cb", "a$"]),
        ("t LIKE 'abc%'", ["^abc"]),
        ("t = 'abcabc'", ["^abcabc$"]),
        ("t LIKE '%b_______c%'", ["b", "c"]),
        ("t LIKE '%bc%' AND t LIKE '%ca%'", ["bc", "ca"]),
        ("t LIKE 'ab%' AND t LIKE '%ba'", ["^ab", "ba$"]),
        ("t NOT LIKE '%a%'", []),
        ("length(t) > 3", []),
    ],
)
def test_pieces_that_are_required(where: str, pieces: list[str]) -> None:
    assert sorted(written(piece) for piece in required(language(where).strings)) == sorted(pieces)


MANY_LETTERS = "".join(map(chr, range(0x3B1, 0x3B1 + 80)))  # of so many, no piece for each other letter is looked for
TEXTS = st.lists(st.none() | st.text("ABabcéü", max_size=LENGTH) | st.text("ab", max_size=LENGTH), min_size=1)
WORDS = st.text("abcAé", min_size=1, max_size=3) | st.text("ab", min_size=1, max_size=8)
PATTERNS = st.lists(WORDS | st.sampled_from("%_"), min_size=1, max_size=4).map("".join)
LIKES = st.builds("t {} '{}'".format, st.sampled_from(["LIKE", "NOT LIKE", "ILIKE"]), PATTERNS)
LIKES |= st.builds("t LIKE '%{}%'".format, WORDS) | st.builds("t NOT LIKE '%{}%'".format, WORDS)
LIKES |= st.builds("t LIKE '{}%'".format, WORDS) | st.builds("t ILIKE '%{}'".format, WORDS)
CLAUSES = LIKES | st.builds("({}) {} ({})".format, LIKES, st.sampled_from(["AND", "OR"]), LIKES)


@settings(deadline=None, max_examples=40)
@given(TEXTS, CLAUSES, st.sampled_from([None, 480, 420]), st.sampled_from(["", MANY_LETTERS]))
def test_the_truth_is_between_the_bounds(texts: list[str | None], where: str, size: int | None, more: str) -> None:
    every = "".join(text for text in texts if text)
    rare = tuple((letter, every.count(letter)) for letter in "éü" if letter in every)
    frequencies = (*COLUMN.frequencies, *(1 for _ in more))
    column = TextColumn("t", "VARCHAR", COLUMN.characters + more, LENGTH, True, 9, rare, frequencies)
    (box,) = Compiler(Schema(100, (column,))).compile(where).region.boxes or (None,)
    if box is None or not box.texts:
        return
    strings = box.texts[0].language.strings
    truth = sum(text is not None and strings.accepts_string(text) for text in texts)
    bounds = rows_of(strings, summed(texts, size, column))
    assert bounds.least <= truth <= bounds.most
    assert bounds.least <= bounds.rows <= bounds.most
    others = rows_of(~strings, summed(texts, size, column))
    assert others.least <= len(texts) - texts.count(None) - truth <= others.most


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("t LIKE 'ab%' AND t NOT LIKE 'abc%'", 100),
        ("t LIKE '%ab%' AND t NOT LIKE '%abc%' AND t NOT LIKE '%cab%'", None),
        ("t LIKE '%b%' AND t LIKE '%a%' AND t NOT LIKE '%ab%'", None),
        ("t LIKE '%c%' AND t LIKE 'a%' AND t NOT LIKE 'ac%'", None),
        ("t LIKE '%a%' AND t LIKE '%b%' AND t LIKE '%ab%'", 500),
    ],
)
def test_pieces_that_are_excluded_are_taken_from_those_that_are_required(where: str, rows: int | None) -> None:
    texts: list[str | None] = ["abca", "abc", "bcab", "ab", "acb", "cab", "b"] * 100
    column = TextColumn("t", "VARCHAR", "ABabc" + MANY_LETTERS, LENGTH, True, 9, (), (9,) * 85)
    (box,) = Compiler(Schema(100, (column,))).compile(where).region.boxes
    strings, summary = box.texts[0].language.strings, summed(texts, column=column)
    truth = sum(text is not None and strings.accepts_string(text) for text in texts)
    counts = rows_of(strings, summary)
    assert counts.least <= truth <= counts.most
    assert counts.most < 700
    if rows is not None:
        assert (counts.rows, counts.counted, truth) == (rows, True, rows)


ROWS: list[str | None] = ["abcabc", "abcab", "cabca", "bcabcab", "ab", "AB", None, "é", "éé", "aé"]


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("t LIKE '%a%'", 6),
        ("t LIKE '%abca%'", 4),
        ("t LIKE 'ab%'", 3),
        ("t LIKE '%ab'", 3),
        ("t ILIKE '%ab%'", 6),
        ("t ILIKE 'ab'", 2),
        ("t NOT LIKE '%ab%'", 4),
        ("t LIKE 'ab%' OR t LIKE 'ca%'", 4),
        ("t IS NULL", 1),
        ("t IS NULL OR t LIKE '%ab'", 4),
        ("t IS NULL OR t NOT ILIKE '%ab%'", 4),
    ],
)
def test_patterns_that_are_counted(where: str, count: int) -> None:
    region = COMPILER.compile(where).region
    rows = ROWS * 3  # so that all of them are frequent
    runtime = TextRuntime(SPEC, arrays(SPEC))
    density = text_density(runtime, language(where), PARTICLES, 20, 0, summed(rows))
    assert density.density == pytest.approx(count / 10)
    assert (density.counted, density.forward_rows) == (True, 0)
    assert counts_answer(Runtimes((), (runtime,), (summed(rows),)), region) or "NULL" in where


def test_a_chain_of_overlapping_parts() -> None:
    texts: list[str | None] = ["abca", "abc", "bca", "bc", "bca", "b"] * 100
    summary = summed(texts)
    reader = PieceReader(language("t LIKE '%abca%'").strings, summary)
    a, b, c = (COLUMN.characters.index(each) for each in "abc")
    assert reader.piece((a, b, c, a)).counted
    few = summed(texts, 440)  # frequent ones only
    assert few.count((a, b, c, a)) is None
    answer = PieceReader(language("t LIKE '%abca%'").strings, few).piece((a, b, c, a))
    parts = ((a, b, c), (b, c, a), (b, c), (a, b), (c, a), (a,), (c,), (b,))
    counts = {part: few.count(part) or 0 for part in parts}
    assert answer.steps >= 1
    assert 0 < answer.rows <= answer.most <= min(few.unseen, *(count for count in counts.values() if count))
    if counts[a, b, c] and counts[b, c, a] and counts[b, c]:
        assert answer.rows == pytest.approx(counts[a, b, c] * counts[b, c, a] / counts[b, c])


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["LIKE", "NOT LIKE", "ILIKE"]),
    st.text("ABabcé", min_size=1, max_size=6),
    st.sampled_from(["{}", "{}%", "%{}", "%{}%", "%%{}%", "{0}%{0}"]),
)
def test_the_piece_of_a_pattern_is_the_one_that_is_found_in_its_automaton(word: str, piece: str, pattern: str) -> None:
    summary = summed(["ab", "bA", "aé"])
    strings = language(f"t {word} '{pattern.format(piece)}'").strings
    plain = Automaton(strings.letters, strings.next, strings.accepts)  # nothing is known of it
    for with_pattern, without_pattern in ((strings, plain), (~strings, ~plain), (~~strings, plain)):
        by_pattern, searched = PieceReader(with_pattern, summary), PieceReader(without_pattern, summary)
        assert by_pattern.pieces(union) == searched.pieces(union)
        assert sorted(by_pattern.pieces(required) or []) == sorted(searched.pieces(required) or [])
        answer, definition = rows_of(with_pattern, summary), rows_of(without_pattern, summary)
        assert (answer.least, answer.most) == (definition.least, definition.most)
    least = strings.minimal()
    assert (least.next.tolist(), least.accepts.tolist()) == (strings.next.tolist(), strings.accepts.tolist())


def chained_place_by_place(reader: PieceReader, piece: Piece) -> tuple[float, float, int]:
    """The chain of a piece, with the longest counted part looked for at every place: rows, at most, steps."""
    summary, rows, end, steps = reader.summary, reader.total, 0, 0
    most = float(summary.unseen) if len(piece) <= summary.longest else reader.total
    for start in range(len(piece)):
        length, count = summary.longest_from(piece, start)
        if not length:
            rows, end, steps = min(rows, LEAST), max(end, start + 1), steps + 1
        elif start + length > end:
            shared = summary.count(piece[start:end]) if start < end else None
            rows *= count / max(1.0, reader.total if shared is None else float(shared))
            most, end, steps = min(most, summary.most(count)), start + length, steps + 1
        if end >= len(piece):
            break
    return min(max(rows, LEAST), most), most, max(1, steps - 1)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("ABabc", max_size=9), min_size=20, max_size=60),
    st.lists(st.text("ABabc", min_size=3, max_size=14), min_size=1, max_size=8),
)
def test_a_chain_is_found_without_a_look_at_every_place(texts: list[str], pieces: list[str]) -> None:
    summary = summed([*texts, *texts], 200)
    reader = PieceReader(language("t LIKE '%abca%'").strings, summary)
    for text in pieces:
        piece = (summary.begin, *(COLUMN.characters.index(each) for each in text))
        chain = reader._chained(piece)
        rows, most, steps = chained_place_by_place(reader, piece)
        assert chain.rows == pytest.approx(rows)
        assert (chain.most, chain.steps) == (most, steps)


@pytest.mark.parametrize(
    "where",
    ["t = 'abc'", "t = ''", "t IN ('ab', 'abc', 'cab', 'é', '')", "t IN ('a', 'b') OR t = 'cc'", "t LIKE 'ab_'"],
)
def test_lists_of_strings_are_pieces_without_a_search(where: str) -> None:
    strings = language(where).strings
    listed, searched = union(strings), module._pieces_by_search(strings)
    assert listed is not None
    assert searched is not None
    assert sorted(listed) == sorted(searched)
    assert rows_of(~strings, summed(ROWS * 3)) == rows_of(strings, summed(ROWS * 3)).complement(27)  # 3 are NULL


def test_alternatives_and_conjunctions_keep_to_their_parts() -> None:
    summary = summed(ROWS * 3)
    one, two = (rows_of(language(f"t LIKE '%{part}%'").strings, summary).rows for part in ("bc", "ca"))
    either = rows_of(language("t LIKE '%bc%' OR t LIKE '%aa%' OR t LIKE '%ca%'").strings, summary)
    assert max(one, two) <= either.least <= either.rows <= either.most <= one + two + summary.unseen
    both = rows_of(language("t LIKE '%bc%' AND t LIKE '%ca%'").strings, summary)
    assert both.rows <= both.most <= min(one, two)


def test_no_piece_is_left_to_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(strings: Automaton) -> Answer:
        return Answer(0.7, exact=False, particles=7, visited=(), forward_rows=3)

    strings = language(EVEN).strings
    refined = refine(strings, summed(ROWS * 3), said)
    assert (refined.density, refined.forward_rows, refined.steps) == (0.7, 3, 0)
    assert refine(language("t LIKE '%ab%'").strings, summed(ROWS * 3), never).density == 0.5
    monkeypatch.setattr(module, "MOST_STATES", 2)
    assert union(language("t LIKE '%bcab%'").strings) is None
    assert required(language("t LIKE '%bcab%'").strings) == []


def test_counts_are_for_methods_that_use_them() -> None:
    runtime, summary = TextRuntime(SPEC, arrays(SPEC)), summed(ROWS * 3)
    region = COMPILER.compile("t LIKE '%ab%'").region

    def by(method: str, summary: Substrings | None) -> Answer:
        ((answer,),) = (
            density.answers for density in densities(Runtimes((), (runtime,), (summary,)), [region], method, 20, 0)
        )
        return answer

    assert by("particles", summary).counted
    for method, text in for_text().items():
        if not METHODS[method].uses_counts and not text.enumerates:  # which would take too long
            assert by(method, summary) == by(method, None)
    both = COMPILER.compile("t LIKE '%ab%ca%'").region
    assert counts_estimate(Runtimes((), (runtime,), (summary,)), both)
    assert not counts_estimate(Runtimes((), (runtime,), (None,)), both)
    assert not counts_estimate(Runtimes((), (runtime,), (summary,)), COMPILER.compile(EVEN).region)


def test_no_rows() -> None:
    runtime, pattern = TextRuntime(SPEC, arrays(SPEC)), language("t LIKE '%ab%'")
    assert text_density(runtime, pattern, PARTICLES, 20, 0, summed([])) == text_density(
        runtime, pattern, PARTICLES, 20, 0
    )
