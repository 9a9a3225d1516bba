"""Options of the training of one network, derived from the options of the fit and the network's share of the time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from countless.options import TrainingOptions
from countless.settings import names, setting

# The number of rows that a default training run visits in all, and limits of the number of epochs.
DEFAULT_ROWS_SEEN = 20_000_000
DEFAULT_EPOCHS = (20, 100)
LEARNING_RATE, TEXT_LEARNING_RATE = 8e-3, 6e-3  # defaults
HOT_STEPS = 2_000  # a run of columns with more steps has a lower learning rate
LEAST_HEAT = 0.25  # the least factor of the learning rate, however long the run is
DECAY = 0.6  # the last part of a run, in which a stable learning rate falls
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.monotonic, "processor": time.process_time}


@dataclass(frozen=True)
class TrainOptions(TrainingOptions):
    """How to train one network.

    The budget may be that of a whole fit; then ``share`` is the number of its seconds for this run. The share depends
    on how long other work took, so a resumed run keeps its first share. The learning rate rises over the first
    ``warmup`` of the run and falls to zero at its end, as ``schedule`` says. If a run has more than ``hot_steps``
    steps, the learning rate is multiplied by the square root of ``hot_steps`` / steps.
    """

    learning_rate: float = setting(LEARNING_RATE, "number", above=0)
    share: float | None = setting(None, "seconds", above=0)
    hot_steps: int | None = setting(None, "whole", least=1)

    @classmethod
    def of(
        cls, training: TrainingOptions, usual_rate: float, share: float | None, hot_steps: int | None = None
    ) -> TrainOptions:
        """The options of one network. ``usual_rate`` is the default of its learning rate.

        A learning rate that the user has set is not lowered for long runs.
        """
        common = {name: getattr(training, name) for name in names(TrainingOptions) if name != "workload"}
        rate = {"learning_rate": usual_rate, "hot_steps": hot_steps}
        if training.learning_rate is not None:
            rate = {"learning_rate": training.learning_rate, "hot_steps": None}
        return cls(**common | rate | {"share": share})

    @property
    def seconds(self) -> float | None:
        """How long the run may take; None if epochs alone end it."""
        return self.budget if self.share is None else self.share

    def epochs_for(self, rows: int) -> int | None:
        """The number of epochs for a table of ``rows`` rows; None if only the user's time budget ends the run."""
        if self.epochs is not None or self.budget is not None:
            return self.epochs
        least, most = DEFAULT_EPOCHS
        return min(most, max(least, round(DEFAULT_ROWS_SEEN / max(1, rows))))

    def batch_for(self, rows: int) -> int:
        """Rows per step: few, because many steps learn more in the same time; about a hundredth of a small table."""
        if self.batch is not None:
            return self.batch
        return min(256, max(128, 1 << max(0, rows // 100).bit_length()))

    def learning_rate_at(self, fraction: float, steps: float = 0.0) -> float:
        """The learning rate after ``fraction`` of the run, be it of its epochs or of its time.

        ``steps`` is the expected number of steps of the whole run. If time ends the run, it depends on its speed.
        """
        rise = min(1.0, fraction / self.warmup) if self.warmup > 0 else 1.0
        rest = max(0.0, 1.0 - fraction)
        fall = min(1.0, rest / DECAY) if self.schedule == "stable" else 0.5 * (1.0 - math.cos(math.pi * rest))
        heat = 1.0
        if self.hot_steps is not None and steps > self.hot_steps:
            heat = max(LEAST_HEAT, math.sqrt(self.hot_steps / steps))
        return self.learning_rate * heat * max(rise, 1e-3) * fall

    def to_json(self) -> dict[str, Any]:
        """Plain data for reports and checkpoints, without the workload, which is stored elsewhere."""
        return {name: value for name, value in super().to_json().items() if name != "workload"}
