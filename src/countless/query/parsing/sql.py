"""SQL text to expressions and back: the only module of this package that calls sqlglot's parser and writer.

sqlglot raises errors of its own and of other classes. Here all of them become errors of :mod:`countless.errors`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import sqlglot
from sqlglot import Token, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError

from countless.errors import QuerySyntaxError, QueryTooLargeError, UnsupportedQueryError

DIALECT = DuckDB  # the class, not its name, which sqlglot would load at the first question
NESTED = "the clause is nested too deeply: use IN for long lists of values"


def read_statement(sql: str) -> exp.Expr:
    """Parse ``sql``, which must be one statement."""
    with _reading(sql):
        statements = sqlglot.parse(sql, dialect=DIALECT)
    if len(statements) != 1 or statements[0] is None:
        raise QuerySyntaxError("give one statement, without others after a semicolon", sql, None)
    _enclose_compared_nots(statements[0])
    return statements[0]


def read_condition(text: str, clause: str) -> exp.Expr:
    """Parse ``text`` as a condition; errors point into ``clause``, where every character has the same position."""
    with _reading(clause):
        condition = sqlglot.parse_one(text, dialect=DIALECT, into=exp.Condition)
    _enclose_compared_nots(condition)
    return condition


def _enclose_compared_nots(node: exp.Expr) -> None:
    """Put the NOT of ``a !~ 'x' > b`` in parentheses: sqlglot would write ``NOT a ~ 'x' > b``, another condition."""
    for negation in list(node.find_all(exp.Not)):
        if isinstance(negation.parent, exp.Predicate | exp.Binary) and not isinstance(negation.parent, exp.Connector):
            enclosed = exp.Paren()
            negation.replace(enclosed)
            enclosed.set("this", negation)


def tokens_of(text: str) -> list[Token]:
    """The tokens of ``text``."""
    with _reading(text):
        return sqlglot.tokenize(text, dialect=DIALECT)


def written(node: exp.Expr) -> str:
    """``node`` as SQL that DuckDB reads, without comments."""
    try:
        return node.sql(dialect=DIALECT, comments=False)
    except RecursionError:
        raise QueryTooLargeError(NESTED) from None
    except Exception as error:  # sqlglot's writer raises errors of many kinds
        raise UnsupportedQueryError(
            f"a function in the clause cannot be passed on to DuckDB ({_first_line(error)}): write it in another way"
        ) from None


@contextmanager
def _reading(clause: str) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise QueryTooLargeError(NESTED) from None
    except (ParseError, TokenError) as error:
        raise _syntax_error(error, clause) from None
    except Exception as error:
        raise QuerySyntaxError(
            f"this is not SQL that Countless can read ({_first_line(error)}): write it in another way", clause, None
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _syntax_error(error: ParseError | TokenError, clause: str) -> QuerySyntaxError:
    details = getattr(error, "errors", None)
    if not details:
        return QuerySyntaxError(
            "the clause is not complete: check quotes and parentheses", clause, (len(clause.rstrip()), len(clause))
        )
    detail = details[0]
    before = sum(len(line) + 1 for line in clause.split("\n")[: detail["line"] - 1])
    end = before + detail["col"]  # sqlglot counts to the end of the token
    highlight = detail.get("highlight") or ""
    start = max(0, end - len(highlight))
    if clause[start:end] != highlight and highlight in clause:
        start = clause.rfind(highlight)
        end = start + len(highlight)
    missing = "Required keyword" in str(detail["description"])
    problem = f"something is missing after {highlight!r}" if missing else f"did not expect {highlight!r} here"
    if highlight == "," and re.search(r"\d$", clause[:start]) and re.match(r"\d", clause[end:]):
        hint = "a number has a decimal point, such as 1000.5, and no separator of thousands"
    else:
        hint = "put names with spaces, a leading digit, or that are keywords in double quotes"
    return QuerySyntaxError(f"syntax error: {problem}; {hint}", clause, (start, end))
