"""Generated tables are what their description says, and the questions about them too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from countless.data.sources.source import Source
from countless.errors import DataError
from countless_lab.growth import synthetic
from countless_lab.growth.clauses import random_clauses
from countless_lab.growth.synthetic import Synthetic, small_columns

TABLE = Synthetic(rows=3_000, distinct=(2, 12, 700, 1), seed=5)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several files a table."""
    monkeypatch.setattr(synthetic, "CHUNK", 1_000)


def _read(table: Synthetic, folder: Path) -> dict[str, list[int]]:
    folder.mkdir()
    source = Source.open(table.write(folder))
    arrays = source.arrays(f"SELECT * FROM {source.table}")
    return {name: array.tolist() for name, array in arrays.items()}


@pytest.mark.usefixtures("small_chunks")
class TestTables:
    def test_they_have_the_promised_rows_columns_and_values(self, tmp_path: Path) -> None:
        columns = _read(TABLE, tmp_path / "t")
        assert list(columns) == ["c0", "c1", "c2", "c3"]
        for values, distinct in zip(columns.values(), TABLE.distinct, strict=True):
            assert len(values) == 3_000
            assert sorted(set(values)) == list(range(distinct))
        assert len(list((tmp_path / "t").iterdir())) == 3

    @pytest.mark.parametrize("rows", [1_000, 1_001, 1_999, 2_500])
    def test_every_value_occurs_whatever_the_rows(self, tmp_path: Path, rows: int) -> None:
        columns = _read(Synthetic(rows, (1_000, 999, 64)), tmp_path / "t")
        assert [len(set(values)) for values in columns.values()] == [1_000, 999, 64]

    def test_the_seed_decides(self, tmp_path: Path) -> None:
        first = _read(TABLE, tmp_path / "first")
        assert first == _read(TABLE, tmp_path / "again")
        assert first != _read(Synthetic(TABLE.rows, TABLE.distinct, seed=6), tmp_path / "other")

    def test_columns_depend_on_each_other_and_are_skewed(self) -> None:
        columns = Synthetic(5_000, (50,) * 6).first_rows()
        together = np.corrcoef(columns["c0"], columns["c5"])[0, 1]  # the same factor
        apart = np.corrcoef(columns["c0"], columns["c1"])[0, 1]
        assert together > 0.2 > abs(apart)
        assert np.median(columns["c0"]) < 15

    @pytest.mark.parametrize(("rows", "distinct", "phrase"), [(9, (10,), "more rows"), (9, (), "at least one column")])
    def test_what_cannot_be(self, rows: int, distinct: tuple[int, ...], phrase: str) -> None:
        with pytest.raises(DataError, match=phrase):
            Synthetic(rows, distinct)


class TestClauses:
    @pytest.mark.parametrize("filters", [1, 4, 8])
    def test_they_have_exactly_so_many_filters(self, filters: int) -> None:
        for clause in random_clauses(Synthetic(500, small_columns(8)), 30, filters):
            names = [part.split()[0] for part in clause.split(" AND ")]
            assert len(names) == len(set(names)) == filters

    def test_ranges_are_for_columns_of_many_values(self) -> None:
        filters = [part.split() for clause in random_clauses(TABLE, 60, 3) for part in clause.split(" AND ")]
        assert {operator for name, operator, _ in filters if name in ("c0", "c3")} == {"="}
        assert {operator for name, operator, _ in filters if name == "c2"} == {"=", "<=", ">="}

    def test_some_columns_are_part_of_all(self) -> None:
        assert all("c2 " in clause for clause in random_clauses(TABLE, 30, 2, always=(2,)))

    def test_they_match_rows_and_are_the_same_again(self, tmp_path: Path) -> None:
        clauses = random_clauses(TABLE, 20, 4)
        assert clauses == random_clauses(TABLE, 20, 4)
        assert min(Source.open(TABLE.write(tmp_path)).counts(clauses)) >= 1
