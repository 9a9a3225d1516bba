"""What DuckDB says about characters and patterns, remembered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from sqlglot import exp

from countless.errors import QueryError
from countless.query.domains.domain_evaluation import DomainTables
from countless.query.parsing.sql import written

REMEMBERED = 1_000
PLAIN_CLASS = re.compile(r"\[\^?(?:a-z|A-Z|0-9|[A-Za-z0-9_/](?!-))+\]", re.ASCII)


class DuckDBStrings:
    """Case folding, character classes, and which predicates DuckDB accepts. Safe to share by threads."""

    def __init__(self, domain_tables: DomainTables) -> None:
        self.domain_tables = domain_tables
        self._folded = lru_cache(REMEMBERED)(lambda function, text: tuple(domain_tables.folded(function, text)))
        self._members = lru_cache(REMEMBERED)(lambda atoms, text: domain_tables.members(atoms, text))
        self._accepted: dict[str, None] = {}

    def folded(self, function: str, characters: tuple[str, ...]) -> tuple[str, ...]:
        """The characters in lower or upper case, as DuckDB writes them."""
        text = "".join(characters)
        if len(text) == len(characters) and text.isascii():
            return tuple(text.lower() if function == "lower" else text.upper())
        return self._folded(function, characters)

    def members(self, atoms: Sequence[str], characters: Sequence[str]) -> list[list[bool]]:
        """For each of ``atoms``, which match one character, which of ``characters`` they match."""
        known = {atom: members_of_class(atom, characters) for atom in atoms if PLAIN_CLASS.fullmatch(atom)}
        others = tuple(atom for atom in atoms if atom not in known)
        if others:
            known.update(zip(others, self._members(others, tuple(characters)), strict=True))
        return [known[atom] for atom in atoms]

    def check(self, node: exp.Expr, problem: str | None = None) -> None:
        """Let DuckDB say whether it objects to ``node``, which is about one column of strings."""
        empty = exp.cast(exp.Literal.string(""), exp.DType.VARCHAR)  # its name would be parsed
        tried = node.transform(lambda part: empty.copy() if isinstance(part, exp.Column) else part)
        sql = written(tried)
        if sql in self._accepted:
            return
        try:
            self.domain_tables.truth(None, tried)
        except QueryError as error:
            if problem is not None:
                error.message = problem + error.message.removeprefix("the types do not fit: ")
            raise error from None
        if len(self._accepted) >= REMEMBERED:
            self._accepted.clear()
        self._accepted[sql] = None


def members_of_class(atom: str, characters: Sequence[str]) -> list[bool]:
    """Which of ``characters`` are in a plain class: Python reads it as RE2 does.

    >>> members_of_class("[a-c_]", "abz_"), members_of_class("[^0-9]", "a1")
    ([True, True, False, True], [True, False])
    """
    matches = re.compile(atom).fullmatch
    return [matches(character) is not None for character in characters]
