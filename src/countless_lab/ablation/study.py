"""The trials of an ablation, their results, and how well short runs predict long ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from countless.arrays import IntArray
from countless.data.sources.source import Source
from countless.sheet import Sheet
from countless_lab.ablation.ideas import IDEAS
from countless_lab.ablation.trial import QUESTION_SEED, AblationTrial
from countless_lab.measurement.highlight import best
from countless_lab.measurement.machine import machine_facts
from countless_lab.measurement.subjects import Subject
from countless_lab.paper.cells import Data, QuestionSet
from countless_lab.runner.job import Job
from countless_lab.runner.store import ResultStore

Record = dict[str, Any]
MIN_IDEAS = 3  # that must have been run at two lengths before their ranks are compared


def plan(subjects: Sequence[Subject], ideas: Sequence[str], seconds: Sequence[float], queries: int) -> list[Job]:
    """The trials of every idea on every table for every length, and the questions they need."""
    sets = [QuestionSet(_data_of(subject), queries, QUESTION_SEED) for subject in subjects]
    return [
        *sets,
        *(AblationTrial(questions, idea, length) for length in seconds for idea in ideas for questions in sets),
    ]


def _data_of(subject: Subject) -> Data:
    return Data(subject.name, subject.source, Source.open(subject.source).count(), subject.exclude)


def gather(folder: Path, jobs: Sequence[Job]) -> Record:
    """The results so far: a record for every trial that is finished."""
    store = ResultStore(folder)
    trials = []
    for job in jobs:
        result = store.result(job)
        if isinstance(job, AblationTrial) and result is not None:
            about = {"table": job.asked.data.name, "idea": job.idea, "seconds": job.seconds}
            trials.append({**about, "options": dict(IDEAS[job.idea].options), **result})
    return {"trials": trials, "agreement": agreement(trials), "machine": machine_facts()}


def agreement(trials: Sequence[Record]) -> list[Record]:
    """For each table and two lengths, Spearman's rank correlation of the ideas' spreads."""
    ranks = []
    for table in dict.fromkeys(trial["table"] for trial in trials):
        spreads: dict[float, dict[str, float]] = {}
        for trial in trials:
            if trial["table"] == table:
                spreads.setdefault(trial["seconds"], {})[trial["idea"]] = trial["spread"]
        lengths = sorted(spreads)
        for short, long in ((a, b) for index, a in enumerate(lengths) for b in lengths[index + 1 :]):
            both = [idea for idea in spreads[short] if idea in spreads[long]]
            if len(both) >= MIN_IDEAS:
                pair = [[spreads[length][idea] for idea in both] for length in (short, long)]
                correlation = float(np.corrcoef(_ranks(pair[0]), _ranks(pair[1]))[0, 1])
                ranks.append({"table": table, "short": short, "long": long, "ideas": both, "spearman": correlation})
    return ranks


def sheets(record: Record) -> list[Sheet]:
    """A sheet for every length and data set, with the best figures in bold, and one of how the lengths agree."""
    page_sheets = []
    for key in dict.fromkeys((trial["seconds"], trial["table"]) for trial in record["trials"]):
        trials = [trial for trial in record["trials"] if (trial["seconds"], trial["table"]) == key]
        page_sheets.append(_sheet(f"{key[1]}, {_seconds(key[0])}", trials))
    if record["agreement"]:
        rows = tuple(
            (
                pair["table"],
                f"{pair['short']:g} s",
                f"{pair['long']:g} s",
                str(len(pair["ideas"])),
                f"{pair['spearman']:.2f}",
            )
            for pair in record["agreement"]
        )
        headings = ("table", "short", "long", "ideas", "rank correlation")
        page_sheets.append(Sheet("Do short runs rank like long ones?", headings, rows, 3))
    return page_sheets


def _sheet(title: str, trials: Sequence[Record]) -> Sheet:
    """One row for every idea, the best of all first."""
    ranked = sorted(trials, key=lambda trial: trial["spread"])
    values: dict[str, list[float]] = {
        "spread": [trial["spread"] for trial in ranked],
        "bits": [trial["bits"]["unmasked"] for trial in ranked],
        **{name: [trial["q_error"][name] for trial in ranked] for name in ("p50", "p95", "p99", "p99.9", "max")},
    }
    columns = [best(column, [_figure(value) for value in column]) for column in values.values()]
    speed = [f"{trial['rows_per_second']:,}" for trial in ranked]
    size = [f"{trial['parameters']:,}" for trial in ranked]
    rows = tuple(zip([trial["idea"] for trial in ranked], *columns, speed, size, strict=True))
    return Sheet(title, ("idea", *values, "rows/s", "parameters"), rows)


def _seconds(length: float) -> str:
    return f"{length:g} s"


def _figure(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _ranks(values: Sequence[float]) -> IntArray:
    return np.argsort(np.argsort(values))
