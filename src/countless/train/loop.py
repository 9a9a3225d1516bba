"""The training loop: Adam, with held-out rows that are only measured."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from countless.errors import TrainingError
from countless.train.adam import Adam
from countless.train.allocator import keep_freed_memory
from countless.train.checkpoint import Checkpoint
from countless.train.interrupt import Interrupt
from countless.train.options import CLOCKS, TrainOptions
from countless.train.order import row_order
from countless.train.parallel.gradient_workers import GradientWorkers, parts_of
from countless.train.parallel.team import Team
from countless.train.tasks.task import Inputs, Task, stream

logger = logging.getLogger(__name__)

HELD_OUT_MOST = 5_000
HELD_OUT_FROM = 2_000  # of a smaller table no rows are held out
PROBE_ROWS = 2_000  # training rows on which the weights of different epochs are compared
LEAST_MEASURED, MEASURED_SHARE = 256, 0.05  # rows to measure after less than an epoch: at least, and per trained row
CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True)
class Progress:
    """The state of a training run, sent after every step.

    ``loss`` is what the steps minimise, in bits. It may have more terms than the units, so compare it only with itself.
    The ``*_bits`` are measured with the best weights so far, as in the final report. They are None until the first
    epoch is over, and those of held-out rows also if no rows are held out.
    """

    unit: str  # of the bits: a row or a character
    epoch: int
    epochs: int | None
    fraction: float  # of the whole run
    loss: float  # mean of the epoch so far
    train_bits: float | None  # on training rows, masked as in training
    masked_bits: float | None  # on held-out rows, with inputs masked
    unmasked_bits: float | None  # on held-out rows, with all inputs known
    rows_per_second: float
    seconds: float
    seconds_left: float
    stopping: bool = False  # whether this was the last step, because the user pressed Ctrl-C


@dataclass(frozen=True)
class EarlierTraining:
    """Earlier training that a run continues, with the weights that it left.

    ``moments`` are those of Adam, from a checkpoint. Without them Adam starts from zero.
    """

    epochs: int
    moments: dict[str, Tensor]


@dataclass(frozen=True)
class Trained:
    """The result of training: the best weights, and a report."""

    arrays: dict[str, NDArray[np.float32]]
    report: dict[str, Any]
    interrupted: bool


def train(
    task: Task,
    options: TrainOptions,
    *,
    fingerprint: str = "",
    checkpoint: Path | None = None,
    resume: bool = False,
    stopped: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    team: Team | None = None,
    interrupt: Interrupt | None = None,
    save_every: float = CHECKPOINT_SECONDS,
    earlier: EarlierTraining | None = None,
) -> Trained:
    """Fit the task's model to its rows.

    With ``checkpoint``, the run is saved to that file after every epoch and every ``save_every`` seconds. With
    ``resume``, it continues from the file if that exists. Ctrl-C, or setting ``interrupt``, ends the run after the
    current step with the best weights so far; ``stopped`` ends it before the first step. A second Ctrl-C raises
    KeyboardInterrupt when the checkpoint is written. After ``earlier`` training, the initial weights are candidates for
    the best weights too.

    Several processes may train as a ``team``. Each calls this function with the same task and options, takes its share
    of every batch, and ends with the same weights. The first process measures and saves checkpoints.
    """
    if checkpoint is not None and not checkpoint.parent.is_dir():
        raise TrainingError(f"cannot keep a checkpoint at {checkpoint}: there is no directory {checkpoint.parent}")
    keep_freed_memory()
    if team is None:  # a clock of processor time measures one process only
        workers = GradientWorkers(task, options.seed, parts_of(task) if options.clock == "wall" else 1)
    else:
        workers = GradientWorkers(task, options.seed, 1, torch.get_num_threads())
    run = _Run(task, options, fingerprint, checkpoint, save_every, team or Team(), workers, earlier)
    if checkpoint is not None and run.team.leads:
        Checkpoint.require_space(checkpoint, run.model)
    if resume and checkpoint is not None and checkpoint.exists():
        run.restore(Checkpoint.load(checkpoint, run.identity))
    with workers:
        if earlier is not None:
            run.measure()
        with interrupt or Interrupt() as interrupt:
            run.stopping = stopped
            while not run.finished and not run.stopping:
                run.epoch_of_steps(interrupt, on_progress)
            if run.stopping and not run.finished:
                if on_progress is not None and run.progress is not None and not interrupt.repeated:
                    on_progress(replace(run.progress, stopping=True))
                run.save()
        if run.stopping and not run.finished:
            run.measure()
    if on_progress is not None and run.progress is not None:
        on_progress(replace(run.progress, **run.bits_of_best()))  # what the report says
    return run.result(interrupted=run.stopping and not run.finished)


class _Run:
    """One training run: everything that changes during it, which a checkpoint must contain."""

    def __init__(
        self,
        task: Task,
        options: TrainOptions,
        fingerprint: str,
        path: Path | None,
        save_every: float,
        team: Team,
        workers: GradientWorkers,
        earlier: EarlierTraining | None,
    ) -> None:
        self.task, self.options, self.path, self.save_every = task, options, path, save_every
        self.team, self.workers, self.earlier = team, workers, earlier
        self.model = task.model
        self.epochs, self.batch = task.epochs, task.batch
        self.limit = options.seconds
        self.identity = {
            "options": {name: value for name, value in options.to_json().items() if name != "share"},
            **task.identity,
            "table": fingerprint,
            "threads": workers.parts * workers.threads,
        }

        held_out = min(HELD_OUT_MOST, int(task.rows * options.held_out)) if task.rows >= HELD_OUT_FROM else 0
        self.row_order = row_order(task.rows, held_out, self.batch, task.window, stream(options.seed, 0))
        self.held_out, self.steps = self.row_order.held_out, self.row_order.steps
        self.measured_rows = self.held_out
        self.probe = self.row_order.first(PROBE_ROWS)

        self.optimizer = Adam(self.model.parameters())
        if earlier is not None and earlier.moments:
            self.optimizer.restore(earlier.moments)

        self.has_warned = self.stopping = False
        self.generator: torch.Generator
        self.epoch = self.step = self.updates = 0
        self.seconds = self.epoch_bits = 0.0
        self.clock = CLOCKS[options.clock]
        self.counted_until = self.clock()  # time before this is counted in seconds; measuring and saving count too
        self.best_bits, self.best_epoch = math.inf, 0.0
        self.best: dict[str, Tensor] = self._copy_of_model()
        self.history: list[dict[str, Any]] = []
        self.progress: Progress | None = None  # of the last step
        self._start_epoch()

    @property
    def fraction(self) -> float:
        """The share of the run that is done."""
        by_steps = self.updates / (self.epochs * self.steps) if self.epochs else 0.0
        by_time = self.seconds / self.limit if self.limit else 0.0
        return min(1.0, max(by_steps, by_time))

    @property
    def finished(self) -> bool:
        return self.fraction >= 1.0

    def epoch_of_steps(self, interrupt: Interrupt, on_progress: Callable[[Progress], None] | None) -> None:
        """Train until the epoch or the budget ends, or the user interrupts."""
        since_save = time.monotonic()
        recent: list[tuple[float, int]] = [(self.seconds, self.updates)]
        while self.step < self.steps and not self.finished and not self.stopping:
            self._agree(self._train_step(), interrupt)
            recent = [*recent[-50:], (self.seconds, self.updates)]
            self.progress = self._progress(recent)
            if on_progress is not None and not self.finished:  # the last one waits for the final measurement
                on_progress(self.progress)
            self.stopping |= interrupt.requested and self.team.size == 1  # a team must agree on it first
            if time.monotonic() - since_save > self.save_every:
                self.save()
                since_save = time.monotonic()
        if self.step == self.steps or self.finished:
            self.measure()
            self.epoch += 1
            self._start_epoch()
            self.save()

    def measure(self) -> None:
        """Measure the bits of the current weights, and keep the weights if they are the best so far.

        The best weights are those with the fewest bits on the training rows: these rows will be counted. Held-out rows
        only show how well the model generalises.
        """
        epoch = self.updates / self.steps
        if not self.team.leads or (self.history and self.history[-1]["epoch"] == epoch):
            return
        self.measured_rows = self.held_out[: self._most_measured]
        measurements: list[tuple[Tensor, Inputs]] = [(self.probe[: self._most_measured], "as trained")]
        if len(self.held_out):
            measurements += [(self.measured_rows, "masked"), (self.measured_rows, "unmasked")]
        train_bits, *bits = self.workers.bits(measurements)
        masked_bits, unmasked_bits = bits or (None, None)
        self.history.append(
            {"epoch": epoch, "train_bits": train_bits, "masked_bits": masked_bits, "unmasked_bits": unmasked_bits}
        )
        if train_bits <= self.best_bits:
            self.best_bits, self.best_epoch, self.best = train_bits, epoch, self._copy_of_model()

    @property
    def _most_measured(self) -> int:
        """The largest number of rows to measure: few after less than an epoch, so that it takes little time."""
        few_rows = max(LEAST_MEASURED, int(MEASURED_SHARE * self.updates * self.batch))
        return few_rows if self.updates < self.steps and self.earlier is None else max(HELD_OUT_MOST, PROBE_ROWS)

    @property
    def _epochs_before(self) -> int:
        """Epochs of earlier training. They are counted so that this run draws other random numbers."""
        return 0 if self.earlier is None else self.earlier.epochs

    def bits_of_best(self) -> dict[str, Any]:
        """The bits of the best weights so far."""
        best = min(self.history, key=lambda entry: abs(entry["epoch"] - self.best_epoch), default={})
        return {name: best.get(name) for name in ("train_bits", "masked_bits", "unmasked_bits")}

    def result(self, interrupted: bool) -> Trained:
        self.model.load_state_dict(self.best)
        report = {
            "unit": self.task.unit,
            "epochs": round(self.updates / self.steps, 2 if self.updates >= self.steps / 10 else 6),
            "rows_seen": self.updates * self.batch,
            "best_epoch": round(self.best_epoch, 2),
            **self.bits_of_best(),
            "held_out_rows": len(self.measured_rows),
            "train_rows": self.row_order.rows,
            "seconds": round(self.seconds, 1),
            "rows_per_second": round(self.updates * self.batch / self.seconds) if self.seconds else None,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "interrupted": interrupted,
            "options": {**self.options.to_json(), "epochs": self.epochs, "batch": self.batch},
            "history": self.history,
        }
        return Trained(self.task.arrays(), report, interrupted)

    def save(self) -> None:
        """Write the checkpoint, if there is a path. If the disk is full, training continues without it."""
        if self.path is None or not self.team.leads:
            return
        groups = {
            "model": self.model.state_dict(),
            "best": self.best,
            "adam": self.optimizer.tensors(),
            "random": {"state": self.generator.get_state()},
        }
        state = Checkpoint(
            identity=self.identity,
            epoch=self.epoch,
            step=self.step,
            updates=self.updates,
            seconds=self.seconds,
            limit=self.limit,
            epoch_bits=self.epoch_bits,
            best_bits=self.best_bits,
            best_epoch=self.best_epoch,
            history=self.history,
            tensors={
                f"{group}.{name}": tensor for group, tensors in groups.items() for name, tensor in tensors.items()
            },
        )
        try:
            state.save(self.path)
        except TrainingError as error:
            if not self.has_warned:
                logger.warning("%s; training continues without it", error)
            self.has_warned = True

    def restore(self, saved: Checkpoint) -> None:
        self.epoch, self.updates, self.seconds = saved.epoch, saved.updates, saved.seconds
        if saved.updates and saved.limit is not None:  # keeps the schedule of the learning rate
            self.limit = saved.limit
        self.best_bits, self.best_epoch, self.history = saved.best_bits, saved.best_epoch, saved.history
        self._start_epoch()
        self.step, self.epoch_bits = saved.step, saved.epoch_bits
        self.model.load_state_dict(saved.group("model"))
        self.best = saved.group("best")
        self.optimizer.restore(saved.group("adam"))
        if self.team.leads:
            self.generator.set_state(saved.group("random")["state"])
        else:
            self.generator = stream(self.options.seed, self.epoch + 1, self.team.rank, self.updates)

    def _start_epoch(self) -> None:
        """Each epoch has its own generator, so that a resumed run can enter any epoch without replaying the others."""
        self.generator = stream(self.options.seed, self._epochs_before + self.epoch + 1)
        self.row_order.start(self.generator)
        if not self.team.leads:  # the same rows, but other masks
            self.generator = stream(self.options.seed, self.epoch + 1, self.team.rank)
        self.step, self.epoch_bits = 0, 0.0

    def _train_step(self) -> float:
        """Make one step. Returns the bits of this process's share of the batch."""
        batch = self.row_order.batch(self.step)
        share = self.team.share(batch)
        steps = self.updates / self.fraction if self.fraction else 0.0  # of the whole run, at its speed so far
        learning_rate = self.options.learning_rate_at(self.fraction, steps)
        update = self._epochs_before * self.steps + self.updates
        bits = self.workers.backward(share, self.generator, self.fraction, update, len(batch))
        self.team.add_gradients(self.model.parameters())
        self.optimizer.step(learning_rate, self.options.clip)
        self.step += 1
        self.updates += 1
        return bits

    def _agree(self, bits: float, interrupt: Interrupt) -> None:
        """Agree with the team on the bits of the step, the time that has passed, and whether to stop."""
        now = self.clock()
        bits, seconds, requests = self.team.summed(bits, self.seconds + now - self.counted_until, interrupt.requested)
        self.epoch_bits += bits
        self.seconds, self.counted_until = seconds / self.team.size, now
        self.stopping = requests > 0

    def _progress(self, recent: list[tuple[float, int]]) -> Progress:
        (then, updates_then), (now, updates_now) = recent[0], recent[-1]
        return Progress(
            unit=self.task.unit,
            epoch=self.epoch + 1,
            epochs=self.epochs,
            fraction=self.fraction,
            loss=self.epoch_bits / self.step,
            **self.bits_of_best(),
            rows_per_second=(updates_now - updates_then) * self.batch / max(now - then, 1e-9),
            seconds=self.seconds,
            seconds_left=self.seconds * (1.0 / max(self.fraction, 1e-9) - 1.0),
        )

    def _copy_of_model(self) -> dict[str, Tensor]:
        return {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
