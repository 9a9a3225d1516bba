"""Predicates on a text column as languages: the strings for which they are true, and those for which false."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from countless.automata.dfa import MOST_STATES
from countless.automata.language import Automaton, Language
from countless.data.columns.text import TextColumn
from countless.data.columns.types import TEXT
from countless.errors import QueryError, QueryTooLargeError, QueryTypeError, UnsupportedQueryError
from countless.query.domain_evaluation import DomainTables, Truth
from countless.query.domain_search import FLIPPED
from countless.query.sql import written
from countless.query.text.regex_automata import MOST_CHARACTERS, matching
from countless.query.text.regex_syntax import Regex, full_match, search
from countless.query.text.string_sets import Script, compared, like, one_of

ASKED = (
    "= <> < <= > >=, BETWEEN, IN, LIKE, ILIKE, starts_with, ends_with, contains, regexp_matches, "
    "regexp_full_match, IS NULL, and length(), lower() or upper() in these"
)
NUMBERS: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
FOLDS: dict[type[exp.Expr], str] = {exp.Lower: "lower", exp.Upper: "upper"}
FUNCTIONS = {"starts_with": "{}%", "prefix": "{}%", "ends_with": "%{}", "suffix": "%{}", "contains": "%{}%"}
NODES: dict[type[exp.Expr], str] = {
    exp.StartsWith: "starts_with",
    exp.EndsWith: "ends_with",
    exp.Contains: "contains",
}
REGEXES: dict[type[exp.Expr], Callable[[str, str], Regex]] = {
    exp.RegexpLike: search,
    exp.RegexpFullMatch: full_match,
    exp.SimilarTo: full_match,
}
ESCAPE = "\ue000"  # of the patterns that are made here


class Texts:
    """Predicates on text columns. Safe to share by threads."""

    def __init__(self, dictionary: DomainTables) -> None:
        self.dictionary = dictionary
        self._folded: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}

    def truth(self, column: TextColumn, predicate: exp.Expr) -> Truth:
        """Where ``predicate`` on a text column is true and where it is false."""
        return _Judge(self, column).truth(predicate)

    def folded(self, function: str, characters: tuple[str, ...]) -> tuple[str, ...]:
        """The characters in lower or upper case, as DuckDB writes them."""
        key = function, characters
        if key not in self._folded:
            self._folded[key] = tuple(self.dictionary.folded(function, characters))
        return self._folded[key]


class _Judge:
    """Predicates on one text column."""

    def __init__(self, texts: Texts, column: TextColumn) -> None:
        self.texts = texts
        self.column = column

    def truth(self, node: exp.Expr) -> Truth:
        kind = type(node)
        if kind is exp.Paren:
            return self.truth(node.this)
        if node.args.get("negate"):
            return _negated(self.truth(_without(node, "negate")))
        if kind is exp.Escape and isinstance(node.this, exp.Like | exp.ILike):
            negated = node.this.args.get("negate")
            truth = self._like(_without(node.this, "negate"), node.expression)
            return _negated(truth) if negated else truth
        if kind is exp.Is and isinstance(node.expression, exp.Null) and self._measures(node.this):
            return self._null()
        if kind in FLIPPED:
            return self._comparison(kind, node.this, node.expression, node)
        if kind in (exp.NullSafeEQ, exp.NullSafeNEQ):
            return self._null_safe(node)
        if kind is exp.Between and not node.args.get("symmetric"):
            low = self._comparison(exp.GTE, node.this, node.args["low"], node)
            high = self._comparison(exp.LTE, node.this, node.args["high"], node)
            return Truth(low.true & high.true, low.false | high.false)
        if kind is exp.In and node.expressions and not node.args.get("query"):
            return self._listed(node)
        if kind in (exp.Like, exp.ILike):
            return self._like(node, None)
        if kind in REGEXES:
            return self._regex(node)
        if kind in NODES:
            return self._function(NODES[kind], node.this, node.expression, node)
        if isinstance(node, exp.Anonymous) and node.name.lower() in FUNCTIONS and len(node.expressions) == 2:
            return self._function(node.name.lower(), node.expressions[0], node.expressions[1], node)
        raise self._unsupported(node)

    def _comparison(self, kind: type[exp.Expr], left: exp.Expr, right: exp.Expr, node: exp.Expr) -> Truth:
        if right.find(exp.Column):
            left, right, kind = right, left, FLIPPED[kind]
        if self._is_length(left):
            (number,) = self._numbers([right], node)
            return self._lengths([] if number is None else [number], kind)
        script = self._script(left, node)
        (text,) = self._constants([right], node)
        return self._nowhere() if text is None else self._known(compared(script, kind, text))

    def _null_safe(self, node: exp.Expr) -> Truth:
        constant = node.this if node.expression.find(exp.Column) else node.expression
        if isinstance(constant, exp.Null):
            truth = self._null()
        else:
            equal = self._comparison(exp.EQ, node.this, node.expression, node)
            truth = Truth(equal.true, ~equal.true)
        return _negated(truth) if isinstance(node, exp.NullSafeNEQ) else truth

    def _listed(self, node: exp.Expr) -> Truth:
        if self._is_length(node.this):
            numbers = self._numbers(node.expressions, node)
            known = [number for number in numbers if number is not None]
            return _with_null(self._lengths(known, exp.EQ), self._nowhere(), None in numbers)
        if not node.this.find(exp.Column) and len(node.expressions) == 1:
            return self._comparison(exp.EQ, node.this, node.expressions[0], node)
        script = self._script(node.this, node)
        texts = self._constants(node.expressions, node)
        found = self._known(one_of(script, list(dict.fromkeys(text for text in texts if text is not None))))
        return _with_null(found, self._nowhere(), None in texts)

    def _like(self, node: exp.Expr, escape: exp.Expr | None) -> Truth:
        if isinstance(node.expression, exp.Any | exp.All):
            raise self._unsupported(node)
        script = self._script(node.this, node)
        constants = self._constants([node.expression] if escape is None else [node.expression, escape], node)
        if None in constants:
            return self._nowhere()
        pattern, mark = (*(constant or "" for constant in constants), "")[:2]
        if len(pattern) > MOST_CHARACTERS:
            raise QueryTooLargeError(f"the pattern has more than {MOST_CHARACTERS:,} characters: simplify it")
        if len(mark) > 1:
            raise QueryTypeError(f"an ESCAPE is one character, or none, and not {mark!r}")
        if isinstance(node, exp.ILike):
            pattern = "".join(self.texts.folded("lower", tuple(pattern)))
            script = Script(script.letters, self.texts.folded("lower", script.characters))
        return self._known(like(script, pattern, mark))

    def _function(self, name: str, subject: exp.Expr, constant: exp.Expr, node: exp.Expr) -> Truth:
        script = self._script(subject, node)
        (text,) = self._constants([constant], node)
        if text is None:
            return self._nowhere()
        escaped = "".join(ESCAPE + character for character in text)
        return self._known(like(script, FUNCTIONS[name].format(escaped), ESCAPE))

    def _regex(self, node: exp.Expr) -> Truth:
        script = self._script(node.this, node)
        flags = node.args.get("flag") or node.args.get("options")
        constants = self._constants([node.expression] if flags is None else [node.expression, flags], node)
        if constants[0] is None:
            return self._nowhere()
        pattern, options = (*(constant or "" for constant in constants), "")[:2]
        if len(pattern) > MOST_CHARACTERS:
            raise QueryTooLargeError(f"the pattern has more than {MOST_CHARACTERS:,} characters: simplify it")
        read = REGEXES[type(node)]
        try:
            self._run(node, "the pattern cannot be read: ")
        except QueryError:
            with suppress(IndexError):
                read(pattern, options)  # knows better what is wrong with a pattern that is not regular
            raise
        return self._known(matching(script, read(pattern, options), self.texts.dictionary.members))

    def _script(self, node: exp.Expr, whole: exp.Expr) -> Script:
        """The letters as ``node`` has them: the column, or its lower() or upper()."""
        if isinstance(node, exp.Paren):
            return self._script(node.this, whole)
        if type(node) in FOLDS:
            inner = self._script(node.this, whole)
            return Script(inner.letters, self.texts.folded(FOLDS[type(node)], inner.characters))
        if not isinstance(node, exp.Column):
            raise self._unsupported(whole)
        return Script(self.column.letters, tuple(self.column.letters.characters))

    def _measures(self, node: exp.Expr) -> bool:
        """Whether ``node`` is NULL exactly where the column is."""
        while isinstance(node, exp.Paren | exp.Lower | exp.Upper | exp.Length):
            node = node.this
        return isinstance(node, exp.Column)

    def _is_length(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Length) and self._measures(node.this)

    def _lengths(self, numbers: Sequence[float | Fraction], kind: type[exp.Expr]) -> Truth:
        """The strings whose length compares so with any of ``numbers``; without one, nothing is known."""
        if not numbers:
            return self._nowhere()
        most = max(max(numbers), 0)
        if most > MOST_STATES - 3:
            raise QueryTooLargeError(f"a length is compared with more than {MOST_STATES - 3:,}: ask for a smaller one")
        lengths = range(math.ceil(most) + 2)
        wanted = [any(NUMBERS[kind](length, number) for number in numbers) for length in lengths]
        every, these = Automaton.constant(self.column.letters, True), np.array(wanted)
        true, false = (Language(every, False, self.column.has_null, part) for part in (these, ~these))
        return Truth(true, false)

    def _numbers(self, nodes: Sequence[exp.Expr], whole: exp.Expr) -> list[float | Fraction | None]:
        if any(node.find(exp.Column) for node in nodes):
            raise self._unsupported(whole)
        if all(isinstance(node, exp.Literal) and node.is_int for node in nodes):
            return [Fraction(node.this) for node in nodes]
        found = self.texts.dictionary.constants("BIGINT", nodes)
        try:
            assert found is not None
            return [None if text is None else Fraction(text) for _, text in found]
        except (AssertionError, ValueError):
            raise QueryTypeError("a length compares with numbers: write one, such as length(...) > 10") from None

    def _constants(self, nodes: Sequence[exp.Expr], whole: exp.Expr) -> list[str | None]:
        """The texts that ``nodes`` are; None for NULL."""
        if all(isinstance(node, exp.Literal) and node.is_string for node in nodes):
            return [str(node.this) for node in nodes]
        if any(node.find(exp.Column) for node in nodes):
            raise self._unsupported(whole)
        found = self.texts.dictionary.constants(TEXT, nodes)
        if found is None:
            self._run(whole)
            raise self._unsupported(whole)
        for node, (kind, text) in zip(nodes, found, strict=True):
            if text is not None and kind != TEXT:
                raise QueryTypeError(f"{written(node)} is {kind}, and no text: write it in single quotes, '{text}'")
        return [text for _, text in found]

    def _known(self, automaton: Automaton) -> Truth:
        language = self._language(automaton)
        return Truth(language, self._language(~automaton))

    def _nowhere(self) -> Truth:
        none = self._language(Automaton.constant(self.column.letters, False))
        return Truth(none, none)

    def _null(self) -> Truth:
        none = Automaton.constant(self.column.letters, False)
        null = Language(none, self.column.has_null, self.column.has_null)
        return Truth(null, ~null)

    def _language(self, automaton: Automaton) -> Language:
        return Language(automaton, False, self.column.has_null)

    def _run(self, node: exp.Expr, problem: str | None = None) -> None:
        """Let DuckDB say whether it objects to ``node``."""
        empty = exp.cast(exp.Literal.string(""), TEXT)
        tried = node.transform(lambda part: empty.copy() if isinstance(part, exp.Column) else part)
        try:
            self.texts.dictionary.truth(None, tried)
        except QueryError as error:
            if problem is not None:
                error.message = problem + error.message.removeprefix("the types do not fit: ")
            raise error from None

    def _unsupported(self, node: exp.Expr) -> QueryError:
        self._run(node)
        return UnsupportedQueryError(f"of a column whose strings are modelled by their characters, ask {ASKED}")


def _negated(truth: Truth) -> Truth:
    return Truth(truth.false, truth.true)


def _with_null(truth: Truth, nowhere: Truth, null: bool) -> Truth:
    """The truth of an IN whose list may have a NULL, by which nothing is surely not in it."""
    return Truth(truth.true, nowhere.false) if null else truth


def _without(node: exp.Expr, argument: str) -> exp.Expr:
    plain = node.copy()
    plain.set(argument, None)
    return plain
