"""Training by the fast step against training by the plain loss: same table, network, batches and masks, in one process.

.venv/bin/python benchmarks/training.py TABLE.parquet [--exclude COLUMN,COLUMN] [--seconds 30] [--threads 2]

The two take turns, a few steps each, so that other load slows both alike. The last line is JSON.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from countless.data.encoding.table import Table
from countless.models.resmade import ResMADE
from countless.models.training_step import TrainingStep
from countless.options import EncodeOptions
from countless.spec import ModelSpec
from countless.train.allocator import keep_freed_memory
from countless.train.options import TrainOptions
from countless.train.tasks.masking import UniformMasking
from countless_lab.measurement.script import exclude_option, script_parser

TURN = 5  # steps; the first of them is not timed
Step = Callable[[Tensor, Tensor, Tensor], Tensor]  # the loss of a batch, whose gradients it leaves behind


class Trainee:
    """A model in training. Two of them with the same seed see the same batches with the same masks."""

    def __init__(self, codes: Tensor, spec: ModelSpec, step_of: Callable[[ResMADE], Step]) -> None:
        torch.manual_seed(0)
        self.codes, self.options = codes, TrainOptions()
        self.batch = self.options.batch_for(len(codes))
        self.model = ResMADE(spec)
        self.model.start_from_marginals(
            [torch.bincount(codes[:, p].int(), minlength=size).numpy() for p, size in enumerate(spec.sizes)]
        )
        self.gradients = step_of(self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.options.learning_rate, fused=True)
        self.generator = torch.Generator().manual_seed(0)
        self.seconds: list[float] = []
        self.bits: list[float] = []

    def step(self) -> None:
        indices = torch.randint(len(self.codes), (self.batch,), generator=self.generator)
        targets = self.codes[indices].long()
        mask, counts = UniformMasking().draw_positions(len(targets), self.model.spec, self.generator)
        inputs = torch.where(mask, self.model.mask_codes, targets)
        loss = self.gradients(inputs, targets, counts / len(targets))
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
        self.optimizer.step()
        self.bits.append(loss.item() / math.log(2.0))

    def turn(self) -> None:
        for number in range(TURN):
            start = time.perf_counter()
            self.step()
            if number:
                self.seconds.append(time.perf_counter() - start)

    def summary(self) -> dict[str, float]:
        median = statistics.median(self.seconds)
        return {
            "steps_timed": len(self.seconds),
            "step_ms": round(1e3 * median, 2),
            "fastest_step_ms": round(1e3 * min(self.seconds), 2),
            "rows_per_second": round(self.batch / median),
            "bits": round(statistics.fmean(self.bits[-TURN:]), 3),
        }


def plain_step(model: ResMADE) -> Step:
    def step(inputs: Tensor, targets: Tensor, counts: Tensor) -> Tensor:
        model.zero_grad()
        loss = -(model.log_prob(inputs, targets) * counts).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    return step


def fast_step(model: ResMADE) -> Step:
    return TrainingStep(model).gradients


def compare(table: Table, spec: ModelSpec, seconds: float) -> dict[str, Any]:
    codes = torch.from_numpy(table.matrix())
    trainees = {"plain": Trainee(codes, spec, plain_step), "fast": Trainee(codes, spec, fast_step)}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for trainee in trainees.values():
            trainee.turn()
    results = {name: trainee.summary() for name, trainee in trainees.items()}
    return {
        "positions": len(spec.sizes),
        "symbols": sum(spec.sizes),
        "batch": trainees["fast"].batch,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        **results,
        "ratio": round(results["plain"]["step_ms"] / results["fast"]["step_ms"], 2),
        "ratio_of_fastest": round(results["plain"]["fastest_step_ms"] / results["fast"]["fastest_step_ms"], 2),
    }


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("table")
    exclude_option(parser)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    table = Table.encode(arguments.table, EncodeOptions(exclude=arguments.exclude))
    spec = ModelSpec(table.schema.sizes, groups=table.schema.groups)
    results = {"table": Path(arguments.table).name, **compare(table, spec, arguments.seconds)}
    lines = [f"{'step':8}{'ms per step':>12}{'fastest':>10}{'rows/s':>10}{'bits':>10}"]
    for name in ("plain", "fast"):
        row = results[name]
        lines.append(
            f"{name:8}{row['step_ms']:12.1f}{row['fastest_step_ms']:10.1f}{row['rows_per_second']:10,}{row['bits']:10.3f}"
        )
    lines += [f"ratio   {results['ratio']:12.2f}{results['ratio_of_fastest']:10.2f}", json.dumps(results)]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
