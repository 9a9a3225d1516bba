"""Random tables with columns of every type, and random clauses about them with every operator and many functions.

A clause is made of leaves, each about one column, as in the questions that are answered.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from countless.arrays import BoolArray, IntArray
from countless.data.encoding.table import Table
from countless.data.sources.source import Source, connect
from countless.options import EncodeOptions
from countless.query.compile import Compiler
from countless.query.question import Question
from countless.region import Box
from tests.exact import column_codes

ROWS = 150
NUMBERS = {
    "i": ("INTEGER", ["-4", "-1", "0", "1", "2", "3", "7", "100"]),
    "tiny": ("TINYINT", ["-128", "-1", "0", "5", "127"]),
    "big": ("BIGINT", ["-9223372036854775808", "0", "1", "9007199254740993", "9223372036854775807"]),
    "u": ("UINTEGER", ["0", "1", "2", "4294967295"]),
    "huge": ("HUGEINT", ["-5", "0", "1", "1000000007"]),
    "m": ("DECIMAL(6,2)", ["-1.50", "0.00", "0.25", "1.00", "2.50", "9999.99"]),
    "x": ("DOUBLE", ["nan", "-inf", "-0.0", "0.0", "0.1", "2.5", "1e300", "inf"]),
    "f": ("FLOAT", ["nan", "-0.0", "0.0", "0.1", "16777216", "2.5"]),
    "g": ("INTEGER", [str(7 * number % 501) for number in range(100)]),  # a grid
}
TEXTS = {
    "s": ("VARCHAR", ["", "a", "A", "b", "ab", "New York", "é", "É", "50%", "a_b", " a ", "7", "K", "10", "a\nb"]),
    "t": ("VARCHAR", ["", "a", "ab", "abc", "b a", "_a", "K", "\u212a", "aé", "É", "a\nb", "ab ab", "%", "x.y", "A"]),
    "e": ("ENUM('z', 'a', 'm')", ["z", "a", "m"]),
}
TIMES = {
    "d": ("DATE", ["2019-12-31", "2020-02-28", "2020-02-29", "2020-03-01", "0044-03-15 (BC)", "infinity"]),
    "w": ("TIMESTAMP", ["2020-02-28 23:59:59", "2020-02-29 00:00:00", "2020-02-29 12:30:00.25", "1969-07-20 20:17:40"]),
    "ms": ("TIMESTAMP_MS", ["2020-02-29 00:00:00", "2020-02-29 12:30:00.25"]),
    "c": ("TIME", ["00:00:00", "12:30:00", "23:59:59.999999"]),
}
BOOLEANS = {"b": ("BOOLEAN", ["true", "false"])}
COLUMNS = NUMBERS | TEXTS | TIMES | BOOLEANS
OPTIONS = EncodeOptions(text=("t",), max_distinct=40)


@dataclass(frozen=True, eq=False)
class World:
    """A table in DuckDB, the same as codes, and the compiler of clauses about it."""

    source: Source
    table: Table
    compiler: Compiler
    strings: tuple[str | None, ...]  # of the column t

    @classmethod
    def random(cls, seed: int) -> World:
        """A table of random values of every column, with NULLs in most."""
        rng = random.Random(seed)
        connection = connect()
        columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
        connection.execute(f"CREATE TABLE data ({columns})")
        nulls = {name: rng.choice([0.0, 0.15, 0.15]) for name in COLUMNS}
        rows = [
            [None if rng.random() < nulls[name] else rng.choice(values) for name, (_, values) in COLUMNS.items()]
            for _ in range(ROWS)
        ]
        connection.executemany(f"INSERT INTO data VALUES ({', '.join('?' * len(COLUMNS))})", rows)
        relation = connection.table("data")
        table = Table.encode(relation, OPTIONS)
        strings = tuple(row[list(COLUMNS).index("t")] for row in rows)
        return cls(Source.open(relation), table, Compiler(table.schema), strings)

    def truth(self, clause: str) -> int | None:
        """How many rows DuckDB finds; None if it objects."""
        try:
            return int(self.source.counts([clause])[0])
        except Exception:
            return None

    def found(self, question: Question) -> int | None:
        """How many rows are in the question's boxes; None if some are so in part, as in the cells of a grid."""
        inside = np.zeros(ROWS)
        for box in question.region.boxes:
            weights = self._in_box(box)
            if weights is None:
                return None
            inside += weights
        assert inside.max(initial=0) <= 1, "the boxes overlap"
        return int(inside.sum())

    @cached_property
    def _codes(self) -> list[IntArray]:
        return column_codes(self.table)

    def _in_box(self, box: Box) -> BoolArray | None:
        inside = np.ones(ROWS, dtype=bool)
        for item in box.filters:
            weights = item.constraint.weights[self._codes[self.table.schema.column_of(item.positions[0])]]
            if not np.isin(weights, (0, 1)).all():
                return None
            inside &= weights > 0
        for text in box.texts:
            strings = text.language.strings
            inside &= np.array(
                [text.language.null if each is None else strings.accepts_string(each) for each in self.strings]
            )
        return inside


class Clauses:
    """Random clauses."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def clause(self, depth: int = 2) -> str:
        """Leaves joined by connectives."""
        shape = self.rng.random() if depth else 1.0
        if shape < 0.15:
            return f"({self.clause(depth - 1)} {self._one('AND', 'OR')} {self.clause(depth - 1)})"
        if shape < 0.25:
            return f"NOT ({self.clause(depth - 1)})"
        if shape < 0.35:
            return f"({self.clause(depth - 1)}) IS {self._one('', 'NOT ')}{self._one('TRUE', 'FALSE', 'NULL')}"
        return self._leaf(self._one(*COLUMNS))

    def _one(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def _leaf(self, column: str) -> str:
        if column in BOOLEANS:
            return self._one(
                column, f"NOT {column}", f"{column} = TRUE", f"{column} IS NOT FALSE", f"{column}::INT = 1"
            )
        if column == "t":
            return self._text(self._one("t", "t", "lower(t)", "upper(t)", "(t)"), plain=True)
        if column in TEXTS:
            return self._text(self._string(column, 2), plain=False)
        expression = self._number(column, 2) if column in NUMBERS else self._time(column)
        return self._compared(expression, lambda: self._constant(column))

    def _constant(self, column: str) -> str:
        kind, values = COLUMNS[column]
        value = self._one(*values, "3", "-2") if column in NUMBERS else self._one(*values)
        if self.rng.random() < 0.05:
            return "NULL"
        if column in NUMBERS and value[-1].isdigit() and "e" not in value and self.rng.random() < 0.6:
            return value
        quoted = _quoted(value)
        return self._one(quoted, f"{quoted}::{kind}", f"CAST({quoted} AS {kind})", f"TRY_CAST({quoted} AS {kind})")

    def _compared(self, left: str, constant: object) -> str:
        assert callable(constant)
        negated = self._one("", "NOT ")
        operator = self._one("=", "<>", "!=", "<", "<=", ">", ">=", "==")
        others = [str(constant()) for _ in range(self.rng.randint(1, 4))]
        return self._one(
            f"{left} {operator} {others[0]}",
            f"{others[0]} {operator} {left}",
            f"{left} {negated}BETWEEN {others[0]} AND {others[-1]}",
            f"{left} BETWEEN SYMMETRIC {others[0]} AND {others[-1]}",
            f"{left} {negated}IN ({', '.join(others)})",
            f"{left} {negated}IN [{', '.join(others)}]",
            f"{left} = ANY([{', '.join(others)}])",
            f"{left} IS {negated}DISTINCT FROM {others[0]}",
            f"{left} IS {negated}NULL",
            f"{left} NOTNULL",
            f"coalesce({left}, {others[0]}) {operator} {others[-1]}",
            f"nullif({left}, {others[0]}) {operator} {others[-1]}",
            f"CASE WHEN {left} {operator} {others[0]} THEN {left} < {others[-1]} ELSE {self._one('TRUE', 'NULL')} END",
            f"if({left} {operator} {others[0]}, NULL, {left} > {others[-1]})",
            f"greatest({left}, {others[0]}) {operator} {others[-1]}",
            f"least({left}, {others[0]}) {operator} {others[-1]}",
            f"CAST({left} AS VARCHAR) {operator} {_quoted(others[0].strip(chr(39)))}",
            f"length(CAST({left} AS VARCHAR)) {operator} {self.rng.randint(0, 9)}",
        )

    def _number(self, inner: str, depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.4:
            return inner
        inner = self._number(inner, depth - 1)
        number = self._one("2", "3", "0", "-1", "0.5", "1e2")
        return self._one(
            f"abs({inner})",
            f"-{inner}" if inner[0].isalpha() else f"-({inner})",
            f"@({inner})",
            f"({inner} + {number})",
            f"({inner} - {number})",
            f"({inner} * {number})",
            f"({inner} / {number})",
            f"({number} / {inner})",
            f"({inner} // 2)",
            f"({inner} % 3)",
            f"({inner} & 3)",
            f"({inner} | 1)",
            f"({inner} << 1)",
            f"xor({inner}, 1)",
            f"round({inner})",
            f"round({inner}, 1)",
            f"floor({inner})",
            f"ceil({inner})",
            f"trunc({inner})",
            f"sign({inner})",
            f"sqrt(abs({inner}))",
            f"({inner} ** 2)",
            f"exp({inner} / 1e3)",
            f"ln(abs({inner}) + 1)",
            f"mod({inner}, 2)",
            f"{inner}::DOUBLE",
            f"{inner}::INTEGER",
            f"TRY_CAST({inner} AS SMALLINT)",
            f"isnan({inner}::DOUBLE)::INT",
            f"signbit({inner}::DOUBLE)::INT",
            f"hash({inner}) % 3",
        )

    def _string(self, inner: str, depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.4:
            return inner
        inner = self._string(inner, depth - 1)
        return self._one(
            f"lower({inner})",
            f"upper({inner})",
            f"initcap({inner})",
            f"trim({inner})",
            f"ltrim({inner}, 'a')",
            f"reverse({inner})",
            f"({inner} || 'a')",
            f"concat({inner}, 'b')",
            f"left({inner}, 1)",
            f"right({inner}, 2)",
            f"substring({inner}, 2, 2)",
            f"{inner}[1:2]" if inner == "s" else inner,  # DuckDB has no parts of an ENUM
            f"replace({inner}, 'a', 'zz')",
            f"regexp_replace({inner}, '[ab]', 'q')",
            f"regexp_extract({inner}, '[a-z]+')",
            f"split_part({inner}, '_', 1)",
            f"lpad({inner}, 3, '*')",
            f"repeat({inner}, 2)",
            f"translate({inner}, 'ab', 'ba')",
            f"coalesce({inner}, 'a')",
            f"md5({inner})",
        )

    def _text(self, subject: str, plain: bool) -> str:
        negated = self._one("", "NOT ")
        text = _quoted(self._one("", "a", "ab", "A", "é", "k", "a_b", "50%", "%", "zz"))
        pattern = _quoted(self._one("a%", "%b", "%a%", "_", "a_b", "%", "", "É%", "%\n%", "_%_", "a\\%"))
        regex = _quoted(self.regex(3))
        options = self._one("", "", ", 'i'", ", 's'", ", 'c'", ", 'l'")
        operator = self._one("=", "<>", "<", "<=", ">", ">=")
        shapes = [
            f"{subject} {negated}LIKE {pattern}",
            f"{subject} {negated}ILIKE {pattern}",
            f"{subject} {negated}LIKE {pattern} ESCAPE '\\'",
            f"{subject} {self._one('~~', '!~~', '~~*', '!~~*')} {pattern}",
            f"{subject} {negated}SIMILAR TO {regex}",
            f"{subject} ~ {regex}",
            f"{negated}regexp_matches({subject}, {regex}{options})",
            f"{negated}regexp_full_match({subject}, {regex}{options})",
            f"{self._one('starts_with', 'ends_with', 'contains', 'prefix', 'suffix')}({subject}, {text})",
            f"{subject} ^@ {text}",
            f"length({subject}) {operator} {self.rng.randint(0, 5)}",
            f"length({subject}) {negated}IN (1, 2, NULL)",
            f"{subject} IS {negated}NULL",
            f"{subject} {operator} {text}",
            f"{text} {operator} {subject}",
            f"{subject} {negated}IN ({text}, 'b', {self._one('NULL', _quoted('7'))})",
            f"{subject} {negated}IN [{text}, {self._one('NULL', _quoted('7'))}]",
            f"{subject} {negated}BETWEEN {text} AND 'b'",
            f"{subject} IS {negated}DISTINCT FROM {text}",
        ]
        if not plain:
            shapes += [
                f"{subject} GLOB {_quoted(self._one('a*', '?', '[ab]*', '*b'))}",
                f"position('a' IN {subject}) {operator} {self.rng.randint(0, 2)}",
                f"ascii({subject}) {operator} 97",
                f"TRY_CAST({subject} AS INTEGER) {operator} 7",
                f"({subject} || '') COLLATE NOCASE = {text}",
                f"levenshtein({subject}, {text}) {operator} 1",
                self._compared(subject, lambda: _quoted(self._one("", "a", "ab", "B", "é"))),
            ]
        return self._one(*shapes)

    def regex(self, depth: int) -> str:
        """A regular expression, with assertions in all places."""
        atoms = ("a", "b", "é", "K", ".", "_", " ", "[ab]", "[^a]", "[[:alpha:]]", r"\w", r"\W", r"\s", r"\n", r"\pL")
        places = ("^", "$", r"\A", r"\z", r"\b", r"\B", "(?i)", "(?s)", "(?m)", r"\Qa.\E", "()", "[]a]")
        shape = self.rng.random() if depth else 0.0
        if shape < 0.35:
            return self._one(*atoms, *places)
        if shape < 0.65:
            return "".join(self.regex(depth - 1) for _ in range(self.rng.randint(1, 3)))
        if shape < 0.8:
            return f"{self.regex(depth - 1)}|{self.regex(depth - 1)}"
        if shape < 0.9:
            return f"({self._one('', '?:', '?i:', '?s:', '?m:')}{self.regex(depth - 1)})"
        return f"({self.regex(depth - 1)}){self._one('*', '+', '?', '*?', '{2}', '{1,2}', '{2,}')}"

    def _time(self, column: str) -> str:
        if self.rng.random() < 0.4:
            return column
        part = self._one("year", "month", "day", "hour", "minute", "dow", "quarter", "epoch", "century", "week")
        return self._one(
            f"({column} + INTERVAL 1 DAY)",
            f"({column} - INTERVAL 1 MONTH)",
            f"date_trunc('month', {column})",
            f"extract({part} FROM {column})::INT",
            f"date_part('{part}', {column})::INT",
            f"{column}::DATE",
            f"last_day({column})",
            f"strftime({column}, '%Y-%m')",
            f"dayname({column})",
            f"(DATE '2020-03-01' - {column}::DATE)",
        )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
