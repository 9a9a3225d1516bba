"""Predicates on a text column as languages: the strings for which they are true, and those for which false."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from sqlglot import exp

from countless.automata.dfa import MOST_STATES
from countless.automata.language import Automaton, Language
from countless.data.columns.strings.text import TextColumn
from countless.errors import QueryTooLargeError
from countless.query.domains.comparisons import FUNCTIONS
from countless.query.domains.truth import Truth
from countless.query.text.duckdb_strings import DuckDBStrings
from countless.query.text.regex_automata import matching
from countless.query.text.regex_syntax import Regex
from countless.query.text.string_evaluator import Folds, StringEvaluator
from countless.query.text.string_sets import LikePieces, Script, compared, having_pieces, one_of


class LanguageEvaluator(StringEvaluator):
    """Predicates on one text column, as languages over its letters."""

    def __init__(self, duckdb_strings: DuckDBStrings, column: TextColumn) -> None:
        super().__init__(duckdb_strings)
        self.column = column

    def compared(self, folds: Folds, kind: type[exp.Expr], text: str) -> Truth:
        if kind is exp.EQ:
            return self.like(folds, (tuple(text),))
        return self._truth_of(compared(self._script(folds), kind, text))

    def one_of(self, folds: Folds, texts: Sequence[str]) -> Truth:
        return self._truth_of(one_of(self._script(folds), texts))

    def like(self, folds: Folds, pieces: LikePieces) -> Truth:
        return self._truth_of(having_pieces(self._script(folds), pieces))

    def matching(self, folds: Folds, regex: Regex) -> Truth:
        return self._truth_of(matching(self._script(folds), regex, self.duckdb_strings.members))

    def lengths(self, numbers: Sequence[float | Fraction], kind: type[exp.Expr]) -> Truth:
        longest = max(max(numbers), 0)
        if longest > MOST_STATES - 3:
            raise QueryTooLargeError(f"a length is compared with more than {MOST_STATES - 3:,}: ask for a smaller one")
        lengths = range(math.ceil(longest) + 2)
        is_true = np.array([any(FUNCTIONS[kind](length, number) for number in numbers) for length in lengths])
        any_string = Automaton.constant(self.column.letters, True)
        true, false = (Language(any_string, False, self.column.has_null, mask) for mask in (is_true, ~is_true))
        return Truth(true, false)

    def always_null(self) -> Truth:
        none = self._language(Automaton.constant(self.column.letters, False))
        return Truth(none, none)

    def null(self) -> Truth:
        none = Automaton.constant(self.column.letters, False)
        null = Language(none, self.column.has_null, self.column.has_null)
        return Truth(null, ~null)

    def _script(self, folds: Folds) -> Script:
        characters = tuple(self.column.letters.characters)
        for function in folds:
            characters = self.duckdb_strings.folded(function, characters)
        return Script(self.column.letters, characters)

    def _truth_of(self, automaton: Automaton) -> Truth:
        return Truth(self._language(automaton), self._language(~automaton))

    def _language(self, automaton: Automaton) -> Language:
        return Language(automaton, False, self.column.has_null)
