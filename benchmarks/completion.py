"""Filling in missing values: the model beside the column's mode and what scikit-learn does, on the same holes.

.venv/bin/python benchmarks/completion.py TABLE MODEL [--rows 200] [--share 0.2] [--seed 0] -o FILE.json

A random share of the cells of random rows is hidden. The model has learned the whole table, these rows included; the
other methods learn 10,000 other rows (KNN 2,000 of them) as ordinal codes, and their values are rounded to a code. In a
column that is stored as a grid, a value counts as right if its cell is.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - it makes the next import possible
from sklearn.impute import IterativeImputer, KNNImputer

from countless import Estimator
from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import is_number, quote_identifier
from countless.data.encoding.recoding import Recoded, opened
from countless.data.sources.source import Source
from countless.estimator.answers.distributions.values import Values
from countless_lab.measurement.script import script_parser, write_result

LEARNING_ROWS = 10_000  # rows that the other methods learn from
NEIGHBOURS_OF = 2_000  # and of these, rows among which neighbours are sought


def main() -> None:
    options = arguments()
    estimator = Estimator.load(options.model)
    schema = estimator.schema
    sample = Source.open(options.table).sampled(options.rows + LEARNING_ROWS, options.seed)
    codes = codes_of(sample, schema)
    rows, learning_rows = codes[: options.rows], codes[options.rows :]
    rng = np.random.default_rng(options.seed)
    hidden = (rng.random(rows.shape) < options.share) & (rows >= 0)
    holes = np.where(hidden | (rows < 0), np.nan, rows)
    learned = np.where(learning_rows < 0, np.nan, learning_rows)
    methods: dict[str, Callable[[], IntArray]] = {
        "model": lambda: by_model(estimator, sample, hidden),
        "mode": lambda: np.tile(modes(learning_rows), (len(rows), 1)),
        "iterative": lambda: imputed(IterativeImputer(keep_empty_features=True), learned, holes, schema),
        "knn": lambda: imputed(KNNImputer(keep_empty_features=True), learned[:NEIGHBOURS_OF], holes, schema),
    }
    filled, seconds = {}, {}
    for name, fill in methods.items():
        started = time.perf_counter()
        filled[name] = fill()
        seconds[name] = round(time.perf_counter() - started, 2)
    columns = {
        column.name: accuracies(column, rows[:, index], hidden[:, index], {k: v[:, index] for k, v in filled.items()})
        for index, column in enumerate(schema.coded)
        if hidden[:, index].any()
    }
    result = {
        "rows": len(rows),
        "share": options.share,
        "seed": options.seed,
        "hidden": int(hidden.sum()),
        "accuracy": {
            name: round(float(np.mean([column["accuracy"][name] for column in columns.values()])), 4) for name in filled
        },
        "seconds": seconds,
        "columns": columns,
    }
    write_result(result, options.output)


def arguments() -> argparse.Namespace:
    parser = script_parser(__doc__)
    parser.add_argument("table")
    parser.add_argument("model", type=Path)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    return parser.parse_args()


def codes_of(rows: Any, schema: Schema) -> IntArray:
    """One code per row and column, negative for what is missing."""
    with Recoded(opened(rows, schema), schema) as recoded:
        return np.concatenate([chunk.codes for chunk in recoded.chunks()])


def by_model(estimator: Estimator, sample: Source, hidden: BoolArray) -> IntArray:
    """The codes of the first rows of the sample after the model has filled in what is hidden."""
    names = [column.name for column in estimator.schema.coded]
    texts = ", ".join(f"CAST({quote_identifier(name)} AS VARCHAR)" for name in names)
    rows = sample.rows(f"SELECT {texts} FROM {sample.table} LIMIT {len(hidden)}")
    rows_with_holes = [
        {name: None if hide else text for name, text, hide in zip(names, row, hides, strict=True)}
        for row, hides in zip(rows, hidden.tolist(), strict=True)
    ]
    return codes_of(estimator.complete(rows_with_holes).frame.to_dicts(), estimator.schema)


def modes(codes: IntArray) -> IntArray:
    """The most frequent code of every column, what is missing left out."""
    return np.array([np.bincount(column[column >= 0], minlength=1).argmax() for column in codes.T])


def imputed(imputer: Any, learned: FloatArray, holes: FloatArray, schema: Schema) -> IntArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled: NDArray[Any] = imputer.fit(learned).transform(holes)
    largest_codes = np.array([max(0, column.null - 1) for column in schema.coded])
    codes: IntArray = np.clip(np.rint(filled), 0, largest_codes).astype(np.int64)
    return codes


def accuracies(
    column: Column, codes: IntArray, hidden: BoolArray, filled: dict[str, IntArray]
) -> dict[str, dict[str, float]]:
    """How often each method hits the right code of a column, and how far off it is."""
    hits = {
        name: round(float(np.mean(filled_codes[hidden] == codes[hidden])), 4) for name, filled_codes in filled.items()
    }
    result: dict[str, Any] = {"hidden": int(hidden.sum()), "codes": column.size, "accuracy": hits}
    if is_number(column.type):
        numbers = Values(column).means
        result["median_error"] = {
            name: float(np.median(np.abs(numbers[filled_codes[hidden]] - numbers[codes[hidden]])))
            for name, filled_codes in filled.items()
        }
    return result


if __name__ == "__main__":
    main()
