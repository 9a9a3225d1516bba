"""Hints to train a model longer or to keep more rows, with the command or option that does."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from countless.data.evidence import DEFAULT_ROWS
from countless.data.sources.csv_files import CsvFile
from countless.data.sources.location import SEPARATOR, locate, shown
from countless.estimator.estimator import Estimator

FEW_EPOCHS, FEW_ROWS = 3, 3_000_000  # fewer epochs and fewer rows are worth a warning
HARDLY = f"fewer than {FEW_EPOCHS} passes over the table: the model has hardly learned how columns depend on each other"
FEW_STRINGS = 300_000  # fewer strings, and less than an epoch, are worth a warning
MORE_EVIDENCE = 5  # times as many evidence rows are suggested where error bars are wide
LONG_TEXT = 100  # characters: a shorter --max-length trains faster
BUDGETS = (60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 57600, 86400)  # seconds that are suggested


def table_words(
    source: str | CsvFile,
    table: str | None = None,
    query: str | None = None,
    kept: Mapping[str, Any] | None = None,
) -> list[str]:
    """The table that a fit has read, as other commands take it, without the password of a URL.

    Options of a CSV file are left out if they are those that the model has ``kept``.

    >>> table_words("shop.duckdb", "orders"), table_words(CsvFile("a.csv", {"delim": ";"}))
    (['shop.duckdb::orders'], ['a.csv', '--csv', 'delim=;'])
    >>> table_words(CsvFile("a.csv", {"nullstr": ["", "-"], "types": {"id": "UUID"}}))
    ['a.csv', '--csv', 'nullstr=', '--csv', 'nullstr=-', '--csv', 'types=id:UUID']
    >>> table_words(CsvFile("a.csv", {"delim": ";"}), kept={"delim": ";"})
    ['a.csv']
    """
    path, selection = os.fspath(source), table or query
    location = locate(path, table, query)
    if location is not None and not location.database:
        return [str(location.query)]
    options = source.options if isinstance(source, CsvFile) and source.options != kept else {}
    pairs = [(name, text) for name, value in options.items() for text in _option_texts(value)]
    flags = [word for name, value in pairs for word in ("--csv", f"{name}={value}")]
    return [shown(f"{path}{SEPARATOR}{selection}" if selection else path), *flags]


def _option_texts(value: Any) -> list[Any]:
    """The values of a CSV option, one for each --csv flag."""
    if isinstance(value, Mapping):
        return [f"{column}:{kind}" for column, kind in value.items()]
    return value if isinstance(value, list) else [value]


def longer_training(output: Path, table: Sequence[str], workload: Any = None, budget: str = "5m") -> str:
    """The command that trains a model longer."""
    workload_flags = ["--workload", str(workload)] if isinstance(workload, str | Path) else []
    return shlex.join(["countless", "train", str(output), *table, "--budget", budget, *workload_flags])


def more_evidence(rows: int, evidence_rows: int) -> str:
    """The option of a fit that keeps five times as many rows of the table's ``rows`` as the file has, or all.

    >>> more_evidence(3_000_000, 100_000), more_evidence(150_000, 100_000), more_evidence(150_000, 0)
    ('--evidence 500000', '--evidence all', '--evidence all')
    """
    more = MORE_EVIDENCE * max(evidence_rows, DEFAULT_ROWS)
    return f"--evidence {'all' if more >= rows else more}"


def hardly_trained(estimator: Estimator) -> bool:
    """Whether the columns were trained too little, so that :data:`HARDLY` should be shown."""
    return bool(estimator.schema.coded) and _more_needed(estimator.report) > 1


def _more_needed(report: Mapping[str, Any]) -> float:
    """How many times as long the columns should be trained.

    >>> _more_needed({"epochs": 1.5}), _more_needed({"epochs": 0.1, "rows_seen": 1_500_000})
    (2.0, 2.0)
    """
    epochs, rows = float(report.get("epochs", FEW_EPOCHS)), int(report.get("rows_seen", 0))
    return min(FEW_EPOCHS / max(epochs, 1e-6), FEW_ROWS / rows if rows else math.inf)


def short_training(estimator: Estimator, path: Path, table: Sequence[str], workload: Any = None) -> list[str]:
    """A warning for each network that was trained too little, with the command that trains it longer."""
    report, schema = estimator.report, estimator.schema
    seconds = sum(part["seconds"] for part in (report, report.get("text", {})) if "seconds" in part)
    hints, times_as_long = [], 1.0
    if hardly_trained(estimator):
        hints.append((HARDLY, ""))
        times_as_long = _more_needed(report)
    text = report.get("text")
    if text is not None and text["epochs"] < 1 and text["rows_seen"] < FEW_STRINGS:
        strings, longest = text["rows_seen"], max(column.length for column in schema.texts)
        times_as_long = max(times_as_long, min(text["train_rows"], FEW_STRINGS) / max(strings, 1))
        shorter = f", or fit it again with a --max-length below {longest}" if longest >= LONG_TEXT else ""
        names = ", ".join(text["columns"])
        hints.append(
            (f"the text of {names} was trained on {strings:,} of {text['train_rows']:,} strings, too few", shorter)
        )
    more = budget_for(seconds * max(1.0, times_as_long - 1.0))
    longer = f"train longer: {longer_training(path, table, workload, more)}"  # the same for both
    return [f"{hint}; {longer}{shorter}" for hint, shorter in hints]


def budget_for(seconds: float) -> str:
    """A round --budget of at least this many seconds, with half as much again for reading and calibrating.

    >>> budget_for(30.0), budget_for(700.0), budget_for(1e9)
    ('1m', '20m', '24h')
    """
    enough = next((budget for budget in BUDGETS if budget >= 1.5 * seconds), BUDGETS[-1])
    return f"{enough // 3600}h" if enough >= 3600 else f"{enough // 60}m"
