"""Loading of a model file's sections, and checks that they match the schema."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.data.columns.schema import Schema
from countless.data.columns.text import AFTER_CHARACTERS
from countless.data.summaries.ngrams import NGrams
from countless.data.summaries.pair_counts import Pairs
from countless.engine.columns.runtime import Runtime
from countless.engine.fusion.pair_bounds import Counts
from countless.engine.runtimes import Runtimes
from countless.engine.text.column_runtimes import runtimes_of
from countless.engine.text.runtime import TextRuntime
from countless.errors import ModelFileError
from countless.estimator.fitting.model_kinds import runtimes
from countless.spec import ModelSpec, SharedTextSpec
from countless.store import COLUMNS, PAIRS, TEXT, Sections, StoredNetwork, StoredRows, ngrams_of


def made_ready(schema: Schema, sections: Sections) -> Runtimes:
    """The networks and summaries of a table; a :class:`ModelFileError` if the sections do not fit its schema."""
    for rows in sections.rows.values():
        _check_rows(schema, rows)
    columns, texts = _columns_runtimes(schema, sections), _text_runtimes(schema, sections)
    return Runtimes(columns, texts, _ngrams(schema, sections), _counts(schema, sections))


def _columns_runtimes(schema: Schema, sections: Sections) -> tuple[Runtime[Any], ...]:
    if not schema.coded:
        return ()
    network = _network(sections, COLUMNS)
    spec = ModelSpec.from_json(network.spec)
    if (spec.sizes, spec.groups) != (schema.sizes, schema.groups):
        raise _mismatch()
    return runtimes(spec, network.weights)


def _text_runtimes(schema: Schema, sections: Sections) -> tuple[TextRuntime, ...]:
    if not schema.texts:
        return ()
    network = _network(sections, TEXT)
    spec = SharedTextSpec.from_json(network.spec)
    expected = SharedTextSpec.of([(column.characters, column.length) for column in schema.texts])
    if (spec.alphabets, spec.lengths) != (expected.alphabets, expected.lengths):
        raise _mismatch()
    if spec.context not in ((), schema.sizes):
        raise _mismatch()
    return runtimes_of(spec, network.weights)


def _ngrams(schema: Schema, sections: Sections) -> tuple[NGrams | None, ...]:
    found: list[NGrams | None] = []
    for index, column in enumerate(schema.texts):
        summary = sections.summaries.get(ngrams_of(index))
        ngrams = None if summary is None else NGrams.from_arrays(summary.arrays, len(column.characters))
        if ngrams is not None and ngrams.rows != schema.rows:
            raise _mismatch()
        found.append(ngrams)
    return tuple(found)


def _counts(schema: Schema, sections: Sections) -> Counts | None:
    summary = sections.summaries.get(PAIRS)
    if summary is None:
        return None
    pairs = Pairs.from_arrays(summary.arrays, schema)
    return Counts(pairs, [schema.positions(index) for index in range(len(schema.coded))])


def _check_rows(schema: Schema, rows: StoredRows) -> None:
    """Rows that are kept for updates must have symbols of the columns' positions and of every text."""
    count, arrays = rows.symbols.shape[:1], rows.arrays()
    expected: dict[str, tuple[int, ...]] = {"symbols": (*count, len(schema.sizes))}
    for index, column in enumerate(schema.texts):
        expected |= {f"text-{index}": (*count, column.length + 1), f"lengths-{index}": count}
    for name, shape in expected.items():
        if name not in arrays or arrays[name].shape != shape or arrays[name].dtype.kind not in "iu":
            raise _bad_rows(name)
    if not _below(arrays["symbols"], np.array(schema.sizes, dtype=np.int64)):
        raise _bad_rows("symbols")
    for index, column in enumerate(schema.texts):
        if not _below(arrays[f"text-{index}"], len(column.characters) + AFTER_CHARACTERS):
            raise _bad_rows(f"text-{index}")
        if not _below(arrays[f"lengths-{index}"], column.length + 2, least=1):
            raise _bad_rows(f"lengths-{index}")


def _below(numbers: NDArray[Any], ends: Any, least: int = 0) -> bool:
    return bool(((numbers >= least) & (numbers < ends)).all())


def _bad_rows(name: str) -> ModelFileError:
    return ModelFileError(
        f"the model file is damaged: its kept rows ({name}) do not fit its schema; copy it again or fit it anew"
    )


def _network(sections: Sections, name: str) -> StoredNetwork:
    if name not in sections.networks:
        raise ModelFileError(f"the model file is damaged: it lacks the network {name!r}; fit it again")
    return sections.networks[name]


def _mismatch() -> ModelFileError:
    return ModelFileError("the model file is damaged: the model and the schema do not belong together; fit it again")
