"""Predicates on columns with a list of strings: patterns are searched in all strings at once.

The fast twin of :class:`.DomainTables` for strings. Predicates that are no patterns get None here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from sqlglot import exp

from countless.arrays import BoolArray, IntArray
from countless.automata.language import Letters
from countless.automata.string_table import StringTable, like_pattern
from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import TEXT
from countless.errors import QueryError, is_final
from countless.query.domains.comparisons import FUNCTIONS
from countless.query.domains.truth import Truth
from countless.query.text.duckdb_strings import DuckDBStrings
from countless.query.text.regex_automata import matching
from countless.query.text.regex_syntax import Regex, required_texts
from countless.query.text.string_evaluator import Folds, StringEvaluator
from countless.query.text.string_sets import LikePieces, Script


class StringSearch:
    """Searches the strings of a schema's columns. Prepares a column when first needed. Safe to share by threads."""

    def __init__(self, schema: Schema, duckdb_strings: DuckDBStrings) -> None:
        self._schema = schema
        self._duckdb_strings = duckdb_strings
        self._evaluators: dict[int, StringListEvaluator] = {}

    def truth(self, index: int, predicate: exp.Expr) -> Truth | None:
        """Where ``predicate`` on column ``index`` is true and where false, or None if only DuckDB can evaluate it."""
        column = self._schema.coded_column(index)
        if column.type != TEXT or column.grid is not None:
            return None
        if index not in self._evaluators:
            self._evaluators[index] = StringListEvaluator(self._duckdb_strings, column)
        try:
            return self._evaluators[index].truth(predicate)
        except QueryError as error:  # only DuckDB decides whether it is an error
            if is_final(error):
                raise
            return None


class StringListEvaluator(StringEvaluator):
    """Predicates on one column with a list of strings, as arrays over its codes."""

    def __init__(self, duckdb_strings: DuckDBStrings, column: Column) -> None:
        super().__init__(duckdb_strings)
        self.column = column
        self._tables: dict[Folds, StringTable] = {(): column.strings}
        self._lengths: IntArray | None = None

    def compared(self, folds: Folds, kind: type[exp.Expr], text: str) -> Truth:
        if kind is exp.EQ:
            return self.like(folds, (tuple(text),))
        table, compare = self._table(folds), FUNCTIONS[kind]
        if not table.is_sorted:
            return self._truth_of(np.array([compare(string, text) for string in table.texts], dtype=np.bool_))
        order: IntArray = np.ones(len(table), dtype=np.int64)  # -1, 0 or 1: each string compared with the text
        order[: bisect_right(table.texts, text)] = 0
        order[: bisect_left(table.texts, text)] = -1
        return self._truth_of(compare(order, 0))

    def one_of(self, folds: Folds, texts: Sequence[str]) -> Truth:
        table, text_set = self._table(folds), frozenset(texts)
        if not table.is_sorted:
            return self._truth_of(np.array([string in text_set for string in table.texts], dtype=np.bool_))
        matches: BoolArray = np.zeros(len(table), dtype=np.bool_)
        for text in text_set:
            matches[bisect_left(table.texts, text) : bisect_right(table.texts, text)] = True
        return self._truth_of(matches)

    def like(self, folds: Folds, pieces: LikePieces) -> Truth:
        return self._truth_of(self._table(folds).like(like_pattern(pieces)))

    def matching(self, folds: Folds, regex: Regex) -> Truth:
        table = self._table(folds)
        if table.letters is None:
            raise QueryError("the strings have too many characters for an automaton")
        zeros = np.zeros(len(table.letters))
        letters = Letters(table.letters, zeros.astype(np.int64), zeros, zeros, 0.0)
        automaton = matching(Script(letters, tuple(table.letters)), regex, self.duckdb_strings.members)
        needles = [table.find(text.encode()) for text in required_texts(regex.root)]
        return self._truth_of(
            table.run(automaton.next, automaton.accepts, np.logical_or.reduce(needles) if needles else None)
        )

    def lengths(self, numbers: Sequence[float | Fraction], kind: type[exp.Expr]) -> Truth:
        if self._lengths is None:
            self._lengths = np.fromiter(map(len, self.column.values), np.int64, len(self.column.values))
        compare = FUNCTIONS[kind]
        lengths = range(self._lengths.max(initial=0) + 1)
        is_matching_length = [any(compare(length, number) for number in numbers) for length in lengths]
        return self._truth_of(np.array(is_matching_length, dtype=np.bool_)[self._lengths])

    def always_null(self) -> Truth:
        none: BoolArray = np.zeros(self.column.size, dtype=np.bool_)
        return Truth(none, none)

    def null(self) -> Truth:
        null: BoolArray = np.arange(self.column.size) >= self.column.null
        return Truth(null, ~null)

    def _table(self, folds: Folds) -> StringTable:
        if folds not in self._tables:
            table, function = self._table(folds[:-1]), folds[-1]
            letters = table.non_ascii_letters
            folded = dict(zip(letters, self.duckdb_strings.folded(function, letters), strict=True)) if letters else {}
            self._tables[folds] = table.folded(function == "lower", folded)
        return self._tables[folds]

    def _truth_of(self, matches: BoolArray) -> Truth:
        """A predicate that is true for the marked strings, and NULL for NULL."""
        if not self.column.has_null:
            return Truth(matches, ~matches)
        none = np.zeros(1, dtype=np.bool_)
        return Truth(np.concatenate([matches, none]), np.concatenate([~matches, none]))
