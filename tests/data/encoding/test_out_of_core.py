"""Codes in a folder are those in memory, whoever stopped in between, and whatever became of the files."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countless.data.encoding import out_of_core as mapped_module
from countless.data.encoding.blocks import blocks, counted, mapping_of
from countless.data.encoding.code_files import CodesFolder, remove
from countless.data.encoding.memory_limit import Memory
from countless.data.encoding.out_of_core import encode_mapped, mapped_table
from countless.data.encoding.table import Table
from countless.data.progress import Events, ScanProgress
from countless.data.sources.connection import Limit
from countless.data.sources.source import Source, connect
from countless.data.summaries.counting import count_pairs
from countless.errors import DataError
from countless.options import EncodeOptions

ROWS = 3_000
SELECT = f"""
    SELECT range AS id, range % 7 AS week, CASE WHEN range % 5 > 0 THEN hash(range) % 400 END AS large,
        'name ' || hash(range) % 300 AS name, DATE '2020-01-01' + (hash(range + 1) % 900)::INTEGER AS day,
        CASE WHEN range % 11 > 0 THEN 'the ünusual text of row ' || hash(range + 2) END AS note,
        ((hash(range + 3) % 100000) / 7)::DECIMAL(12,4) AS price, NULL::INTEGER AS nothing
    FROM range({ROWS})
"""
OPTIONS = EncodeOptions(max_distinct=500, max_length=30)


class Small(Memory):
    """So little memory that a few hundred rows fill a block."""

    @property
    def block(self) -> int:
        return 20_000


MEMORY = Small(10**9)


class Heard(Events):
    """Calls functions with each stage, and with how far each pass is."""

    def __init__(
        self, stage: Callable[[str], None] = lambda name: None, fraction: Callable[[float], None] = lambda part: None
    ) -> None:
        self._stage, self._fraction = stage, fraction

    def stage(self, name: str) -> None:
        self._stage(name)

    def reading(self, reading: ScanProgress) -> None:
        self._fraction(reading.fraction)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mapped") / "table.parquet"
    connect().execute(f"COPY ({SELECT}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    return path


@pytest.fixture(scope="module")
def whole(parquet: Path) -> Table:
    return Table.encode(parquet, OPTIONS)


@pytest.fixture(scope="module")
def folder(parquet: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("codes") / "x"
    encode_mapped(Source.open(parquet), OPTIONS, path, MEMORY)
    return path


@pytest.fixture(scope="module")
def mapped(folder: Path) -> Table:
    return mapped_table(CodesFolder.open(folder), MEMORY)


def records(table: Table) -> Counter[bytes]:
    """Every row, text and all, however often it is there."""
    parts: list[np.ndarray[Any, Any]] = [np.asarray(code, dtype=np.int64)[:, None] for code in table.codes]
    for strings in table.strings:
        parts += [np.asarray(strings.symbols, dtype=np.int64), np.asarray(strings.lengths, dtype=np.int64)[:, None]]
    return Counter(row.tobytes() for row in np.concatenate(parts, axis=1))


def test_the_same_rows_in_random_order(whole: Table, mapped: Table) -> None:
    assert mapped.schema == whole.schema
    assert [column.grid is not None for column in whole.schema.coded].count(True) == 3
    assert [text.name for text in whole.schema.texts] == ["note"]
    assert records(mapped) == records(whole)
    cells = np.asarray(mapped.codes[0], dtype=np.int64) * 32 + mapped.codes[1]  # of the grid of id, which ascends
    assert abs(np.corrcoef(cells, np.arange(ROWS))[0, 1]) < 0.1
    for part in np.array_split(cells, 6):
        assert abs(part.mean() / cells.mean() - 1) < 0.15
    assert mapped.mapped is not None
    assert mapping_of(mapped.matrix()) is not None
    assert mapped.matrix() is mapped.mapped.matrix
    assert mapped.matrix().dtype == whole.matrix().dtype


def test_the_seed_decides_the_order(parquet: Path, mapped: Table, tmp_path: Path) -> None:
    again = encode_mapped(Source.open(parquet), OPTIONS, tmp_path / "again", MEMORY)
    other = encode_mapped(Source.open(parquet), OPTIONS, tmp_path / "other", MEMORY, seed=1)
    assert np.array_equal(again.matrix(), mapped.matrix())
    assert again.fingerprint == mapped.fingerprint
    assert not np.array_equal(other.matrix(), mapped.matrix())
    assert other.fingerprint != mapped.fingerprint
    assert records(other) == records(mapped)


VALUES = {
    "TINYINT": st.integers(-128, 127),
    "UBIGINT": st.sampled_from([0, 1, 2**63, 2**64 - 1]),
    "HUGEINT": st.integers(-(2**100), 2**100),
    "DOUBLE": st.sampled_from([0.0, -0.0, 1.5, -1e300, float("inf"), float("-inf"), float("nan")]),
    "DECIMAL(30,3)": st.integers(-(10**20), 10**20),
    "BOOLEAN": st.booleans(),
    "VARCHAR": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
}


@given(st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_small_table(tmp_path: Path, data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    rows = data.draw(st.lists(st.tuples(*(st.none() | VALUES[kind] for kind in kinds)), min_size=1, max_size=40))
    connection = connect()
    columns = ", ".join(f"c{index} {kind}" for index, kind in enumerate(kinds))
    connection.execute(f"CREATE TABLE t ({columns})")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(kinds))})", rows)
    relation = connection.table("t")
    whole = Table.encode(relation)
    names = ", ".join(
        f"CASE WHEN c{index} IS NULL THEN NULL ELSE CAST(c{index} AS VARCHAR) END" for index in range(len(kinds))
    )
    for index, column in enumerate(whole.schema.coded):
        read = connection.execute(f"SELECT {names} FROM t").fetchall()
        texts = [*column.values, None]
        decoded = [texts[code] for code in np.asarray(whole.codes[index])]
        expected = [row[index] if row[index] != "-0.0" or "-0.0" in texts else "0.0" for row in read]
        assert decoded == [text if text != "0.0" or "0.0" in texts else "-0.0" for text in expected]
    path = tmp_path / "codes"
    assert records(encode_mapped(Source.open(relation), EncodeOptions(), path, MEMORY)) == records(whole)
    remove(path)


def test_what_is_counted_in_blocks_is_what_is_counted_in_memory(whole: Table, mapped: Table) -> None:
    for one, two in zip(count_pairs(whole).arrays().items(), count_pairs(mapped).arrays().items(), strict=True):
        assert one[0] == two[0]
        assert np.array_equal(one[1], two[1])
    sizes = whole.schema.sizes
    for one_counts, two_counts in zip(counted(whole.matrix(), sizes), counted(mapped.matrix(), sizes), strict=True):
        assert np.array_equal(one_counts, two_counts)


def test_blocks_of_a_file_are_copies_of_few_rows(mapped: Table) -> None:
    parts = list(blocks(mapped.matrix(), 1_000))
    assert [len(part) for part in parts] == [1_000, 1_000, 1_000]
    assert all(mapping_of(part) is None for part in parts)
    assert np.array_equal(np.concatenate(parts), mapped.matrix())
    assert max(len(codes[0]) for codes in mapped.blocks()) <= ROWS


def test_a_sample_is_some_of_the_rows(whole: Table, mapped: Table) -> None:
    for table in (whole, mapped):
        sample = table.sampled(500, seed=3)
        assert sample.schema.rows == ROWS
        assert len(sample.matrix()) == len(sample.strings[0].symbols) == len(sample.strings[0].lengths) == 500
        assert records(sample) <= records(table)
        assert sample.fingerprint != table.fingerprint
        assert table.sampled(ROWS, seed=3) is table
    assert not np.array_equal(whole.sampled(500, 3).codes[0], whole.sampled(500, 4).codes[0])


class StoppedError(Exception):
    """Somebody pulls the plug."""


def recorded(monkeypatch: pytest.MonkeyPatch, step: str) -> list[int]:
    """The chunks, or the parts, that are written from now on."""
    sizes: list[int] = []
    original = getattr(CodesFolder, step)

    def write(self: CodesFolder, index: int, *rest: Any) -> Any:
        sizes.append(index)
        return original(self, index, *rest)

    monkeypatch.setattr(CodesFolder, step, write)
    return sizes


@pytest.mark.parametrize("after", [0, 1, 5])
@pytest.mark.parametrize("step", ["write_chunk", "write_part"])
def test_a_stopped_pass_goes_on(
    parquet: Path, mapped: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: int
) -> None:
    path = tmp_path / "x"
    done: list[int] = []
    original = getattr(CodesFolder, step)

    def counting(self: CodesFolder, index: int, *rest: Any) -> Any:
        if len(done) == after:
            raise StoppedError
        done.append(index)
        return original(self, index, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(CodesFolder, step, counting)
        with pytest.raises(StoppedError):
            encode_mapped(Source.open(parquet), OPTIONS, path, MEMORY)
    stages: list[str] = []
    again = recorded(monkeypatch, step)
    table = encode_mapped(Source.open(parquet), OPTIONS, path, MEMORY, resume=True, events=Heard(stages.append))
    assert stages == (["encoding rows", "shuffling rows"] if step == "write_chunk" else ["shuffling rows"])
    assert not set(again) & set(done)
    assert again[0] == after
    assert np.array_equal(table.matrix(), mapped.matrix())
    assert table.fingerprint == mapped.fingerprint
    assert not list(path.glob("chunk-*"))
    stages.clear()
    encode_mapped(Source.open(parquet), OPTIONS, path, MEMORY, resume=True, events=Heard(stages.append))
    assert stages == []


def test_a_stopped_pass_over_a_relation_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relation = connect().sql(SELECT)
    original = CodesFolder.write_chunk

    def failing(self: CodesFolder, index: int, rows: Any) -> None:
        if index == 4:
            raise StoppedError
        original(self, index, rows)

    with monkeypatch.context() as patch:
        patch.setattr(CodesFolder, "write_chunk", failing)
        with pytest.raises(StoppedError):
            encode_mapped(Source.open(relation), OPTIONS, tmp_path / "x", MEMORY)
    again = recorded(monkeypatch, "write_chunk")
    table = encode_mapped(Source.open(relation), OPTIONS, tmp_path / "x", MEMORY, resume=True)
    assert again[0] == 0
    assert records(table) == records(Table.encode(relation, OPTIONS))


def test_progress_rises_and_ends(parquet: Path, tmp_path: Path) -> None:
    heard: list[float] = []
    encode_mapped(Source.open(parquet), OPTIONS, tmp_path / "x", MEMORY, events=Heard(fraction=heard.append))
    assert heard[-1] == 1.0
    assert heard.count(1.0) >= 2  # of both passes


def damaged_manifest(path: Path, text: str) -> None:
    (path / "manifest.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda path: damaged_manifest(path, "{"), "readable folder of codes"),
        (lambda path: damaged_manifest(path, "[]"), "readable folder of codes"),
        (lambda path: damaged_manifest(path, '{"countless_codes": 1}'), "readable folder of codes"),
        (lambda path: damaged_manifest(path, '{"countless_codes": 99}'), "another version"),
        (lambda path: (path / "manifest.json").unlink(), "there is no manifest.json"),
        (lambda path: (path / "codes.bin").write_bytes(b"short"), "codes.bin is damaged"),
        (lambda path: (path / "text0.bin").unlink(), "text0.bin is damaged"),
        (lambda path: (path / "part-000001.json").write_text("?"), "part-000001.json is damaged"),
    ],
)
def test_a_damaged_folder_is_told_in_a_line(
    parquet: Path, folder: Path, tmp_path: Path, harm: Any, message: str
) -> None:
    path = shutil.copytree(folder, tmp_path / "x")
    harm(path)
    with pytest.raises(DataError, match=message) as caught:
        encode_mapped(Source.open(parquet), OPTIONS, path, MEMORY, resume=True)
    assert "without --resume" in str(caught.value)
    assert "\n" not in str(caught.value)
    encode_mapped(Source.open(parquet), OPTIONS, path, MEMORY)  # the remedy works


def test_sizes_that_do_not_fit_the_schema(folder: Path, tmp_path: Path) -> None:
    path = shutil.copytree(folder, tmp_path / "x")
    record = json.loads((path / "manifest.json").read_text())
    for name in ("row_bytes", "parts", "chunk_rows"):
        damaged_manifest(path, json.dumps(record | {name: 0}))
        with pytest.raises(DataError, match="readable folder of codes"):
            CodesFolder.open(path)


def test_another_table_or_other_options(parquet: Path, folder: Path) -> None:
    for source, options in ((parquet, EncodeOptions(exclude=("id",))), (connect().sql(SELECT), OPTIONS)):
        with pytest.raises(DataError, match=r"of another (table|--exclude)"):
            encode_mapped(Source.open(source), options, folder, MEMORY, resume=True)


def test_a_truncated_chunk(parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    with monkeypatch.context() as patch:
        patch.setattr(mapped_module, "_write_parts", lambda *_: (_ for _ in ()).throw(StoppedError))
        with pytest.raises(StoppedError):
            encode_mapped(Source.open(parquet), OPTIONS, path, MEMORY)
    chunk = path / "chunk-000002.bin"
    chunk.write_bytes(chunk.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"chunk-000002\.bin is damaged"):
        encode_mapped(Source.open(parquet), OPTIONS, path, MEMORY, resume=True)


def test_a_foreign_folder_is_not_removed(parquet: Path, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "photo.jpg").write_bytes(b"dear")
    stages: list[str] = []
    for resume in (False, True):
        with pytest.raises(DataError, match="is not a folder of codes: remove it first"):
            encode_mapped(
                Source.open(parquet), OPTIONS, tmp_path / "x", MEMORY, resume=resume, events=Heard(stages.append)
            )
    assert stages == []  # it is told before the table is read
    assert (tmp_path / "x" / "photo.jpg").exists()


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_of_a_fit_that_was_killed_at_once_is_empty(parquet: Path, tmp_path: Path, resume: bool) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "manifest.json.k3v9_x1a.partial").write_text('{"countless_codes"')
    table = encode_mapped(Source.open(parquet), OPTIONS, tmp_path / "x", MEMORY, resume=resume)
    assert table.rows == Source.open(parquet).count()
    assert not list((tmp_path / "x").glob("*.partial"))


def test_what_is_left_of_a_removal_can_be_removed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shutil.copytree(folder, tmp_path / "x")
    removed = Path.unlink

    def killed(self: Path, missing_ok: bool = False) -> None:
        if len(list(path.iterdir())) < 3:
            raise StoppedError
        removed(self, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(StoppedError):
            remove(path)
    assert (path / "manifest.json").exists()
    remove(path)
    assert not path.exists()


def test_a_full_disk(parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 1_000

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: Usage)
        with pytest.raises(DataError, match=r"x is too small: the codes need \d+kB, and 1kB are free"):
            encode_mapped(Source.open(parquet), OPTIONS, tmp_path / "x", MEMORY)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DataError, match=r"cannot write to .*x: the disk is full, the codes need .* in all"):
        encode_mapped(Source.open(parquet), OPTIONS, tmp_path / "x", MEMORY)


def test_a_table_that_changes_while_it_is_read(tmp_path: Path) -> None:
    connection = connect()
    connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(100)")
    source = Source.open(connection.table("t"))

    def change(stage: str) -> None:
        if stage == "encoding rows":
            connection.execute("INSERT INTO t VALUES (3)")

    with pytest.raises(DataError, match="changed while it was read"):
        encode_mapped(source, EncodeOptions(), tmp_path / "x", MEMORY, events=Heard(change))


def test_memory_is_shared_out() -> None:
    for total in (10**9, 2 * 10**9, 3 * 2**29):
        memory = Memory(total)
        assert 0 < memory.block < memory.duckdb < total


def test_duckdb_keeps_to_its_share(parquet: Path, tmp_path: Path) -> None:
    limit = Limit(300 * 10**6, str(tmp_path / "it's"))
    source = Source.open(parquet, limit=limit)
    ((limit, folder),) = source.rows("SELECT current_setting('memory_limit'), current_setting('temp_directory')")
    assert limit.startswith("286.1 MiB")
    assert folder == str(tmp_path / "it's")
    connection = duckdb.connect()
    clause = "SELECT current_setting('memory_limit')"
    before = connection.execute(clause).fetchall()
    Source.open(connection.sql("SELECT 1 AS a"), limit=limit)
    assert connection.execute(clause).fetchall() == before
