"""Trees of tokens: NumPy against the definition, and the compiled ones against NumPy."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.arrays import FloatArray, IntArray
from countless.engine.columns import kernel
from countless.engine.text.kernel import CompiledTree, TextKernel, _arrays
from countless.engine.text.runtime import TextRuntime, Tree, shapes
from countless.errors import ModelFileError
from countless.spec import TextSpec

SMALL = TextSpec(characters=5, length=12, width=8, blocks=2, heads=2, inner=12, buckets=31)


def assert_close(actual: Any, expected: Any, rtol: float = 2e-4) -> None:
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol / 100)


def arrays(spec: TextSpec, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    weights = {name: 0.4 * rng.standard_normal(shape) for name, shape in shapes(spec).items()}
    return {name: array.astype(np.float32) for name, array in weights.items()}


def plain(spec: TextSpec, weights: dict[str, Any]) -> TextRuntime:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kernel.SWITCH_OFF, "1")
        return TextRuntime(spec, weights)


def fast(spec: TextSpec, weights: dict[str, Any]) -> TextRuntime:
    runtime = TextRuntime(spec, weights)
    assert runtime.compiled, "the compiled kernel was not built: run pip install again with a C compiler"
    return runtime


RUNTIMES = pytest.mark.parametrize("make", [plain, fast])


def defined(
    spec: TextSpec, weights: dict[str, Any], string: list[tuple[int, int]], context: IntArray | None
) -> FloatArray:
    """Probabilities after the last token of a string of (token, position), in float64, a token at a time."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}

    def norm(name: str, x: FloatArray) -> FloatArray:
        deviation = np.sqrt(x.var() + 1e-5)
        return np.asarray((x - x.mean()) / deviation * w[f"{name}.weight"] + w[f"{name}.bias"])

    def linear(name: str, x: FloatArray) -> FloatArray:
        return np.asarray(w[f"{name}.weight"] @ x + w[f"{name}.bias"])

    stream = []
    for index, (token, position) in enumerate(string):
        x = w["embedding"][token] + w["positions"][position]
        for gram, length in enumerate(spec.grams):
            value = 2166136261
            for back in range(length):
                token = string[index - back][0] if back <= index else spec.mask
                value = (value ^ spec.hash_ids[token]) * 16777619 % 2**32
            x = x + w["grams"][gram, (value >> 7) % spec.buckets]
        stream.append(x if context is None else x + shift(spec, w, context))
    size = spec.width // spec.heads
    for block in (f"blocks.{index}" for index in range(spec.blocks)):
        qkv = [np.split(linear(f"{block}.qkv", norm(f"{block}.attention_norm", x)), 3) for x in stream]
        for index in range(len(stream)):
            sums = np.zeros(spec.width)
            for head in (slice(start, start + size) for start in range(0, spec.width, size)):
                scores = np.array([qkv[index][0][head] @ key[head] for _, key, _ in qkv[: index + 1]]) / np.sqrt(size)
                chances = np.exp(scores - scores.max())
                sums[head] = chances / chances.sum() @ np.array([value[head] for *_, value in qkv[: index + 1]])
            stream[index] = stream[index] + linear(f"{block}.out", sums)
            inside = linear(f"{block}.up", norm(f"{block}.feed_norm", stream[index]))
            stream[index] = stream[index] + linear(f"{block}.down", np.maximum(inside, 0))
    logits = w["embedding"][: spec.symbols] @ norm("final", stream[-1]) + w["bias"]
    chances = np.exp(logits - logits.max())
    return np.asarray(chances / chances.sum())


def shift(spec: TextSpec, w: dict[str, Any], context: IntArray) -> FloatArray:
    """What a context adds to every token."""
    units = w["context.bias"].copy()
    first = 0
    for size, symbol in zip(spec.context, context.tolist(), strict=True):
        units += w["context.embedding"][first + symbol]
        first += size + 1
    shifts: FloatArray = w["context.out.weight"] @ np.maximum(units, 0) + w["context.direct.weight"] @ units
    return shifts


def random_contexts(spec: TextSpec, count: int, rng: np.random.Generator) -> IntArray | None:
    """Symbols, or MASK, of every position of so many rows; None if the model takes none, or by chance."""
    if not spec.context or not count:
        return None
    return rng.integers(np.array(spec.context) + 1, size=(count, len(spec.context)))


def random_nodes(spec: TextSpec, count: int, rng: np.random.Generator, contexts: int = 1) -> list[tuple[int, int, int]]:
    """(parent, token, position) of nodes after the roots, parents anywhere before that leave room."""
    positions = list(range(spec.length + 1)) * contexts
    nodes = []
    for _ in range(count):
        room = [node for node, position in enumerate(positions) if position < spec.length]
        parent = int(rng.choice(room[-6:] if rng.random() < 0.8 else room))
        masked = rng.random() < 0.2
        position = int(rng.integers(positions[parent] + 1, spec.length + 1)) if masked else positions[parent] + 1
        nodes.append((parent, spec.mask if masked else int(rng.integers(spec.symbols)), position))
        positions.append(position)
    return nodes


def grown(tree: Tree, nodes: list[tuple[int, int, int]], cuts: list[int]) -> FloatArray:
    """The nodes appended in pieces: those that are MASK by ``masked``, the others by ``extend``."""
    kinds = [token == tree.roots.shape[1] for _, token, _ in nodes]
    turns = [index for index in range(1, len(nodes)) if kinds[index] != kinds[index - 1]]
    edges = sorted({0, len(nodes), *turns, *(cut for cut in cuts if cut < len(nodes))})
    outputs = [np.empty((0, tree.roots.shape[1]), dtype=np.float32)]
    for start, stop in pairwise(edges):
        parents, tokens, positions = (list(part) for part in zip(*nodes[start:stop], strict=True))
        outputs.append(tree.masked(parents, positions) if kinds[start] else tree.extend(parents, tokens))
    return np.concatenate(outputs)


def string_of(
    spec: TextSpec, nodes: list[tuple[int, int, int]], index: int, contexts: int = 1
) -> tuple[list[tuple[int, int]], int]:
    """The tokens and positions from the root to a node, and its context."""
    string: list[tuple[int, int]] = []
    roots = contexts * (spec.length + 1)
    node = index + roots
    while node >= roots:
        parent, token, position = nodes[node - roots]
        string.insert(0, (token, position))
        node = parent
    context, place = divmod(node, spec.length + 1)
    return [(spec.mask, place), *string], context


NUMBERED = replace(SMALL, hash_ids=(3, 14, 15, 92, 65, 35, 89, 79, 323, 1 << 20))
CONDITIONAL = TextSpec(3, 9, width=6, heads=3, blocks=2, inner=5, grams=(), context=(2, 1, 4), context_width=5)


@pytest.mark.parametrize(
    ("spec", "contexts"), [(SMALL, 0), (NUMBERED, 0), (CONDITIONAL, 0), (CONDITIONAL, 1), (CONDITIONAL, 4)]
)
@RUNTIMES
def test_a_tree_is_as_defined(make: Any, spec: TextSpec, contexts: int) -> None:
    rng = np.random.default_rng(1)
    weights = arrays(spec)
    chosen = random_contexts(spec, contexts, rng)
    rows = [np.array(spec.context)] if chosen is None else list(chosen)
    tree: Tree = make(spec, weights).tree(chosen)
    nodes = random_nodes(spec, 40, rng, len(rows))
    roots = len(rows) * (spec.length + 1)
    outputs = grown(tree, nodes, [3, 17])
    assert tree.size == roots + 40
    assert len(tree.roots) == roots
    np.testing.assert_array_equal(tree.positions[:roots], np.tile(np.arange(spec.length + 1), len(rows)))
    np.testing.assert_array_equal(tree.contexts[:roots], np.repeat(np.arange(len(rows)), spec.length + 1))
    assert tree.positions[roots:].tolist() == [position for *_, position in nodes]
    for root in range(roots):
        context, place = divmod(root, spec.length + 1)
        row = rows[context] if spec.context else None
        assert_close(tree.roots[root], defined(spec, weights, [(spec.mask, place)], row))
        if place == 0:
            assert_close(tree.starts[context], tree.roots[root], rtol=1e-5)
    for index in range(len(nodes)):
        string, context = string_of(spec, nodes, index, len(rows))
        assert tree.contexts[roots + index] == context
        assert_close(outputs[index], defined(spec, weights, string, rows[context] if spec.context else None))


@RUNTIMES
def test_roots_are_computed_when_one_of_them_is_extended(make: Any) -> None:
    runtime = make(CONDITIONAL, arrays(CONDITIONAL))
    contexts = np.array([[0, 1, 2], [2, 1, 4]])
    early, late = runtime.tree(contexts), runtime.tree(contexts)
    beginning = late.extend([0, 10], [1, 1])
    assert_close(early.roots[[0, 10]], late.starts, rtol=1e-5)
    assert_close(early.extend([13], [2]), late.extend([13], [2]), rtol=1e-5)
    assert_close(early.extend([0, 10], [1, 1]), beginning, rtol=1e-5)
    assert_close(early.roots, late.roots, rtol=1e-5)


@RUNTIMES
def test_a_context_does_not_depend_on_the_others(make: Any) -> None:
    runtime = make(CONDITIONAL, arrays(CONDITIONAL))
    contexts = np.array([[0, 1, 2], [2, 1, 4], [1, 0, 0]])  # the second of nothing but MASK
    together = runtime.tree(contexts)
    for index, context in enumerate(contexts):
        alone = runtime.tree(context[None])
        assert_close(together.roots[10 * index : 10 * index + 10], alone.roots, rtol=1e-5)
        assert_close(together.extend([10 * index + 3], [1]), alone.extend([3], [1]), rtol=1e-5)
    assert_close(together.roots[10:20], runtime.tree().roots, rtol=1e-5)
    assert_close(together.starts[1:2], runtime.tree().starts, rtol=1e-5)


specs = st.builds(
    lambda heads, size, numbered, characters, **rest: TextSpec(
        characters,
        heads=heads,
        width=heads * size,
        hash_ids=tuple(number * numbered for number in range(characters + 5)) if numbered else (),
        **rest,
    ),
    st.integers(1, 5),
    st.integers(1, 40),
    st.integers(0, 3),
    st.integers(0, 40),
    length=st.integers(1, 40),
    blocks=st.integers(1, 3),
    inner=st.integers(1, 50),
    grams=st.sampled_from([(), (2,), (2, 3, 4), (3, 7)]),
    buckets=st.integers(1, 50),
    context=st.sampled_from([(), (), (3,), (1, 5, 2)]),
    context_width=st.integers(1, 20),
)


@given(specs, st.integers(0, 2**32), st.integers(0, 250), st.lists(st.integers(1, 250)), st.integers(0, 9))
@settings(deadline=None, max_examples=60)
def test_the_compiled_tree_is_the_plain_one(
    spec: TextSpec, seed: int, count: int, cuts: list[int], several: int
) -> None:
    rng = np.random.default_rng(seed)
    weights = arrays(spec, seed)
    contexts = random_contexts(spec, several, rng)
    nodes = random_nodes(spec, count, rng, 1 if contexts is None else several)
    runtime = fast(spec, weights)
    tree, twin = runtime.tree(contexts), plain(spec, weights).tree(contexts)
    assert_close(tree.starts, twin.starts, rtol=2e-3)
    outputs = grown(tree, nodes, cuts)
    assert_close(tree.roots, twin.roots, rtol=2e-3)
    assert_close(outputs, grown(twin, nodes, []), rtol=2e-3)
    np.testing.assert_array_equal(tree.positions, twin.positions)
    np.testing.assert_array_equal(tree.contexts, twin.contexts)
    np.testing.assert_array_equal(outputs, grown(runtime.tree(contexts), nodes, []))  # in other pieces: to the last bit


@RUNTIMES
def test_a_string_at_once_or_token_by_token(make: Any) -> None:
    runtime: TextRuntime = make(SMALL, arrays(SMALL))
    tokens = np.random.default_rng(2).integers(0, SMALL.symbols, SMALL.length)
    tree = runtime.tree()
    at_once = tree.extend([0, *range(tree.size, tree.size + SMALL.length - 1)], tokens)
    tree, parent = runtime.tree(), 0
    for index, token in enumerate(tokens):
        outputs = tree.extend([parent], [token])
        assert_close(outputs[0], at_once[index], rtol=1e-5)
        parent = tree.size - 1


@RUNTIMES
def test_trees_of_one_model_do_not_touch_each_other(make: Any) -> None:
    contexts = [np.array([[0, 1, 2]]), np.array([[1, 0, 4]]), None, np.array([[0, 0, 0], [0, 1, 2]])]
    runtime: TextRuntime = make(CONDITIONAL, arrays(CONDITIONAL))
    expected = [runtime.tree(context).extend([0, 2], [1, 2]) for context in contexts]
    trees = [runtime.tree(context) for context in contexts]
    outputs = [tree.extend([0, 2], [1, 2]) for tree in trees]
    np.testing.assert_array_equal(outputs, expected)
    assert not np.allclose(outputs[0], outputs[1])


def test_threads_with_trees_of_their_own() -> None:
    spec = TextSpec(20, 60, width=32, heads=4, inner=64, buckets=99)
    runtime = fast(spec, arrays(spec))
    nodes = random_nodes(spec, 300, np.random.default_rng(4))
    expected = grown(runtime.tree(), nodes, [])
    outputs: dict[int, list[FloatArray]] = {}

    def work(number: int) -> None:
        outputs[number] = [grown(runtime.tree(), nodes, list(range(1, 300, number + 3))) for _ in range(10)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outputs) == 4
    assert all(np.array_equal(one, expected) for each in outputs.values() for one in each)


def test_a_tree_outlives_its_runtime() -> None:
    tree = fast(SMALL, arrays(SMALL)).tree()
    assert tree.extend([0], [1]).sum() == pytest.approx(1.0, rel=1e-5)


@RUNTIMES
class TestMistakes:
    @pytest.mark.parametrize(
        ("parents", "tokens", "match"),
        [
            ([-1], [0], "parent"),
            ([13], [0], "parent"),
            ([13, 0], [0, 0], "parent"),
            ([2**40], [0], "parent"),
            ([0], [-1], "token"),
            ([0], [10], "token"),
            ([0], [2**40], "token"),
            ([12], [0], "position"),
            ([11, 13], [0, 0], "position"),
            ([0, 0], [0], "expected|every node"),
        ],
    )
    def test_nodes_that_cannot_be(self, make: Any, parents: list[int], tokens: list[int], match: str) -> None:
        tree: Tree = make(SMALL, arrays(SMALL)).tree()
        with pytest.raises(ValueError, match=match):
            tree.extend(parents, tokens)
        assert tree.size == SMALL.length + 1
        assert len(tree.extend([0], [0])) == 1

    @pytest.mark.parametrize(
        ("parents", "positions"), [([3], [3]), ([3], [2]), ([3], [13]), ([3], [-1]), ([3], [2**40])]
    )
    def test_masks_that_cannot_be(self, make: Any, parents: list[int], positions: list[int]) -> None:
        tree: Tree = make(SMALL, arrays(SMALL)).tree()
        with pytest.raises(ValueError, match="position"):
            tree.masked(parents, positions)

    def test_no_nodes(self, make: Any) -> None:
        tree: Tree = make(SMALL, arrays(SMALL)).tree()
        assert tree.extend([], []).shape == tree.masked([], []).shape == (0, SMALL.symbols)
        assert tree.size == SMALL.length + 1

    @pytest.mark.parametrize(
        "contexts",
        [
            np.zeros((1, 3)),
            np.zeros(3, dtype=np.int64),
            np.zeros((0, 3), dtype=np.int64),
            np.zeros((1, 2), dtype=np.int64),
            np.zeros((1, 1, 3), dtype=np.int64),
            [[0, 0, -1]],
            [[0, 0, 5]],
            [[0, 2**40, 0]],
            [[0, 0, 0], [3, 0, 0]],
            [["a", "b", "c"]],
        ],
    )
    def test_contexts(self, make: Any, contexts: Any) -> None:
        with pytest.raises(ValueError, match="context"):
            make(CONDITIONAL, arrays(CONDITIONAL)).tree(contexts)
        with pytest.raises(ValueError, match="takes no context"):
            make(SMALL, arrays(SMALL)).tree(contexts)

    def test_more_contexts_than_a_tree_can_have(self, make: Any) -> None:
        spec = TextSpec(1, 2**20, width=1, heads=1, blocks=1, inner=1, grams=(), buckets=1, context=(1,))
        if make is fast:
            with pytest.raises(ValueError, match="too large"):
                make(spec, arrays(spec)).tree(np.zeros((16, 1), dtype=np.int64))

    def test_damaged_arrays(self, make: Any) -> None:
        good = arrays(SMALL)
        name = "blocks.1.up.weight"
        with pytest.raises(ModelFileError, match="missing"):
            make(SMALL, {key: array for key, array in good.items() if key != name})
        with pytest.raises(ModelFileError, match="shape"):
            make(SMALL, {**good, name: good[name].T})
        with pytest.raises(ModelFileError, match="finite"):
            make(SMALL, {**good, name: np.full_like(good[name], np.nan)})


class TestTheModule:
    """What the compiled module is handed is checked: a mistake of ours is an exception, not a crash."""

    def test_outputs_that_do_not_fit(self) -> None:
        tree = fast(SMALL, arrays(SMALL)).tree()
        assert isinstance(tree, CompiledTree)
        node = np.zeros(1, dtype=np.int64)
        wrong = [np.empty(8, dtype=np.float32), np.empty(9), np.empty(10, dtype=np.float32)]
        for out in wrong:
            with pytest.raises(ValueError, match="expected"):
                tree._module.text_extend(tree.capsule, node, node, None, out)
        with pytest.raises(ValueError, match="expected"):
            tree._module.text_extend(tree.capsule, node, node.astype(np.int32), None, wrong[0])
        with pytest.raises((ValueError, BufferError)):
            tree._module.text_extend(tree.capsule, node, node, None, tree.roots[0])
        with pytest.raises(ValueError, match="expected"):
            tree._module.text_places(tree.capsule, False, np.empty(3, dtype=np.int64))
        with pytest.raises(ValueError, match="expected"):
            tree._module.text_roots(tree.capsule, wrong[0])

    def test_shifts_that_do_not_fit(self) -> None:
        runtime = fast(SMALL, arrays(SMALL))
        assert isinstance(runtime._trees, TextKernel)
        module, model = kernel.compiled(), runtime._trees._model
        assert module is not None
        starts = np.empty((1, SMALL.symbols), dtype=np.float32)
        for size in (0, 7, 9):
            with pytest.raises(ValueError, match="do not fit"):
                module.text_tree(model, None, np.zeros(size, dtype=np.float32), starts)
        with pytest.raises(ValueError, match="expected"):
            module.text_tree(model, None, np.zeros(2 * SMALL.width, dtype=np.float32), starts)
        half = module.text_tree(model, None, None, starts)
        with pytest.raises(ValueError, match="roots"):
            module.text_tree(model, half, None, None)

    def test_capsules_of_another_kind(self) -> None:
        tree, other = fast(SMALL, arrays(SMALL)).tree(), fast(SMALL, arrays(SMALL))
        assert isinstance(tree, CompiledTree)
        assert isinstance(other._trees, TextKernel)
        node = np.zeros(1, dtype=np.int64)
        with pytest.raises(ValueError, match="PyCapsule"):
            tree._module.text_extend(other._trees._model, node, node, None, np.empty(9, dtype=np.float32))
        with pytest.raises(ValueError, match="another model"):
            tree._module.text_tree(other._trees._model, tree.capsule, None, None)

    @pytest.mark.parametrize("changed", [{0: 0}, {1: -1}, {3: 3}, {5: 1}, {2: 2**30}, {6: 30}])
    def test_sizes_that_do_not_fit(self, changed: dict[int, int]) -> None:
        module = kernel.compiled()
        assert module is not None
        weights, grams, hash_ids = _arrays(SMALL, arrays(SMALL)), np.array(SMALL.grams), np.array(SMALL.hash_ids)
        sizes = [SMALL.symbols, SMALL.length, SMALL.width, SMALL.heads, SMALL.inner, SMALL.blocks, SMALL.buckets]
        module.text_load(tuple(sizes), grams, hash_ids, weights)
        for index, value in changed.items():
            sizes[index] = value
        with pytest.raises(ValueError, match=r"range|fit|expected"):
            module.text_load(tuple(sizes), grams, hash_ids, weights)

    def test_hash_ids_that_do_not_fit(self) -> None:
        module = kernel.compiled()
        assert module is not None
        weights, grams = _arrays(SMALL, arrays(SMALL)), np.array(SMALL.grams)
        sizes = (SMALL.symbols, SMALL.length, SMALL.width, SMALL.heads, SMALL.inner, SMALL.blocks, SMALL.buckets)
        for wrong in (np.arange(SMALL.symbols), np.arange(SMALL.symbols + 1, dtype=np.int32)):
            with pytest.raises(ValueError, match="expected"):
                module.text_load(sizes, grams, wrong, weights)


def test_without_the_compiled_module_numpy_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel.SWITCH_OFF, "1")
    assert not TextRuntime(SMALL, arrays(SMALL)).compiled
