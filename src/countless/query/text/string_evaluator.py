"""Evaluation of a predicate about strings: reads which comparison, pattern or length it asks for.

Subclasses of :class:`StringEvaluator` define the set of strings: all strings over an alphabet, or those of a list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction

from sqlglot import exp

from countless.data.columns.types import TEXT
from countless.errors import QueryError, QueryTooLargeError, QueryTypeError, UnsupportedQueryError
from countless.query.domains.comparisons import FLIPPED
from countless.query.domains.truth import Truth
from countless.query.parsing.sql import written
from countless.query.text.duckdb_strings import DuckDBStrings
from countless.query.text.regex_automata import MOST_CHARACTERS
from countless.query.text.regex_syntax import Regex, full_match, is_plain, search
from countless.query.text.string_sets import LikePieces, like_pieces

SUPPORTED = (
    "= <> < <= > >=, BETWEEN, IN, LIKE, ILIKE, starts_with, ends_with, contains, regexp_matches, "
    "regexp_full_match, IS NULL, and length(), lower() or upper() in these"
)
FOLDS: dict[type[exp.Expr], str] = {exp.Lower: "lower", exp.Upper: "upper"}
STARTS, ENDS, CONTAINS = (False, True), (True, False), (True, True)  # whether any text may come before and after
FUNCTIONS = {"starts_with": STARTS, "prefix": STARTS, "ends_with": ENDS, "suffix": ENDS, "contains": CONTAINS}
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

Folds = tuple[str, ...]  # lower or upper, applied to the strings in this order before they are compared


class StringEvaluator(ABC):
    """Predicates on the strings of one column."""

    def __init__(self, duckdb_strings: DuckDBStrings) -> None:
        self.duckdb_strings = duckdb_strings

    @abstractmethod
    def compared(self, folds: Folds, kind: type[exp.Expr], text: str) -> Truth:
        """The strings that compare with ``text`` by an operator of this ``kind``, by code points."""

    @abstractmethod
    def one_of(self, folds: Folds, texts: Sequence[str]) -> Truth:
        """The strings that are one of ``texts``."""

    @abstractmethod
    def like(self, folds: Folds, pieces: LikePieces) -> Truth:
        """The strings that have these pieces, with any text between them."""

    @abstractmethod
    def matching(self, folds: Folds, regex: Regex) -> Truth:
        """The strings that match a regular expression."""

    @abstractmethod
    def lengths(self, numbers: Sequence[float | Fraction], kind: type[exp.Expr]) -> Truth:
        """The strings whose length compares with any of ``numbers``, which are not empty, by this ``kind``."""

    @abstractmethod
    def always_null(self) -> Truth:
        """A predicate that is NULL for every string."""

    @abstractmethod
    def null(self) -> Truth:
        """IS NULL."""

    def truth(self, node: exp.Expr) -> Truth:
        """Where a predicate about the column is true and where it is false."""
        kind = type(node)
        if kind is exp.Paren:
            return self.truth(node.this)
        if node.args.get("negate"):
            return _negated(self.truth(_without(node, "negate")))
        if kind is exp.Escape and isinstance(node.this, exp.Like | exp.ILike):
            negated = node.this.args.get("negate")
            truth = self._like(_without(node.this, "negate"), node.expression)
            return _negated(truth) if negated else truth
        if kind is exp.Is and isinstance(node.expression, exp.Null) and _is_null_with_column(node.this):
            return self.null()
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
        if _is_length(left):
            (number,) = self._numbers([right], node)
            return self.always_null() if number is None else self.lengths([number], kind)
        folds = self._folds(left, node)
        (text,) = self._constants([right], node)
        return self.always_null() if text is None else self.compared(folds, kind, text)

    def _null_safe(self, node: exp.Expr) -> Truth:
        column, constant = node.this, node.expression
        if constant.find(exp.Column):
            column, constant = constant, column
        read = self._numbers if _is_length(column) else self._constants
        if isinstance(constant, exp.Null) or read([constant], node) == [None]:
            truth = self.null()
        else:
            equal = self._comparison(exp.EQ, column, constant, node)
            truth = Truth(equal.true, ~equal.true)
        return _negated(truth) if isinstance(node, exp.NullSafeNEQ) else truth

    def _listed(self, node: exp.Expr) -> Truth:
        if _is_length(node.this):
            numbers = self._numbers(node.expressions, node)
            not_null = [number for number in numbers if number is not None]
            return self._with_null(self.lengths(not_null, exp.EQ) if not_null else self.always_null(), None in numbers)
        if not node.this.find(exp.Column) and len(node.expressions) == 1:
            return self._comparison(exp.EQ, node.this, node.expressions[0], node)
        folds = self._folds(node.this, node)
        texts = self._constants(node.expressions, node)
        members = self.one_of(folds, list(dict.fromkeys(text for text in texts if text is not None)))
        return self._with_null(members, None in texts)

    def _with_null(self, truth: Truth, null: bool) -> Truth:
        """The truth of an IN. If its list has a NULL, it is never false."""
        return Truth(truth.true, self.always_null().false) if null else truth

    def _like(self, node: exp.Expr, escape: exp.Expr | None) -> Truth:
        if isinstance(node.expression, exp.Any | exp.All):
            raise self._unsupported(node)
        folds = self._folds(node.this, node)
        constants = self._constants([node.expression] if escape is None else [node.expression, escape], node)
        if None in constants:
            return self.always_null()
        pattern, mark = (*(constant or "" for constant in constants), "")[:2]
        if len(pattern) > MOST_CHARACTERS:
            raise QueryTooLargeError(f"the pattern has more than {MOST_CHARACTERS:,} characters: simplify it")
        if len(mark) > 1:
            raise QueryTypeError(f"an ESCAPE is one character, or none, and not {mark!r}")
        if isinstance(node, exp.ILike):
            pattern = "".join(self.duckdb_strings.folded("lower", tuple(pattern)))
            folds = (*folds, "lower")
        return self.like(folds, like_pieces(pattern, mark))

    def _function(self, name: str, subject: exp.Expr, constant: exp.Expr, node: exp.Expr) -> Truth:
        folds = self._folds(subject, node)
        (text,) = self._constants([constant], node)
        if text is None:
            return self.always_null()
        before, after = FUNCTIONS[name]
        return self.like(folds, (((),) * before) + (tuple(text),) + (((),) * after))

    def _regex(self, node: exp.Expr) -> Truth:
        folds = self._folds(node.this, node)
        flags = node.args.get("flag") or node.args.get("options")
        constants = self._constants([node.expression] if flags is None else [node.expression, flags], node)
        if constants[0] is None:
            return self.always_null()
        pattern, options = (*(constant or "" for constant in constants), "")[:2]
        if len(pattern) > MOST_CHARACTERS:
            raise QueryTooLargeError(f"the pattern has more than {MOST_CHARACTERS:,} characters: simplify it")
        read = REGEXES[type(node)]
        if flags is None and isinstance(node.expression, exp.Literal) and is_plain(pattern):
            return self.matching(folds, read(pattern, options))
        try:
            self.duckdb_strings.check(node, "the pattern cannot be read: ")
        except QueryError:
            with suppress(IndexError):
                read(pattern, options)  # has a better error for a pattern that is not regular
            raise
        return self.matching(folds, read(pattern, options))

    def _folds(self, node: exp.Expr, predicate: exp.Expr) -> Folds:
        """The functions that ``node`` applies to the column: none, lower() or upper()."""
        if isinstance(node, exp.Paren):
            return self._folds(node.this, predicate)
        if type(node) in FOLDS:
            return (*self._folds(node.this, predicate), FOLDS[type(node)])
        if not isinstance(node, exp.Column):
            raise self._unsupported(predicate)
        return ()

    def _numbers(self, nodes: Sequence[exp.Expr], predicate: exp.Expr) -> list[float | Fraction | None]:
        if any(node.find(exp.Column) for node in nodes):
            raise self._unsupported(predicate)
        if all(isinstance(node, exp.Literal) and node.is_int for node in nodes):
            return [Fraction(node.this) for node in nodes]
        constants = self.duckdb_strings.domain_tables.constants("BIGINT", nodes)
        try:
            assert constants is not None
            return [None if text is None else Fraction(text) for _, text in constants]
        except (AssertionError, ValueError):
            raise QueryTypeError("a length compares with numbers: write one, such as length(...) > 10") from None

    def _constants(self, nodes: Sequence[exp.Expr], predicate: exp.Expr) -> list[str | None]:
        """The texts of constants; None for NULL."""
        if all(isinstance(node, exp.Literal) and node.is_string for node in nodes):
            return [str(node.this) for node in nodes]
        if any(node.find(exp.Column) for node in nodes):
            raise self._unsupported(predicate)
        constants = self.duckdb_strings.domain_tables.constants(TEXT, nodes)
        if constants is None:
            self.duckdb_strings.check(predicate)
            raise self._unsupported(predicate)
        for node, (kind, text) in zip(nodes, constants, strict=True):
            if text is not None and kind != TEXT:
                raise QueryTypeError(f"{written(node)} is {kind}, and no text: write it in single quotes, '{text}'")
        return [text for _, text in constants]

    def _unsupported(self, node: exp.Expr) -> QueryError:
        self.duckdb_strings.check(node)
        return UnsupportedQueryError(f"on a column that is modelled character by character, use {SUPPORTED}")


def _is_null_with_column(node: exp.Expr) -> bool:
    """Whether ``node`` is NULL exactly where the column is."""
    while isinstance(node, exp.Paren | exp.Lower | exp.Upper | exp.Length):
        node = node.this
    return isinstance(node, exp.Column)


def _is_length(node: exp.Expr) -> bool:
    return isinstance(node, exp.Length) and _is_null_with_column(node.this)


def _negated(truth: Truth) -> Truth:
    return Truth(truth.false, truth.true)


def _without(node: exp.Expr, argument: str) -> exp.Expr:
    plain = node.copy()
    plain.set(argument, None)
    return plain
