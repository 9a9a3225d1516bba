"""Text columns: recognised or asked for, written in an alphabet, cut where they are long; and their file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.data.columns.schema import Schema
from countless.data.columns.strings import alphabet
from countless.data.columns.strings.alphabet import LONGEST, MOST_CHARACTERS
from countless.data.columns.strings.text import AFTER_CHARACTERS, MOST_RARE, OTHER_RARE, TextColumn, encode
from countless.data.encoding.table import Table
from countless.data.encoding.text_growth import grown_text
from countless.data.sources.source import Source, connect
from countless.errors import DataError, ModelFileError, OptionError, SourceError
from countless.options import EncodeOptions

LONG, SHORT, FEW = "'user-' || md5(range::VARCHAR)", "'u' || range", "'a long name, number ' || range % 9"


def read(sql: str, **options: Any) -> Table:
    return Table.encode(connect().sql(sql), EncodeOptions(**options))


def stored_as(sql: str, **options: Any) -> dict[str, str]:
    """Each column, and whether it is stored as text, a grid or codes."""
    schema = read(sql, **options).schema
    kinds = {column.name: "codes" if column.grid is None else "grid" for column in schema.coded}
    return kinds | {column.name: "text" for column in schema.texts}


def texts(*rows: str | None, **options: Any) -> tuple[TextColumn, list[list[int]]]:
    """The text column ``t`` with these rows, and their symbols."""
    table = Table.encode(pd.DataFrame({"t": pd.Series(rows, dtype=object)}), EncodeOptions(text=("t",), **options))
    return table.schema.texts[0], table.strings[0].symbols.tolist()


class TestRecognition:
    def test_long_strings_that_are_mostly_unique_are_text(self) -> None:
        kinds = stored_as(f"SELECT {LONG} AS a, {SHORT} AS b, {FEW} AS c, range AS n FROM range(1500)")
        assert kinds == {"a": "text", "b": "grid", "c": "codes", "n": "grid"}

    def test_the_limit_of_values_decides_too(self) -> None:
        sql = "SELECT 'a name that is long ' || range % 300 AS a FROM range(5000)"
        assert stored_as(sql) == {"a": "codes"}
        assert stored_as(sql, max_distinct=200) == {"a": "text"}

    def test_the_mean_length_decides(self) -> None:
        sql = "SELECT lpad(range::VARCHAR, {}, 'x') AS a FROM range(1500)"
        assert stored_as(sql.format(11)) == {"a": "grid"}
        assert stored_as(sql.format(12)) == {"a": "text"}

    def test_a_small_table_keeps_its_values(self) -> None:
        assert stored_as(f"SELECT {LONG} AS a FROM range(900)") == {"a": "codes"}

    def test_the_options_override_it(self) -> None:
        sql = f"SELECT {LONG} AS a, {SHORT} AS b, {FEW} AS c FROM range(1500)"
        assert stored_as(sql, text=("b", "C"), no_text=("A",)) == {"a": "grid", "b": "text", "c": "text"}
        assert stored_as(sql, no_text=("a", "c"), max_distinct=2000) == {"a": "grid", "b": "grid", "c": "codes"}

    @pytest.mark.parametrize("other", ["a", "A"])
    def test_a_column_cannot_be_both(self, other: str) -> None:
        with pytest.raises(OptionError, match='"a" is named by text and by no_text: name it in one of them only'):
            read("SELECT 'x' AS a", text=("a", "b"), no_text=(other, "c"))

    def test_a_number_is_no_text(self) -> None:
        with pytest.raises(OptionError, match='text names "n", which is INTEGER: only strings can be modelled'):
            read("SELECT 1 AS n", text=("n",))
        assert stored_as("SELECT 1 AS n", no_text=("n",)) == {"n": "codes"}

    @pytest.mark.parametrize("option", ["text", "no_text"])
    def test_an_unknown_column(self, option: str) -> None:
        phrase = f'{option} names an unknown column "colour": did you mean "color"'
        with pytest.raises(OptionError, match=phrase):
            read("SELECT 'red' AS color", **{option: ("colour",)})

    def test_enumerations_and_uuids_are_strings(self) -> None:
        sql = "SELECT md5(range::VARCHAR)::UUID AS u, ['x', 'y'][1 + range % 2]::ENUM('x', 'y') AS e FROM range(1500)"
        assert stored_as(sql, text=("e",)) == {"u": "text", "e": "text"}

    def test_a_column_without_a_string(self) -> None:
        sql = "SELECT NULL::VARCHAR AS t, range AS n FROM range(5)"
        with pytest.raises(DataError, match='"t" holds only NULLs: leave it out with --exclude'):
            read(sql, text=("t",))
        assert stored_as(sql) == {"n": "codes", "t": "codes"}

    def test_texts_come_last_and_are_found_by_name(self) -> None:
        schema = read(f"SELECT {LONG} AS Page, range % 3 AS n FROM range(1500)").schema
        assert schema.names == ("n", "Page")
        assert (schema.find("page"), schema.find("n"), schema.find("m")) == (1, 0, None)
        assert [column.is_text for column in schema.columns] == [False, True]
        assert (schema.columns, schema.positions(0)) == ((*schema.coded, *schema.texts), (0,))
        assert (schema.text_index(1), schema.index_of_text(0)) == (0, 1)
        with pytest.raises(ValueError, match="text columns must come last"):
            replace(schema, columns=schema.columns[::-1])


class TestAlphabet:
    def test_characters_by_code_point_with_their_counts(self) -> None:
        column, symbols = texts("ba", "ab", "c", "bé😀é", "😀")
        assert column.characters == "abé😀"
        assert column.frequencies == (2, 3, 2, 2)
        assert column.rare == (("c", 1),)
        assert symbols == [[1, 0, 5, 5, 5], [0, 1, 5, 5, 5], [4, 5, 5, 5, 5], [1, 2, 3, 2, 5], [3, 5, 5, 5, 5]]

    def test_more_rows_make_a_character_rare_sooner(self) -> None:
        for rows, characters in ((2_000, "abx"), (5_000, "ab")):
            table = read(f"SELECT CASE WHEN range < 4 THEN 'x' ELSE 'ab' END AS t FROM range({rows})", text=("t",))
            assert table.schema.texts[0].characters == characters

    def test_no_more_characters_than_a_model_can_know(self) -> None:
        every = [chr(0x4E00 + index) for index in range(MOST_CHARACTERS + 100)]
        column, symbols = texts(*every, *every, *every[150:])
        assert column.characters == "".join([*every[:50], *every[150:]])  # the most frequent first, then in order
        assert column.rare == tuple((character, 2) for character in every[50:150])
        assert symbols[50][0] == MOST_CHARACTERS
        assert symbols[-1] == [MOST_CHARACTERS - 1, MOST_CHARACTERS + 1]

    def test_rare_characters_share_what_is_unknown(self) -> None:
        letters = TextColumn("t", "VARCHAR", "ab", 9, False, 9, (("x", 1), ("y", 3)), (50, 40)).letters
        assert letters.characters == "abyx"
        assert letters.symbols.tolist() == [0, 1, 2, 2]
        assert letters.shares.tolist() == [1.0, 1.0, 0.75, 0.25]
        assert letters.frequencies.tolist() == [50, 40, 3, 1]
        assert letters.stop == 0.0

    def test_the_rarest_have_no_name(self) -> None:
        rare = tuple((chr(0x4E00 + index), 1 + (index < MOST_RARE)) for index in range(MOST_RARE + 7))
        letters = TextColumn("t", "VARCHAR", "ab", 9, False, 9, rare, (50, 40)).letters
        assert len(letters.characters) == 2 + MOST_RARE + 1
        assert letters.characters[-1] == OTHER_RARE
        assert letters.frequencies[-1] == 7
        assert letters.shares[2:].sum() == pytest.approx(1.0)
        assert letters.shares[-1] == pytest.approx(7 / (2 * MOST_RARE + 7))

    def test_beyond_the_cut_strings_end_by_their_mean(self) -> None:
        column = TextColumn("t", "VARCHAR", "ab", 9, False, 9, (), (50, 40), cut=4, beyond=2.5)
        assert column.letters.stop == 0.4
        assert replace(column, beyond=0.5).letters.stop == 1.0


class TestLength:
    def test_by_default_where_nearly_all_have_ended(self) -> None:
        rows = ["ab" * 5] * 995 + ["ab" * 20] * 5
        column, symbols = texts(*rows)
        assert (column.length, column.cut, column.beyond) == (10, 5, 30.0)
        assert symbols[0] == [0, 1] * 5 + [3]
        assert symbols[-1] == [0, 1] * 5 + [4]  # CUT, never END

    def test_by_default_no_more_than_the_longest(self) -> None:
        column, symbols = texts("a" * 300, "a" * 400, "ba")
        assert (column.length, column.cut, column.beyond) == (LONGEST, 2, 94.0)
        assert len(symbols[0]) == LONGEST + 1

    def test_as_long_as_asked_for(self) -> None:
        column, symbols = texts("aab", "aabb", "aa", "b", max_length=2)
        assert (column.length, column.cut, column.beyond) == (2, 2, 1.5)
        assert symbols == [[0, 0, 4], [0, 0, 4], [0, 0, 3], [1, 3, 3]]  # b, which is cut away, is a character too

    def test_no_longer_than_the_longest_string(self) -> None:
        column, _ = texts("aab", "b", max_length=50)
        assert (column.length, column.cut) == (3, 0)

    def test_a_string_of_just_that_length_is_whole(self) -> None:
        column, symbols = texts("aa", "aa", max_length=2)
        assert (column.cut, symbols[0]) == (0, [0, 0, 2])

    @pytest.mark.parametrize("length", [0, -1, 10_001])
    def test_lengths_that_cannot_be(self, length: int) -> None:
        with pytest.raises(OptionError, match="max_length must be at least 1 and at most 10000"):
            EncodeOptions(max_length=length)


class TestDistinct:
    SQL = "SELECT 'Order ' || range % 300 || ' of customer ' || (range // 300) % 100 AS item FROM range(45000)"

    def column(self) -> TextColumn:
        return Table.encode(connect().sql(self.SQL), EncodeOptions(text=("item",))).schema.texts[0]

    def test_few_strings_are_counted(self) -> None:
        assert (self.column().distinct, self.column().estimated) == (30_000, False)

    def test_in_a_table_of_more_rows_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(alphabet, "EXACT_DISTINCT", 40_000)
        assert (self.column().distinct, self.column().estimated) == (30_000, False)

    def test_the_number_of_many_is_a_marked_estimate(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(alphabet, "EXACT_DISTINCT", 5_000)
        column = self.column()
        assert column.estimated
        assert column.distinct == pytest.approx(30_000, rel=0.05)
        assert TextColumn.from_json(column.to_json()) == column

    def test_new_rows_make_it_an_estimate(self) -> None:
        column = self.column()
        rows = Source.open(connect().sql("SELECT 'Order 1 of customer 777' AS item"))
        assert grown_text(column, rows, 45_000).estimated


def test_null_is_not_the_empty_string() -> None:
    column, symbols = texts("", None, "aa")
    assert column.has_null
    assert symbols == [[2, 2, 2], [4, 2, 2], [0, 0, 2]]
    assert not texts("", "aa")[0].has_null


def test_only_empty_strings() -> None:
    column, symbols = texts("", "")
    assert (column.characters, column.length, symbols) == ("", 1, [[1, 1], [1, 1]])


def test_rows_stay_in_order() -> None:
    sql = "SELECT CASE WHEN range % 7 > 0 THEN repeat('a', range % 5) || repeat('b', range % 3) END AS t"
    table = read(f"{sql}, range % 11 AS n FROM range(60000)", text=("t",))
    (column,), (strings,) = table.schema.texts, table.strings
    expected = [None if n % 7 == 0 else "a" * (n % 5) + "b" * (n % 3) for n in range(60000)]
    assert np.array_equal(strings.symbols, encode(column, expected).symbols)
    assert np.array_equal(table.codes[0], np.arange(60000) % 11)


def plain(column: TextColumn, rows: Sequence[str | None]) -> tuple[list[list[int]], list[int]]:
    """The symbols of the rows, one by one, and how many there are until the last that counts."""
    unknown, end, cut, null = range(len(column.characters), len(column.characters) + AFTER_CHARACTERS)
    symbols, lengths = [], []
    for text in rows:
        if text is None:
            row = [null]
        else:
            results = [column.characters.find(character) for character in text[: column.length]]
            row = [unknown if code < 0 else code for code in results]
            row.append(cut if len(text) > column.length else end)
        lengths.append(len(row))
        symbols.append(row + [end] * (column.length + 1 - len(row)))
    return symbols, lengths


@given(
    st.sets(st.sampled_from("abcé日😀\0\n'"), max_size=6),
    st.integers(1, 5),
    st.lists(st.none() | st.text("abcdé日本😀\0\n'", max_size=8), max_size=8),
)
def test_encoding_is_as_defined(characters: set[str], length: int, rows: list[str | None]) -> None:
    column = TextColumn("t", "VARCHAR", "".join(sorted(characters)), length, True, 9)
    table = encode(column, rows)
    symbols, lengths = plain(column, rows)
    assert table.symbols.shape == (len(rows), length + 1)
    assert table.symbols.tolist() == symbols
    assert table.lengths.tolist() == lengths


def test_symbols_are_as_small_as_they_can_be() -> None:
    for count, kind in ((252, np.uint8), (253, np.uint16)):
        column = TextColumn("t", "VARCHAR", "".join(chr(500 + index) for index in range(count)), 2, True, 9)
        symbols = encode(column, [None, chr(500 + count - 1)]).symbols
        assert symbols.dtype == kind
        assert symbols[:, 0].tolist() == [count + 3, count - 1]


GOOD = TextColumn("t", "VARCHAR", "ab", 9, True, 7, (("é", 1), ("😀", 2)), (5, 4), cut=3, beyond=1.5)


def test_round_trip() -> None:
    schema = Schema(10, (GOOD, replace(GOOD, name="u", rare=(), has_null=False)))
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.from_json(schema.to_json()).texts[0].to_json() == GOOD.to_json()


@pytest.mark.parametrize(
    "damage",
    [
        {"name": None, "length": "long"},
        {"characters": "abc"},
        {"characters": "aa"},
        {"characters": "aé"},
        {"frequencies": [5]},
        {"frequencies": [5, 0]},
        {"frequencies": None},
        {"rare": [["é", 0]]},
        {"rare": [["éé", 1]]},
        {"rare": [["", 1]]},
        {"rare": [["é"]]},
        {"rare": 3},
        {"length": 0},
        {"length": float("inf")},
        {"beyond": -1.0},
        {"beyond": float("nan")},
        {"beyond": float("inf")},
        {"cut": None},
        {"type": "VARCHAR) FROM read_text('x'"},
    ],
)
def test_a_damaged_text_column(damage: dict[str, Any]) -> None:
    data = Schema(10, (GOOD,)).to_json()
    with pytest.raises(ModelFileError, match=r"fit"):
        Schema.from_json({**data, "texts": [GOOD.to_json() | damage]})


@pytest.mark.parametrize("missing", ["characters", "rare", "frequencies", "length", "beyond"])
def test_a_text_column_that_lacks_something(missing: str) -> None:
    data = GOOD.to_json()
    del data[missing]
    with pytest.raises(ModelFileError, match="is damaged"):
        Schema.from_json({"rows": 1, "columns": [], "left_out": [], "texts": [data], "uuids": []})


def test_the_fingerprint_knows_the_text() -> None:
    def fingerprint(*rows: str, **options: Any) -> str:
        return Table.encode(pd.DataFrame({"t": rows}), EncodeOptions(text=("t",), **options)).fingerprint

    one = fingerprint("aab", "bba")
    assert one == fingerprint("aab", "bba")
    others = {fingerprint("bba", "aab"), fingerprint("aab", "abb"), fingerprint("aab", "bba", max_length=2)}
    assert len({one, *others}) == 4


class TestLines:
    """A text file is a table of one column, a string per line."""

    def lines(self, path: Path, content: bytes) -> list[str]:
        path.write_bytes(content)
        source = Source.open(path)
        assert source.columns() == [("line", "VARCHAR")]
        return [line for (line,) in source.rows(f"SELECT line FROM {source.table}")]

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("a\nbb\n", ["a", "bb"]),
            ("a\nbb", ["a", "bb"]),
            ("a\r\nbb\r\n", ["a", "bb"]),
            ("a\r\n\r\nb", ["a", "", "b"]),
            ("\na\n\n", ["", "a", ""]),
            ("\n\n", ["", ""]),
            ('"a","b"\n"open\n\'x\'\n', ['"a","b"', '"open', "'x'"]),
            ("a,b;c\td|e\n,\n", ["a,b;c\td|e", ","]),
            (" a \n# b\n\\n\\\n", [" a ", "# b", "\\n\\"]),
            ("NULL\nnull\n\\N\n", ["NULL", "null", "\\N"]),
            ("1\n2\n", ["1", "2"]),
            ("é\n😀日\n", ["é", "😀日"]),
        ],
    )
    def test_lines_are_taken_as_they_are(self, tmp_path: Path, content: str, expected: list[str]) -> None:
        assert self.lines(tmp_path / "a.txt", content.encode()) == expected

    def test_many_lines_in_several_files(self, tmp_path: Path) -> None:
        for part in "ab":
            (tmp_path / f"{part}.TXT").write_text("".join(f"{part} says, it is line {n}\n" for n in range(2000)))
        table = Table.encode(f"{tmp_path}/*.TXT")
        assert table.rows == 4000
        assert [column.name for column in table.schema.texts] == ["line"]
        assert not table.schema.texts[0].has_null

    def test_an_empty_file(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("")
        with pytest.raises(DataError, match="the table has no rows"):
            Table.encode(tmp_path / "a.txt")

    def test_what_is_no_text(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match="DuckDB could not read the table"):
            self.lines(tmp_path / "a.txt", b"\xff\xfe\nb\n")


class TestSamples:
    def test_so_many_different_rows_of_the_table(self) -> None:
        source = Source.open(pd.DataFrame({"n": range(500), "t": [str(n) for n in range(500)]}))
        numbers = [n for n, _ in self.rows(source.sampled(60, seed=1))]
        assert len(set(numbers)) == 60
        assert set(numbers) <= set(range(500))
        assert all(text == str(n) for n, text in self.rows(source.sampled(60, seed=2)))
        assert source.count() == 500

    def test_the_seed_decides(self) -> None:
        source = Source.open(pd.DataFrame({"n": range(500)}))
        one, two, again = (sorted(self.rows(source.sampled(60, seed))) for seed in (1, 2, 1))
        assert one == again != two

    def test_samples_do_not_replace_each_other(self) -> None:
        source = Source.open(pd.DataFrame({"n": range(500)}))
        one = source.sampled(60, seed=1)
        before = self.rows(one)
        assert source.sampled(500, seed=2).count() == 500
        assert self.rows(one) == before

    def test_no_more_than_there_are(self) -> None:
        source = Source.open(pd.DataFrame({"n": range(5)}))
        assert sorted(self.rows(source.sampled(60, seed=1))) == [(n,) for n in range(5)]

    def test_each_row_is_as_likely(self) -> None:
        source = Source.open(pd.DataFrame({"n": range(20)}))
        counts = np.zeros(20)
        for seed in range(200):
            np.add.at(counts, [n for (n,) in self.rows(source.sampled(5, seed))], 1)
        assert counts.sum() == 1000
        assert counts.min() > 25
        assert counts.max() < 80

    def test_of_a_relation(self) -> None:
        connection = connect()
        connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(100)")
        source = Source.open(connection.table("t"))
        sample = source.sampled(10, seed=3)
        assert sample.count() == 10
        assert len(self.rows(sample)) == 10
        assert sample.counts(["n >= 0", "n >= 100"]) == [10, 0]

    def rows(self, source: Source) -> list[tuple[Any, ...]]:
        return source.rows(f"SELECT * FROM {source.table}")
