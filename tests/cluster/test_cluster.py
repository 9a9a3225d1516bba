"""A fit on a small cluster of this machine, all in one file, so that the cluster is started once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import duckdb
import pytest

from countless.cluster.encoding import encode_on
from countless.cluster.rows import ParquetRows, reader
from countless.cluster.session import Cluster
from countless.cluster.training import ClusterTrainer, Workers
from countless.data.encoding.memory_limit import Memory
from countless.data.encoding.out_of_core import encode_mapped
from countless.data.encoding.table import Table
from countless.data.progress import Events, ScanProgress
from countless.data.sources.source import Source, connect
from countless.estimator.fitting.fit import fit
from countless.estimator.fitting.learning import Listener
from countless.models.resmade import ResMADE
from countless.options import EncodeOptions, Network
from countless.spec import ModelSpec
from countless.train.loop import Progress, Trained
from countless.train.options import TrainOptions
from countless.train.tasks.recipe import ColumnsRecipe, train_here
from countless_lab.runner.cluster import ClusterTasks
from countless_lab.runner.sweep import SweepListener, SweepOutcome, sweep
from tests.lab.runner.jobs import Breaks, Count

pytestmark = pytest.mark.filterwarnings("ignore:`use_\\w+` is deprecated:DeprecationWarning")  # Ray's own

TABLE = "SELECT range % 7 AS a, (range % 7) * (range % 3) AS b, hash(range) % 5 AS c FROM range(20000)"
OPTIONS = TrainOptions(epochs=8, batch=128)
WORKER = b"RayTrainWorker"
MEMORY = Memory(10**9)


class Heard(Events):
    """Remembers the stages of reading a table, and how far each pass was."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.fractions: list[float] = []

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def reading(self, reading: ScanProgress) -> None:
        self.fractions.append(reading.fraction)


def parent_of(process: int) -> int:
    """The parent of a process, 0 if there is none."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def our_workers() -> list[int]:
    """The processes that train for this one."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        process = int(folder.name)
        try:
            is_worker = WORKER in (folder / "cmdline").read_bytes()
        except OSError:
            continue
        ancestor = process
        while is_worker and ancestor not in (0, os.getpid()):
            ancestor = parent_of(ancestor)
        if is_worker and ancestor == os.getpid():
            processes.append(process)
    return sorted(processes)


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared") / "codes"


@pytest.fixture(scope="module")
def table(codes: Path) -> Table:
    return encode_mapped(Source.open(duckdb.sql(TABLE)), EncodeOptions(), codes, MEMORY)


@pytest.fixture(scope="module")
def recipe(table: Table) -> ColumnsRecipe:
    spec = ModelSpec(table.schema.sizes, hidden=32, blocks=1, embedding=8)
    return ColumnsRecipe(spec, OPTIONS, ResMADE)


@pytest.fixture(scope="module")
def alone(recipe: ColumnsRecipe, table: Table) -> Trained:
    return train_here(recipe, table, checkpoint=None, resume=False, stopped=False, on_progress=lambda progress: None)


def test_a_lost_worker_is_replaced(
    ray: str, tmp_path: Path, recipe: ColumnsRecipe, codes: Path, table: Table, alone: Trained
) -> None:
    """And training goes on from the checkpoint, to the same end as in one process."""
    checkpoint = tmp_path / "checkpoint"
    killed: list[float] = []
    after: list[float] = []

    def watch(progress: Progress) -> None:
        if killed:
            after.append(progress.fraction)
        elif checkpoint.exists() and progress.fraction > 0.2:
            killed.append(progress.fraction)
            os.kill(our_workers()[-1], signal.SIGKILL)

    with Cluster() as cluster:
        trainer = ClusterTrainer(cluster, tmp_path, Workers(2, 1), codes, MEMORY, save_every=0.2)
        trained = trainer(recipe, table, checkpoint=checkpoint, resume=False, stopped=False, on_progress=watch)
    assert killed
    assert killed[0] < 1.0
    assert min(after) > 0.1
    assert trained.report["epochs"] == OPTIONS.epochs
    assert not trained.interrupted
    assert trained.report["train_bits"] == pytest.approx(alone.report["train_bits"], rel=0.01)
    assert trained.report["unmasked_bits"] == pytest.approx(alone.report["unmasked_bits"], rel=0.01)
    assert {name: array.shape for name, array in trained.arrays.items()} == {
        name: array.shape for name, array in alone.arrays.items()
    }


VALUES = """
SELECT
    hash(range) % 7 AS a,
    CASE WHEN range % 9 > 0 THEN ['Oslo', 'Rome', 'Łódź'][1 + range % 3] END AS city,
    DATE '2020-01-01' + (hash(range, 4) % 40)::INTEGER AS day,
    sqrt(hash(range, 5)) AS measure,
    (hash(range, 6)::HUGEINT * 1000000007) % 5 AS huge,
    CASE WHEN range % 8 > 0 THEN {'kind': range % 4, 'geo': {'lat': range % 3}} END AS place,
    CASE WHEN range % 20 > 0 THEN 'https://example.org/' || hash(range, 7) END AS url,
    [range] AS nothing
FROM range(9000)
"""
ENCODE = EncodeOptions(max_distinct=2000)


class Little(Memory):
    """So little that there are many chunks and parts."""

    @property
    def block(self) -> int:
        return 60_000


LITTLE = Little(10**9)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The table in two Parquet files of small row groups."""
    folder = tmp_path_factory.mktemp("files")
    for index, where in enumerate(["range < 2500", "range >= 2500"]):
        rows = f"SELECT * FROM ({VALUES.replace('FROM range', ', range FROM range')}) WHERE {where} ORDER BY range"
        rows = f"SELECT * EXCLUDE (range) FROM ({rows})"
        connect().execute(f"COPY ({rows}) TO '{folder / str(index)}.parquet' (ROW_GROUP_SIZE 2048)")
    return str(folder / "*.parquet")


def test_files_in_pieces(files: str) -> None:
    names = Source.open(files).files
    rows = ParquetRows(names, (2500, 6500))
    source = Source.open(reader(rows.between(2400, 4700), ["a", "city"]))
    found = source.rows(f"SELECT a, city FROM {source.table}")
    assert found == connect().execute(f"SELECT a, city FROM '{files}' LIMIT 2300 OFFSET 2400").fetchall()


@pytest.mark.parametrize("kind", ["files", "relation"])
def test_codes_are_those_of_one_machine(ray: str, tmp_path: Path, files: str, kind: str) -> None:
    source = Source.open(files if kind == "files" else duckdb.sql(VALUES))
    alone = encode_mapped(source, ENCODE, tmp_path / "alone", LITTLE, seed=3)
    listener = Heard()
    with Cluster() as cluster:
        table = encode_on(
            cluster,
            source,
            ENCODE,
            tmp_path / "codes",
            LITTLE,
            seed=3,
            events=listener,
        )
    assert table.schema == alone.schema
    assert [column.name for column in table.schema.coded if column.grid] == ["measure"]
    assert {"place.kind", "place.geo.lat"} < set(table.schema.names)
    copied = "copying rows to where all machines see them"
    assert (copied in listener.stages) == (kind == "relation")
    assert table.fingerprint == alone.fingerprint
    assert (table.matrix() == alone.matrix()).all()
    assert listener.stages[-2:] == ["encoding rows", "shuffling rows"]
    assert listener.fractions[-1] == 1.0
    assert {path.name for path in tmp_path.iterdir()} == {"alone", "codes"}


class Stops(Listener):
    """Presses Ctrl-C as soon as training goes on."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.heard = 0

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def training(self, progress: Progress) -> None:
        self.heard += 1
        if self.heard == 1:
            signal.raise_signal(signal.SIGINT)


def test_fitted_until_a_ctrl_c(ray: str, people: Path, tmp_path: Path) -> None:
    heard = Stops()
    estimator = fit(
        people,
        exclude="id",
        epochs=100_000,
        network=Network(hidden=32, blocks=1, embedding=8),
        ray=ray,
        workers=2,
        checkpoint=tmp_path / "checkpoint",
        codes=tmp_path / "codes",
        sample_rows=2_500,
        calibrate=False,
        listener=heard,
    )
    assert heard.stages[:1] == ["reading all columns"]
    assert {"encoding rows", "shuffling rows", "training"} < set(heard.stages)
    assert estimator.report["interrupted"]
    assert estimator.report["train_rows"] == 2_475
    assert estimator.rows == 3_000
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint", "codes"}
    assert estimator.info()["evidence"]["rows"] == 3_000
    assert estimator.estimate("age > 40").rows == pytest.approx(1620, rel=0.3)


class Notes(SweepListener):
    """What jobs said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def said(self, name: str, line: str) -> None:
        self.lines.append(line)


def test_sweeps_run_as_tasks(ray: str, tmp_path: Path) -> None:
    jobs = [Count("b", needs=("a",)), Count("a", value=2), Breaks("bad"), Count("c", needs=("bad",))]
    notes = Notes()
    with ClusterTasks(ray, tmp_path, None, 1) as backend:
        assert backend.max_jobs == 2
        outcome = sweep(jobs, tmp_path, watch=notes, backend=backend)
        assert outcome == SweepOutcome(2, {"bad": "ValueError: broken"}, ("c",))
        assert sorted(notes.lines) == ["counting a", "counting b"]
        (tmp_path / "mended").touch()
        assert sweep(jobs, tmp_path, backend=backend) == SweepOutcome(4, {}, ())
    assert (tmp_path / "ran.txt").read_text().split() == ["a", "b", "bad", "c"]
