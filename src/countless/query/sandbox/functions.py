"""The SQL functions that a clause may call.

DuckDB evaluates all expressions except plain comparisons, and some functions make a large result from a small argument:
``repeat('x', 3000000000)`` is a text of three gigabytes. So only listed functions may be called. The limits of the
``sandbox`` stop expressions that nest them.
"""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot import Token, TokenType

from countless.errors import QueryError, QuerySyntaxError, UnsupportedQueryError
from countless.query.parsing.sql import tokens_of
from countless.query.select.aggregate_names import AGGREGATES, UNANSWERED

SYNTAX = """
    select from where group by having order limit offset filter within as on distinct and or not in is like ilike
    glob similar to between escape case when then else interval over exists any all some values union
"""
TYPES = "decimal numeric varchar char text timestamp time"
NUMBERS = """
    abs sign ceil ceiling floor round trunc mod sqrt cbrt ln log log2 log10 exp pow power isnan isinf isfinite greatest
    least cast try_cast coalesce ifnull nullif if sin cos tan cot asin acos atan atan2 degrees radians pi even gcd lcm
    xor bit_count signbit
"""
STRINGS = """
    lower lcase upper ucase length len strlen char_length character_length substring substr left right trim ltrim rtrim
    reverse replace regexp_replace concat contains starts_with prefix ends_with suffix position strpos instr ascii
    unicode regexp_matches regexp_full_match regexp_like regexp_extract bit_length octet_length chr ord translate
    strip_accents nfc_normalize split_part md5 sha1 sha256 hash levenshtein editdist3 damerau_levenshtein hamming
    mismatches jaccard jaro_similarity jaro_winkler_similarity length_grapheme left_grapheme right_grapheme
    substring_grapheme
"""
DATES = """
    date today year month day quarter week weekofyear yearweek isoyear isodow dayofweek dayofmonth dayofyear dayname
    monthname last_day decade century hour minute second millisecond microsecond epoch epoch_ms extract date_part
    datepart date_trunc datetrunc date_diff datediff date_add date_sub datesub age strftime strptime try_strptime
    make_date make_time make_timestamp to_timestamp to_years to_months to_days to_hours to_minutes to_seconds weekday
    millennium era julian nanosecond epoch_us epoch_ns time_bucket to_weeks to_milliseconds to_microseconds timezone now
    current_date current_time current_timestamp
"""
ALLOWED = frozenset(" ".join((SYNTAX, TYPES, NUMBERS, STRINGS, DATES, *AGGREGATES, UNANSWERED)).split())
OPERATOR = re.compile(r"[-+*/%<>=!~^|&@#,.:;?()]+")  # anything else before a parenthesis is a name
LISTS = (TokenType.L_BRACKET, TokenType.L_BRACE)
SUBSCRIPTED = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN)  # before [2:5], which is a part of a string
NO_LISTS = "lists are not computed: write IN (...), without NULLs"
NOT_ALLOWED = "is not among the functions that may be called, see docs/serve.md"


def disallowed_call(sql: str) -> QueryError | None:
    """The error of a call in ``sql`` that is not allowed, if there is one. Text that is not SQL gets no error here.

    >>> disallowed_call("lower(city) = 'oslo' AND age IN (3, 4)") is None
    True
    >>> print(disallowed_call("age > len(repeat('x', 1000))"))
    repeat() is not among the functions that may be called, see docs/serve.md
      age > len(repeat('x', 1000))
                ^^^^^^
    """
    if not any(bracket in sql for bracket in "([{"):
        return None
    try:
        tokens = tokens_of(sql)
    except QuerySyntaxError:
        return None
    for before, token in zip([None, *tokens], tokens, strict=False):
        subscript = token.token_type == TokenType.L_BRACKET and before is not None and before.token_type in SUBSCRIPTED
        if token.token_type in LISTS and not subscript:
            return _refusal(NO_LISTS, sql, token)
    for token, following in pairwise(tokens):
        if following.token_type == TokenType.L_PAREN and not _is_allowed(token):
            return _refusal(f"{token.text.lower()}() {NOT_ALLOWED}", sql, token)
    return None


def check_functions(sql: str) -> None:
    """Raise what :func:`disallowed_call` returns."""
    error = disallowed_call(sql)
    if error is not None:
        raise error


def _is_allowed(token: Token) -> bool:
    """Whether a parenthesis may follow: after an operator, a keyword such as GROUP BY, or a function of the list."""
    name = token.text.lower()
    if token.token_type == TokenType.IDENTIFIER:
        return name in ALLOWED
    return OPERATOR.fullmatch(name) is not None or all(word in ALLOWED for word in name.split())


def _refusal(message: str, sql: str, token: Token) -> QueryError:
    return UnsupportedQueryError(message, sql, (token.start, token.end + 1))
