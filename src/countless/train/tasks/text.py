"""The training task of text columns: one causal Transformer that learns whole strings, and symbols after gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from countless.data.columns.strings.text import Strings
from countless.data.encoding.blocks import blocks
from countless.errors import TrainingError
from countless.models.transformer import Transformer
from countless.spec import ModelSpec, SharedTextSpec
from countless.train.options import TrainOptions
from countless.train.precision import half_precision_pays
from countless.train.row_access import stored
from countless.train.tasks.masking import UniformMasking
from countless.train.tasks.strings import IGNORED, ColumnStrings, StringBatch
from countless.train.tasks.task import BITS, Inputs, start_from

DEFAULT_SYMBOLS_SEEN = 20_000_000  # for each column
DEFAULT_EPOCHS = (1, 20)
LEAST_TOKENS, STEPS = 1_024, 400  # least tokens of a step, most steps of an epoch: small tables have fewer steps
GAPS = 0.1  # the weight of the loss right after gaps, beside the mean over all symbols
DRAWN_GAPS = 0.3  # the same in a context, where gaps are drawn
EVALUATION_BATCH = 128


class TextTask:
    """Learns ``strings``: those of each text column of a table.

    A step takes the strings of some rows in every column, so a column is learned in proportion to its characters.

    The paper masks a random prefix of each string. Patterns need the symbols *right after* such a gap, so most strings
    are cut into windows of WINDOW symbols, each read after a gap: this gives one gap for each window at the cost of one
    pass. The first symbol after a gap is not sampled but learned from its whole distribution, in which strings that
    have ended count as END. The remaining strings are read whole.

    A model with a context learns each string with its row's ``codes`` (rows, positions), in which random columns are
    masked: from none to all of them. ``groups`` has the number of positions of each column. Then the first symbols
    after a few gaps of random lengths are learned for each string too, because their distribution in a context is not
    counted. ``start`` has the initial weights by their names in a model file; by default they are random. ``window`` is
    the number of rows to read together, if they are in files.
    """

    unit = "character"

    def __init__(
        self,
        strings: Sequence[Strings],
        spec: SharedTextSpec,
        options: TrainOptions,
        masking: str = "prefix",
        codes: NDArray[Any] | None = None,
        groups: tuple[int, ...] = (),
        start: Mapping[str, NDArray[Any]] | None = None,
        window: int | None = None,
    ) -> None:
        self.spec, self.masking, self.window = spec, masking, window
        self.rows = len(strings[0].symbols)
        symbols = sum(float(block.sum()) for column_strings in strings for block in blocks(column_strings.lengths))
        tokens = min(options.text_tokens, max(LEAST_TOKENS, symbols / STEPS))
        self.batch = options.batch or max(8, round(tokens * self.rows / symbols))
        self.epochs = options.epochs
        if options.epochs is None and options.budget is None:
            least, most = DEFAULT_EPOCHS
            self.epochs = min(most, max(least, round(len(strings) * DEFAULT_SYMBOLS_SEEN / symbols)))
        self._row = RowContexts(spec, codes, groups, self.rows, window) if spec.context else None
        self.identity = {"spec": spec.to_json(), "text_masking": masking, "groups": list(groups)}
        self.columns = [
            ColumnStrings(column_strings, spec.column(index), window) for index, column_strings in enumerate(strings)
        ]
        self._half = half_precision_pays()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            self._model = Transformer(spec)
        if start is not None:
            start_from(self._model, start)

    @property
    def model(self) -> nn.Module:
        return self._model

    def learn(self, rows: Tensor, generator: torch.Generator, fraction: float, weight: float) -> float:
        self._model.zero_grad()
        loss = weight * self._loss(rows, generator)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    def _loss(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Nats per character of these rows, plus those of the symbols after gaps."""
        nats, count = torch.zeros(()), 0
        shift = self._shift(rows, "as trained", generator)
        for index, column in enumerate(self.columns):
            for batch in column.batches(rows, self.masking, generator):
                nats = nats + self._nats(index, batch, shift)
                count += batch.symbols
        loss = nats / max(1, count)
        if self.masking == "none":
            return loss
        gaps = torch.zeros(())
        for index, column in enumerate(self.columns):
            if shift is not None:
                gap_batch = column.gaps(rows, generator)
                gaps = gaps + DRAWN_GAPS * self._nats(index, gap_batch, shift) / len(gap_batch.tokens)
            gaps = gaps + GAPS * self._gap_nats(index)
        return loss + gaps / len(self.columns)

    def bits(self, rows: Tensor, inputs: Inputs, generator: torch.Generator) -> float:
        masking = {"as trained": self.masking, "masked": "prefix", "unmasked": "none"}[inputs]
        nats, count = 0.0, 0
        with torch.no_grad():
            for batch_rows in torch.split(rows, EVALUATION_BATCH):
                shift = self._shift(batch_rows, inputs, generator)
                for index, column in enumerate(self.columns):
                    for batch in column.batches(batch_rows, masking, generator):
                        nats += float(self._nats(index, batch, shift))
                        count += batch.symbols
        return nats * BITS / max(1, count)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        return self._model.arrays()

    def _shift(self, rows: Tensor, inputs: Inputs, generator: torch.Generator) -> Tensor | None:
        """The shift of the rows. Random columns of each row are masked, unless ``inputs`` are unmasked."""
        if self._row is None:
            return None
        codes = self._row.whole(rows) if inputs == "unmasked" else self._row.masked(rows, generator)
        return self._model.shift(codes)

    def _nats(self, index: int, batch: StringBatch, shift: Tensor | None) -> Tensor:
        """Nats of a batch of the text column at ``index``; ``shift`` is (rows, columns, width)."""
        string_shift = None if shift is None else shift[batch.strings, index]
        logits = self._logits(index, batch.tokens, batch.positions, string_shift)
        return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED, reduction="sum")

    def _gap_nats(self, index: int) -> Tensor:
        """Nats of the symbol after a gap without a context: the mean over all lengths of gaps."""
        column = self.columns[index]
        positions = torch.arange(column.spec.length + 1)[:, None]
        logits = self._logits(index, torch.full_like(positions, column.spec.mask), positions)[:, 0]
        return -(column.gap_distribution * logits.log_softmax(-1)).sum(1).mean()

    def _logits(self, index: int, tokens: Tensor, positions: Tensor, shift: Tensor | None = None) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            logits: Tensor = self._model(tokens, positions, shift, index)
        return logits.float()


class RowContexts:
    """The codes of every row, with some columns masked."""

    def __init__(
        self, spec: SharedTextSpec, codes: NDArray[Any] | None, groups: tuple[int, ...], rows: int, window: int | None
    ) -> None:
        if codes is None or codes.shape != (rows, len(spec.context)):
            raise TrainingError(f"a text model with a context needs {len(spec.context)} codes of each of {rows} rows")
        self._spec = ModelSpec(spec.context, groups=groups)
        self._codes, self._mask = stored(codes, window), torch.tensor(spec.context)
        self._masking = UniformMasking(everything=True)

    def whole(self, rows: Tensor) -> Tensor:
        """All codes of these rows."""
        return self._codes[rows].long()

    def masked(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """The codes of these rows, with random columns masked: from none to all of them."""
        mask, _ = self._masking.draw_positions(len(rows), self._spec, generator)
        return torch.where(mask, self._mask, self.whole(rows))
