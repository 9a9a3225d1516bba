"""Ancestral sampling: draws whole rows position by position, with one forward pass per row."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from countless.arrays import IntArray
from countless.cancellation import check_cancelled, propagate
from countless.engine.columns.runtime import Logits, Runtime

BATCH_ROWS = 2_048  # rows that are drawn together


def ancestral_rows(models: Sequence[Runtime[Any]], count: int, rng: np.random.Generator) -> IntArray:
    """``count`` independent rows of symbols (rows, positions). ``models`` has one model under each of its orders.

    Digits are drawn from the model as they are, so a few combinations may be no code.
    """
    sizes = [min(BATCH_ROWS, count - start) for start in range(0, count, BATCH_ROWS)]
    models_in_turn = [models[batch % len(models)] for batch in range(len(sizes))]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        batches = list(pool.map(propagate(_rows), zip(models_in_turn, sizes, rng.spawn(len(sizes)), strict=True)))
    return np.concatenate([np.empty((0, len(models[0].sizes)), dtype=np.int64), *batches])


def _rows(job: tuple[Runtime[Any], int, np.random.Generator]) -> IntArray:
    model, count, rng = job
    symbols = np.empty((count, len(model.sizes)), dtype=np.int64)
    parents = np.zeros(count, dtype=np.int64)
    state = model.start()
    for step, position in enumerate(model.order):
        check_cancelled()
        logits = model.logits(state, position)
        row_symbols = _drawn(logits if step else np.repeat(logits, count, axis=0), rng)
        symbols[:, position] = row_symbols
        state = (
            model.advance(state, parents, position, row_symbols)
            if not step
            else model.follow(state, position, row_symbols)
        )
    return symbols


def _drawn(logits: Logits, rng: np.random.Generator) -> IntArray:
    """One symbol for each row of logits, drawn by probability."""
    sums = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float32)
    np.cumsum(sums, axis=1, out=sums)
    points = rng.random(len(sums), dtype=np.float32)[:, None] * sums[:, -1:]
    symbols: IntArray = np.minimum((sums < points).sum(axis=1), sums.shape[1] - 1)
    return symbols
