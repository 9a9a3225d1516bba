"""Loading of a model file's sections, and checks that they match the schema."""

from __future__ import annotations

from typing import Any

from countless.data.columns.schema import Schema
from countless.data.evidence import EvidenceRows
from countless.data.summaries.pair_counts import Pairs
from countless.data.summaries.substrings import Substrings
from countless.engine.columns.runtime import Runtime
from countless.engine.fusion.pair_bounds import Counts
from countless.engine.runtimes import Runtimes
from countless.engine.text.column_runtimes import runtimes_of
from countless.engine.text.runtime import TextRuntime
from countless.errors import ModelFileError
from countless.estimator.fitting.model_kinds import runtimes
from countless.query.grids.line import check_grids
from countless.spec import ModelSpec, SharedTextSpec
from countless.store import COLUMNS, EVIDENCE, PAIRS, TEXT, Sections, StoredNetwork, substrings_of


def schema_of(data: Any) -> Schema:
    """The schema of a model file; a :class:`ModelFileError` now, not at a question, if it is out of order."""
    schema = Schema.from_json(data)
    check_grids(schema)
    if schema.derived:  # without any, a plain question loads no parser
        from countless.query.rewrites.derivation import check_stored

        check_stored(schema)
    return schema


def made_ready(schema: Schema, sections: Sections) -> Runtimes:
    """The networks and summaries of a table; a :class:`ModelFileError` if the sections do not fit its schema."""
    columns, texts = _columns_runtimes(schema, sections), _text_runtimes(schema, sections)
    return Runtimes(columns, texts, _substrings(schema, sections), _counts(schema, sections))


def evidence_of(schema: Schema, sections: Sections) -> EvidenceRows | None:
    """The rows of the table that the file holds, if it holds any."""
    stored = sections.rows.get(EVIDENCE)
    return None if stored is None else EvidenceRows.from_arrays(stored.arrays, schema)


def _columns_runtimes(schema: Schema, sections: Sections) -> tuple[Runtime[Any], ...]:
    if not schema.coded:
        return ()
    network = _network(sections, COLUMNS)
    spec = ModelSpec.from_json(network.spec)
    if (spec.sizes, spec.groups) != (schema.sizes, schema.groups):
        raise _mismatch()
    return runtimes(spec, network.weights)


def _text_runtimes(schema: Schema, sections: Sections) -> tuple[TextRuntime, ...]:
    if not schema.texts or TEXT not in sections.networks:
        return ()
    network = sections.networks[TEXT]
    spec = SharedTextSpec.from_json(network.spec)
    expected = SharedTextSpec.of([(column.characters, column.length) for column in schema.texts])
    if (spec.alphabets, spec.lengths) != (expected.alphabets, expected.lengths):
        raise _mismatch()
    if spec.context not in ((), schema.sizes):
        raise _mismatch()
    return runtimes_of(spec, network.weights)


def _substrings(schema: Schema, sections: Sections) -> tuple[Substrings | None, ...]:
    summaries: list[Substrings | None] = []
    for index, column in enumerate(schema.texts):
        summary = sections.summaries.get(substrings_of(index))
        counts = None if summary is None else Substrings.from_arrays(summary.arrays, len(column.characters))
        if counts is not None and counts.rows != schema.rows:
            raise _mismatch()
        summaries.append(counts)
    return tuple(summaries)


def _counts(schema: Schema, sections: Sections) -> Counts | None:
    summary = sections.summaries.get(PAIRS)
    if summary is None:
        return None
    pairs = Pairs.from_arrays(summary.arrays, schema)
    return Counts(pairs, schema.spans)


def _network(sections: Sections, name: str) -> StoredNetwork:
    if name not in sections.networks:
        raise ModelFileError(f"the model file is damaged: it lacks the network {name!r}; fit it again")
    return sections.networks[name]


def _mismatch() -> ModelFileError:
    return ModelFileError("the model file is damaged: the model and the schema do not belong together; fit it again")
