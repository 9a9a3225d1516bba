"""Countless: approximate COUNT(*) and other query answers from a learned model of a table.

>>> import countless
>>> est = countless.fit("adult.parquet", epochs=20)          # doctest: +SKIP
>>> est.estimate("age > 35 AND income = '>50K'")             # doctest: +SKIP
"""

from countless._version import __version__
from countless.data.sources.csv_files import CsvFile
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
from countless.estimator.answers.distribution import Distribution
from countless.estimator.answers.estimate import Estimate
from countless.estimator.answers.result import QueryResult
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.estimator.fitting.learning import Listener
from countless.estimator.prepared import PreparedQuestion
from countless.estimator.rows.completed import Completed
from countless.estimator.rows.sampling import Sample
from countless.estimator.updating.check import Check
from countless.options import (
    Network,
    ReadingOptions,
    ResourceOptions,
    StorageOptions,
    TextNetwork,
    TrainingOptions,
)
from countless.query.predicate import Predicate, col

load = Estimator.load

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
