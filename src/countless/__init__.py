"""Countless: approximate COUNT(*) and other query answers from a learned model of a table.

>>> import countless
>>> est = countless.fit("adult.parquet", epochs=20)          # doctest: +SKIP
>>> est.estimate("age > 35 AND income = '>50K'")             # doctest: +SKIP
"""

import importlib
from typing import TYPE_CHECKING, Any

from countless._version import __version__
from countless.errors import (
    ColumnLeftOutError,
    CountlessError,
    DataError,
    EmptyTableError,
    MissingExtraError,
    ModelFileError,
    NoRowsError,
    OptionError,
    QueryError,
    QuerySyntaxError,
    QueryTooLargeError,
    QueryTypeError,
    SourceError,
    TrainingError,
    UnknownColumnError,
    UnsupportedQueryError,
)
from countless.estimator.answers.estimate import Estimate
from countless.estimator.estimator import Estimator
from countless.estimator.prepared import PreparedQuestion

if TYPE_CHECKING:
    from countless.data.sources.csv_files import CsvFile
    from countless.estimator.answers.aggregates.result import QueryResult
    from countless.estimator.answers.distributions.distribution import Distribution
    from countless.estimator.fitting.fit import fit
    from countless.estimator.fitting.learning import Listener
    from countless.estimator.rows.completed import Completed
    from countless.estimator.rows.sampling import Sample
    from countless.estimator.updating.check import Check
    from countless.options import Network, ReadingOptions, ResourceOptions, StorageOptions, TextNetwork, TrainingOptions
    from countless.query.predicate import Predicate, col

load = Estimator.load

# Names that a plain question does not need are imported at their first use.
_LAZY = {
    "Check": "countless.estimator.updating.check",
    "Completed": "countless.estimator.rows.completed",
    "CsvFile": "countless.data.sources.csv_files",
    "Distribution": "countless.estimator.answers.distributions.distribution",
    "Listener": "countless.estimator.fitting.learning",
    "Network": "countless.options",
    "Predicate": "countless.query.predicate",
    "QueryResult": "countless.estimator.answers.aggregates.result",
    "ReadingOptions": "countless.options",
    "ResourceOptions": "countless.options",
    "Sample": "countless.estimator.rows.sampling",
    "StorageOptions": "countless.options",
    "TextNetwork": "countless.options",
    "TrainingOptions": "countless.options",
    "col": "countless.query.predicate",
    "fit": "countless.estimator.fitting.fit",
}

__all__ = [
    "Check",
    "ColumnLeftOutError",
    "Completed",
    "CountlessError",
    "CsvFile",
    "DataError",
    "Distribution",
    "EmptyTableError",
    "Estimate",
    "Estimator",
    "Listener",
    "MissingExtraError",
    "ModelFileError",
    "Network",
    "NoRowsError",
    "OptionError",
    "Predicate",
    "PreparedQuestion",
    "QueryError",
    "QueryResult",
    "QuerySyntaxError",
    "QueryTooLargeError",
    "QueryTypeError",
    "ReadingOptions",
    "ResourceOptions",
    "Sample",
    "SourceError",
    "StorageOptions",
    "TextNetwork",
    "TrainingError",
    "TrainingOptions",
    "UnknownColumnError",
    "UnsupportedQueryError",
    "__version__",
    "col",
    "fit",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'countless' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
