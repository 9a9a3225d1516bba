"""Whole strings under a text model."""

from __future__ import annotations

import numpy as np
import pytest

from countless.data.text import encode
from countless.engine.text import likelihood
from countless.engine.text.likelihood import log_probabilities
from countless.engine.text.runtime import TextRuntime
from tests.texts import NOTE, random_estimator


@pytest.fixture(scope="module")
def runtime() -> TextRuntime:
    return random_estimator(NOTE)._runtimes.texts[0]


def test_symbol_by_symbol(runtime: TextRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likelihood, "AT_ONCE", 3)
    texts = ["", "x", "xyz", None, "xyzx", "xyzxyz", "ax", "zz"]
    strings = encode(NOTE, texts)
    found = log_probabilities(runtime, strings.symbols, strings.lengths)
    for symbols, length, mine in zip(strings.symbols.tolist(), strings.lengths.tolist(), found, strict=True):
        tree, node = runtime.tree(), 0
        probs, total = tree.roots[0], 0.0
        for symbol in symbols[:length]:
            total += float(np.log(probs[symbol]))
            if tree.positions[node] < runtime.spec.length:
                (probs,) = tree.extend([node], [symbol])
                node = tree.size - 1
        assert mine == pytest.approx(total, rel=1e-4)
    assert len(log_probabilities(runtime, strings.symbols[:0], strings.lengths[:0])) == 0
