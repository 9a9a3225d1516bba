"""Predicates on text columns mean what DuckDB says they mean: the strings of their automata, one by one."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import cache
from itertools import product
from random import Random

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.data.columns.schema import Column, Schema
from countless.data.columns.strings.text import TextColumn
from countless.data.evidence import EvidenceRows
from countless.errors import QueryError, QueryTooLargeError, QueryTypeError, UnsupportedQueryError
from countless.estimator.answers.evidence import Evidence
from countless.query.compile import Compiler
from countless.query.filter_cache import CachedCompiler
from countless.query.predicate import col
from countless.query.text.duckdb_strings import members_of_class
from countless.query.text.regex_syntax import is_plain
from countless.query.text.string_sets import _of_one_piece, _of_pieces
from countless.region import Region

CHARACTERS, RARE = "\n .%A_abz", (("É", 2), ("é", 4), ("中", 1))
ALPHABET = CHARACTERS + "".join(character for character, _ in RARE)
STRINGS = [
    *("".join(word) for length in range(3) for word in product(ALPHABET, repeat=length)),
    *("".join(word) for word in product("aAb_", repeat=4)),
    *("ab.za", "abab%", "a\nb a", "bab é", "éÉa中b", "aaaaa", "zzzzz", "ab ab ab", "AbÉ.%_", "a" * 12),
]
SCHEMA = Schema(
    10_000,
    (
        Column("n", "INTEGER", ("1", "2", "3"), True),
        Column("s", "VARCHAR", ("", "a", "b"), False),
        TextColumn("t", "VARCHAR", CHARACTERS, 20, True, len(STRINGS), RARE, (5,) * len(CHARACTERS)),
        TextColumn("u", "VARCHAR", "ab", 20, False, 9, (), (1, 1)),
    ),
)


LISTED = tuple(sorted(STRINGS))


def listed_rows() -> EvidenceRows:
    """All strings, and NULL, as evidence rows."""
    columns = (*SCHEMA.coded, Column("t", "VARCHAR", LISTED, True), Column("u", "VARCHAR", ("a",), False))
    rows = len(LISTED) + 1
    codes = [np.zeros(rows, dtype=np.uint32) for _ in columns]
    codes[len(SCHEMA.coded)] = np.arange(rows, dtype=np.uint32)
    return EvidenceRows(replace(SCHEMA, rows=rows, columns=columns), tuple(codes))


@cache
def world() -> tuple[duckdb.DuckDBPyConnection, Compiler]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE strings AS SELECT unnest($1) AS t", [[*STRINGS, None]])
    return connection, Compiler(SCHEMA)


@cache
def listed_world() -> tuple[Compiler, Evidence]:
    rows = listed_rows()
    return Compiler(SCHEMA, rows), Evidence(SCHEMA, rows)


def agrees(where: str, modelled: bool = True) -> None:
    """The strings of the automata, if it is ``modelled``, and those of the evidence rows are the ones DuckDB finds."""
    connection, (compiler, evidence) = world()[0], listed_world()
    truth = {row[0] for row in connection.execute(f"SELECT t FROM strings WHERE {where}").fetchall()}
    question = compiler.compile(where)
    assert (question.among is None) == modelled, where
    marked = {(*LISTED, None)[place] for place in np.flatnonzero(evidence.matches(question))}
    assert marked == truth, where
    if modelled:
        matching = [text for text in [*STRINGS, None] for _ in range(times(question.region, {"t": text}))]
        assert len(matching) == len(set(matching))  # in no two boxes
        assert set(matching) == truth, where


def times(region: Region, row: dict[str, str | None]) -> int:
    """In how many boxes ``row`` is."""
    return sum(
        all(holds(box.texts, index, row[text.name]) for index, text in enumerate(SCHEMA.texts) if text.name in row)
        and all(
            item.constraint.transitions[0].weights[item.constraint.start, code(item.positions[0], row)] == 1
            for item in box.filters
        )
        for box in region.boxes
    )


def code(position: int, row: dict[str, str | None]) -> int:
    column = SCHEMA.coded[position]
    value = row[column.name]
    return column.null if value is None else column.values.index(value)


def holds(filters: tuple[object, ...], place: int, text: str | None) -> bool:
    languages = [item.language for item in filters if item.column == place]  # type: ignore[attr-defined]
    return all(item.null if text is None else item.strings.accepts_string(text) for item in languages)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


TEXTS = st.text(alphabet=ALPHABET + "xy'", max_size=4)
PATTERNS = st.text(alphabet="ab%_éA", max_size=6)
SUBJECTS = st.sampled_from(["t", "t", "lower(t)", "upper(t)", "lower(upper(t))", "(t)"])
OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
NEGATED = st.sampled_from(["", "NOT "])
FUNCTIONS = st.sampled_from(["starts_with", "prefix", "ends_with", "suffix", "contains"])
ATOMS = st.sampled_from(
    [
        *["a", "b", "é", "中", ".", "_", " ", "z", "[ab]", "[^a]", "[^a-y]", "[_é-中]", "[[:alpha:]]", "[[:^upper:]_]"],
        *[
            r"\w",
            r"\W",
            r"\d",
            r"\D",
            r"\s",
            r"\S",
            r"\.",
            r"[\w.]",
            r"[^\W]",
            r"\x61",
            r"\x{e9}",
            r"\141",
            r"\n",
            r"\pL",
        ],
        *["^", "$", r"\A", r"\z", r"\ba", r"b\b", r"\B_", r"\Bb\B", r"\Qa.\E", "A", "()", "(?i:É)", "(?s:.)"],
    ]
)
REGEXES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,2}", "{2,}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        inner.map(lambda part: f"({part})"),
        inner.map(lambda part: f"(?P<name{abs(hash(part))}>{part})"),
        inner.map(lambda part: f"(?i:{part})"),
        inner.map(lambda part: f"(?i){part}(?-i)"),
    ),
    max_leaves=5,
)
MANY = settings(deadline=None, max_examples=150)
SOME = settings(deadline=None, max_examples=50)


@given(SUBJECTS, OPERATORS, TEXTS, st.booleans())
@MANY
def test_comparisons(subject: str, operator: str, text: str, flipped: bool) -> None:
    sides = [subject, quoted(text)]
    agrees(f" {operator} ".join(reversed(sides) if flipped else sides))


@given(SUBJECTS, NEGATED, st.lists(TEXTS.map(quoted) | st.just("NULL"), min_size=1, max_size=4))
@MANY
def test_lists_and_ranges(subject: str, negated: str, texts: list[str]) -> None:
    agrees(f"{subject} {negated}IN ({', '.join(texts)})")
    agrees(f"{subject} {negated}BETWEEN {texts[0]} AND {texts[-1]}")


@given(SUBJECTS, NEGATED, st.sampled_from(["LIKE", "ILIKE"]), PATTERNS)
@MANY
def test_like(subject: str, negated: str, operator: str, pattern: str) -> None:
    agrees(f"{subject} {negated}{operator} {quoted(pattern)}")


@given(NEGATED, st.sampled_from(["LIKE", "ILIKE"]), st.text(alphabet="ab%_$", max_size=6))
@MANY
def test_like_with_an_escape(negated: str, operator: str, pattern: str) -> None:
    pattern = pattern if (len(pattern) - len(pattern.rstrip("$"))) % 2 == 0 else pattern + "%"
    agrees(f"t {negated}{operator} {quoted(pattern)} ESCAPE '$'")


@given(FUNCTIONS, SUBJECTS, TEXTS)
@MANY
def test_parts(function: str, subject: str, text: str) -> None:
    agrees(f"{function}({subject}, {quoted(text)})")


PLACES = st.integers(1, 4)
PARTS = st.one_of(
    st.tuples(st.sampled_from(["left", "right"]), SUBJECTS, PLACES).map(lambda part: "{}({}, {})".format(*part)),
    st.tuples(SUBJECTS, PLACES, PLACES).map(lambda part: "substring({}, {}, {})".format(*part)),
    st.tuples(SUBJECTS, PLACES, st.integers(0, 3)).map(lambda part: f"{part[0]}[{part[1]}:{part[1] + part[2]}]"),
    st.tuples(SUBJECTS, PLACES).map(lambda part: "{}[:{}]".format(*part)),
    st.tuples(SUBJECTS, PLACES).map(lambda part: "substr({}, {})".format(*part)),
    PLACES.map("t[{}]".format),
    st.tuples(SUBJECTS, st.sampled_from(" a."), PLACES).map(lambda part: "split_part({}, '{}', {})".format(*part)),
)
SOME_TEXT = st.text(alphabet="aAb_%.é ", min_size=1, max_size=4)


@given(PARTS, st.sampled_from(["{0} = {1}", "{1} <> {0}", "{0} IN ({1}, 'ab')", "{0} NOT IN ({1}, 'b')"]), SOME_TEXT)
@SOME
def test_parts_that_are_patterns(part: str, form: str, text: str) -> None:
    agrees(form.format(part, quoted(text)))


POSITIONS = st.sampled_from(["strpos({}, {})", "instr({}, {})", "position({1} IN {0})"])


@given(POSITIONS, SUBJECTS, SOME_TEXT, st.sampled_from(["> 0", ">= 1", "<> 0", "= 0", "< 1", "<= 0", "= 1"]), NEGATED)
@SOME
def test_positions_that_are_patterns(function: str, subject: str, text: str, compared: str, negated: str) -> None:
    agrees(f"{negated}{function.format(subject, quoted(text))} {compared}")


@given(st.sampled_from(["t GLOB {}", "t NOT GLOB {}", "t ^@ {}"]), st.text(alphabet="abé*%_A", max_size=5))
@SOME
def test_globs_that_are_patterns(form: str, pattern: str) -> None:
    agrees(form.format(quoted(pattern)))


@pytest.mark.parametrize(
    "where",
    [
        "t GLOB 'a?'",
        "t GLOB '[ab]*'",
        "t[-2:] = 'ab'",
        "left(t, -1) = 'a'",
        "left(t, 2) LIKE '%b'",
        "substring(t, 0, 2) = 'a'",
        "substring(t, 2, 3) = ''",
        "split_part(t, ' ', 2) = ''",
        "split_part(t, 'ab', -1) = 'a'",
        "strpos(t, 'b') > 2",
        "strpos(t, '') > 0",
        "reverse(t) LIKE 'ba%'",
        "replace(t, 'a', '') = 'b'",
        "regexp_extract(t, '(a+)b', 1) = 'aa'",
        "regexp_replace(t, 'a', 'z') = 'zb'",
        "length(t) % 2 = 1",
        "length(t) + 1 > 4",
        "t || 'x' LIKE '%bx'",
        "trim(t) = 'a'",
        "strlen(t) > 3",
        "strpos(t, 'b') > 2 OR t LIKE 'z%'",
        "NOT reverse(t) = 'ab'",
    ],
)
def test_what_automata_cannot_say_is_asked_of_evidence_rows(where: str) -> None:
    agrees(where, modelled=False)
    with pytest.raises(UnsupportedQueryError, match="modelled character by character"):
        world()[1].compile(where)


@given(REGEXES, st.sampled_from(["", "i", "s", "is", "ic", "l"]))
@settings(deadline=None, max_examples=400)
def test_regular_expressions(regex: str, flags: str) -> None:
    for function in ("regexp_matches", "regexp_full_match"):
        where = f"{function}(t, {quoted(regex)}, '{flags}')"
        try:
            world()[1].compile(where)
        except UnsupportedQueryError as error:
            modelled = False
            if "some ignore case" not in str(error):  # the one thing that these expressions have and RE2 gets wrong
                raise
        else:
            modelled = True
        agrees(where, modelled)


@pytest.mark.parametrize("regex", ["a|(?i:a)", "ab|a(?i:b)", "[ab]|x(?i:b)", "((?i)b)|b"])
def test_alternatives_that_ignore_case_in_part_are_refused(regex: str) -> None:
    with pytest.raises(UnsupportedQueryError, match="joined by OR"):
        world()[1].compile(f"regexp_matches(t, {quoted(regex)})")
    agrees(f"regexp_matches(t, {quoted(regex)}, 'i')")
    agrees("regexp_matches(t, '(?i:a)b|1') OR regexp_matches(t, '(?i:b|a)')")


@given(OPERATORS, st.integers(-2, 14), st.integers(0, 6), NEGATED)
@MANY
def test_lengths(operator: str, one: int, two: int, negated: str) -> None:
    agrees(f"length(t) {operator} {one}")
    agrees(f"{one}.5 {operator} len(lower(t))")
    agrees(f"length(t) {negated}BETWEEN {two} AND {one}")
    agrees(f"length(t) {negated}IN ({one}, {two}, NULL)")


@pytest.mark.parametrize(
    "where",
    [
        "t IS NULL",
        "t IS NOT NULL",
        "lower(t) IS NULL",
        "t = ''",
        "t = NULL",
        "t <> NULL",
        "NOT (t = NULL)",
        "t IS NOT DISTINCT FROM 'a'",
        "t IS DISTINCT FROM 'a'",
        "t IS DISTINCT FROM NULL",
        "NULL IS NOT DISTINCT FROM t",
        "t IS DISTINCT FROM NULL::VARCHAR",
        "CASE 1 WHEN 2 THEN 'a' END IS NOT DISTINCT FROM t",
        "length(t) IS DISTINCT FROM NULL::INTEGER",
        "t LIKE NULL",
        "t NOT LIKE NULL",
        "regexp_matches(t, NULL)",
        "contains(t, NULL)",
        "t ~~ 'a%'",
        "t !~~ 'a%'",
        "t ~~* 'A%'",
        "t ^@ 'ab'",
        "t SIMILAR TO 'a|b.*'",
        "t NOT SIMILAR TO 'a+'",
        "t LIKE 'a' || '%'",
        "t = concat('a', 'b')",
        "'a' IN (t)",
        "t LIKE 'a%' OR t LIKE '%b' AND NOT t LIKE '%z%'",
        "(t LIKE 'a%') IS NOT TRUE",
        "t LIKE '%a%' AND t LIKE '%b%' AND length(t) > 2",
        "regexp_matches(t, '[0-9]{4}-[0-9]{2}-[0-9]{2}|a{12}')",
        r"regexp_matches(t, '\B')",
        r"NOT regexp_matches(lower(t), '\b($?^\w|K)')",
        r"regexp_full_match(t, '\b(?i:\A([[:alpha:]]|\\))')",
        r"regexp_matches(t, '($)(^)')",
        r"regexp_matches(t, '(\b|^)(\B|$)a?(\b)$')",
        r"regexp_matches(t, '(?:\b\w\B|^_)+')",
        "regexp_matches(t, '(?m)^a$')",
        "regexp_matches(t, '(?m:a$)(?-m)\n^')",
        "regexp_matches(t, '(?m)^(b|$)\n?\\z')",
        "regexp_matches(t, 'a(?i)b|É')",
        "regexp_matches(t, '\\Qa.\\E+')",
        "regexp_matches(t, '[]a-]|[^]^]{3}')",
        "regexp_matches(t, 'a{,2}')",
        "regexp_full_match(t, 'a(?i){2}b')",
        r"regexp_matches(t, '^\B$')",
        r"regexp_matches(t, '$\b|\B^a')",
        "regexp_matches(t, '$^')",
        "regexp_matches(t, '^^(^a|b)(^|$)')",
        "regexp_matches(t, 'a$|^b|^$')",
        "regexp_matches(t, '(?:^a|b)+')",
        "regexp_matches(t, '^*a$?')",
        "regexp_matches(t, 'zz|A')",
        "t BETWEEN 'b' AND NULL",
        "t NOT BETWEEN 'b' AND NULL",
    ],
)
def test_other_ways_to_ask(where: str) -> None:
    agrees(where)


CASES = [
    ("regexp_matches(t, '(a)\\1')", UnsupportedQueryError, "back-references are not supported"),
    ("regexp_matches(t, 'a(?=b)')", UnsupportedQueryError, "look-ahead and look-behind are not regular"),
    ("regexp_matches(t, '(?<!b)a')", UnsupportedQueryError, "look-ahead and look-behind are not regular"),
    ("regexp_matches(t, '\\C')", UnsupportedQueryError, "write . instead"),
    ("regexp_matches(t, '[a')", QueryTypeError, "the pattern cannot be read: missing ]: [a"),
    ("regexp_matches(t, 'a**')", QueryTypeError, "the pattern cannot be read: bad repetition operator: **"),
    ("regexp_matches(t, 'a', 'q')", QueryTypeError, "Unrecognized Regex option q"),
    ("t LIKE 'a$' ESCAPE '$'", QueryTypeError, "the pattern ends with its ESCAPE character"),
    ("t LIKE 'a' ESCAPE 'xy'", QueryTypeError, "an ESCAPE is one character"),
    ("regexp_matches(t, 'a[^b]{40}c')", QueryTooLargeError, "the pattern needs too many states"),
    ("t LIKE '%a" + "_" * 20 + "b%'", QueryTooLargeError, "more than 10,000 states together: simplify them"),
    ("t LIKE '" + "a" * 20_000 + "'", QueryTooLargeError, "more than 10,000 characters: simplify it"),
    ("t IN ('" + "a" * 20_000 + "', 'b')", QueryTooLargeError, "more than 10,000 characters: use LIKE with its start"),
    ("length(t) < 1000000", QueryTooLargeError, "ask for a smaller one"),
    ("length(t) > 'x'", QueryTypeError, "a length compares with numbers"),
    ("t = 5", QueryTypeError, "5 is INTEGER, and no text: write it in single quotes, '5'"),
    ("t = DATE '2020-01-31'", QueryTypeError, "is DATE, and no text: write it in single quotes, '2020-01-31'"),
    ("t || 'a' = 'aa'", UnsupportedQueryError, "use = <> < <= > >=, BETWEEN, IN, LIKE"),
    ("strlen(t) > 2", UnsupportedQueryError, "modelled character by character, use"),
    ("t LIKE ANY ('a', 'b')", UnsupportedQueryError, "modelled character by character, use"),
    ("t = lower(t)", UnsupportedQueryError, "modelled character by character, use"),
    ("frobnicate(t) = 1", UnsupportedQueryError, "frobnicate() is not among the functions"),
    ("t = s", UnsupportedQueryError, 'one comparison is about the columns "s" and "t"'),
    ("tt = 'a'", QueryError, 'did you mean "t"?'),
]


@pytest.mark.parametrize(("where", "kind", "phrase"), CASES, ids=[case[0][:40] for case in CASES])
def test_clear_errors(where: str, kind: type[QueryError], phrase: str) -> None:
    with pytest.raises(kind) as caught:
        world()[1].compile(f"n = 1 AND {where}")
    assert phrase in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span[0] >= len("n = 1 AND ")


CLAUSES = st.recursive(
    st.sampled_from(
        [
            "n = 1",
            "n <> 2",
            "n IS NULL",
            "s = 'a'",
            "s > ''",
            "t LIKE 'a%'",
            "t LIKE '%b%'",
            "t IS NULL",
            "t < 'ab'",
            "u = 'a'",
            "u NOT LIKE '%b'",
            "length(u) = 2",
            "TRUE",
            "t = NULL",
        ]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} AND {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} OR {pair[1]})"),
        inner.map(lambda part: f"NOT ({part})"),
        inner.map(lambda part: f"({part}) IS NOT TRUE"),
    ),
    max_leaves=6,
)


@cache
def rows() -> tuple[duckdb.DuckDBPyConnection, list[dict[str, str | None]]]:
    domain: dict[str, list[str | None]] = {
        "n": ["1", "2", None],
        "s": ["", "a", "b"],
        "t": ["", "a", "b", "ab", "é", None],
        "u": ["", "a", "ab"],
    }
    table = [dict(zip(domain, values, strict=True)) for values in product(*domain.values())]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows (place INTEGER, n INTEGER, s VARCHAR, t VARCHAR, u VARCHAR)")
    connection.executemany(
        "INSERT INTO rows VALUES (?, ?, ?, ?, ?)", [[index, *row.values()] for index, row in enumerate(table)]
    )
    return connection, table


@given(st.lists(CLAUSES, min_size=1, max_size=3))
@settings(deadline=None, max_examples=200)
def test_clauses_of_texts_and_others(parts: list[str]) -> None:
    connection, table = rows()
    compiler = world()[1]
    where = " AND ".join(parts)
    truth = {row[0] for row in connection.execute(f"SELECT place FROM rows WHERE {where}").fetchall()}
    for question in (compiler.compile(where), CachedCompiler.of(compiler).compile(where)):
        matches = [times(question.region, row) for row in table]
        assert max(matches) <= 1  # the boxes are disjoint
        assert set(np.flatnonzero(matches).tolist()) == truth


def test_a_text_comparison_explained() -> None:
    comparisons = world()[1].compile("t LIKE '%ab%' AND t IN ('q', 'a')").comparisons
    assert [(item.column, item.values, item.how, item.states, item.unseen) for item in comparisons] == [
        ("t", None, "automaton", 3, ()),
        ("t", None, "automaton", 3, ("'q'",)),
    ]


def test_two_pieces_about_one_text_column_are_compiled_together() -> None:
    (box,) = CachedCompiler.of(world()[1]).compile("t LIKE 'a%' AND n = 1 AND t LIKE '%b'").region.boxes
    assert [item.column for item in box.texts] == [0]
    assert box.texts[0].language.strings.accepts_string("ab")
    assert not box.texts[0].language.strings.accepts_string("a")


@pytest.mark.parametrize(
    ("predicate", "sql"),
    [
        (col("t").contains("50%"), "contains(t, '50%')"),
        (col("t").starts_with("a"), "starts_with(t, 'a')"),
        (col("t").ends_with("_"), "ends_with(t, '_')"),
        (col("t").matches("^a|b$"), "regexp_matches(t, '^a|b$')"),
        (~col("t").contains("a") & col("t").is_not_null(), "NOT contains(t, 'a')"),
    ],
)
def test_predicates_made_in_python(predicate: object, sql: str) -> None:
    regions = [world()[1].compile(where).region for where in (predicate, sql)]  # type: ignore[arg-type]
    assert [times(regions[0], {"t": text}) for text in STRINGS] == [times(regions[1], {"t": text}) for text in STRINGS]


def test_a_pattern_is_no_number() -> None:
    with pytest.raises(QueryTypeError, match="is a str, not a int"):
        col("t").contains(5)  # type: ignore[arg-type]


def test_a_list_of_very_many_texts_is_refused_soon_and_its_parts_are_answered() -> None:
    count = 20_000
    texts = [f"'{index:b}'".replace("0", "a").replace("1", "b") for index in range(count)]
    started = time.process_time()
    with pytest.raises(QueryTooLargeError, match="the list has 20,000 texts, too many for one question") as caught:
        world()[1].compile(f"t IN ({', '.join(texts)})")
    assert time.process_time() - started < 60
    assert len(str(caught.value)) < 1500
    match = re.search(r"ask for ([\d,]+) at a time", caught.value.message)
    assert match is not None
    part = int(match[1].replace(",", ""))
    assert part > 1_000
    for start in (0, (count - 1) // part * part):  # the first part and the last
        (box,) = world()[1].compile(f"t IN ({', '.join(texts[start : start + part])})").region.boxes
        strings = box.texts[0].language.strings
        assert all(strings.accepts_string(text.strip("'")) for text in texts[start : start + part])


def test_an_exploding_pattern_is_given_up_soon() -> None:
    started = time.monotonic()
    with pytest.raises(QueryTooLargeError):
        world()[1].compile("regexp_matches(t, '(a|b)*a(a|b){200}')")
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("pattern", ["%abA%", "%a%b%", "%ab", "%aa%", "%a_b%", "%a__b"])
def test_a_match_has_one_last_offset(pattern: str) -> None:
    (box,) = world()[1].compile(f"t LIKE '{pattern}'").region.boxes
    ideal = box.texts[0].language.strings
    assert ideal.is_left_ideal
    last = ideal.last()
    for text in ("".join(word) for length in range(7) for word in product("abA", repeat=length)):
        offsets = sum(last.accepts_string(text[start:]) for start in range(len(text) + 1))
        assert offsets == ideal.accepts_string(text)


@pytest.mark.parametrize("pattern", ["ab%", "_ab%", "a%b"])
def test_what_is_bound_to_the_begin_is_no_ideal(pattern: str) -> None:
    (box,) = world()[1].compile(f"t LIKE '{pattern}'").region.boxes
    assert not box.texts[0].language.strings.is_left_ideal


REGEX_PIECES = (
    "a",
    "Z",
    "0",
    "-",
    "_",
    " ",
    "/",
    "\\",
    "\\.",
    "\\-",
    "\\_",
    "[a-z]",
    "[^0-9]",
    "[",
    "]",
    "(",
    ")",
    "|",
    "^",
    "$",
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*REGEX_PIECES, "*", "+", "?", ".", "{", "2}", "(?i)", "é", "'"]), max_size=8).map("".join)
)
def test_re2_takes_plain_expressions(pattern: str) -> None:
    if is_plain(pattern):
        assert len(duckdb.execute("SELECT regexp_matches('a', $1)", [pattern]).fetchall()) == 1


@pytest.mark.parametrize("atom", ["[a-z]", "[^a-z]", "[^0-9]", "[A-Z0-9_/]", "[^a-zA-Z0-9]", "[abc]", "[^_/]"])
def test_plain_classes_have_the_members_that_duckdb_says(atom: str) -> None:
    characters = [*map(chr, range(1, 600)), "中", "\u2028", "😀"]
    matches = "SELECT list(regexp_full_match(each, $1)) FROM (SELECT unnest($2) AS each)"
    ((expected,),) = duckdb.execute(matches, [atom, characters]).fetchall()
    assert members_of_class(atom, characters) == expected


@settings(max_examples=200, deadline=None)
@given(st.text("abc", min_size=1, max_size=9), st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_the_automaton_of_one_piece_is_that_of_any_pattern(
    piece: str, random: Random, begins: bool, ends: bool
) -> None:
    kinds: list[str | None] = [*sorted(set(piece)), None]
    random.shuffle(kinds)
    pieces = (*([] if begins else [()]), tuple(piece), *([] if ends else [()]))
    following, accepts = _of_pieces(pieces, kinds, is_simple=True)
    fast = _of_one_piece([kinds.index(character) for character in piece], len(kinds), begins, ends)
    assert (fast[0].tolist(), fast[1].tolist()) == (following.tolist(), accepts.tolist())
