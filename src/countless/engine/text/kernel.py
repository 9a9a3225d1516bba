"""Token trees in the compiled module: :mod:`countless.engine.text.tree` in C.

It reads the same arrays in another layout: the scale and shift of a normalisation are folded into the next linear map,
matrices are stored as panels one vector wide, and heads are padded to whole vectors.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from countless.arrays import FloatArray, IntArray, Weights
from countless.cached_property import cached_property
from countless.engine.columns.kernel import FAR_BELOW, LANES
from countless.spec import TextSpec


class TextKernel:
    """A text model, loaded into the compiled module. Threads may share it; it releases the interpreter's lock."""

    def __init__(self, module: ModuleType, spec: TextSpec, weights: dict[str, Weights], shift: Weights) -> None:
        self._module, self._spec = module, spec
        sizes = (spec.symbols, spec.length, spec.width, spec.heads, spec.inner, spec.blocks, spec.buckets)
        grams, hash_ids = (np.array(numbers, dtype=np.int64) for numbers in (spec.grams, spec.hash_ids))
        self._model = module.text_load(sizes, grams, hash_ids, _arrays(spec, weights))
        self._base = self._new_tree(shift)
        _ = self._base.roots  # computed once, before the tree is copied

    def tree(self, shifts: Weights | None) -> CompiledTree:
        """A tree with roots for each context, whose shift (of ``shifts``: contexts, width) is added to every token.

        With None there is one context, in which nothing is known.
        """
        if shifts is not None:
            return self._new_tree(shifts)
        tree: object = self._module.text_tree(self._model, self._base.capsule, None, None)
        compiled_tree = CompiledTree(self._module, tree, self._base.starts, self._spec)
        compiled_tree.roots = self._base.roots
        return compiled_tree

    def _new_tree(self, shifts: Weights) -> CompiledTree:
        starts = np.empty((len(shifts), self._spec.symbols), dtype=np.float32)
        tree: object = self._module.text_tree(self._model, None, shifts, starts)
        starts.setflags(write=False)
        return CompiledTree(self._module, tree, starts, self._spec)


class CompiledTree:
    """A :class:`~countless.engine.text.Tree` in the compiled module."""

    def __init__(self, module: ModuleType, capsule: object, starts: Weights, spec: TextSpec) -> None:
        self._module, self.capsule, self._spec = module, capsule, spec
        self._extend, self._symbols = module.text_extend, spec.symbols
        self.starts = starts
        self._size = len(starts) * (spec.length + 1)

    @cached_property
    def roots(self) -> Weights:
        roots = np.empty((len(self.starts) * (self._spec.length + 1), self._symbols), dtype=np.float32)
        self._module.text_roots(self.capsule, roots)
        roots.setflags(write=False)
        return roots

    @property
    def size(self) -> int:
        return self._size

    @property
    def positions(self) -> IntArray:
        return self._of_nodes(contexts=False)

    @property
    def contexts(self) -> IntArray:
        return self._of_nodes(contexts=True)

    def _of_nodes(self, contexts: bool) -> IntArray:
        values = np.empty(self._size, dtype=np.int64)
        self._module.text_places(self.capsule, contexts, values)
        return values

    def extend(self, parents: ArrayLike, tokens: ArrayLike) -> Weights:
        parents = np.ascontiguousarray(parents, dtype=np.int64)
        out = np.empty((len(parents), self._symbols), dtype=np.float32)
        self._size = self._extend(self.capsule, parents, np.ascontiguousarray(tokens, dtype=np.int64), None, out)
        return out

    def masked(self, parents: ArrayLike, positions: ArrayLike) -> Weights:
        parents, positions = (
            np.ascontiguousarray(parents, dtype=np.int64),
            np.ascontiguousarray(positions, dtype=np.int64),
        )
        out = np.empty((len(parents), self._symbols), dtype=np.float32)
        tokens = np.full(len(parents), self._spec.mask, dtype=np.int64)
        self._size = self._extend(self.capsule, parents, tokens, positions, out)
        return out


def _arrays(spec: TextSpec, weights: dict[str, Weights]) -> list[Weights]:
    """The arrays in the order and layout that the compiled module takes."""
    tied = _folded(
        weights["embedding"][: spec.symbols], weights["bias"], weights["final.weight"], weights["final.bias"]
    )
    arrays = [_padded_rows(weights[name]) for name in ("embedding", "positions", "grams")]
    arrays += _panels(*tied, fill=FAR_BELOW)
    for block in range(spec.blocks):
        block_weights = {name: weights[f"blocks.{block}.{name}"] for name in _block_array_names()}
        arrays += _block(spec, block_weights)
    return arrays


def _block_array_names() -> list[str]:
    maps = ("attention_norm", "qkv", "out", "feed_norm", "up", "down")
    return [f"{name}.{part}" for name in maps for part in ("weight", "bias")]


def _block(spec: TextSpec, weights: dict[str, Weights]) -> list[Weights]:
    weight, bias = _folded(
        weights["qkv.weight"], weights["qkv.bias"], weights["attention_norm.weight"], weights["attention_norm.bias"]
    )  # (3 width, width), (3 width)
    head = spec.width // spec.heads
    weight[: spec.width] /= np.sqrt(head)  # the scale of the scores
    bias[: spec.width] /= np.sqrt(head)
    heads = _padded_rows(weight.reshape(3, spec.heads, head, spec.width).swapaxes(2, 3)).swapaxes(2, 3)
    query, *keys = heads.reshape(3, -1, spec.width)  # each head padded to whole vectors
    query_bias, *key_bias = _padded_rows(bias.reshape(3, spec.heads, head)).reshape(3, -1)
    out = _padded_rows(weights["out.weight"].reshape(spec.width, spec.heads, head)).reshape(spec.width, -1)
    up = _folded(weights["up.weight"], weights["up.bias"], weights["feed_norm.weight"], weights["feed_norm.bias"])
    return [
        *_panels(query, query_bias),
        *_panels(np.concatenate(keys), np.concatenate(key_bias)),
        *_panels(out, weights["out.bias"]),
        *_panels(*up),
        *_panels(weights["down.weight"], weights["down.bias"]),
    ]


def _folded(weight: Weights, bias: Weights, scale: Weights, shift: Weights) -> tuple[FloatArray, FloatArray]:
    """A linear map with the scale and shift of the preceding normalisation folded in."""
    wide = weight.astype(np.float64)
    return wide * scale, bias + wide @ shift.astype(np.float64)


def _panels(weight: Weights | FloatArray, bias: Weights | FloatArray, fill: float = 0.0) -> list[Weights]:
    """A linear map (out, in) as panels (out / LANES, in, LANES), and its bias; what pads ``out`` has bias ``fill``."""
    columns = _padded_rows(weight.T)  # (in, out padded)
    panels = columns.reshape(len(columns), -1, LANES).swapaxes(0, 1)
    padded = _padded_rows(bias)
    padded[len(bias) :] = fill
    return [np.ascontiguousarray(panels), padded]


def _padded_rows(array: Weights | FloatArray) -> Weights:
    """The array in float32, its last axis padded with zeros to whole vectors."""
    width = array.shape[-1]
    padded = -(-width // LANES) * LANES
    if padded == width:
        return np.ascontiguousarray(array, dtype=np.float32)  # not copied, because columns share their n-grams
    rows = np.zeros((*array.shape[:-1], padded), dtype=np.float32)
    rows[..., :width] = array
    return rows
