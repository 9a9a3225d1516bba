"""Shared code of the scripts in ``benchmarks/``: arguments, percentiles, and results as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def script_parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser of arguments whose help is the docstring of a script."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def names(text: str) -> tuple[str, ...]:
    """Names between commas.

    >>> names("a,b"), names("")
    (('a', 'b'), ())
    """
    return tuple(filter(None, text.split(",")))


def exclude_option(parser: argparse.ArgumentParser) -> None:
    """Add --exclude, the names of columns."""
    parser.add_argument("--exclude", type=names, default=(), help="columns to leave out, with commas between them")


def table_and_model(doc: str | None, queries: int, seed: int = 0) -> argparse.ArgumentParser:
    """A parser of a table, a model, how many queries to draw, their seed, and the file of the results."""
    parser = script_parser(doc)
    parser.add_argument("table", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--queries", type=int, default=queries)
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("-o", "--output", type=Path)
    return parser


def percentiles(
    values: Sequence[float] | Any, percents: Sequence[float] = (50, 95, 99, 100), digits: int = 3
) -> dict[str, float]:
    """Percentiles by name; the 100th is the maximum.

    >>> percentiles([1.0, 2.0, 4.0], (50, 99.9, 100))
    {'p50': 2.0, 'p99.9': 3.996, 'max': 4.0}
    """
    names = ("max" if percent == 100 else f"p{percent:g}" for percent in percents)
    return {name: round(float(np.percentile(values, p)), digits) for name, p in zip(names, percents, strict=True)}


def write_result(result: Any, output: Path | None = None) -> None:
    """Write a result as JSON to standard output, and to a file if one is named."""
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
