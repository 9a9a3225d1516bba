"""Rows that a model would write."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countless.arrays import FloatArray
from countless.automaton import Automaton, Language
from countless.data.schema import Schema
from countless.data.text import TextColumn
from countless.engine.density import densities
from countless.engine.runtimes import Runtimes
from countless.engine.text.sample import sample
from countless.errors import CountlessError, UnsupportedQueryError
from countless.region import Box, Region

EVERY_ROW = Region((Box(),))


@dataclass(frozen=True)
class Sample:
    """A row that was drawn, and its probability: the texts by column, None for NULL.

    ``cut`` names the columns whose text is longer than the model sees: of these, ``row`` has only how they begin.
    """

    row: dict[str, str | None]
    probability: float
    cut: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"cut": list(self.cut)}


def samples(schema: Schema, runtimes: Runtimes, region: Region, count: int, seed: int) -> list[Sample]:
    """``count`` rows of ``region``; text columns are drawn as if they had nothing to do with each other."""
    if schema.columns:
        names = ", ".join(f'"{column.name}"' for column in schema.columns)
        raise UnsupportedQueryError(f"rows are drawn only where every column is modelled as text; not so: {names}")
    if count < 1:
        raise CountlessError(f"the number of rows to draw must be at least 1, not {count}")
    if not region.boxes:
        raise CountlessError("no row can match: there is nothing to draw")
    rng = np.random.default_rng(seed)
    found: list[Sample] = []
    for box, share in zip(region.boxes, rng.multinomial(count, _chances(runtimes, region, seed)), strict=True):
        found += _rows(schema, runtimes, box, int(share), rng)
    return [found[place] for place in rng.permutation(len(found))]


def _chances(runtimes: Runtimes, region: Region, seed: int) -> FloatArray:
    """How much of the region each of its disjoint boxes is."""
    if len(region.boxes) == 1:
        return np.ones(1)
    (density,) = densities(runtimes, [region], "particles", None, seed)
    found = np.array([answer.density for answer in density.answers])
    if not found.any():
        found = np.ones(len(found))
    chances: FloatArray = found / found.sum()
    return chances


def _rows(schema: Schema, runtimes: Runtimes, box: Box, count: int, rng: np.random.Generator) -> list[Sample]:
    languages = {item.column: item.language for item in box.texts}
    columns = [
        sample(runtime, languages.get(index, _everything(column)), count, rng)
        for index, (column, runtime) in enumerate(zip(schema.texts, runtimes.texts, strict=True))
    ]
    names = [column.name for column in schema.texts]
    return [
        Sample(
            {name: value.text for name, value in zip(names, values, strict=True)},
            math.exp(sum(value.log_probability for value in values)),
            tuple(name for name, value in zip(names, values, strict=True) if value.cut),
        )
        for values in zip(*columns, strict=True)
    ]


def _everything(column: TextColumn) -> Language:
    return Language(Automaton.constant(column.letters, True), column.has_null, column.has_null)
