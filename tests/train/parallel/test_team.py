"""Processes that train together learn what one learns alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

from countless.spec import ModelSpec
from countless.train.loop import Progress, Trained, train
from countless.train.options import TrainOptions
from countless.train.parallel.team import ProcessGroup, Team
from countless.train.tasks.columns import ColumnsTask

SPEC = ModelSpec((4, 4, 3), hidden=16, blocks=1, embedding=8)
OPTIONS = TrainOptions(epochs=2, batch=101, masking="none")  # without masks nothing is random but the order of rows
MEMBERS = 2


def trained(folder: Path, team: Team, resume: bool = False) -> tuple[Trained, list[Progress]]:
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=3001)
    codes = np.stack([first, first, rng.integers(3, size=len(first))], axis=1).astype(np.int8)
    steps: list[Progress] = []
    task = ColumnsTask(codes, SPEC, OPTIONS)
    weights = train(task, OPTIONS, checkpoint=folder / "run", resume=resume, on_progress=steps.append, team=team)
    return weights, steps


def member(rank: int, folder: Path) -> None:
    """A process of the team."""
    dist.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=MEMBERS)
    team = ProcessGroup(torch.get_num_threads())
    result, steps = trained(folder, team)
    message: dict[str, Any] = {"told": [step.loss for step in steps], "led": team.leads, **result.arrays}
    np.savez(folder / f"{rank}.npz", **message)
    dist.destroy_process_group()


def test_a_team_learns_what_one_process_learns(tmp_path: Path) -> None:
    alone, steps = trained(tmp_path, Team())
    (tmp_path / "run").unlink()
    spawn(member, (tmp_path,), nprocs=MEMBERS)  # type: ignore[no-untyped-call]
    leader = np.load(tmp_path / "0.npz")
    assert leader["led"]
    assert not np.load(tmp_path / "1.npz")["led"]
    for name, array in alone.arrays.items():
        np.testing.assert_allclose(leader[name], array, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(leader["told"], [step.loss for step in steps], rtol=1e-4)
    resumed, _ = trained(tmp_path, Team(), resume=True)  # from the checkpoint of the team, which had finished
    assert all(np.array_equal(resumed.arrays[name], leader[name]) for name in resumed.arrays)
