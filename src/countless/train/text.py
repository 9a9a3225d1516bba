"""A text column as a task: a causal Transformer that learns whole strings, and what follows a gap of any length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from countless.data.text import Strings
from countless.errors import TrainingError
from countless.models.transformer import Transformer
from countless.spec import TEXT_MASKINGS, TextSpec
from countless.train.options import TrainOptions
from countless.train.precision import half_precision_pays
from countless.train.task import BITS, Inputs

DEFAULT_SYMBOLS_SEEN = 20_000_000
DEFAULT_EPOCHS = (1, 20)
TOKENS_PER_STEP = (1_024, 8_192)  # between these, so that an epoch has
STEPS = 400  # of them, or so
WINDOW = 16  # symbols that are learned after a gap
WHOLE = 0.2  # the share of strings that are read whole; the others are cut into windows
GAPS = 0.1  # the weight of what follows a gap at once, beside the mean over all symbols
EVALUATION_BATCH = 128
IGNORED = -100


@dataclass(frozen=True)
class Batch:
    """Tokens to read, their positions, and the symbols that follow them (IGNORED where there is none)."""

    tokens: Tensor
    positions: Tensor
    targets: Tensor


class TextTask:
    """Learns ``strings``.

    The paper masks a random prefix of each string. Here the symbols *right after* the gap are what patterns ask for,
    so most strings are cut into windows of WINDOW symbols, each read after a gap: as many beginnings as there are
    windows, at the cost of one pass. What follows a gap at once is not drawn but learned from its whole distribution,
    which counts strings that have ended by then. The remaining strings are read whole.
    """

    unit = "character"

    def __init__(self, strings: Strings, spec: TextSpec, options: TrainOptions, masking: str = "prefix") -> None:
        if masking not in TEXT_MASKINGS:
            raise TrainingError(f"unknown masking of text {masking!r}: choose one of {', '.join(TEXT_MASKINGS)}")
        self.spec, self.masking = spec, masking
        self.rows = len(strings.symbols)
        mean = float(strings.lengths.mean())
        least, most = TOKENS_PER_STEP
        tokens = min(most, max(least, mean * self.rows / STEPS))
        self.batch = options.batch or max(8, round(tokens / mean))
        self.epochs = options.epochs
        if options.epochs is None and options.budget is None:
            fewest, many = DEFAULT_EPOCHS
            self.epochs = min(many, max(fewest, round(DEFAULT_SYMBOLS_SEEN / (mean * self.rows))))
        self.identity = {"spec": spec.to_json(), "text_masking": masking}
        self._symbols = torch.from_numpy(strings.symbols.astype(np.int16))
        self._lengths = torch.from_numpy(strings.lengths.astype(np.int64))
        self._after_gaps = _after_gaps(strings, spec)
        self._half = half_precision_pays()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            self._model = Transformer(spec)

    @property
    def model(self) -> nn.Module:
        return self._model

    def loss(self, rows: Tensor, generator: torch.Generator, fraction: float) -> Tensor:
        nats, count = torch.zeros(()), 0
        for batch in self._batches(rows, self.masking, generator):
            nats = nats + self._nats(batch)
            count += int((batch.targets != IGNORED).sum())
        loss = nats / max(1, count)
        return loss if self.masking == "none" else loss + GAPS * self._gap_nats()

    def bits(self, rows: Tensor, inputs: Inputs, generator: torch.Generator) -> float:
        masking = {"as trained": self.masking, "masked": "prefix", "unmasked": "none"}[inputs]
        nats, count = 0.0, 0
        with torch.no_grad():
            for chosen in torch.split(rows, EVALUATION_BATCH):
                for batch in self._batches(chosen, masking, generator):
                    nats += float(self._nats(batch))
                    count += int((batch.targets != IGNORED).sum())
        return nats * BITS / max(1, count)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        return self._model.arrays()

    def _batches(self, rows: Tensor, masking: str, generator: torch.Generator) -> list[Batch]:
        if masking == "none":
            return [self._whole(rows)]
        whole = round(WHOLE * len(rows))
        batches = [self._windows(rows[whole:], generator)]
        if whole:
            first = self._with_gaps(rows[:whole], generator) if masking == "spans" else self._whole(rows[:whole])
            batches.append(first)
        return [batch for batch in batches if len(batch.tokens)]

    def _whole(self, rows: Tensor) -> Batch:
        """Strings from their beginning."""
        longest = int(self._lengths[rows].max())
        targets = self._targets(rows, torch.arange(longest).expand(len(rows), -1))
        tokens = torch.cat([torch.full((len(rows), 1), self.spec.mask), targets[:, :-1].clamp(min=0)], dim=1)
        return Batch(tokens, torch.arange(longest).expand(len(rows), -1), targets)

    def _windows(self, rows: Tensor, generator: torch.Generator) -> Batch:
        """The strings cut into windows, from a random place of each on. A window begins with a gap."""
        if not len(rows):
            empty = torch.zeros(0, WINDOW + 1, dtype=torch.long)
            return Batch(empty, empty, empty)
        first = torch.randint(WINDOW, (len(rows), 1), generator=generator)
        starts = first + WINDOW * torch.arange(-(-(self.spec.length + 1) // WINDOW))
        string, window = torch.nonzero(starts < self._lengths[rows][:, None], as_tuple=True)
        places = starts[string, window][:, None] + torch.arange(WINDOW + 1)
        targets = self._targets(rows[string], places)
        tokens = torch.cat([torch.full((len(places), 1), self.spec.mask), targets[:, :-1].clamp(min=0)], dim=1)
        targets[:, 0] = IGNORED  # see _gap_nats
        return Batch(tokens, places.clamp(max=self.spec.length), targets)

    def _with_gaps(self, rows: Tensor, generator: torch.Generator) -> Batch:
        """Strings from their beginning, with one gap inside: its length is drawn without regard to the string's."""
        whole = self._whole(rows)
        shape, room = (len(rows), 1), self.spec.length
        before = (torch.rand(shape, generator=generator) * self._lengths[rows][:, None]).long()  # symbols before it
        after = before + 1 + (torch.rand(shape, generator=generator) * (room - before)).long()  # the first one after
        places = torch.arange(whole.tokens.shape[1]).expand(len(rows), -1)
        places = torch.where(places <= before, places, places + after - before - 1)
        ended = places >= self._lengths[rows][:, None]
        tokens = whole.tokens.gather(1, places.clamp(max=whole.tokens.shape[1] - 1))
        targets = torch.where(ended, IGNORED, self._targets(rows, places))
        at_gap = torch.arange(whole.tokens.shape[1]) == before + 1
        targets = torch.where(at_gap & ended, self.spec.end, targets)
        return Batch(torch.where(at_gap, self.spec.mask, tokens), places.clamp(max=room), targets)

    def _targets(self, rows: Tensor, places: Tensor) -> Tensor:
        symbols = self._symbols[rows[:, None], places.clamp(max=self.spec.length)].long()
        return torch.where(places < self._lengths[rows][:, None], symbols, IGNORED)

    def _nats(self, batch: Batch) -> Tensor:
        logits = self._logits(batch.tokens, batch.positions)
        return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED, reduction="sum")

    def _gap_nats(self) -> Tensor:
        """Nats of the symbol after a gap, the mean over all lengths of gaps."""
        positions = torch.arange(self.spec.length + 1)[:, None]
        logits = self._logits(torch.full_like(positions, self.spec.mask), positions)[:, 0]
        return -(self._after_gaps * logits.log_softmax(-1)).sum(1).mean()

    def _logits(self, tokens: Tensor, positions: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            logits: Tensor = self._model(tokens, positions)
        return logits.float()


def _after_gaps(strings: Strings, spec: TextSpec) -> Tensor:
    """The share of rows that have each symbol at each place; of a string that ended before, END."""
    rows = len(strings.symbols)
    counts = np.zeros((spec.length + 1, spec.symbols))
    for place in range(spec.length + 1):
        present = strings.symbols[strings.lengths > place, place]
        counts[place] = np.bincount(present, minlength=spec.symbols)
        counts[place, spec.end] += rows - len(present)
    return torch.from_numpy(counts / rows).float()
