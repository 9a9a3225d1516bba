"""The models in a model file, by name, made ready to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from countless import store
from countless.data.ngrams import NGrams
from countless.data.pairs import Pairs
from countless.data.schema import Schema
from countless.engine.counts import Counts
from countless.engine.runtime import Runtime
from countless.engine.runtimes import Runtimes
from countless.engine.text.runtime import TextRuntime
from countless.errors import ModelFileError
from countless.estimator.kinds import runtimes
from countless.spec import ModelSpec, TextSpec

COLUMNS_MODEL = "columns"  # the name of the one model over all columns
SUMMARY = "ngrams"  # the kind of what is stored beside a text model
PAIRS = "pairs"  # the name, and the kind, of the counts of columns that are stored beside the model over all columns
ROWS = "rows"  # the name, and the kind, of rows of the table that are kept for updates


def made_ready(schema: Schema, models: Mapping[str, store.StoredModel]) -> Runtimes:
    """All models of a table; a :class:`ModelFileError` if they do not fit its schema."""
    columns, texts = _columns_runtimes(schema, models), _text_runtimes(schema, models)
    return Runtimes(columns, texts, _summaries(schema, models), _counts(schema, models))


def text_model(index: int) -> str:
    """The name of the model of the table's text column at ``index``."""
    return f"text-{index}"


def summary_of(index: int) -> str:
    """The name under which the counts of n-grams of that text column are stored."""
    return f"ngrams-{index}"


def _columns_runtimes(schema: Schema, models: Mapping[str, store.StoredModel]) -> tuple[Runtime[Any], ...]:
    if not schema.columns:
        return ()
    model = _stored(models, COLUMNS_MODEL)
    spec = ModelSpec.from_json(model.spec)
    if (spec.sizes, spec.groups) != (schema.sizes, schema.groups):
        raise _mismatch()
    return runtimes(spec, dict(model.arrays))


def _text_runtimes(schema: Schema, models: Mapping[str, store.StoredModel]) -> tuple[TextRuntime, ...]:
    found = []
    for index, column in enumerate(schema.texts):
        model = _stored(models, text_model(index))
        spec = TextSpec.from_json(model.spec)
        if (spec.characters, spec.length) != (len(column.characters), column.length):
            raise _mismatch()
        if spec.context not in ((), schema.sizes):  # older files have no context
            raise _mismatch()
        found.append(TextRuntime(spec, dict(model.arrays)))
    return tuple(found)


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
    return Counts(pairs, [schema.positions(index) for index in range(len(schema.columns))])


def _stored(models: Mapping[str, store.StoredModel], name: str) -> store.StoredModel:
    if name not in models:
        raise ModelFileError(f"the model file is damaged: it lacks the model {name!r}; fit it again")
    return models[name]


def _mismatch() -> ModelFileError:
    return ModelFileError("the model file is damaged: the model and the schema do not belong together; fit it again")
