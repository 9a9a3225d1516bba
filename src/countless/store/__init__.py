"""The model file: a zip archive of named, versioned sections.

================================ =================================================================
``countless.json``               format, library version, version of every section, names of members
``schema.json``                  rows, columns with every distinct value or a grid, columns left out
``networks/<name>.json``         a network's spec; ``networks/<name>.safetensors`` its weights
``summaries/<name>.safetensors`` exact counts: of values and pairs of values, or of substrings
``rows/<name>.safetensors``      random rows of the table, as evidence
``calibration.json``             queries with their true counts
``report.json``                  how training went
================================ =================================================================

JSON and safetensors only: nothing in the file is ever executed. Members have checksums, which reading verifies, and
what a member unpacks to is bounded before it is read.
"""

from countless.store.model_file import FORMAT, from_bytes, is_model, member_bytes, read, to_bytes, write
from countless.store.sections import (
    COLUMNS,
    EVIDENCE,
    PAIRS,
    TEXT,
    Contents,
    Sections,
    StoredNetwork,
    StoredRows,
    StoredSummary,
    substrings_of,
)
from countless.store.tensors import StoredTensors

__all__ = [
    "COLUMNS",
    "EVIDENCE",
    "FORMAT",
    "PAIRS",
    "TEXT",
    "Contents",
    "Sections",
    "StoredNetwork",
    "StoredRows",
    "StoredSummary",
    "StoredTensors",
    "from_bytes",
    "is_model",
    "member_bytes",
    "read",
    "substrings_of",
    "to_bytes",
    "write",
]
