"""Fill in a hidden value when some of the positions before it are hidden too.

A model with MASK reads the known positions only, and weighs every value by the probability of the known positions after
it, without sampling. A model without MASK draws the hidden positions before it, and weighs each draw by the probability
of the known ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from countless.arrays import FloatArray, IntArray, Weights
from countless.data.columns.schema import Schema
from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.engine.columns.runtime import Runtime, State, softmax
from countless.engine.paper.columns import draw
from countless.engine.runtimes import Runtimes
from countless.engine.text.runtime import TextRuntime, Tree
from countless.errors import DataError

KNOWN_SHARE = 0.5  # of the other columns
BEFORE, AFTER = 5, 6  # characters that are known before and after a hidden one
TINY = 1e-300  # less than any probability; avoids the logarithm of zero


@dataclass(frozen=True)
class Filled:
    """The probabilities of the symbols of a hidden value, and the rows of logits that were computed."""

    chances: FloatArray
    forward_rows: int


@dataclass(frozen=True)
class ColumnHole:
    """A row's codes (positions,), the known positions, and the hidden position to fill in."""

    codes: IntArray
    known: frozenset[int]
    target: int

    @property
    def truth(self) -> int:
        return int(self.codes[self.target])


@dataclass(frozen=True)
class TextHole:
    """Symbols of a string from the position ``start`` on; all are known except the one at ``target``."""

    symbols: IntArray
    start: int
    target: int

    @property
    def truth(self) -> int:
        return int(self.symbols[self.target])


Hole = ColumnHole | TextHole


def holes(source: Source, schema: Schema, count: int, seed: int) -> list[Hole]:
    """Holes in random rows: of a table's columns, or of its text if it has nothing else."""
    return [*(column_holes if schema.coded else text_holes)(source, schema, count, seed)]


def fill(runtimes: Runtimes, hole: Hole, samples: int, skips: bool, rng: np.random.Generator) -> Filled:
    """The probabilities of the values of a hole, by the models of a table."""
    if isinstance(hole, ColumnHole):
        return fill_column(runtimes.columns[0], hole, samples, skips, rng)
    return fill_text(runtimes.text(0, "completion"), hole, samples, skips, rng)


def column_holes(source: Source, schema: Schema, count: int, seed: int) -> list[ColumnHole]:
    """A hole in each of some random rows. A random half of the other columns is known.

    The column that is asked for is one position, and neither the first nor the last.
    """
    rng = np.random.default_rng(seed)
    edges = np.concatenate([[0], np.cumsum(schema.groups)])
    groups = [range(begin, end) for begin, end in pairwise(edges[: len(schema.coded) + 1].tolist())]
    inner = [column for column in range(1, len(groups) - 1) if len(groups[column]) == 1]
    if not inner:
        raise DataError("completion needs a table with at least three columns: give a wider one")
    holes = []
    for codes in _sample(source, schema, count, seed).matrix():
        target = int(rng.choice(inner))
        known_columns = set(np.flatnonzero(rng.random(len(groups)) < KNOWN_SHARE).tolist()) - {target}
        positions = frozenset(position for column in known_columns for position in groups[column])
        holes.append(ColumnHole(np.asarray(codes, dtype=np.int64), positions, groups[target][0]))
    return holes


def text_holes(source: Source, schema: Schema, count: int, seed: int) -> list[TextHole]:
    """A hole at a random offset in each of some random strings that are long enough."""
    rng = np.random.default_rng(seed)
    (strings,) = _sample(source, schema, count, seed).strings
    size = BEFORE + 1 + AFTER
    drawn = []
    for symbols, length in zip(strings.symbols.astype(np.int64), (strings.lengths - 1).tolist(), strict=True):
        if length > size:
            start = int(rng.integers(1, length - size + 1))
            drawn.append(TextHole(symbols[start : start + size], start, BEFORE))
    if not drawn:
        raise DataError(f"completion needs strings of more than {size} characters: give a table that has some")
    return drawn


def _sample(source: Source, schema: Schema, count: int, seed: int) -> Table:
    """Random rows of the table of ``schema``."""
    count = min(count, schema.rows)
    with source.sample_table(count, seed, schema.names, schema.rows) as rows:
        return Table.encode_rows(rows, replace(schema, rows=count))


def fill_column(
    runtime: Runtime[State], hole: ColumnHole, samples: int, skips: bool, rng: np.random.Generator
) -> Filled:
    """Fill a hole by a model of the columns: by MASK if it ``skips``, otherwise with weighted ``samples``."""
    target, order = hole.target, runtime.order
    last = max(order.index(position) for position in hole.known | {target})
    rows = 1 if skips else samples
    first = order[0]
    mask = np.full(rows, runtime.sizes[first])
    state = runtime.advance(runtime.start(), np.zeros(rows, dtype=np.int64), first, mask)
    weights, target_codes, passes = np.zeros(rows), np.zeros(rows, dtype=np.int64), 0
    for position in order[: last + 1]:
        if skips and position != target and position not in hole.known:
            continue
        size = runtime.sizes[position]
        chances = softmax(runtime.logits(state, position))
        passes += rows
        if position in hole.known:
            code = int(hole.codes[position])
            weights += np.log(np.maximum(chances[:, code], TINY))
            state = runtime.follow(state, position, np.full(rows, code))
        elif position == target and skips:
            rows, target_codes = size, np.arange(size)
            weights = weights[0] + np.log(np.maximum(chances[0], TINY))
            state = runtime.advance(state, np.zeros(size, dtype=np.int64), position, target_codes)
        else:
            symbols = draw(chances, chances.sum(axis=1), rng)
            target_codes = symbols if position == target else target_codes
            state = runtime.follow(state, position, symbols)
    return Filled(_shares(weights, target_codes, runtime.sizes[target]), passes)


def fill_text(runtime: TextRuntime, hole: TextHole, samples: int, skips: bool, rng: np.random.Generator) -> Filled:
    """Fill a hole by a model of strings: by MASK if it ``skips``, otherwise with weighted ``samples``."""
    spec, tree = runtime.spec, runtime.tree()
    letters = spec.characters + 1  # UNKNOWN is the last
    passes = 1
    if skips:
        nodes, following, weights = np.array([hole.start]), tree.roots[[hole.start]], np.zeros(1)
    else:
        nodes, following, weights, passes = _prefixes(tree, hole.start, letters, samples, rng)
    for index, symbol in enumerate(hole.symbols.tolist()):
        if index == hole.target:
            weights = (weights[:, None] + np.log(np.maximum(following[:, :letters], TINY))).ravel()
            best = np.argsort(-weights, kind="stable")[: max(letters, samples)]  # of every prefix with every letter
            weights, parents, symbols = weights[best], nodes[best // letters], best % letters
        else:
            weights = weights + np.log(np.maximum(following[:, symbol], TINY))
            parents, symbols = nodes, np.full(len(nodes), symbol)
        if index == hole.target:
            hidden = symbols
        nodes = tree.size + np.arange(len(symbols))
        following = tree.extend(parents, symbols)
        passes += len(symbols)
    return Filled(_shares(weights, hidden, letters), passes)


def _prefixes(
    tree: Tree, length: int, letters: int, samples: int, rng: np.random.Generator
) -> tuple[IntArray, Weights, FloatArray, int]:
    """Different random beginnings of strings of at least this length: nodes, what follows, log weights, and passes."""
    nodes, following, counts = np.zeros(1, dtype=np.int64), tree.starts[:1], np.array([samples])
    weights, passes = np.zeros(1), 1
    for _ in range(length):
        chances = following[:, :letters].astype(np.float64)
        going_on = chances.sum(axis=1)
        weights = weights + np.log(np.maximum(going_on, TINY))
        drawn = rng.multinomial(counts, chances / going_on[:, None])  # (nodes, letters)
        parents, symbols = np.nonzero(drawn)
        counts, weights = drawn[parents, symbols], weights[parents]
        parents = nodes[parents]
        nodes = tree.size + np.arange(len(symbols))
        following = tree.extend(parents, symbols)
        passes += len(symbols)
    return nodes, following, weights + np.log(counts), passes


def _shares(weights: FloatArray, symbols: IntArray, size: int) -> FloatArray:
    """The share of each symbol, by log weights."""
    masses = np.bincount(symbols, np.exp(weights - weights.max()), minlength=size)
    shares: FloatArray = masses / masses.sum()
    return shares
