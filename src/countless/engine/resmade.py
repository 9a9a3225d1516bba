"""ResMADE in NumPy, evaluated incrementally.

A hidden unit of degree ``d`` depends only on positions of rank at most ``d``. Units are sorted by degree, so once
those positions are fixed its activation never changes, and what the next position needs is the next slice of
units. Walking all positions of a query therefore costs one forward pass per particle, however many they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray, Weights
from countless.engine.checked import checked
from countless.engine.kernel import Kernel, PositionArrays, compiled
from countless.engine.runtime import Logits
from countless.spec import ModelSpec


@dataclass
class State:
    """``K`` particles: the first layer's sums, and the activations of the units computed so far.

    ``first`` (K, H) is complete for every position fixed so far, with MASK at all others. ``layers[l]`` (K, H) is
    what layer ``l + 1`` reads; only the first ``done`` units of each are valid.
    """

    first: Weights
    stream: Weights
    layers: list[Weights]
    done: int


class ResMadeRuntime:
    """The :class:`~countless.engine.runtime.Runtime` of a ResMADE's arrays, under one of its orders."""

    def __init__(self, spec: ModelSpec, arrays: dict[str, NDArray[Any]], order: int = 0) -> None:
        self.spec = spec
        self._order = spec.orders[order]
        weights = _checked(spec, arrays)
        if len(spec.orders) > 1:
            weights = _under_order(spec, weights, order)
        self._ranks, self._cuts = spec.ranks(order), spec.cuts
        width = spec.embedding
        starts = np.cumsum([0] + [size + 1 for size in spec.sizes])
        self._embeddings = [weights["embedding"][starts[p] : starts[p + 1]] for p in range(len(spec.sizes))]
        self._biases = [weights["bias"][starts[p] : starts[p + 1] - 1] for p in range(len(spec.sizes))]
        self._first, self._first_bias = (
            np.ascontiguousarray(weights["first.weight"].T),
            weights["first.bias"],
        )  # (n*E, H)
        self._hidden = [
            (weights[f"blocks.{block}.{half}.weight"], weights[f"blocks.{block}.{half}.bias"])
            for block in range(spec.blocks)
            for half in ("inner", "outer")
        ]
        self._outs = [weights["out.weight"][p * width : (p + 1) * width] for p in range(len(spec.sizes))]
        self._out_biases = [weights["out.bias"][p * width : (p + 1) * width] for p in range(len(spec.sizes))]
        # The first layer folded: what each symbol adds to the sums beyond what MASK adds, (size + 1, H) a position.
        folded = [self._embeddings[p] @ self._first[p * width : (p + 1) * width] for p in range(len(spec.sizes))]
        self._steps = [table - table[-1] for table in folded]
        self._all_mask = self._evaluate_all_mask(sum((table[-1] for table in folded), self._first_bias))
        self._kernel = self._compiled_kernel()

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.spec.sizes

    @property
    def order(self) -> tuple[int, ...]:
        return self._order

    @property
    def kernel(self) -> Kernel | None:
        return self._kernel

    def conditional(self, codes: IntArray, position: int) -> Logits:
        embedded = [self._embeddings[p][codes[:, p]] for p in range(len(self.sizes))]
        h = np.concatenate(embedded, axis=1) @ self._first + self._first_bias  # (S, n*E) -> (S, H)
        for block in range(self.spec.blocks):
            (inner, inner_bias), (outer, outer_bias) = self._hidden[2 * block], self._hidden[2 * block + 1]
            inside = np.maximum(np.maximum(h, 0) @ inner.T + inner_bias, 0)
            h = h + inside @ outer.T + outer_bias
        features = np.maximum(h, 0) @ self._outs[position].T + self._out_biases[position]  # (S, E)
        logits: Logits = features @ self._embeddings[position][:-1].T + self._biases[position]
        return logits

    def start(self) -> State:
        return self._all_mask

    def logits(self, state: State, position: int) -> Logits:
        cut = int(self._cuts[self._ranks[position]])
        self._extend(state, cut)
        features = state.layers[-1][:, :cut] @ self._outs[position][:, :cut].T + self._out_biases[position]  # (K, E)
        logits: Logits = features @ self._embeddings[position][:-1].T + self._biases[position]  # (K, size)
        return logits

    def advance(self, state: State, parents: IntArray, position: int, symbols: IntArray) -> State:
        valid = min(state.done, int(self._cuts[self._ranks[position]]))
        layers = []
        for layer in [state.stream, *state.layers]:
            gathered = np.empty((len(parents), self.spec.hidden), dtype=np.float32)
            gathered[:, :valid] = layer[parents, :valid]
            layers.append(gathered)
        first = state.first[parents] + self._steps[position][symbols]
        return State(first, layers[0], layers[1:], valid)

    def follow(self, state: State, position: int, symbols: IntArray) -> State:
        valid = min(state.done, int(self._cuts[self._ranks[position]]))
        state.first += self._steps[position][symbols]
        state.done = valid
        return state

    def _extend(self, state: State, cut: int) -> None:
        """Compute units ``done`` to ``cut`` of every layer."""
        new = slice(state.done, cut)
        if state.done >= cut:
            return
        state.stream[:, new] = state.first[:, new]
        state.layers[0][:, new] = np.maximum(state.first[:, new], 0)
        for index, (weight, bias) in enumerate(self._hidden):
            out = state.layers[index][:, :cut] @ weight[new, :cut].T + bias[new]
            if index % 2 == 1:  # the second half of a block adds to the stream
                out += state.stream[:, new]
                state.stream[:, new] = out
            state.layers[index + 1][:, new] = np.maximum(out, 0)
        state.done = cut

    def _compiled_kernel(self) -> Kernel | None:
        module = compiled()
        if module is None:
            return None
        cuts = self._cuts[self._ranks]
        positions = [
            PositionArrays(
                self._steps[p],
                self._outs[p][:, : cuts[p]],
                self._out_biases[p],
                self._embeddings[p][:-1],
                self._biases[p],
            )
            for p in range(len(self.sizes))
        ]
        start = self._all_mask
        units = np.concatenate(start.layers)  # (layers + 1, H)
        return Kernel(module, self.order, start.first[0], units, self._hidden, positions)

    def _evaluate_all_mask(self, first: Weights) -> State:
        """The one particle every query starts from, with all its units computed once."""
        empty = [np.empty((1, self.spec.hidden), dtype=np.float32) for _ in range(len(self._hidden) + 2)]
        state = State(first.reshape(1, -1).astype(np.float32), empty[0], empty[1:], 0)
        self._extend(state, self.spec.hidden)
        return state


def _checked(spec: ModelSpec, arrays: dict[str, NDArray[Any]]) -> dict[str, Weights]:
    """The arrays as float32, each of the shape that ``spec`` calls for, finite, and autoregressive."""
    hidden, inputs = spec.hidden, len(spec.sizes) * spec.embedding
    rows = sum(spec.sizes) + len(spec.sizes)
    shapes: dict[str, tuple[int, ...]] = {
        "embedding": (rows, spec.embedding),
        "bias": (rows,),
        "first.weight": (hidden, inputs),
        "first.bias": (hidden,),
        "out.weight": (inputs, hidden),
        "out.bias": (inputs,),
    }
    for block in range(spec.blocks):
        for half in ("inner", "outer"):
            shapes[f"blocks.{block}.{half}.weight"] = (hidden, hidden)
            shapes[f"blocks.{block}.{half}.bias"] = (hidden,)
    if len(spec.orders) > 1:
        shapes["first.signal"], shapes["out.signal"] = (hidden, len(spec.sizes)), (inputs, len(spec.sizes) - 1)
    return checked(arrays, shapes)


def _under_order(spec: ModelSpec, weights: dict[str, Weights], order: int) -> dict[str, Weights]:
    """The weights of a model of several orders as those of a model of one: its masks and its signals put in."""
    degrees, ranks = spec.degrees, spec.ranks(order)
    features = np.repeat(ranks, spec.embedding)  # (n*E,)
    first_seen = degrees[:, None] >= ranks[None, :]  # (H, n)
    out_seen = np.arange(len(ranks) - 1)[None, :] < features[:, None]  # (n*E, n - 1)
    return {
        **weights,
        "first.weight": weights["first.weight"] * (degrees[:, None] >= features[None, :]),
        "first.bias": weights["first.bias"] + (weights["first.signal"] * first_seen).sum(axis=1),
        "out.weight": weights["out.weight"] * (degrees[None, :] < features[:, None]),
        "out.bias": weights["out.bias"] + (weights["out.signal"] * out_seen).sum(axis=1),
    }
