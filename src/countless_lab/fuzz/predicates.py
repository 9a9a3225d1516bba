"""Random predicates about a table: every operator and function, nested, with values of the table and awkward ones."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from countless.data.columns.types import FLOATS, INTEGERS, quote_identifier, sql_literal
from countless_lab.fuzz.expressions import (
    CALLS,
    COMPARISONS,
    FORMATS,
    GLOBS,
    KINDS,
    PARTS,
    PATTERNS,
    REGEXES,
    STRINGS,
    TYPES,
    UNITS,
)
from countless_lab.fuzz.values import VALUES

SLOT = re.compile(r"\{(\w+)\}")
TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")
MARK = re.compile(r"\x01(\d+)\x01")  # stands for a literal that may be a parameter


@dataclass(frozen=True)
class ColumnValues:
    """A column that predicates are about, and SQL for some of its values."""

    name: str
    type: str
    literals: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kind of its values, one of ``KINDS``."""
        return kind_of(self.type)


@dataclass(frozen=True)
class RandomPredicate:
    """A WHERE clause, and the same clause with placeholders and the values of its ``parameters``."""

    clause: str
    prepared: str
    parameters: tuple[Any, ...]


def kind_of(duckdb_type: str) -> str:
    """The kind of a type that a model stores.

    >>> kind_of("UTINYINT"), kind_of("DECIMAL(4,1)"), kind_of("TIMESTAMP_NS"), kind_of("VARCHAR")
    ('I', 'N', 'Z', 'S')
    """
    if duckdb_type in INTEGERS:
        return "I"
    if duckdb_type in FLOATS or duckdb_type.startswith("DECIMAL"):
        return "N"
    if duckdb_type in TIMESTAMPS:
        return "Z"
    return {"BOOLEAN": "B", "DATE": "D", "TIME": "T"}.get(duckdb_type, "S")


@dataclass
class PredicateMaker:
    """Draws predicates about ``columns``."""

    columns: Sequence[ColumnValues]
    rng: random.Random
    _parameters: list[tuple[str, Any]] = field(default_factory=list)  # SQL and value of each literal that may be one

    def draw(self) -> RandomPredicate:
        """The next predicate."""
        self._parameters.clear()
        marked = self._clause(self.rng.choice([0, 0, 0, 1, 1, 2, 3]))
        numbers = [int(number) for number in MARK.findall(marked)]
        distinct_numbers = set(numbers)
        clause = MARK.sub(lambda mark: self._parameters[int(mark[1])][0], marked)
        prepared = MARK.sub("?", marked)
        assert distinct_numbers <= set(range(len(self._parameters)))
        return RandomPredicate(clause, prepared, tuple(self._parameters[number][1] for number in numbers))

    def _clause(self, depth: int) -> str:
        """Leaves joined by AND, OR and NOT."""
        if depth == 0:
            return self._leaf()
        match self.rng.randrange(8):
            case 0 | 1 | 2:
                return " AND ".join(self._joined(depth) for _ in range(self.rng.randint(2, 3)))
            case 3 | 4 | 5:
                return " OR ".join(self._joined(depth) for _ in range(self.rng.randint(2, 3)))
            case 6:
                return f"NOT ({self._clause(depth - 1)})"
            case _:
                return f"({self._clause(depth - 1)}) IS NOT TRUE"

    def _joined(self, depth: int) -> str:
        inner = self._clause(depth - 1)
        return inner if self.rng.random() < 0.3 else f"({inner})"

    def _leaf(self) -> str:
        """A comparison of a column or of an expression with a value, or with another column."""
        column = self.rng.choice(self.columns)
        name, kind = quote_identifier(column.name), column.kind
        simple = self.rng.random() < 0.6
        left_side = name if simple else self._expression(kind := self.rng.choice(KINDS), 2)
        value: Callable[[], str] = (
            (lambda: self._value(column)) if simple else (lambda: f"({self._expression(kind, 1)})")
        )
        match self.rng.randrange(11):
            case 0 | 1 | 2:
                return f"{left_side} {self.rng.choice(COMPARISONS)} {value()}"
            case 3:
                return f"{left_side} IS {self.rng.choice(['', 'NOT '])}NULL"
            case 4:
                words = self.rng.choice(["BETWEEN", "NOT BETWEEN"])
                return f"{left_side} {words} {value()} AND {value()}"
            case 5:
                items = [value() for _ in range(self.rng.randint(1, 5))] + ["NULL"] * (self.rng.random() < 0.15)
                return f"{left_side} {self.rng.choice(['IN', 'NOT IN'])} ({', '.join(items)})"
            case 6:
                second = self.rng.choice(
                    [candidate for candidate in self.columns if candidate.kind == kind] or [column]
                )
                return f"{left_side} {self.rng.choice(COMPARISONS)} {quote_identifier(second.name)}"
            case 7 if kind == "S":
                return f"{left_side} {self.rng.choice(['LIKE', 'NOT LIKE', 'ILIKE'])} {self._word('pattern')}"
            case 8 if kind in "DZ" and simple:
                part = f"extract({self._word('part')} FROM {name})"
                return f"{part} {self.rng.choice(COMPARISONS)} {self._small()}"
            case _:
                return self._filled(self.rng.choice(CALLS["B"]), 1)

    def _expression(self, kind: str, depth: int) -> str:
        """An expression of this kind: a column, a literal or a call."""
        of_kind = [column for column in self.columns if column.kind == kind]
        chance = self.rng.random()
        if of_kind and chance < (0.5 if depth else 0.75):
            return quote_identifier(self.rng.choice(of_kind).name)
        if not depth or chance < 0.6:
            return self._literal(kind, of_kind)
        return self._filled(self.rng.choice(CALLS[kind]), depth - 1)

    def _filled(self, template: str, depth: int = 0) -> str:
        return SLOT.sub(
            lambda slot: self._expression(slot[1], depth) if slot[1] in KINDS else self._word(slot[1]), template
        )

    def _literal(self, kind: str, of_kind: Sequence[ColumnValues]) -> str:
        if of_kind and self.rng.random() < 0.6:
            return self._value(self.rng.choice(of_kind))
        rng = self.rng
        match kind:
            case "B":
                return rng.choice(["TRUE", "FALSE", "NULL"])
            case "I":
                return self._small() if rng.random() < 0.7 else str(rng.choice([-(2**31), 2**31, 2**63, 10**18, 255]))
            case "N":
                return rng.choice(["0.5", "1.0", "-3.25", "1e3", "0.1", "1e308", "'nan'::DOUBLE", "0", "2", "100.01"])
            case "S":
                return self._text()
            case "V":
                return f"INTERVAL {rng.randint(0, 40)} {rng.choice(['DAY', 'HOUR', 'MONTH', 'SECOND'])}"
        return rng.choice(
            {
                "D": ["DATE '2020-02-29'", "'1970-01-01'::DATE", "DATE '1999-12-31'"],
                "T": ["TIME '12:30:00'", "TIME '00:00:00.5'"],
                "Z": ["TIMESTAMP '2020-02-29 12:00:00'", "'1970-01-01'::TIMESTAMP", "TIMESTAMP '2040-01-01 00:00:01'"],
            }[kind]
        )

    def _value(self, column: ColumnValues) -> str:
        """A value of the column, an awkward value of its type, a text, or NULL."""
        chance, kind = self.rng.random(), column.kind
        if column.literals and chance < 0.7:
            return self._maybe_parameter(self.rng.choice(column.literals), kind)
        if chance < 0.8 and column.type in VALUES:
            value = self.rng.choice(VALUES[column.type])
            return f"CAST({value} AS {self.rng.choice([column.type, column.type, *TYPES[kind]])})"
        if chance < 0.87:
            return self._text()
        if chance < 0.9:
            return "NULL"
        return self._literal(kind, ())

    def _maybe_parameter(self, literal: str, kind: str) -> str:
        """A literal, marked if it can be a parameter, which needs its value in Python."""
        if kind == "I":
            value: Any = int(literal)
        elif kind == "S" and literal.startswith("'"):
            value = literal[1:-1].replace("''", "'")
        else:
            return literal
        self._parameters.append((literal, value))
        return f"\x01{len(self._parameters) - 1}\x01"

    def _small(self) -> str:
        return str(self.rng.choice([0, 1, 2, 3, 5, 7, 12, 30, -1, -2]))

    def _text(self) -> str:
        return sql_literal(self.rng.choice(STRINGS), "VARCHAR")

    def _word(self, slot: str) -> str:
        """A literal for a slot of a template."""
        choose = self.rng.choice
        match slot:
            case "small":
                return self._small()
            case "digits":
                return str(choose([0, 1, 2, 3, -1]))
            case "positive":
                return str(choose([2, 3, 7, 100]))
            case "year":
                return str(choose([1970, 1999, 2020, 2024, 0, -5]))
            case "seconds":
                return str(choose([0, 1, 86400, 1_600_000_000, -1]))
            case "code":
                return str(choose([65, 97, 233, 128512, 0]))
            case "part" | "unit":
                return choose(PARTS if slot == "part" else UNITS)
        texts = {
            **{"text": STRINGS, "regex": REGEXES, "pattern": PATTERNS, "glob": GLOBS, "format": FORMATS},
            **{"part_text": PARTS, "unit_text": UNITS},
        }
        return sql_literal(choose(texts[slot]), "VARCHAR")
