"""The training task of the columns: a ResMADE with random input masking, under one order or several in turn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from countless.arrays import IntArray
from countless.data.encoding.blocks import counted
from countless.models.network import ColumnsNetwork
from countless.models.resmade import ResMADE
from countless.models.training_step import TrainingStep
from countless.spec import ModelSpec
from countless.train.options import TrainOptions
from countless.train.row_access import stored
from countless.train.tasks.masking import (
    WORKLOAD_FROM,
    Masking,
    NoMasking,
    UniformMasking,
    WorkloadMasking,
    parse_masking,
)
from countless.train.tasks.task import BITS, Inputs, start_from

EVALUATION_BATCH = 2_048


class ColumnsTask:
    """Learns the rows of ``codes`` (rows, positions).

    ``column_sets`` has how often the queries of a workload filter each set of columns; the last part of a run learns
    these sets. ``start`` has the initial weights by their names in a model file; by default they are random. ``counts``
    has the number of rows with each symbol of each position; by default they are counted. ``window`` is the number of
    rows to read together, if the codes are in a file. Rows and random numbers stay in memory; the batch of a step goes
    to the ``device`` of the model.
    """

    unit = "row"

    def __init__(
        self,
        codes: NDArray[Any],
        spec: ModelSpec,
        options: TrainOptions,
        network: Callable[[ModelSpec], ColumnsNetwork] = ResMADE,
        column_sets: Mapping[tuple[int, ...], float] | None = None,
        start: Mapping[str, NDArray[Any]] | None = None,
        counts: list[IntArray] | None = None,
        window: int | None = None,
        device: str = "cpu",
    ) -> None:
        self.spec, self.window = spec, window
        self.rows = len(codes)
        self.epochs = options.epochs_for(self.rows)
        self.batch = options.batch_for(self.rows)
        self.identity = {"spec": spec.to_json(), "workload": _workload_name(column_sets) if column_sets else None}
        self._codes = stored(codes, window)
        self._masking: Masking = parse_masking(options.masking)
        columns = len(spec.groups)
        self._late_masking = WorkloadMasking(self._masking, column_sets, columns) if column_sets else self._masking
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            self._model = network(spec)
            if options.smooth and isinstance(self._model, ResMADE):
                self._model.start_smooth(options.smooth)
        self._mask_codes = torch.tensor(spec.sizes)
        if start is not None:
            start_from(self._model, start)
        else:
            self._model.start_from_marginals(counted(codes, spec.sizes) if counts is None else counts)
        self._device = torch.device(device)
        self._model.to(self._device)
        has_fast_step = isinstance(self._model, ResMADE) and device == "cpu"
        self._step = TrainingStep(cast(ResMADE, self._model)) if has_fast_step else None

    @property
    def model(self) -> nn.Module:
        return self._model

    def learn(self, rows: Tensor, generator: torch.Generator, fraction: float, weight: float) -> float:
        orders = len(self.spec.orders)
        order = (
            int(torch.randint(orders, (), generator=generator)) if orders > 1 else 0
        )  # one order for the whole batch
        masking = self._masking if fraction < WORKLOAD_FROM else self._late_masking
        inputs, targets, counts = self._drawn(self._codes[rows].long(), masking, generator)
        counts = counts * (weight / len(rows))
        if self._step is not None:
            return float(self._step.gradients(inputs, targets, counts, order))
        self._model.zero_grad()
        loss = self._plain_nats(inputs, targets, counts, order)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    def bits(self, rows: Tensor, inputs: Inputs, generator: torch.Generator) -> float:
        masking = {"as trained": self._late_masking, "masked": UniformMasking(), "unmasked": NoMasking()}[inputs]
        orders = range(len(self.spec.orders))
        nats_of = self._plain_nats if self._step is None else self._step.nats
        nats = 0.0
        with torch.no_grad():
            for batch in torch.split(rows, EVALUATION_BATCH):
                targets = self._codes[batch].long()
                for order in orders:
                    batch_inputs, batch_targets, counts = self._drawn(targets, masking, generator)
                    counts[:, self.spec.visible :] = 0
                    nats += float(nats_of(batch_inputs, batch_targets, counts, order))
        return nats * BITS / (len(rows) * len(orders))

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        return self._model.cpu().arrays()

    def _drawn(self, targets: Tensor, masking: Masking, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs, some of them masked, the targets, and which targets count in the loss."""
        mask, counts = masking.draw_positions(len(targets), self.spec, generator)
        drawn = (torch.where(mask, self._mask_codes, targets), targets, counts)
        inputs, targets, counts = (tensor.to(self._device) for tensor in drawn)
        return inputs, targets, counts

    def _plain_nats(self, inputs: Tensor, targets: Tensor, counts: Tensor, order: int) -> Tensor:
        return -(self._model.log_prob(inputs, targets, order) * counts).sum()


def _workload_name(column_sets: Mapping[tuple[int, ...], float]) -> str:
    """A short unique name of a workload."""
    digest = hashlib.sha256(repr(sorted(column_sets.items())).encode()).hexdigest()
    return f"{len(column_sets)} sets of columns ({digest[:12]})"
