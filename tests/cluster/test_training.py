"""Two workers of a cluster learn what one process learns, also when one of them is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import duckdb
import pytest

from countless.cluster.session import Cluster
from countless.cluster.training import ClusterTrainer, Workers
from countless.data.mapped import encode_mapped
from countless.data.memory import Memory
from countless.data.source import Source
from countless.data.table import EncodeOptions, Table
from countless.models.resmade import ResMADE
from countless.spec import ModelSpec
from countless.train.loop import Progress, Trained
from countless.train.options import TrainOptions
from countless.train.recipe import ColumnsRecipe, train_here

pytestmark = pytest.mark.filterwarnings("ignore:`use_\\w+` is deprecated:DeprecationWarning")  # Ray's own

TABLE = "SELECT range % 7 AS a, (range % 7) * (range % 3) AS b, hash(range) % 5 AS c FROM range(20000)"
OPTIONS = TrainOptions(epochs=8, batch=128)
WORKER = b"RayTrainWorker"
MEMORY = Memory(10**9)


def parent_of(process: int) -> int:
    """The parent of a process, 0 if there is none."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def our_workers() -> list[int]:
    """The processes that train for this one."""
    found = []
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
            found.append(process)
    return sorted(found)


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
        found = trainer(recipe, table, checkpoint=checkpoint, resume=False, stopped=False, on_progress=watch)
    assert killed
    assert killed[0] < 1.0
    assert min(after) > 0.1
    assert found.report["epochs"] == OPTIONS.epochs
    assert not found.interrupted
    assert found.report["train_bits"] == pytest.approx(alone.report["train_bits"], rel=0.01)
    assert found.report["unmasked_bits"] == pytest.approx(alone.report["unmasked_bits"], rel=0.01)
    assert {name: array.shape for name, array in found.arrays.items()} == {
        name: array.shape for name, array in alone.arrays.items()
    }
