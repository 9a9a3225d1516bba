"""DuckDB's case folding, character classes and checks of predicates on strings, cached."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from sqlglot import exp

from countless.errors import QueryError
from countless.query.domains.domain_evaluation import DomainTables
from countless.query.parsing.sql import written

MOST_CACHED = 1_000
PLAIN_CLASS = re.compile(r"\[\^?(?:a-z|A-Z|0-9|[A-Za-z0-9_/](?!-))+\]", re.ASCII)


class DuckDBStrings:
    """Case folding, character classes, and which predicates DuckDB accepts. Safe to share by threads."""

    def __init__(self, domain_tables: DomainTables) -> None:
        self.domain_tables = domain_tables
        self._folded = lru_cache(MOST_CACHED)(lambda function, text: tuple(domain_tables.folded(function, text)))
        self._members = lru_cache(MOST_CACHED)(lambda atoms, text: domain_tables.members(atoms, text))
        self._accepted: dict[str, None] = {}

    def folded(self, function: str, characters: tuple[str, ...]) -> tuple[str, ...]:
        """The characters in lower or upper case, by DuckDB's rules."""
        text = "".join(characters)
        if len(text) == len(characters) and text.isascii():
            return tuple(text.lower() if function == "lower" else text.upper())
        return self._folded(function, characters)

    def members(self, atoms: Sequence[str], characters: Sequence[str]) -> list[list[bool]]:
        """For each of ``atoms``, expressions for one character, which of ``characters`` match."""
        matches = {atom: members_of_class(atom, characters) for atom in atoms if PLAIN_CLASS.fullmatch(atom)}
        other_atoms = tuple(atom for atom in atoms if atom not in matches)
        if other_atoms:
            matches.update(zip(other_atoms, self._members(other_atoms, tuple(characters)), strict=True))
        return [matches[atom] for atom in atoms]

    def check(self, node: exp.Expr, problem: str | None = None) -> None:
        """Raise DuckDB's error if it does not accept ``node``, a predicate on one column of strings."""
        empty = exp.cast(exp.Literal.string(""), exp.DType.VARCHAR)  # a type's name would be parsed
        constant_predicate = node.transform(lambda part: empty.copy() if isinstance(part, exp.Column) else part)
        sql = written(constant_predicate)
        if sql in self._accepted:
            return
        try:
            self.domain_tables.truth(None, constant_predicate)
        except QueryError as error:
            if problem is not None:
                error.message = problem + error.message.removeprefix("the types do not fit: ")
            raise error from None
        if len(self._accepted) >= MOST_CACHED:
            self._accepted.clear()
        self._accepted[sql] = None


def members_of_class(atom: str, characters: Sequence[str]) -> list[bool]:
    """Which of ``characters`` are in a plain class: Python reads it as RE2 does.

    >>> members_of_class("[a-c_]", "abz_"), members_of_class("[^0-9]", "a1")
    ([True, True, False, True], [True, False])
    """
    matches = re.compile(atom).fullmatch
    return [matches(character) is not None for character in characters]
