"""Clauses on evidence rows: the same hits as DuckDB finds in the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from countless.data.encoding.table import read_schema
from countless.data.evidence import EvidenceRows
from countless.data.sources.source import Source, connect
from countless.errors import QueryError, UnsupportedQueryError
from countless.estimator.answers.evidence import Evidence
from countless.options import EncodeOptions
from countless.query.compile import Compiler
from countless.query.filter_cache import CachedCompiler
from countless.workload.questions import questions_by_kind
from tests.query.test_filter_cache import same

TABLE = """
SELECT
    TIMESTAMP '2010-01-01' + INTERVAL 1 MINUTE * (hash(range) % 500000)::INTEGER AS moment,
    (hash(range, 1) % 40)::INTEGER AS small,
    round((hash(range, 2) % 100000) / 7, 2) AS wide,
    CASE WHEN hash(range, 3) % 20 > 0 THEN 'https://example.org/' || (hash(range, 4) % 900) || '/page' END AS page,
    ['a', 'b', 'c'][1 + (hash(range, 5) % 3)::INTEGER] AS letter
FROM range(4000)
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evidence") / "table.parquet"
    connect().execute(f"COPY ({TABLE}) TO '{path}'")
    return path


class Sampled:
    """A sample of the table as evidence, and as a table that DuckDB counts."""

    def __init__(self, table: Path, rows: int) -> None:
        source = Source.open(table)
        self.schema = read_schema(source, EncodeOptions(max_distinct=200, text=("page",)))
        drawn = EvidenceRows.drawn(source, self.schema, rows, 3)
        self.evidence = EvidenceRows.from_arrays(drawn.arrays(self.schema), self.schema)
        self.source = self.evidence.source()
        self.counter = Evidence(self.schema, self.evidence)
        self.compiler = Compiler(self.schema, self.evidence)
        self.cached = CachedCompiler.of(self.compiler)

    def hits(self, where: str) -> int:
        return self.counter.hits(self.compiler.compile(where)).count


@pytest.fixture(scope="module")
def sampled(table: Path) -> Sampled:
    return Sampled(table, 1_500)


def test_what_is_stored_how(sampled: Sampled) -> None:
    moment, _, wide, _ = sampled.schema.coded
    assert moment.grid is not None
    assert wide.grid is not None
    assert [text.name for text in sampled.schema.texts] == ["page"]
    assert sampled.evidence.schema.coded[0].distinct > 1_000  # the sample's own values


CLAUSES = [
    "TRUE",
    "hour(moment) BETWEEN 2 AND 4",
    "hour(moment) = 3 AND small > 30",
    "moment >= '2010-03-01' AND moment < '2010-03-02 12:30:00'",
    "moment >= DATE '2010-03-01' AND small < 30",
    "moment BETWEEN DATE '2010-03-01' AND TIMESTAMP '2010-05-02 12:30:00'",
    "moment NOT IN (DATE '2010-03-01', TIMESTAMP '2010-05-02 12:30:00') AND wide <= 7000.5 AND wide <> 12",
    "wide < 100.5 OR small = 7",
    "NOT (wide < 5000 AND letter = 'a')",
    "page LIKE '%/12%' AND letter <> 'b'",
    "page NOT LIKE '%9%' OR page IS NULL",
    "page IS NULL",
    "length(page) > 26",
    "regexp_matches(page, '/[0-4]+/')",
    "wide IN (1.0, 2.0) OR wide IS NULL",
    "dayofweek(moment) = 0 AND wide BETWEEN 1000 AND 2000 AND page LIKE 'https%7/page'",
    "small IN (1, 2, 3) AND NOT hour(moment) = 5",
    "extract(minute FROM moment) IN (5, 6, -1) AND small % 7 <> 3",
    "day(moment) NOT BETWEEN 3 AND 20 AND 3 > abs(small - 20)",
    "nullif(day(moment), 7) <> 5 AND NOT (small // 3 = 5)",
    "length(letter) = 1 AND wide // 10 >= 30",
]
ROW_WISE = [
    "small > wide",
    "small + wide < 500",
    "(small, letter) IN ((7, 'a'), (8, 'b'))",
    "wide > 100 * small AND letter = 'a'",
    "wide > 100 * small OR hour(moment) = 3",
    "letter || page LIKE 'ahttps%1%'",
    "CASE WHEN letter = 'a' THEN small > 20 ELSE wide > 700 END",
    "small > wide AND small + wide < 500 AND moment >= DATE '2010-03-01'",
]


@pytest.mark.parametrize("where", CLAUSES + ROW_WISE)
def test_hits_are_those_of_duckdb(sampled: Sampled, where: str) -> None:
    truth = sampled.source.counts([where])[0]
    assert sampled.hits(where) == truth
    pieces, whole = sampled.cached.compile(where), sampled.compiler.compile(where)
    assert sampled.counter.hits(pieces).count == truth
    assert (pieces.certain, pieces.beyond) == (whole.certain, whole.beyond)
    assert same(pieces.region, whole.region)


def test_random_questions(sampled: Sampled) -> None:
    clauses = [where for where, _ in questions_by_kind(sampled.source, 4, 11)]
    truths = sampled.source.counts(clauses)
    for where, truth in zip(clauses, truths, strict=True):
        assert sampled.hits(where) == truth, where


def test_filters_that_only_rows_can_answer_are_told_apart(sampled: Sampled) -> None:
    question = sampled.compiler.compile("letter = 'a' AND small > wide AND page LIKE '%1%'")
    assert question.beyond == ("small > wide",)
    (box,) = question.region.boxes
    assert len(box.filters) == len(box.texts) == 1
    assert not question.certain


def test_without_evidence_rows_they_are_errors(sampled: Sampled) -> None:
    with pytest.raises(UnsupportedQueryError, match='about the columns "small" and "wide"'):
        Compiler(sampled.schema).compile("small > wide")


@pytest.mark.parametrize(
    "where",
    [
        "small > wide AND nonsense = 1",
        "small > wide + letter::DATE",
        "small > (SELECT max(small) FROM t) AND small > wide",
    ],
)
def test_what_nobody_can_answer_stays_an_error(sampled: Sampled, where: str) -> None:
    with pytest.raises(QueryError):
        sampled.compiler.compile(where)


def test_functions_outside_the_list_are_refused(sampled: Sampled) -> None:
    with pytest.raises(QueryError, match="read_text"):
        sampled.compiler.compile("read_text('/etc/passwd') > page || letter")


def test_whole_table(table: Path) -> None:
    whole = Sampled(table, 10**6)
    assert whole.evidence.rows == 4_000
    assert np.unique(whole.evidence.codes[4]).size == whole.evidence.schema.coded[4].size
    where = "small > wide OR hour(moment) = 3"
    assert whole.hits(where) == Source.open(table).counts([where])[0]


def test_names_that_differ_only_in_case_or_are_fields() -> None:
    made = connect().sql(
        """SELECT 1 AS "ss", range AS "ß", {'low': range - 50, 'high': 100 - range} AS span FROM range(200)"""
    )
    source = Source.open(made)
    schema = read_schema(source)
    rows = EvidenceRows.drawn(source, schema, 200, 0)
    counter, compiler = Evidence(schema, rows), Compiler(schema, rows)
    for where in ('"ß" > 3 * "ss"', '"ss" > "ß"', "span.low > span.high", '"ß" < span.high'):
        question = compiler.compile(where)
        assert question.beyond
        flat = where.replace("span.low", '"span.low"').replace("span.high", '"span.high"')
        assert counter.hits(question).count == source.counts([flat])[0]
