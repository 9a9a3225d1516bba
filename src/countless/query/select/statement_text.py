"""The original text of a SELECT's parts: DuckDB names columns after it, and sqlglot would rewrite it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import Token, TokenType, exp

from countless.query.parsing.sql import tokens_of
from countless.query.parsing.struct_fields import quote_fields

OPEN = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
CLOSED = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
KEYWORDS = frozenset(
    {
        TokenType.SELECT,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.ORDER_BY,
        TokenType.LIMIT,
        TokenType.OFFSET,
        TokenType.FETCH,
        TokenType.SEMICOLON,
    }
)


class StatementText:
    """The text of each part of the statement ``sql``, which sqlglot has parsed.

    >>> text = StatementText("SELECT count(*), avg(n) FROM t WHERE n > 3 LIMIT 1")
    >>> text.selected(), text.where.lstrip()
    ('count(*), avg(n)', 'n > 3')
    """

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._parts = _parts(tokens_of(sql))

    def selected(self, columns: Iterable[exp.Expr] = ()) -> str:
        """The text after SELECT, without a final comma, which DuckDB allows; fields of structs in it are quoted."""
        return self._quoted(self._parts[TokenType.SELECT], columns)

    def grouped(self, columns: Iterable[exp.Expr] = ()) -> str:
        """The text after GROUP BY, in the same way."""
        return self._quoted(self._parts[TokenType.GROUP_BY], columns)

    def _quoted(self, tokens: list[Token], columns: Iterable[exp.Expr]) -> str:
        if tokens[-1].token_type is TokenType.COMMA:
            tokens = tokens[:-1]
        text = self._sql[tokens[0].start : tokens[-1].end + 1]
        return quote_fields(text, tokens[0].start, columns)

    @property
    def where(self) -> str:
        """The text after WHERE at its position: the text before it is replaced by blanks."""
        tokens = self._parts[TokenType.WHERE]
        start = tokens[0].start
        return re.sub(r"[^\n]", " ", self._sql[:start]) + self._sql[start : tokens[-1].end + 1]


def _parts(tokens: list[Token]) -> dict[TokenType, list[Token]]:
    """The tokens of each part by its keyword, ignoring keywords in parentheses and the FROM of IS DISTINCT FROM."""
    parts: dict[TokenType, list[Token]] = {}
    part: list[Token] = []
    depth, previous = 0, None
    for token in tokens:
        depth += (token.token_type in OPEN) - (token.token_type in CLOSED)
        if depth == 0 and token.token_type in KEYWORDS and previous is not TokenType.DISTINCT:
            part = parts.setdefault(token.token_type, [])
        else:
            part.append(token)
        previous = token.token_type
    return parts
