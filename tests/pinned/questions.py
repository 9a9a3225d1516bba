"""What is asked of each model, and the answers as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from countless.data.frame import Frame
from countless.errors import CountlessError
from countless.estimator.answers.estimate import Estimate
from countless.estimator.estimator import Estimator
from countless.query.predicate import col

Question = tuple[str, dict[str, Any]]  # a method of the estimator, and its arguments

TRIPS = (
    "TRUE",
    "FALSE",
    "city = 'Oslo'",
    "city = 'Paris'",
    "city <> 'Rome'",
    "city IS NULL",
    "NOT (city IS NULL)",
    "city IN ('Rome', 'Bern', 'Paris')",
    "city NOT IN ('Rome', NULL)",
    "city LIKE '%o%'",
    "city ILIKE 'O%'",
    "regexp_matches(city, '^[A-N]')",
    "length(city) > 4 AND paid",
    "lower(city) = 'oslo' AND score >= 2",
    "paid",
    "NOT paid AND city = 'Rome'",
    "(paid AND city = 'Rome') IS TRUE",
    "(paid OR weight > 900) IS NOT FALSE",
    "number = 37",
    "number = 99999",
    "number BETWEEN 100 AND 1900",
    "number > 700 AND weight < 900 AND paid",
    "number % 2 = 0 AND score < 2",
    "number IN (1, 2, 3, 700, 701) AND paid",
    "number >= 60 AND number < 2450 AND day > '2020-02-10'",
    "weight > 1000",
    "weight = 1.5",
    "weight IS NULL AND city = 'Oslo'",
    "weight BETWEEN 10.25 AND 777.7 AND city <> 'Oslo'",
    "floor(weight) = 17",
    "weight < 300 OR weight > 1200",
    "NOT (weight > 300) AND number > 20",
    "day < '2020-02-01'",
    "day = DATE '2020-03-03' AND paid",
    "month(day) = 2 AND city = 'Rome' AND weight > 50",
    "day BETWEEN '2020-01-10' AND '2020-03-01' AND score > 0.5 AND number < 2000",
    "score = 2.25",
    "score > 1 AND score < 3 AND weight > 12",
    "abs(score - 2) < 1 AND NOT paid",
    "city = 'Oslo' OR paid",
    "city = 'Oslo' OR number > 2000 OR score < 1",
    "(city = 'Rome' OR city IS NULL) AND (paid OR score > 3)",
    "NOT (city = 'Oslo' AND paid) AND number < 1000",
    "paid AND city = 'Rome' AND day < '2020-02-01' AND score > 1 AND weight > 100",
    "paid AND city = 'Rome' AND day < '2020-02-01' AND score > 1 AND weight > 100 AND number > 50",
    "city = 'Oslo' AND day = '2020-01-05' AND score = 2",
    "city = 'Oslo' AND city = 'Rome'",
    "SELECT * FROM trips t WHERE t.number > 2000 AND t.city = 'Oslo'",
    "city = 3",
    "cty = 'Oslo'",
)
TEXT = (
    "url LIKE '%news%'",
    "url LIKE '%.de/%'",
    "url LIKE 'a.%'",
    "url LIKE '%blog'",
    "url LIKE 'a%s%'",
    "url LIKE '%sh%ws%'",
    "url NOT LIKE '%mail%'",
    "url ILIKE '%NEWS'",
    "url NOT ILIKE '%xx%'",
    "url = 'a.de/shop'",
    "url = 'nothing'",
    "url IN ('a.de/shop', 'b.is/blog', 'zz')",
    "url IS NULL",
    "note IS NULL",
    "note IS NOT NULL AND url LIKE '%.fr%'",
    "regexp_matches(url, '^[ab][.](de|fr)')",
    "regexp_matches(note, '[0-9]{2}')",
    "regexp_full_match(url, '.*(shop|mail)')",
    "length(url) > 9",
    "length(url) BETWEEN 8 AND 9 AND url LIKE 'c%'",
    "starts_with(url, 'cd') AND ends_with(url, 'ws')",
    "contains(note, 'Ok')",
    "url > 'b'",
    "url BETWEEN 'a.f' AND 'b.i'",
    "note LIKE 'note 1%' OR url LIKE '%.is%'",
    "note LIKE '%!' AND url LIKE '%.mt/%'",
    "NOT (note LIKE '%!' OR url LIKE '%.mt/%')",
    "upper(url) = 'A.DE/SHOP'",
)
MIXED = (
    *TEXT[:8],
    *TEXT[14:18],
    "country = 'IS'",
    "country = 'IS' AND size > 30",
    "country = 'IS' AND url LIKE '%.is/%'",
    "country = 'IS' AND url LIKE 'a.is/%'",
    "country = 'MT' AND url LIKE '%.de/%'",
    "size > 10 AND country <> 'IS' AND url LIKE '%s%'",
    "size BETWEEN 5 AND 25 AND url LIKE '%news' AND note IS NULL",
    "size > 25 AND (url LIKE '%blog%' OR url LIKE '%mail%')",
    "(country = 'DE' AND url LIKE '%shop') OR (country = 'IS' AND url LIKE '%mail' AND size > 30)",
    "country = 'FR' OR url LIKE '%.de/%'",
    "NOT (country = 'FR' OR url LIKE '%.de/%')",
    "country = 'DE' AND url LIKE '%news%' AND note LIKE '%1%'",
    "country = 'DE' AND length(url) > 9",
    "country = 'DE' AND url ILIKE '%SHOP' AND size = 3",
    "country IN ('DE', 'FR') AND regexp_matches(url, '(shop|blog)$')",
    "country = 'XX' AND url LIKE '%a%'",
)
COLUMN_METHODS = ("skipping", "progressive", "multi-order", "multi-order+skipping", "exact", "naive", "no such method")
SELECTS = (
    "SELECT count(*), sum(number), avg(weight), median(score) FROM t WHERE paid AND number > 300",
    "SELECT city, count(*), avg(weight), sum(number), stddev(score) FROM t WHERE weight > 100 AND paid GROUP BY city",
    "SELECT city, paid, count(*) AS n, quantile_cont(weight, 0.9) FROM t GROUP BY ALL HAVING n > 10 ORDER BY n DESC",
    "SELECT avg(number), approx_quantile(weight, 0.25), var_pop(score), count(weight) FROM t WHERE weight < 500.25",
    "SELECT day, avg(score), median(day) FROM t WHERE city = 'Rome' OR number < 50 GROUP BY day ORDER BY 1 LIMIT 20",
    "SELECT score, avg(score), round(avg(number), 1) FROM t WHERE score > 2 AND paid GROUP BY score",
    "SELECT count(*) FROM t WHERE cty = 3",
)
MIXED_SELECTS = (
    "SELECT country, count(*), avg(size), median(size) FROM t WHERE url LIKE '%news%' GROUP BY country",
    "SELECT avg(size), sum(size), stddev(size) FROM t WHERE country <> 'IS' AND url LIKE '%.is%'",
    "SELECT avg(size), sum(size) FROM t WHERE note IS NULL",
)


def questions(model: str) -> Iterator[Question]:
    """Everything that the model is asked."""
    clauses = {"text": TEXT, "mixed": MIXED}.get(model, TRIPS)
    for where in clauses:
        yield "estimate", {"where": where}
    for where in clauses[3::3]:
        yield "explain", {"where": where}
        yield "estimate", {"where": where, "particles": 40}
        yield "estimate", {"where": where, "summary": False, "table_rows": 7000}
    methods = COLUMN_METHODS if model == "orders" else ("skipping", "progressive", "exact", "naive")
    for method in methods:
        for where in clauses[2::8]:
            yield "estimate", {"where": where, "method": method, "particles": None if method == "exact" else 60}
    yield "estimate_many", {"clauses": [where for where in clauses if "cty" not in where and where != "city = 3"]}
    yield "estimate", {"where": (col("city") == "Oslo") & ~col("paid") if clauses is TRIPS else "TRUE"}
    if clauses is TRIPS:
        yield from _spread(TRIPS[4::5], SELECTS, ("city", "number", "weight", "day", "score"), ("city", "paid"))
    if model == "mixed":
        yield from _spread(MIXED[1::4], MIXED_SELECTS, ("country", "size"), ("country", "size"))
    for condition in (None, *clauses[2::7]):
        yield "sample", {"count": 5, "where": condition, "seed": 3}


def _spread(
    clauses: Sequence[str], selects: Sequence[str], columns: Sequence[str], pair: Sequence[str]
) -> Iterator[Question]:
    for where in (None, *clauses):
        yield "distributions", {"columns": columns, "where": where, "bins": {columns[1]: 4}}
        yield "distribution", {"column": columns[0], "where": where}
        yield "distribution", {"column": pair, "where": where, "sort": "value"}
        yield "joint", {"columns": list(dict.fromkeys((*pair, columns[1]))), "where": where, "groups": 1}
    for sql in selects:
        yield "query", {"sql": sql}
        yield "query", {"sql": sql, "intervals": True}


def ask(estimator: Estimator, question: Question) -> Any:
    """The answer as plain data; if it is an error, its message."""
    method, arguments = question
    try:
        return plain(getattr(estimator, method)(**arguments))
    except CountlessError as error:
        return f"{type(error).__name__}: {error}"


def plain(value: Any) -> Any:
    """Anything that an estimator answers, without times and with floats as they are."""
    if isinstance(value, Estimate):
        named = {name: each for name, each in vars(value).items() if name != "ms"}
        return {name: plain(each) for name, each in named.items()}
    if isinstance(value, Frame):
        more = {name: plain(each) for name, each in vars(value).items() if name not in ("columns", "ms", "total")}
        return {**more, "columns": plain(value.columns)}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "__dataclass_fields__"):
        shown = {name: each for name, each in vars(value).items() if name != "stages_ms" and not name.startswith("_")}
        return {name: plain(each) for name, each in shown.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if "__repr__" not in vars(type(value)):  # it would name an address
        return type(value).__name__
    return value if isinstance(value, bool | int | float | str | None) else str(value)
