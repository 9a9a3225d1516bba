"""Countless: count rows without counting them.

>>> import countless
>>> est = countless.fit("adult.parquet", epochs=20)          # doctest: +SKIP
>>> est.estimate("age > 35 AND income = '>50K'")             # doctest: +SKIP
"""

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
from countless.estimator.checking import Check
from countless.estimator.completed import Completed
from countless.estimator.distribution import Distribution
from countless.estimator.estimate import Estimate
from countless.estimator.estimator import Estimator
from countless.estimator.fit import fit
from countless.estimator.learning import Listener
from countless.estimator.prepared import PreparedQuestion
from countless.estimator.result import QueryResult
from countless.estimator.sampling import Sample
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
