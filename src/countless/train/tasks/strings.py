"""Training batches of strings: whole, in windows after a gap, and with a gap inside."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from countless.data.columns.strings.text import Strings
from countless.data.encoding.blocks import rows_of_block, spaced
from countless.spec import TextSpec
from countless.train.row_access import stored

WINDOW = 16  # symbols that are learned after a gap
WHOLE = 0.2  # the share of strings that are read whole; the others are cut into windows
GAPS_PER_STRING = 4  # gaps that are drawn for each string in a step
GAP_ROWS, GAP_BLOCK = 1 << 18, 1 << 12  # rows in which symbols after gaps are counted, and rows of a block
IGNORED = -100


@dataclass(frozen=True)
class StringBatch:
    """Tokens to read, their positions, and the symbols that follow them (IGNORED where there is none).

    ``strings`` has the index of each one's string in the step.
    """

    tokens: Tensor
    positions: Tensor
    targets: Tensor
    strings: Tensor

    @property
    def symbols(self) -> int:
        """The number of symbols to predict."""
        return int((self.targets != IGNORED).sum())


class ColumnStrings:
    """The strings of one text column, in its own symbols. If they are in files, ``window`` strings are read at once."""

    def __init__(self, strings: Strings, spec: TextSpec, window: int | None) -> None:
        self.spec = spec
        self._symbols = stored(strings.symbols, window)
        self._lengths = stored(strings.lengths, window)
        self.gap_distribution = _gap_distribution(strings, spec)

    def batches(self, rows: Tensor, masking: str, generator: torch.Generator) -> list[StringBatch]:
        """The strings of these rows, masked as ``masking`` says."""
        if masking == "none":
            return [self.whole(rows)]
        whole = round(WHOLE * len(rows))
        windows = self.windows(rows[whole:], generator)
        batches = [replace(windows, strings=windows.strings + whole)]
        if whole:
            first = self.with_gaps(rows[:whole], generator) if masking == "spans" else self.whole(rows[:whole])
            batches.append(first)
        return [batch for batch in batches if len(batch.tokens)]

    def whole(self, rows: Tensor) -> StringBatch:
        """Strings from their beginning."""
        longest = int(self._lengths[rows].max())
        targets = self._targets(rows, torch.arange(longest).expand(len(rows), -1))
        tokens = torch.cat([torch.full((len(rows), 1), self.spec.mask), targets[:, :-1].clamp(min=0)], dim=1)
        return StringBatch(tokens, torch.arange(longest).expand(len(rows), -1), targets, torch.arange(len(rows)))

    def windows(self, rows: Tensor, generator: torch.Generator) -> StringBatch:
        """The strings cut into windows, from a random offset. A window begins with a gap."""
        if not len(rows):
            empty = torch.zeros(0, WINDOW + 1, dtype=torch.long)
            return StringBatch(empty, empty, empty, empty[:, 0])
        first = torch.randint(WINDOW, (len(rows), 1), generator=generator)
        starts = first + WINDOW * torch.arange(-(-(self.spec.length + 1) // WINDOW))
        string, window = torch.nonzero(starts < self._lengths[rows][:, None], as_tuple=True)
        positions = starts[string, window][:, None] + torch.arange(WINDOW + 1)
        targets = self._targets(rows[string], positions)
        tokens = torch.cat([torch.full((len(positions), 1), self.spec.mask), targets[:, :-1].clamp(min=0)], dim=1)
        targets[:, 0] = IGNORED  # see TextTask._gap_nats
        return StringBatch(tokens, positions.clamp(max=self.spec.length), targets, string)

    def with_gaps(self, rows: Tensor, generator: torch.Generator) -> StringBatch:
        """Strings from their beginning, with one gap inside, whose length does not depend on the string's length."""
        whole = self.whole(rows)
        shape, room = (len(rows), 1), self.spec.length
        before = (
            torch.rand(shape, generator=generator) * self._lengths[rows][:, None]
        ).long()  # symbols before the gap
        after = (
            before + 1 + (torch.rand(shape, generator=generator) * (room - before)).long()
        )  # the first symbol after it
        positions = torch.arange(whole.tokens.shape[1]).expand(len(rows), -1)
        positions = torch.where(positions <= before, positions, positions + after - before - 1)
        ended = positions >= self._lengths[rows][:, None]
        tokens = whole.tokens.gather(1, positions.clamp(max=whole.tokens.shape[1] - 1))
        targets = torch.where(ended, IGNORED, self._targets(rows, positions))
        at_gap = torch.arange(whole.tokens.shape[1]) == before + 1
        targets = torch.where(at_gap & ended, self.spec.end, targets)
        return StringBatch(
            torch.where(at_gap, self.spec.mask, tokens), positions.clamp(max=room), targets, whole.strings
        )

    def gaps(self, rows: Tensor, generator: torch.Generator) -> StringBatch:
        """The symbols right after a few gaps of random lengths; END if the string has ended by then."""
        strings = torch.arange(len(rows)).repeat_interleave(GAPS_PER_STRING)
        positions = torch.randint(self.spec.length + 1, (len(strings), 1), generator=generator)
        targets = self._symbols[rows[strings][:, None], positions].long()
        return StringBatch(torch.full_like(positions, self.spec.mask), positions, targets, strings)

    def _targets(self, rows: Tensor, positions: Tensor) -> Tensor:
        symbols = self._symbols[rows[:, None], positions.clamp(max=self.spec.length)].long()
        return torch.where(positions < self._lengths[rows][:, None], symbols, IGNORED)


def _gap_distribution(strings: Strings, spec: TextSpec) -> Tensor:
    """The share of rows that have each symbol at each position; END for a string that ended before.

    In a large table evenly spaced blocks are counted: a few hundred thousand rows give accurate shares.
    """
    rows = 0
    counts = np.zeros((spec.length + 1, spec.symbols))
    block_rows = min(rows_of_block(strings.symbols), GAP_BLOCK)
    for start in spaced(len(strings.symbols), block_rows, GAP_ROWS // block_rows):
        symbols, lengths = (np.array(array[start : start + block_rows]) for array in (strings.symbols, strings.lengths))
        rows += len(symbols)
        for position in range(spec.length + 1):
            present = symbols[lengths > position, position]
            counts[position] += np.bincount(present, minlength=spec.symbols)
            counts[position, spec.end] += len(symbols) - len(present)
    return torch.from_numpy(counts / rows).float()
