"""How to train: one frozen, self-checking set of options, and the learning rate that follows from it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from countless.errors import TrainingError
from countless.train.masking import parse_masking

# Rows that a default training run should see in all, and the bounds on the number of epochs that follow.
DEFAULT_ROWS_SEEN = 20_000_000
DEFAULT_EPOCHS = (20, 100)
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.monotonic, "processor": time.process_time}


@dataclass(frozen=True)
class TrainOptions:
    """How to train. ``epochs`` and ``budget`` (seconds) both end the run; whichever comes first decides.

    A budget may be that of a whole fit: then ``share`` is how many seconds this run has of it. The share follows from
    how long other work took, so a run that goes on keeps the share that it began with.

    The learning rate climbs over the first ``warmup`` of the run and then falls along a cosine to zero at its
    end. ``masking`` is ``uniform`` (the paper's), ``none``, or a probability. ``clock`` tells which time counts: that
    on the ``wall``, or the ``processor``'s, by which runs beside others can be compared. ``smooth`` is the share of an
    embedding's first variance in which neighbouring values are alike.
    """

    epochs: int | None = None
    budget: float | None = None
    batch: int | None = None
    learning_rate: float = 2e-3
    warmup: float = 0.03
    clip: float = 5.0
    masking: str = "uniform"
    seed: int = 0
    held_out: float = 0.01
    smooth: float = 0.0
    clock: str = "wall"
    share: float | None = None

    def __post_init__(self) -> None:
        parse_masking(self.masking)
        _require(self.epochs is None or self.epochs >= 1, "--epochs must be at least 1")
        _require(self.budget is None or self.budget > 0, "--budget must be a positive time, such as 5m")
        _require(self.share is None or self.share > 0, "a share of the budget must be a positive time")
        _require(self.batch is None or self.batch >= 1, "the batch size must be at least 1")
        _require(self.learning_rate > 0, "the learning rate must be positive")
        _require(0 <= self.warmup < 1, "the warm-up is a fraction of the run, at least 0 and below 1")
        _require(self.clip > 0, "the gradient's clipping norm must be positive")
        _require(0 <= self.seed < 2**31, "the seed must be between 0 and 2147483647")
        _require(0 <= self.smooth <= 1, "the share of smoothness lies between 0 and 1")
        _require(self.clock in CLOCKS, f"the clock is {' or '.join(CLOCKS)}, not {self.clock!r}")
        _require(0 <= self.held_out < 0.5, "the held-out share must be at least 0 and below 0.5")

    def changed(self, options: Mapping[str, Any]) -> TrainOptions:
        """With other values for some options, by their names."""
        unknown = [name for name in options if name not in {field.name for field in fields(self)}]
        _require(not unknown, f"unknown training options: {', '.join(unknown)}")
        return replace(self, **options)

    @property
    def seconds(self) -> float | None:
        """How long the run may take; None if epochs alone end it."""
        return self.budget if self.share is None else self.share

    def epochs_for(self, rows: int) -> int | None:
        """Epochs to train a table of ``rows`` rows for; None when only a budget that was asked for ends the run."""
        if self.epochs is not None or self.budget is not None:
            return self.epochs
        least, most = DEFAULT_EPOCHS
        return min(most, max(least, round(DEFAULT_ROWS_SEEN / max(1, rows))))

    def batch_for(self, rows: int) -> int:
        """Rows per step: few, for many steps learn more in the same time; on a small table a hundredth of it or so."""
        if self.batch is not None:
            return self.batch
        return min(512, max(128, 1 << max(0, rows // 100).bit_length()))

    def learning_rate_at(self, fraction: float) -> float:
        """The learning rate after ``fraction`` of the run."""
        climb = min(1.0, fraction / self.warmup) if self.warmup > 0 else 1.0
        return self.learning_rate * max(climb, 1e-3) * 0.5 * (1.0 + math.cos(math.pi * min(1.0, fraction)))

    def to_json(self) -> dict[str, Any]:
        """Plain data for reports and checkpoints."""
        return asdict(self)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise TrainingError(message)
