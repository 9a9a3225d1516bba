"""The summary of a fit: how columns are stored, how good the model is, what to do next, and where the time went."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from countless.cli.model_files.files_beside import kept_training
from countless.cli.model_files.longer_training import longer_training, more_evidence, short_training
from countless.cli.terminal.display import (
    CommandConsole,
    columns_table,
    duration,
    error_bars,
    known_values,
    plural,
    size,
    trained,
    wide_intervals,
)
from countless.data.encoding.available_memory import peak_memory
from countless.data.encoding.table import EXCLUDED
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.calibrating import ENOUGH_QUERIES, QUESTIONS

KINDS_OF_STAGES = (
    ("counting pairs", "counting"),
    ("counting substrings", "counting"),
    ("training", "training"),
    ("calibrating", "error bars"),
)


def print_summary(
    console: CommandConsole, estimator: Estimator, path: Path, source: Sequence[str], workload: Any
) -> None:
    """Print how each column is stored, what was left out, and how good and how large the model is."""
    console.print(columns_table(estimator.schema))
    excluded = [column.name for column in estimator.schema.left_out if column.reason == EXCLUDED]
    if excluded:
        console.print(f"excluded: {', '.join(excluded)}", soft_wrap=True)
    for left_out in estimator.schema.left_out:
        if left_out.reason != EXCLUDED:
            console.print(f"left out: {left_out.name}, because {left_out.reason}", style="yellow", soft_wrap=True)
    report = estimator.report
    if estimator.schema.coded:
        console.print(trained(report), soft_wrap=True)
    if "text" in report:
        console.print(f"text of {', '.join(report['text']['columns'])}: {trained(report['text'])}", soft_wrap=True)
    # After Ctrl-C the remedy is --resume.
    for warning in [] if report["interrupted"] else _remedies(estimator, path, source, workload):
        console.print(warning, style="yellow", soft_wrap=True)
    for text in estimator.info()["texts"]:
        if text["summary"] and "sampled_rows" in text["summary"]:
            console.print(
                f"substrings of {text['name']}: estimated from {text['summary']['sampled_rows']:,} random rows, since "
                "there was no time to count all"
            )
    if estimator.schema.coded and report["options"]["masking"] == "none":
        hint = "the model was trained without masking, so it cannot skip columns: ask it with --method progressive"
        console.print(hint, style="yellow", soft_wrap=True)
    if _holds_every_row(estimator):
        console.print("counts are exact: the file holds all rows of the table")
    else:
        console.print(f"error bars: {error_bars(estimator.info()['interval'])}", soft_wrap=True)
    if "on_disk" in report:
        needed, memory = size(report["on_disk"]["bytes"]), size(report["on_disk"]["memory"])
        console.print(f"the encoded table was kept on disk: it would take {needed} of {memory} of memory")
    console.print(f"peak memory {size(peak_memory())}")
    console.print(f"wrote {path} ({size(path.stat().st_size)})", soft_wrap=True)
    console.print(f"it holds {_holds(estimator)}{kept_training(path)}", soft_wrap=True)


def _remedies(estimator: Estimator, path: Path, source: Sequence[str], workload: Any) -> list[str]:
    """What to do about a model that was trained too little, or whose error bars are wide."""
    if _holds_every_row(estimator):
        return []
    hints = short_training(estimator, path, source, workload)
    if few := few_questions(estimator.report, path, source):
        hints.append(few)
    wide = wide_intervals(estimator.info()["interval"])
    if hints or wide is None:
        return hints
    more = more_evidence(estimator.rows, (estimator.info()["evidence"] or {"rows": 0})["rows"])
    return [f"{wide}: fit with {more}, or train longer with {longer_training(path, source, workload)}"]


def few_questions(report: Mapping[str, Any], path: Path, source: Sequence[str]) -> str:
    """The warning that error bars were made from few questions, with the command that asks all of them.

    >>> report = {QUESTIONS: {"asked": 114, "planned": 2000}}
    >>> few_questions(report, Path("m.countless"), ["a.csv"]).split("; ")
    ['error bars rest on 114 of 2,000 planned questions', 'ask them all: countless calibrate m.countless a.csv']
    """
    asked, planned = (report.get(QUESTIONS, {}).get(name, 0) for name in ("asked", "planned"))
    if asked >= min(planned, ENOUGH_QUERIES):
        return ""
    command = shlex.join(["countless", "calibrate", str(path), *source])
    return f"error bars rest on {asked:,} of {planned:,} planned questions; ask them all: {command}"


def time_spent(stages: Sequence[Mapping[str, Any]], total: float, budget: float | None) -> str:
    """How long a fit and its stages took.

    >>> stages = [{"name": "encoding rows", "seconds": 4.0}, {"name": "counting pairs of columns", "seconds": 2.0}]
    >>> time_spent([*stages, {"name": "training", "seconds": 40.0}], 47.2, 60.0)
    'took 47s (budget 1m00s): reading 4s, counting 2s, training 40s, starting and writing 1s'
    >>> time_spent(stages, 6.4, None)
    'took 6s: reading 4s, counting 2s'
    """
    seconds: dict[str, float] = {}
    for stage in stages:
        name = next((kind for sign, kind in KINDS_OF_STAGES if sign in stage["name"]), "reading")
        seconds[name] = seconds.get(name, 0.0) + stage["seconds"]
    seconds["starting and writing"] = total - sum(seconds.values())
    spent_on = ", ".join(f"{name} {duration(spent)}" for name, spent in seconds.items() if spent >= 1.0)
    of = "" if budget is None else f" (budget {duration(budget)})"
    return f"took {duration(total)}{of}{': ' if spent_on else ''}{spent_on}"


def _holds_every_row(estimator: Estimator) -> bool:
    """Whether the evidence rows are all rows of the table."""
    evidence = estimator.info()["evidence"]
    return bool(evidence) and evidence["rows"] == estimator.rows


def _holds(estimator: Estimator) -> str:
    """Which values of the table the file holds."""
    schema, evidence = estimator.schema, estimator.info()["evidence"]
    holds = "every distinct value of the fitted columns"
    network = " and the weights of a network" if "text" in estimator.report else ""
    text = f"frequent pieces of text{network}" if schema.texts else ""
    less = [part for part in (known_values(schema.coded), text) if part]
    if less:
        holds += f". Exceptions: it holds only {', and only '.join(less)}"
    if not evidence:
        return holds
    rows = f"{plural(evidence['rows'], 'row')} of the table as they are"
    return f"{rows}{', text included' if schema.texts else ''} ({size(evidence['bytes'])}), and {holds}"
