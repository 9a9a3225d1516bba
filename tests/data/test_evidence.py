"""Evidence rows: a uniform sample, every value as it is in the table, before and after updates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from countless.data.encoding.schema_growth import conformed, grown
from countless.data.encoding.table import read_schema
from countless.data.evidence import EvidenceRows, evidence_rows, updated_shares
from countless.data.sources.source import Source, connect
from countless.options import EncodeOptions

# Every kind of type; numbers and times in a grid, strings that are read as text, and NULLs everywhere.
ALL_TYPES = """
SELECT * REPLACE (
    CASE WHEN n % 5 > 0 THEN small END AS small, CASE WHEN n % 6 > 0 THEN words END AS words,
    CASE WHEN n % 7 > 0 THEN moment END AS moment
) FROM (
    SELECT range AS n, (range % 3)::UTINYINT AS small, range % 2 = 0 AS flag, (range % 4 / 8)::FLOAT AS part,
        sin(range) AS wide, (range % 9)::DECIMAL(30, 4) AS money, (1e30::HUGEINT + range) AS huge,
        TIMESTAMP '2020-01-01' + INTERVAL (range) MINUTE AS moment, DATE '2020-01-01' + (range % 5)::INTEGER AS day,
        TIME '10:00' + INTERVAL (range % 3) HOUR AS hour, TIMESTAMPTZ '2020-01-01 00:00:00+02' AS zoned,
        ['a', 'O''Hara', '', 'Łódź "x"'][1 + range % 4] AS kind, 'word ' || range || chr(10) || '\\x' AS words,
        NULL::INTEGER AS nothing, md5(range::VARCHAR)::UUID AS id
    FROM range(200)
)
"""


def rows_of(source: Source, columns: str = "*") -> list[tuple[Any, ...]]:
    casts = f"SELECT CAST(COLUMNS({columns}) AS VARCHAR) FROM {source.table}"
    return sorted(source.rows(casts), key=repr)


def drawn(table: Any, count: int, seed: int = 0, **options: Any) -> EvidenceRows:
    source = Source.open(table)
    return EvidenceRows.drawn(source, read_schema(source, EncodeOptions(**options)), count, seed)


class TestDrawn:
    def test_every_value_comes_back(self) -> None:
        source = Source.open(connect().sql(ALL_TYPES))
        options = EncodeOptions(max_distinct=50, text=("words",))
        schema = read_schema(source, options)
        assert any(column.grid for column in schema.coded)
        assert schema.texts
        evidence = EvidenceRows.drawn(source, schema, 200, 0)
        again = EvidenceRows.from_arrays(evidence.arrays(schema), schema)
        names = [column.name for column in schema.columns]
        for found in (evidence.source(), again.source()):
            assert dict(found.columns()) == {column.name: column.type for column in schema.columns}
            assert rows_of(found) == rows_of(source.selected(f"SELECT {', '.join(names)} FROM {source.table}"))

    def test_the_rows_of_the_source_are_in_the_order_of_the_codes(self) -> None:
        evidence = drawn(connect().sql("SELECT range % 7 AS a, hash(range) % 100 AS b FROM range(5000)"), 3000)
        source = evidence.source()
        for column, codes in zip(evidence.schema.coded, evidence.codes, strict=True):
            values = [str(value) for (value,) in source.rows(f'SELECT "{column.name}" FROM {source.table}')]
            assert values == [column.values[code] for code in codes]

    def test_rows_stay_together_and_excluded_columns_never_enter(self) -> None:
        source = Source.open(connect().sql("SELECT range AS a, range * 2 AS b, 'secret' || range AS c FROM range(999)"))
        evidence = drawn(source, 100, exclude=("c",))
        assert evidence.schema.names == ("a", "b")
        found = evidence.source()
        assert all(b == 2 * a for a, b in found.rows(f"SELECT a, b FROM {found.table}"))
        assert not any(b"secret" in array.tobytes() for array in evidence.arrays(evidence.schema).values())

    def test_the_same_seed_draws_the_same_rows(self) -> None:
        table = connect().sql("SELECT range AS a FROM range(5000)")
        one, two, three = (rows_of(drawn(table, 50, seed).source()) for seed in (3, 3, 4))
        assert one == two
        assert len({*one} & {*three}) < 10

    def test_rows_of_a_relation_in_no_order(self) -> None:
        """DuckDB may give the groups in another order every time."""
        connection = connect()
        connection.execute("SET threads = 4")
        groups = connection.sql("SELECT i % 60000 AS a, 'x' || i % 60000 AS b FROM range(400000) t(i) GROUP BY ALL")
        source = drawn(groups, 5000, max_distinct=100, text=("b",)).source()
        assert source.rows(f"SELECT count(*), count(*) FILTER (b = 'x' || a) FROM {source.table}") == [(5000, 5000)]
        (left,) = connection.sql("SELECT count(*) FROM duckdb_tables()").fetchall()
        assert left == (0,)

    def test_a_table_of_one_row(self) -> None:
        evidence = drawn(pd.DataFrame({"a": [1], "t": ["x"]}), 10_000)
        assert rows_of(evidence.source()) == [("1", "x")]

    def test_every_row_is_as_likely_as_any_other(self) -> None:
        source = Source.open(connect().sql("SELECT range AS a FROM range(20)"))
        schema = read_schema(source)
        counts = np.zeros(20)
        for seed in range(100):
            evidence = EvidenceRows.drawn(source, schema, 10, seed)
            assert len(set(evidence.codes[0].tolist())) == 10
            counts[evidence.codes[0]] += 1
        assert _chi_square(counts, 10 / 20 * 100, 10 / 20) < 45  # 19 degrees of freedom: one in 1,500 is larger

    @pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb", "query", "pandas", "polars", "arrow", "relation"])
    def test_every_kind_of_table(self, kind: str, tmp_path: Path) -> None:
        select = "SELECT range AS a, 'x' || range AS b, {'c': range + 1} AS s FROM range(500)"
        table: Any = connect().sql(select)
        if kind == "parquet":
            table.write_parquet(str(tmp_path / "t.parquet"))
            table = tmp_path / "t.parquet"
        elif kind == "csv":
            connect().sql("SELECT range AS a, 'x' || range AS b, range + 1 AS \"s.c\" FROM range(500)").write_csv(
                str(tmp_path / "t.csv")
            )
            table = tmp_path / "t.csv"
        elif kind in ("duckdb", "query"):
            with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
                connection.execute(f"CREATE TABLE t AS {select}")
            table = f"{tmp_path / 't.duckdb'}::{'t' if kind == 'duckdb' else 'SELECT * FROM t WHERE a >= 0'}"
        elif kind == "pandas":
            table = table.df()
        elif kind == "polars":
            table = table.pl()
        elif kind == "arrow":
            table = table.to_arrow_table()
        source = drawn(table, 200).source()
        sums = "SELECT count(*), count(DISTINCT a), count(*) FILTER (b = 'x' || a AND \"s.c\" = a + 1)"
        assert source.rows(f"{sums} FROM {source.table}") == [(200, 200, 200)]


class TestUpdated:
    def test_a_whole_table_stays_whole(self) -> None:
        rng = np.random.default_rng(0)
        assert updated_shares(90_000, 90_000, 5_000, evidence_rows("auto", 95_000), rng) == (90_000, 5_000)
        old, fresh = updated_shares(90_000, 90_000, 30_000, evidence_rows("auto", 120_000), rng)
        assert old + fresh == 100_000
        assert fresh == pytest.approx(25_000, abs=1_000)

    @pytest.mark.parametrize("held", [300, 1_000])
    def test_old_and_new_rows_are_as_likely(self, held: int) -> None:
        """A table of 1,000 rows gets 500: of a sample of 300, or of all, 300 are left, of every part as many."""
        old = Source.open(
            connect().sql("SELECT range AS n, range / 7 AS g, 'name ' || range + 1000 AS t FROM range(1000)")
        )
        new = connect().sql("SELECT range AS n, range / 7 AS g, 'name ' || range + 1000 AS t FROM range(1000, 1500)")
        schema = read_schema(old, EncodeOptions(max_distinct=9, text=("t",)))
        rows = conformed(Source.open(new), schema)
        growth = grown(schema, rows)
        counts = np.zeros(15)
        for seed in range(5):
            after = EvidenceRows.drawn(old, schema, held, seed).updated(growth, rows, 300, seed)
            assert after.rows == 300
            texts = after.schema.coded[-1].values
            assert len(texts) == 300  # of rows that are gone nothing is left
            counts += np.bincount([int(text.split()[1]) // 100 - 10 for text in texts], minlength=15)
        assert _chi_square(counts, 100, 0.2) < 40  # 14 degrees of freedom: one in 4,000 is larger

    @pytest.mark.parametrize("held", [300, 1_000])
    def test_the_number_of_new_rows_is_that_of_a_uniform_sample(self, held: int) -> None:
        rng = np.random.default_rng(2)
        fresh = np.array([updated_shares(held, 1_000, 500, 300, rng)[1] for _ in range(2_000)])
        assert fresh.mean() == pytest.approx(100, abs=1)
        assert fresh.var() == pytest.approx(300 * (1 / 3) * (2 / 3) * (1200 / 1499), rel=0.15)

    def test_new_values_have_the_codes_of_the_new_schema(self) -> None:
        first = "SELECT range % 5 * 10 AS a, sin(range) AS g, 'name ' || range AS t, NULL::DATE AS d FROM range(300)"
        more = "SELECT range % 7 - 1 AS a, 5 + cos(range) AS g, if(range > 9, 'na ' || range, NULL) AS t, "
        more += "DATE '2020-01-01' + range::INTEGER % 3 AS d FROM range(40)"
        old = Source.open(connect().sql(first))
        schema = read_schema(old, EncodeOptions(max_distinct=50, text=("t",)))
        rows = conformed(Source.open(connect().sql(more)), schema)
        growth = grown(schema, rows)
        after = EvidenceRows.drawn(old, schema, 300, 0).updated(growth, rows, 340, 0)
        again = EvidenceRows.from_arrays(after.arrays(growth.schema), growth.schema)
        assert [column.size for column in again.schema.coded[:2]] == [column.size for column in after.schema.coded[:2]]
        source = again.source()
        columns = ", ".join(schema.names)
        both = Source.open(connect().sql(f"SELECT {columns} FROM ({first} UNION ALL {more})"))
        assert rows_of(source) == rows_of(conformed(both, schema))

    def test_a_larger_sample_never_lacks_old_rows(self) -> None:
        rng = np.random.default_rng(1)
        for _ in range(200):
            old, fresh = updated_shares(1_000, 10_000, 5_000, 1_500, rng)
            assert old <= 1_000
            assert 1_300 < old + fresh <= 1_500
        assert sum(updated_shares(1_000, 10_000, 1, 1_000, rng)) == 1_000
        old, fresh = updated_shares(100_000, 3 * 10**9, 10**9, 100_000, rng)
        assert old + fresh == 100_000
        assert fresh == pytest.approx(25_000, rel=0.05)


def _chi_square(counts: np.ndarray[Any, Any], mean: float, share: float) -> float:
    """Of counts of rows that are drawn without replacement: their variance is less by the share that is drawn."""
    return float(((counts - mean) ** 2).sum() / (mean * (1 - share)))


def test_a_sample_in_which_a_column_has_only_nulls_is_read_again() -> None:
    wide = "SELECT 'word ' || range AS note, range AS n, sin(range) AS wide FROM range(5000)"
    schema = read_schema(Source.open(connect().sql(wide)), EncodeOptions(text=("note",), max_distinct=100))
    empty = connect().sql("SELECT NULL::VARCHAR AS note, range AS n, NULL::DOUBLE AS wide FROM range(50)")
    rows = EvidenceRows.drawn(Source.open(empty), replace(schema, rows=50), 50, 0)
    again = EvidenceRows.from_arrays(rows.arrays(schema), schema)
    assert rows_of(again.source()) == rows_of(rows.source())
