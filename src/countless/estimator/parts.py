"""The models in a model file, by name, made ready to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless import store
from countless.data.ngrams import NGrams
from countless.data.pairs import Pairs
from countless.data.schema import Schema
from countless.data.text import AFTER_CHARACTERS
from countless.engine.counts import Counts
from countless.engine.runtime import Runtime
from countless.engine.runtimes import Runtimes
from countless.engine.text.runtime import TextRuntime
from countless.engine.text.shared import runtimes_of
from countless.errors import ModelFileError
from countless.estimator.kinds import runtimes
from countless.estimator.lookups import unpacked
from countless.spec import ModelSpec, SharedTextSpec

COLUMNS_MODEL = "columns"  # the name of the one model over all columns
TEXT_MODEL = "text"  # the name of the one model of all text columns
SUMMARY = "ngrams"  # the kind of what is stored beside it for each text column
OLDER_TEXT_MODEL = "text-0"  # the name of the first of several, in files of an older format
PAIRS = "pairs"  # the name, and the kind, of the counts of columns that are stored beside the model over all columns
ROWS = "rows"  # the name, and the kind, of rows of the table that are kept for updates


def made_ready(schema: Schema, models: Mapping[str, store.StoredModel]) -> Runtimes:
    """All models of a table; a :class:`ModelFileError` if they do not fit its schema."""
    if ROWS in models:
        _check_kept_rows(schema, models[ROWS])
    columns, texts = _columns_runtimes(schema, models), _text_runtimes(schema, models)
    return Runtimes(columns, texts, _summaries(schema, models), _counts(schema, models))


def summary_of(index: int) -> str:
    """The name under which the counts of n-grams of the text column at ``index`` are stored."""
    return f"ngrams-{index}"


def _columns_runtimes(schema: Schema, models: Mapping[str, store.StoredModel]) -> tuple[Runtime[Any], ...]:
    if not schema.coded:
        return ()
    model = _stored(models, COLUMNS_MODEL)
    spec = ModelSpec.from_json(model.spec)
    if (spec.sizes, spec.groups) != (schema.sizes, schema.groups):
        raise _mismatch()
    return runtimes(spec, dict(model.arrays))


def _text_runtimes(schema: Schema, models: Mapping[str, store.StoredModel]) -> tuple[TextRuntime, ...]:
    if not schema.texts:
        return ()
    if TEXT_MODEL not in models and OLDER_TEXT_MODEL in models:
        raise ModelFileError(
            "an older Countless wrote this model file, with a network for each text column: fit it again"
        )
    model = _stored(models, TEXT_MODEL)
    spec = SharedTextSpec.from_json(model.spec)
    expected = SharedTextSpec.of([(column.characters, column.length) for column in schema.texts])
    if (spec.alphabets, spec.lengths) != (expected.alphabets, expected.lengths):
        raise _mismatch()
    if spec.context not in ((), schema.sizes):
        raise _mismatch()
    return runtimes_of(spec, unpacked(model.arrays))


def _summaries(schema: Schema, models: Mapping[str, store.StoredModel]) -> tuple[NGrams | None, ...]:
    found: list[NGrams | None] = []
    for index, column in enumerate(schema.texts):
        model = models.get(summary_of(index))
        if model is None:
            found.append(None)
            continue
        summary = NGrams.from_arrays(dict(model.arrays), len(column.characters))
        if model.spec.get("kind") != SUMMARY or summary.rows != schema.rows:
            raise _mismatch()
        found.append(summary)
    return tuple(found)


def _counts(schema: Schema, models: Mapping[str, store.StoredModel]) -> Counts | None:
    model = models.get(PAIRS)
    if model is None:
        return None
    if model.spec.get("kind") != PAIRS:
        raise _mismatch()
    pairs = Pairs.from_arrays(model.arrays, schema)
    return Counts(pairs, [schema.positions(index) for index in range(len(schema.coded))])


def _check_kept_rows(schema: Schema, model: store.StoredModel) -> None:
    """Rows that are kept for updates must have symbols of the columns' positions and of every text."""
    rows, arrays = model.spec.get("rows"), model.arrays
    expected: dict[str, tuple[Any, ...]] = {"symbols": (rows, len(schema.sizes))}
    for index, column in enumerate(schema.texts):
        expected |= {f"text-{index}": (rows, column.length + 1), f"lengths-{index}": (rows,)}
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


def _stored(models: Mapping[str, store.StoredModel], name: str) -> store.StoredModel:
    if name not in models:
        raise ModelFileError(f"the model file is damaged: it lacks the model {name!r}; fit it again")
    return models[name]


def _mismatch() -> ModelFileError:
    return ModelFileError("the model file is damaged: the model and the schema do not belong together; fit it again")
