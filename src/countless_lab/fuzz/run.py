"""A run of the fuzzer: case after case, each a seed, until the time or the number of cases is over."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from countless_lab.fuzz.child import ChildProcesses, Limits
from countless_lab.fuzz.fitting import MODEL, FitOutcome, check_fit
from countless_lab.fuzz.tables import draw_table

CRASHED = "crashed"
DEFECTS = "defects.jsonl"


@dataclass(frozen=True)
class Case:
    """A case that was run: its seed, what it was about, how it ended and how long it took."""

    seed: int
    about: str
    outcome: FitOutcome
    seconds: float


@dataclass
class Findings:
    """What a run has found so far."""

    cases: int = 0
    models: int = 0
    defective: list[Case] = field(default_factory=list)

    @property
    def refused(self) -> int:
        """Cases that ended with an error whose remedy works, or where there is nothing to model."""
        return self.cases - self.models - len(self.defective)

    def add(self, case: Case) -> None:
        """Count a case."""
        self.cases += 1
        if case.outcome.defects:
            self.defective.append(case)
        elif case.outcome.result == MODEL:
            self.models += 1


def fuzz_tables(
    seed: int,
    cases: int | None,
    seconds: float,
    output: Path | None,
    findings: Findings,
    watch: Callable[[Case], None],
    limits: Limits | None = None,
) -> None:
    """Fit the tables of the seeds from ``seed`` on, and add what is found to ``findings``.

    Args:
        seed: that of the first table.
        cases: how many tables; None for as many as there is time for.
        seconds: after which no further case is begun.
        output: a folder for the tables of defective cases, and for a list of the defects.
        findings: hears of every case, so that an interrupted run has them too.
        watch: is called after every case.
        limits: of each case.
    """
    children, began, number = ChildProcesses(limits), time.monotonic(), 0
    while (cases is None or number < cases) and time.monotonic() - began < seconds:
        case = _run_case(children, seed + number, output)
        findings.add(case)
        watch(case)
        number += 1


def _run_case(children: ChildProcesses, seed: int, output: Path | None) -> Case:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="countless-fuzz-") as folder:
        outcome, ended = children.run(fit_table, seed, folder)
        if ended is not None:
            outcome = FitOutcome(CRASHED, "", (ended,))
        case = Case(seed, str(draw_table(seed)), outcome, time.monotonic() - started)
        if outcome.defects and output is not None:
            _keep(case, Path(folder), output)
    return case


def fit_table(seed: int, folder: str) -> FitOutcome:
    """A case, in its own process."""
    return check_fit(draw_table(seed), Path(folder))


def _keep(case: Case, folder: Path, output: Path) -> None:
    """Keep the files of a case, and a line about it."""
    shutil.copytree(folder, output / f"tables-{case.seed}", dirs_exist_ok=True)
    with open(output / DEFECTS, "a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(case)) + "\n")
