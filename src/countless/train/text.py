"""A text column as a task: a causal Transformer that learns whole strings, and what follows a gap of any length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from countless.data.blocks import blocks, rows_of_block
from countless.data.text import Strings
from countless.errors import TrainingError
from countless.models.transformer import Transformer
from countless.spec import TEXT_MASKINGS, ModelSpec, TextSpec
from countless.train.masking import UniformMasking
from countless.train.options import TrainOptions
from countless.train.precision import half_precision_pays
from countless.train.stored import stored
from countless.train.task import BITS, Inputs, start_from

DEFAULT_SYMBOLS_SEEN = 20_000_000
DEFAULT_EPOCHS = (1, 20)
TOKENS_PER_STEP = (1_024, 8_192)  # between these, so that an epoch has
STEPS = 400  # of them, or so
WINDOW = 16  # symbols that are learned after a gap
WHOLE = 0.2  # the share of strings that are read whole; the others are cut into windows
GAPS = 0.1  # the weight of what follows a gap at once, beside the mean over all symbols
DRAWN_GAPS = 0.3  # the same in a context, where it is drawn
GAPS_PER_STRING = 4  # that are drawn in a step
EVALUATION_BATCH = 128
IGNORED = -100


@dataclass(frozen=True)
class Batch:
    """Tokens to read, their positions, and the symbols that follow them (IGNORED where there is none).

    ``strings`` says which string of the step each is of.
    """

    tokens: Tensor
    positions: Tensor
    targets: Tensor
    strings: Tensor


class TextTask:
    """Learns ``strings``.

    The paper masks a random prefix of each string. Here the symbols *right after* the gap are what patterns ask for,
    so most strings are cut into windows of WINDOW symbols, each read after a gap: as many beginnings as there are
    windows, at the cost of one pass. What follows a gap at once is not drawn but learned from its whole distribution,
    which counts strings that have ended by then. The remaining strings are read whole.

    A model with a context learns each string with its row's ``codes`` (rows, positions), of which random columns are
    masked: from none to all of them. ``groups`` has the number of positions of each column. What follows a gap at once
    is then drawn too, a few gaps of random lengths for each string: in a context it has no distribution to count.
    ``start`` has the weights to go on from, by their names in a model file; by default they are random. ``window`` is
    how many rows to read together, if they lie in files.
    """

    unit = "character"

    def __init__(
        self,
        strings: Strings,
        spec: TextSpec,
        options: TrainOptions,
        masking: str = "prefix",
        codes: NDArray[Any] | None = None,
        groups: tuple[int, ...] = (),
        start: Mapping[str, NDArray[Any]] | None = None,
        window: int | None = None,
    ) -> None:
        if masking not in TEXT_MASKINGS:
            raise TrainingError(f"unknown masking of text {masking!r}: choose one of {', '.join(TEXT_MASKINGS)}")
        self.spec, self.masking, self.window = spec, masking, window
        self.rows = len(strings.symbols)
        mean = sum(float(block.sum()) for block in blocks(strings.lengths)) / self.rows
        least, most = TOKENS_PER_STEP
        tokens = min(most, max(least, mean * self.rows / STEPS))
        self.batch = options.batch or max(8, round(tokens / mean))
        self.epochs = options.epochs
        if options.epochs is None and options.budget is None:
            fewest, many = DEFAULT_EPOCHS
            self.epochs = min(many, max(fewest, round(DEFAULT_SYMBOLS_SEEN / (mean * self.rows))))
        self._row = Rows(spec, codes, groups, self.rows, window) if spec.context else None
        self.identity = {"spec": spec.to_json(), "text_masking": masking, "groups": list(groups)}
        self._symbols = stored(strings.symbols, window, np.int16)
        self._lengths = stored(strings.lengths, window, np.int64)
        self._after_gaps = _after_gaps(strings, spec)
        self._half = half_precision_pays()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            self._model = Transformer(spec)
        if start is not None:
            start_from(self._model, start)

    @property
    def model(self) -> nn.Module:
        return self._model

    def loss(self, rows: Tensor, generator: torch.Generator, fraction: float) -> Tensor:
        nats, count = torch.zeros(()), 0
        shift = self._shift(rows, "as trained", generator)
        for batch in self._batches(rows, self.masking, generator):
            nats = nats + self._nats(batch, shift)
            count += int((batch.targets != IGNORED).sum())
        loss = nats / max(1, count)
        if self.masking == "none":
            return loss
        if shift is not None:
            drawn = self._gaps(rows, generator)
            loss = loss + DRAWN_GAPS * self._nats(drawn, shift) / len(drawn.tokens)
        return loss + GAPS * self._gap_nats()

    def bits(self, rows: Tensor, inputs: Inputs, generator: torch.Generator) -> float:
        masking = {"as trained": self.masking, "masked": "prefix", "unmasked": "none"}[inputs]
        nats, count = 0.0, 0
        with torch.no_grad():
            for chosen in torch.split(rows, EVALUATION_BATCH):
                shift = self._shift(chosen, inputs, generator)
                for batch in self._batches(chosen, masking, generator):
                    nats += float(self._nats(batch, shift))
                    count += int((batch.targets != IGNORED).sum())
        return nats * BITS / max(1, count)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        return self._model.arrays()

    def _shift(self, rows: Tensor, inputs: Inputs, generator: torch.Generator) -> Tensor | None:
        """What the rows add to the tokens of their strings: of each, random columns are masked, unless none are."""
        if self._row is None:
            return None
        codes = self._row.whole(rows) if inputs == "unmasked" else self._row.masked(rows, generator)
        return self._model.shift(codes)

    def _batches(self, rows: Tensor, masking: str, generator: torch.Generator) -> list[Batch]:
        if masking == "none":
            return [self._whole(rows)]
        whole = round(WHOLE * len(rows))
        windows = self._windows(rows[whole:], generator)
        batches = [replace(windows, strings=windows.strings + whole)]
        if whole:
            first = self._with_gaps(rows[:whole], generator) if masking == "spans" else self._whole(rows[:whole])
            batches.append(first)
        return [batch for batch in batches if len(batch.tokens)]

    def _whole(self, rows: Tensor) -> Batch:
        """Strings from their beginning."""
        longest = int(self._lengths[rows].max())
        targets = self._targets(rows, torch.arange(longest).expand(len(rows), -1))
        tokens = torch.cat([torch.full((len(rows), 1), self.spec.mask), targets[:, :-1].clamp(min=0)], dim=1)
        return Batch(tokens, torch.arange(longest).expand(len(rows), -1), targets, torch.arange(len(rows)))

    def _windows(self, rows: Tensor, generator: torch.Generator) -> Batch:
        """The strings cut into windows, from a random place of each on. A window begins with a gap."""
        if not len(rows):
            empty = torch.zeros(0, WINDOW + 1, dtype=torch.long)
            return Batch(empty, empty, empty, empty[:, 0])
        first = torch.randint(WINDOW, (len(rows), 1), generator=generator)
        starts = first + WINDOW * torch.arange(-(-(self.spec.length + 1) // WINDOW))
        string, window = torch.nonzero(starts < self._lengths[rows][:, None], as_tuple=True)
        places = starts[string, window][:, None] + torch.arange(WINDOW + 1)
        targets = self._targets(rows[string], places)
        tokens = torch.cat([torch.full((len(places), 1), self.spec.mask), targets[:, :-1].clamp(min=0)], dim=1)
        targets[:, 0] = IGNORED  # see _gap_nats
        return Batch(tokens, places.clamp(max=self.spec.length), targets, string)

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
        return Batch(torch.where(at_gap, self.spec.mask, tokens), places.clamp(max=room), targets, whole.strings)

    def _gaps(self, rows: Tensor, generator: torch.Generator) -> Batch:
        """What follows a few gaps of any length at once; after a string that has ended by then, END."""
        strings = torch.arange(len(rows)).repeat_interleave(GAPS_PER_STRING)
        places = torch.randint(self.spec.length + 1, (len(strings), 1), generator=generator)
        targets = self._symbols[rows[strings][:, None], places].long()
        return Batch(torch.full_like(places, self.spec.mask), places, targets, strings)

    def _targets(self, rows: Tensor, places: Tensor) -> Tensor:
        symbols = self._symbols[rows[:, None], places.clamp(max=self.spec.length)].long()
        return torch.where(places < self._lengths[rows][:, None], symbols, IGNORED)

    def _nats(self, batch: Batch, shift: Tensor | None) -> Tensor:
        logits = self._logits(batch.tokens, batch.positions, None if shift is None else shift[batch.strings])
        return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED, reduction="sum")

    def _gap_nats(self) -> Tensor:
        """Nats of the symbol after a gap where nothing is known of the row, the mean over all lengths of gaps."""
        positions = torch.arange(self.spec.length + 1)[:, None]
        logits = self._logits(torch.full_like(positions, self.spec.mask), positions)[:, 0]
        return -(self._after_gaps * logits.log_softmax(-1)).sum(1).mean()

    def _logits(self, tokens: Tensor, positions: Tensor, shift: Tensor | None = None) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            logits: Tensor = self._model(tokens, positions, shift)
        return logits.float()


class Rows:
    """The codes of every row, of which some are seen."""

    def __init__(
        self, spec: TextSpec, codes: NDArray[Any] | None, groups: tuple[int, ...], rows: int, window: int | None
    ) -> None:
        if codes is None or codes.shape != (rows, len(spec.context)):
            raise TrainingError(f"a text model with a context needs {len(spec.context)} codes of each of {rows} rows")
        self._spec = ModelSpec(spec.context, groups=groups)
        self._codes, self._mask = stored(codes, window), torch.tensor(spec.context)
        self._masking = UniformMasking(everything=True)

    def whole(self, rows: Tensor) -> Tensor:
        """All of their codes."""
        return self._codes[rows].long()

    def masked(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Their codes, with random columns masked: from none to all of them."""
        mask, _ = self._masking.draw_positions(len(rows), self._spec, generator)
        return torch.where(mask, self._mask, self.whole(rows))


def _after_gaps(strings: Strings, spec: TextSpec) -> Tensor:
    """The share of rows that have each symbol at each place; of a string that ended before, END."""
    rows = len(strings.symbols)
    counts = np.zeros((spec.length + 1, spec.symbols))
    some = rows_of_block(strings.symbols)
    for symbols, lengths in zip(blocks(strings.symbols, some), blocks(strings.lengths, some), strict=True):
        for place in range(spec.length + 1):
            present = symbols[lengths > place, place]
            counts[place] += np.bincount(present, minlength=spec.symbols)
            counts[place, spec.end] += len(symbols) - len(present)
    return torch.from_numpy(counts / rows).float()
