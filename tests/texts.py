"""Estimators of text columns whose models nobody trained."""

from __future__ import annotations

import numpy as np

from countless.data.columns.schema import Schema
from countless.data.columns.strings.text import TextColumn
from countless.engine.text.column_runtimes import shared_shapes
from countless.estimator.estimator import Estimator
from countless.spec import SharedTextSpec
from countless.store import TEXT, Sections, StoredNetwork

URL = TextColumn("url", "VARCHAR", "./abcw", 12, False, 50, (("é", 3), ("\t", 1)), (9, 8, 7, 6, 5, 4))
NOTE = TextColumn("note", "VARCHAR", "xyz", 4, True, 20, (), (3, 2, 1), cut=5, beyond=2.0)


def random_estimator(*texts: TextColumn, seed: int = 0) -> Estimator:
    """An estimator of a table of text columns, with arbitrary weights."""
    rng = np.random.default_rng(seed)
    columns = [(column.characters, column.length) for column in texts]
    spec = SharedTextSpec.of(columns, width=8, blocks=1, heads=2, inner=8, buckets=31)
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shared_shapes(spec).items()}
    return Estimator(Schema(100, texts), Sections({TEXT: StoredNetwork.encoded(spec, arrays, "float32")}))
