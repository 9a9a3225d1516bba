"""Which functions may be asked for.

DuckDB evaluates what a clause has beside plain comparisons, and nothing bounds the memory or the time of a function
that makes much out of little: ``repeat('x', 3000000000)`` is a text of three gigabytes. So there is a list of those
that do not.
"""

from __future__ import annotations

from itertools import pairwise

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from countless.errors import QueryError, UnsupportedQueryError
from countless.query.predicate import DIALECT

SYNTAX = """
    select from where group by having order limit offset filter within as on distinct and or not in is like ilike
    glob similar to between escape case when then else interval over exists any all some values union
"""
TYPES = "decimal numeric varchar char text timestamp time"
NUMBERS = """
    abs sign ceil ceiling floor round trunc mod sqrt cbrt ln log log2 log10 exp pow power isnan isinf isfinite greatest
    least cast try_cast coalesce ifnull nullif if
"""
STRINGS = """
    lower lcase upper ucase length len strlen char_length character_length substring substr left right trim ltrim rtrim
    reverse concat contains starts_with prefix ends_with suffix position strpos instr ascii unicode regexp_matches
    regexp_full_match regexp_like regexp_extract
"""
DATES = """
    date today year month day quarter week weekofyear yearweek isoyear isodow dayofweek dayofmonth dayofyear dayname
    monthname last_day decade century hour minute second millisecond microsecond epoch epoch_ms extract date_part
    datepart date_trunc datetrunc date_diff datediff date_add date_sub datesub age strftime strptime try_strptime
    make_date make_time make_timestamp to_timestamp to_years to_months to_days to_hours to_minutes to_seconds
"""
AGGREGATES = """
    count count_star count_if countif sum avg mean min max median mode quantile quantile_cont quantile_disc
    percentile_cont percentile_disc stddev stddev_samp stddev_pop variance var_samp var_pop
"""
ALLOWED = frozenset(" ".join((SYNTAX, TYPES, NUMBERS, STRINGS, DATES, AGGREGATES)).split())
LISTS = (TokenType.L_BRACKET, TokenType.L_BRACE)
LISTED = "the service computes only functions of its list, see docs/serve.md"


def refused(sql: str) -> QueryError | None:
    """Why ``sql`` is not asked at all, if so. What is no SQL is left to those who read it.

    >>> refused("lower(city) = 'oslo' AND age IN (3, 4)") is None
    True
    >>> print(refused("age > len(repeat('x', 1000))"))
    the service computes only functions of its list, see docs/serve.md, and repeat() is none of them
      age > len(repeat('x', 1000))
                ^^^^^^
    """
    try:
        tokens = sqlglot.tokenize(sql, dialect=DIALECT)
    except SqlglotError:
        return None
    for token in tokens:
        if token.token_type in LISTS:
            return _refusal("the service computes no lists: write IN (...)", sql, token)
    for token, following in pairwise(tokens):
        name = token.text.lower()
        is_called = following.token_type == TokenType.L_PAREN and name.replace("_", "").isalnum()
        if is_called and name not in ALLOWED:
            return _refusal(f"{LISTED}, and {name}() is none of them", sql, token)
    return None


def _refusal(message: str, sql: str, token: Token) -> QueryError:
    return UnsupportedQueryError(message, sql, (token.start, token.end + 1))
