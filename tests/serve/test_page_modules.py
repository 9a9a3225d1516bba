"""The page's own arithmetic, in the browser that runs it: clauses are written, read back, and counted by DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from sqlglot import exp

from countless.data.sources.source import connect
from countless.query.parsing.parse import parse
from tests.serve.conftest import Client

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TABLE = """
SELECT * FROM (VALUES
    (1, 'it''s', DATE '2020-01-31', true, 1.50, '100%_a\\b', TIMESTAMP '2020-01-01 10:00:00'),
    (2, 'b', DATE '2020-02-01', false, 0.25, '100x_a\\b', TIMESTAMP '2020-01-01 11:30:00'),
    (-3, NULL, DATE '2020-03-01', NULL, NULL, 'A''b', NULL),
    (NULL, '', NULL, true, 1.50, 'it is 100%', TIMESTAMP '2020-01-01 10:00:00')
) t(n, "od""d name", "select", ok, score, url, moment)
"""
COLUMNS = [
    {"name": "n", "type": "INTEGER", "kind": "number"},
    {"name": 'od"d name', "type": "VARCHAR", "kind": "category"},
    {"name": "select", "type": "DATE", "kind": "time"},
    {"name": "ok", "type": "BOOLEAN", "kind": "category"},
    {"name": "score", "type": "DECIMAL(4,2)", "kind": "category"},
    {"name": "url", "type": "VARCHAR", "kind": "text"},
    {"name": "moment", "type": "TIMESTAMP", "kind": "time"},
]
Call = Callable[..., Any]


@pytest.fixture(scope="module")
def call(browser: Browser, client: Client) -> Iterator[Call]:
    """Calls a function of one of the page's modules; maps and sets come back as lists."""
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{client.port}/")

    def called(module: str, function: str, *given: Any) -> Any:
        return page.evaluate(
            """async ([module, name, given]) => {
                const plain = (key, value) => value instanceof Map ? [...value] : value;
                const maps = (value) => value?.filters ? {...value, filters: new Map(value.filters)} : value;
                const found = (await import(`/static/${module}.js`))[name](...given.map(maps));
                return found === undefined ? null : JSON.parse(JSON.stringify(found, plain));
            }""",
            [module, function, list(given)],
        )

    yield called
    page.context.close()


def in_(*values: str | None) -> dict[str, Any]:
    return {"kind": "in", "values": list(values)}


def between(low: str | None, high: str | None, *, strict: str = "", or_null: bool = False) -> dict[str, Any]:
    bounds = [
        None if text is None else {"text": text, "strict": end in strict}
        for end, text in zip("<>", (low, high), strict=True)
    ]
    return {"kind": "range", "from": bounds[0], "to": bounds[1], "orNull": or_null}


def like(mode: str, text: str, *, any_case: bool = False, without: bool = False) -> dict[str, Any]:
    return {"kind": "like", "mode": mode, "text": text, "anyCase": any_case, "not": without}


FILTERS = [
    ("n", between("1", "2"), "n BETWEEN 1 AND 2", 2),
    ("n", between("1", "1"), "n = 1", 1),
    ("n", between("-3", "2", strict="<>"), "n > -3 AND n < 2", 1),
    ("n", between(None, "1", or_null=True), "(n <= 1 OR n IS NULL)", 3),
    ("n", between("-3", "1", strict=">", or_null=True), "(n >= -3 AND n < 1 OR n IS NULL)", 2),
    ("n", between(None, None, or_null=True), "n IS NULL", 1),
    ('od"d name', in_("it's"), "\"od\"\"d name\" = 'it''s'", 1),
    ('od"d name', in_("it's", "", None), "(\"od\"\"d name\" IN ('it''s', '') OR \"od\"\"d name\" IS NULL)", 3),
    ('od"d name', in_(None), '"od""d name" IS NULL', 1),
    ("select", between("2020-01-31", "2020-02-01"), "\"select\" BETWEEN DATE '2020-01-31' AND DATE '2020-02-01'", 2),
    ("select", between("2020-02-01", None), "\"select\" >= DATE '2020-02-01'", 2),
    ("ok", in_("true", None), "(ok = TRUE OR ok IS NULL)", 3),
    ("score", in_("1.50", "0.25"), "score IN (1.50, 0.25)", 3),
    ("url", like("contains", "100%"), "url LIKE '%100\\%%' ESCAPE '\\'", 2),
    ("url", like("contains", "%_a\\b"), "url LIKE '%\\%\\_a\\\\b%' ESCAPE '\\'", 1),
    ("url", like("starts", "100"), "url LIKE '100%'", 2),
    ("url", like("ends", "'B", any_case=True), "url ILIKE '%''B'", 1),
    ("url", like("like", "100_%", without=True), "url NOT LIKE '100_%'", 2),
    ("moment", between("2020-01-01 10:00:00", "2020-01-01 11:30:00", strict=">"),
     "moment >= TIMESTAMP '2020-01-01 10:00:00' AND moment < TIMESTAMP '2020-01-01 11:30:00'", 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "told", "sql", "rows"), FILTERS, ids=[sql for _, _, sql, _ in FILTERS])
def test_filters_are_written_counted_and_read_back(call: Call, name: str, told: Any, sql: str, rows: int) -> None:
    view = {"model": "", "filters": [[name, told]], "extra": []}
    written = call("clause", "whereOf", COLUMNS, view)
    assert written == sql
    assert connect().execute(f"SELECT count(*) FROM ({TABLE}) WHERE {written}").fetchall() == [(rows,)]
    assert call("parse", "parseWhere", written, COLUMNS) == {"filters": [[name, told]], "extra": []}


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("n>1 and OK = true", "n > 1 AND ok = TRUE"),
        ("WHERE 1 < n", "n > 1"),
        ("SELECT * FROM t WHERE n = 1 ORDER BY 1 LIMIT 3", "n = 1"),
        ("(n >= 1 AND (n < 2)) AND ok = TRUE", "n >= 1 AND n < 2 AND ok = TRUE"),
        ("n = 1 -- only one\n AND ok = TRUE /* yes */", "n = 1 AND ok = TRUE"),
        ("n BETWEEN 1 AND 2 OR n IS NULL", "(n BETWEEN 1 AND 2 OR n IS NULL)"),
        ("n > 1 OR ok", "(n > 1 OR ok)"),
        ("n > 1 AND ok OR n < 0", "(n > 1 AND ok OR n < 0)"),
        ("n > 1 AND n > 2", "n > 1 AND n > 2"),
        ("n IN (1, 2)", "n IN (1, 2)"),
        ("n + 1 > 2 AND ok = TRUE", "ok = TRUE AND n + 1 > 2"),
        ("NOT (ok = TRUE) AND n <> 1", "NOT (ok = TRUE) AND n <> 1"),
        ("CASE WHEN n > 1 AND ok THEN TRUE END AND n < 5", "n < 5 AND CASE WHEN n > 1 AND ok THEN TRUE END"),
        ("url LIKE 'a\\b' AND url LIKE 'b%'", "url LIKE 'b%' AND url LIKE 'a\\b'"),
        ("url LIKE 'a#_b' ESCAPE '#'", "url LIKE 'a#_b' ESCAPE '#'"),
        ("url = 'AND' AND \"od\"\"d name\" = ' OR '", "\"od\"\"d name\" = ' OR ' AND url = 'AND'"),
        ("lower(url) = 'x' AND t.n > 1", "lower(url) = 'x' AND t.n > 1"),
        ("agee > 35", "agee > 35"),
        ("n > (1", "n > (1"),
        ("n > 'abc", "n > 'abc"),
        ("", ""),
    ],
)
def test_what_no_card_can_show_is_kept(call: Call, written: str, normal: str) -> None:
    parsed = call("parse", "parseWhere", written, COLUMNS)
    again = call("clause", "whereOf", COLUMNS, {"model": "", **parsed})
    assert again == normal
    assert call("clause", "whereOf", COLUMNS, {"model": "", **call("parse", "parseWhere", again, COLUMNS)}) == again


@pytest.mark.parametrize("written", ["n > 1 OR ok", "n > 1 AND ok OR n < 0", "(n = 1 OR n = 2) AND ok = TRUE", "ok"])
def test_a_clause_counts_the_same_beside_another_filter(call: Call, written: str) -> None:
    parsed = call("parse", "parseWhere", written, COLUMNS)
    filters = [*parsed["filters"], ["score", in_("1.50")]]
    both = call("clause", "whereOf", COLUMNS, {"model": "", "filters": filters, "extra": parsed["extra"]})
    counts = [
        connect().execute(f"SELECT count(*) FROM ({TABLE}) WHERE {where}").fetchall()
        for where in (both, f"({written}) AND score = 1.50")
    ]
    assert counts[0] == counts[1]


def test_keywords_are_quoted_where_they_have_to_be(call: Call) -> None:
    connection = connect()
    words = [word for (word,) in connection.execute("SELECT DISTINCT keyword_name FROM duckdb_keywords()").fetchall()]
    for word in words:
        name = call("literal", "quoteName", word)
        condition = parse(f"({name} IN (1) OR {name} IS NULL) AND {name} BETWEEN 1 AND 2 AND {name} >= 1")
        assert {column.name for column in condition.find_all(exp.Column)} == {word}
        connection.execute(f"SELECT 1 FROM (SELECT 1 AS {name}) WHERE {name} IN (1) AND {name} BETWEEN 1 AND 2")


@pytest.mark.parametrize(
    ("function", "given", "text"),
    [
        ("formatRows", [0], "0"),
        ("formatRows", [0.01], "<0.1"),
        ("formatRows", [2.43], "2.4"),
        ("formatRows", [3.0], "3"),
        ("formatRows", [48842.4], "48,842"),
        ("formatShort", [15784], "15.8K"),
        ("formatShort", [999], "999"),
        ("formatShort", [12345678], "12.3M"),
        ("formatShare", [0], "0%"),
        ("formatShare", [1], "100%"),
        ("formatShare", [0.99996], "99.9%"),
        ("formatShare", [0.32316], "32.3%"),
        ("formatShare", [0.00692], "0.69%"),
        ("formatShare", [1e-9], "<0.0001%"),
        ("formatMs", [0.843], "0.84 ms"),
        ("formatMs", [4.04], "4.0 ms"),
        ("formatMs", [120.4], "120 ms"),
        ("formatMs", [2100], "2.1 s"),
        ("formatValue", [None], "NULL"),
        ("formatValue", [""], "(empty)"),
        ("formatEdge", [2013, True], "2013"),
        ("formatEdge", [4610], "4,610"),
        ("formatEdge", [-1234.56789], "-1,234.56789"),
        ("formatEdge", [-0.5], "-0.5"),
        ("formatEdge", [1e21], "1e+21"),
        ("formatEdge", [100000], "100,000"),
        ("formatEdge", ["2020-01-01 00:00:00"], "2020-01-01"),
        ("formatEdge", ["2020-01-01 10:00:00+00"], "2020-01-01 10:00:00+00"),
        ("formatFactor", [1.013], "1.01"),
        ("formatFactor", [130.2], "130"),
    ],
)
def test_numbers_are_read_at_a_glance(call: Call, function: str, given: list[Any], text: str) -> None:
    assert call("format", function, *given) == text


def test_years_have_no_thousands(call: Call) -> None:
    assert call("format", "areYears", 1890, 2024) is True
    for ends in ((0, 4610), (160, 2500), (1000, 10000), (1000.5, 2000), ("2020-01-01", "2020-02-01")):
        assert call("format", "areYears", *ends) is False


def test_q_error_is_of_at_least_one_row(call: Call) -> None:
    assert call("format", "qError", 0.2, 0) == 1
    assert call("format", "qError", 50, 100) == call("format", "qError", 100, 50) == 2


@pytest.mark.parametrize(
    ("kind", "text", "after"),
    [("INTEGER", "9", "10"), ("BIGINT", "9007199254740993", "9007199254740994"), ("DATE", "2020-02-28", "2020-02-29")],
)
def test_neighbours_of_discrete_values(call: Call, kind: str, text: str, after: str) -> None:
    assert call("literal", "neighbour", kind, text, 1) == after
    assert call("literal", "neighbour", kind, after, -1) == text


@pytest.mark.parametrize(("text", "before", "after"), [("20.5", "20", "21"), ("1e3", "999", "1001")])
def test_neighbours_of_what_may_be_typed(call: Call, text: str, before: str, after: str) -> None:
    assert [call("literal", "neighbour", "INTEGER", text, by) for by in (-1, 1)] == [before, after]
    assert call("literal", "neighbour", "HUGEINT", "1e30", 1) == str(int(1e30) + 1)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("DOUBLE", "-1.5e3", "2"),
        ("DATE", "1999-12-31", "2000-01-01"),
        ("TIME", "09:30:00", "10:00"),
        ("TIMESTAMP", "2020-01-01 09:30:00.123456", "2020-01-01 10:00:00"),
        ("TIMESTAMP WITH TIME ZONE", "2020-01-01 09:30:00+02", "2020-01-01 09:30:00+00"),
    ],
)
def test_values_have_their_places_on_the_axis(call: Call, kind: str, low: str, high: str) -> None:
    assert call("literal", "position", kind, low) < call("literal", "position", kind, high)


def test_a_hash_names_a_model_and_a_clause(call: Call) -> None:
    where = "a = '100%&b=#c' AND \"ö\" > 1"
    assert call("state", "readHash", call("state", "hashOf", "adult", where)) == {"model": "adult", "where": where}
    assert call("state", "readHash", "") == {"model": "", "where": ""}


def test_nearly_all_values_are_looked_at_closely(call: Call) -> None:
    def bins(shares: dict[int, float]) -> list[dict[str, Any]]:
        return [{"from": at, "to": at + 10, "share": share, "rows": share * 100} for at, share in shares.items()]

    assert call("zoom", "zoomOf", "INTEGER", bins({0: 0.5, 10: 0.2, 20: 0.3})) is None
    whole = bins({0: 0.005, 40: 0.6, 50: 0.385, 100: 0.01})
    zoom = call("zoom", "zoomOf", "INTEGER", whole)
    assert {**zoom, "bins": None} == {"bins": None, "first": 0, "from": 40, "to": 60, "last": 110}
    assert zoom["bins"] == 32 * 110 / 20
    null = {"from": None, "to": None, "share": 0.1, "rows": 10}
    folded = call("zoom", "folded", "INTEGER", zoom, [*bins({0: 0.1, 10: 0.2, 50: 0.5, 100: 0.1}), null])
    parts: list[tuple[Any, ...]] = [(each["from"], each["to"], round(each["share"], 9)) for each in folded]
    assert parts == [(0, 40, 0.3), (50, 60, 0.5), (60, 110, 0.1), (None, None, 0.1)]
