"""The ResMADE runtime in NumPy, evaluated incrementally.

A hidden unit of degree ``d`` depends only on positions of rank at most ``d``, so its activation is final once those
positions are fixed. Units are sorted by degree, so each position needs only the next slice of units. A walk through
all positions of a query therefore costs one forward pass per particle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray, Weights
from countless.engine.checked_arrays import checked
from countless.engine.columns.kernel import Kernel, PositionArrays, compiled, padded_units
from countless.engine.columns.runtime import Logits
from countless.spec import ModelSpec


@dataclass
class ResMadeState:
    """``K`` particles: the first layer's sums, and the activations of the units computed so far.

    ``first`` (K, H) counts every position fixed so far, with MASK at all others. ``stream`` (K, H) is the residual
    stream, and ``layers[l]`` (K, H) the input of layer ``l + 1``; only the first ``done`` units of each are valid.
    """

    first: Weights
    stream: Weights
    layers: list[Weights]
    done: int


@dataclass(frozen=True, eq=False)
class Matrices:
    """The weights of a ResMADE under one order, by position and by layer, as NumPy multiplies with them.

    ``first`` is (n * embedding, H); ``hidden`` has the weight (out, in) and bias of each layer.
    """

    embeddings: list[Weights]
    biases: list[Weights]
    first: Weights
    first_bias: Weights
    hidden: list[tuple[Weights, Weights]]
    outs: list[Weights]
    out_biases: list[Weights]

    @classmethod
    def of(cls, spec: ModelSpec, arrays: Mapping[str, NDArray[Any]], order_index: int) -> Matrices:
        """The weights in ``arrays``, which are checked: the file may be damaged."""
        weights = _checked(spec, arrays)
        if len(spec.orders) > 1:
            weights = _under_order(spec, weights, order_index)
        positions, embedding = range(len(spec.sizes)), spec.embedding
        starts = np.cumsum([0] + [size + 1 for size in spec.sizes])
        return cls(
            [weights["embedding"][starts[p] : starts[p + 1]] for p in positions],
            [weights["bias"][starts[p] : starts[p + 1] - 1] for p in positions],
            np.ascontiguousarray(weights["first.weight"].T),
            weights["first.bias"],
            [
                (weights[f"blocks.{block}.{half}.weight"], weights[f"blocks.{block}.{half}.bias"])
                for block in range(spec.blocks)
                for half in ("inner", "outer")
            ],
            [weights["out.weight"][p * embedding : (p + 1) * embedding] for p in positions],
            [weights["out.bias"][p * embedding : (p + 1) * embedding] for p in positions],
        )

    def folded(self, width: int) -> tuple[Weights, list[Weights]]:
        """The first layer as sums (H) when all positions are MASK, and what each symbol adds to them, (size + 1, H)."""
        tables = [embedding @ self.first[p * width : (p + 1) * width] for p, embedding in enumerate(self.embeddings)]
        return sum((table[-1] for table in tables), self.first_bias), [table - table[-1] for table in tables]


class ResMadeRuntime:
    """The :class:`~countless.engine.columns.runtime.Runtime` of a ResMADE's arrays, under one of its orders."""

    def __init__(self, spec: ModelSpec, arrays: Mapping[str, NDArray[Any]], order_index: int = 0) -> None:
        self.spec = spec
        self._arrays, self._order_index, self._order = arrays, order_index, spec.orders[order_index]
        self._ranks, self._cuts = spec.ranks(order_index), spec.cuts
        self._decoded: Matrices | None = Matrices.of(spec, arrays, order_index)
        first, deltas = self._decoded.folded(spec.embedding)
        self._padded_deltas = [padded_units(table) for table in deltas]
        self._deltas = [table[:, : spec.hidden] for table in self._padded_deltas]
        self._all_mask = self._evaluate_all_mask(first)
        self._kernel = self._compiled_kernel(self._decoded)
        if self._kernel is not None:
            self._decoded = None  # the kernel has a copy in its own layout

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.spec.sizes

    @property
    def order(self) -> tuple[int, ...]:
        return self._order

    @property
    def kernel(self) -> Kernel | None:
        return self._kernel

    @property
    def _matrices(self) -> Matrices:
        """The weights for NumPy. If there is a kernel, they are decoded on first use."""
        matrices = self._decoded
        if matrices is None:
            matrices = self._decoded = Matrices.of(self.spec, self._arrays, self._order_index)
        return matrices

    def conditional(self, codes: IntArray, position: int) -> Logits:
        weights = self._matrices
        embedded = [weights.embeddings[p][codes[:, p]] for p in range(len(self.sizes))]
        h = np.concatenate(embedded, axis=1) @ weights.first + weights.first_bias  # (S, n*E) -> (S, H)
        for block in range(self.spec.blocks):
            (inner, inner_bias), (outer, outer_bias) = weights.hidden[2 * block], weights.hidden[2 * block + 1]
            inside = np.maximum(np.maximum(h, 0) @ inner.T + inner_bias, 0)
            h = h + inside @ outer.T + outer_bias
        features = np.maximum(h, 0) @ weights.outs[position].T + weights.out_biases[position]  # (S, E)
        logits: Logits = features @ weights.embeddings[position][:-1].T + weights.biases[position]
        return logits

    def start(self) -> ResMadeState:
        return self._all_mask

    def logits(self, state: ResMadeState, position: int) -> Logits:
        cut, weights = int(self._cuts[self._ranks[position]]), self._matrices
        self._extend(state, cut)
        units = state.layers[-1][:, :cut]
        features = units @ weights.outs[position][:, :cut].T + weights.out_biases[position]  # (K, E)
        logits: Logits = features @ weights.embeddings[position][:-1].T + weights.biases[position]  # (K, size)
        return logits

    def advance(self, state: ResMadeState, parents: IntArray, position: int, symbols: IntArray) -> ResMadeState:
        valid = min(state.done, int(self._cuts[self._ranks[position]]))
        layers = []
        for layer in [state.stream, *state.layers]:
            gathered = np.empty((len(parents), self.spec.hidden), dtype=np.float32)
            gathered[:, :valid] = layer[parents, :valid]
            layers.append(gathered)
        first = state.first[parents] + self._deltas[position][symbols]
        return ResMadeState(first, layers[0], layers[1:], valid)

    def follow(self, state: ResMadeState, position: int, symbols: IntArray) -> ResMadeState:
        valid = min(state.done, int(self._cuts[self._ranks[position]]))
        state.first += self._deltas[position][symbols]
        state.done = valid
        return state

    def _extend(self, state: ResMadeState, cut: int) -> None:
        """Compute the units from ``done`` to ``cut`` of every layer."""
        new = slice(state.done, cut)
        if state.done >= cut:
            return
        state.stream[:, new] = state.first[:, new]
        state.layers[0][:, new] = np.maximum(state.first[:, new], 0)
        for index, (weight, bias) in enumerate(self._matrices.hidden):
            out = state.layers[index][:, :cut] @ weight[new, :cut].T + bias[new]
            if index % 2 == 1:  # the second half of a block adds to the stream
                out += state.stream[:, new]
                state.stream[:, new] = out
            state.layers[index + 1][:, new] = np.maximum(out, 0)
        state.done = cut

    def _compiled_kernel(self, weights: Matrices) -> Kernel | None:
        module = compiled()
        if module is None:
            return None
        cuts = self._cuts[self._ranks]
        positions = [
            PositionArrays(
                self._padded_deltas[p],
                weights.outs[p][:, : cuts[p]],
                weights.out_biases[p],
                weights.embeddings[p][:-1],
                weights.biases[p],
            )
            for p in range(len(self.sizes))
        ]
        all_mask = self._all_mask
        units = np.concatenate(all_mask.layers)  # (layers + 1, H)
        return Kernel(module, self.order, all_mask.first[0], units, weights.hidden, positions)

    def _evaluate_all_mask(self, first: Weights) -> ResMadeState:
        """The one particle every query starts from, with all its units computed once."""
        empty = [np.empty((1, self.spec.hidden), dtype=np.float32) for _ in range(2 * self.spec.blocks + 2)]
        state = ResMadeState(first.reshape(1, -1).astype(np.float32), empty[0], empty[1:], 0)
        self._extend(state, self.spec.hidden)
        return state


def _checked(spec: ModelSpec, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Weights]:
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


def _under_order(spec: ModelSpec, weights: dict[str, Weights], order_index: int) -> dict[str, Weights]:
    """The weights of a model of several orders, with the masks and signals of one order multiplied in."""
    degrees, ranks = spec.degrees, spec.ranks(order_index)
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
