"""A cluster writes the codes that one machine would, byte for byte."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from countless.cluster.encoding import encode_on
from countless.cluster.rows import Rows, reader
from countless.cluster.session import Cluster
from countless.data.mapped import encode_mapped
from countless.data.memory import Memory
from countless.data.progress import Reading
from countless.data.source import Source, connect
from countless.data.table import EncodeOptions

pytestmark = pytest.mark.filterwarnings("ignore:`use_\\w+` is deprecated:DeprecationWarning")  # Ray's own

TABLE = """
SELECT
    hash(range) % 7 AS a,
    CASE WHEN range % 9 > 0 THEN ['Oslo', 'Rome', 'Łódź'][1 + range % 3] END AS city,
    DATE '2020-01-01' + (hash(range, 4) % 40)::INTEGER AS day,
    sqrt(hash(range, 5)) AS measure,
    (hash(range, 6)::HUGEINT * 1000000007) % 5 AS huge,
    CASE WHEN range % 20 > 0 THEN 'https://example.org/' || hash(range, 7) END AS url,
    [range] AS nothing
FROM range(9000)
"""
OPTIONS = EncodeOptions(max_distinct=2000)


class Little(Memory):
    """So little that there are many chunks and parts."""

    @property
    def block(self) -> int:
        return 60_000


MEMORY = Little(10**9)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The table in two Parquet files of small row groups."""
    folder = tmp_path_factory.mktemp("files")
    for index, where in enumerate(["range < 2500", "range >= 2500"]):
        rows = f"SELECT * FROM ({TABLE.replace('FROM range', ', range FROM range')}) WHERE {where} ORDER BY range"
        rows = f"SELECT * EXCLUDE (range) FROM ({rows})"
        connect().execute(f"COPY ({rows}) TO '{folder / str(index)}.parquet' (ROW_GROUP_SIZE 2048)")
    return str(folder / "*.parquet")


def test_files_in_pieces(files: str) -> None:
    names = Source.open(files).files
    rows = Rows(names, (2500, 6500))
    source = Source.open(reader(rows.between(2400, 4700), ["a", "city"]))
    found = source.rows(f"SELECT a, city FROM {source.table}")
    assert found == connect().execute(f"SELECT a, city FROM '{files}' LIMIT 2300 OFFSET 2400").fetchall()


@pytest.mark.parametrize("kind", ["files", "relation"])
def test_codes_are_those_of_one_machine(ray: str, tmp_path: Path, files: str, kind: str) -> None:
    source = Source.open(files if kind == "files" else duckdb.sql(TABLE))
    alone = encode_mapped(source, OPTIONS, tmp_path / "alone", MEMORY, seed=3)
    heard: list[Reading] = []
    stages: list[str] = []
    with Cluster() as cluster:
        table = encode_on(
            cluster,
            source,
            OPTIONS,
            tmp_path / "codes",
            MEMORY,
            seed=3,
            on_stage=stages.append,
            on_reading=heard.append,
        )
    assert table.schema == alone.schema
    assert [column.name for column in table.schema.columns if column.grid] == ["measure"]
    assert table.fingerprint == alone.fingerprint
    assert (table.matrix() == alone.matrix()).all()
    assert stages[-2:] == ["encoding rows", "shuffling rows"]
    assert heard[-1].fraction == 1.0
    assert {path.name for path in tmp_path.iterdir()} == {"alone", "codes"}
