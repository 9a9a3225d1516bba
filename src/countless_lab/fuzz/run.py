"""A run of a campaign: case after case, until the time or the number of cases is reached."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from countless.errors import DataError
from countless_lab.fuzz.campaign import CRASHED, Campaign, Outcome
from countless_lab.fuzz.child import ChildProcesses

DEFECTS = "defects.jsonl"
PROGRESS = "progress.json"


@dataclass(frozen=True)
class Case:
    """A case that was run: its seed, a description, its outcome and its duration."""

    seed: int
    about: str
    outcome: Outcome
    seconds: float


@dataclass
class Findings:
    """The results of a campaign so far. ``next_seed`` is that of the next case."""

    next_seed: int = 0
    cases: int = 0
    checks: int = 0
    defective: int = 0  # cases
    seconds: float = 0.0
    results: dict[str, int] = field(default_factory=dict)

    def add(self, case: Case) -> None:
        """Count a case."""
        self.next_seed = case.seed + 1
        self.cases += 1
        self.checks += case.outcome.checks
        self.defective += bool(case.outcome.defects)
        self.seconds += case.seconds
        self.results = dict(Counter(self.results) + Counter([case.outcome.result]))

    def save(self, folder: Path) -> None:
        """Write them to the folder, so that a later run can continue."""
        (folder / PROGRESS).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Findings:
        """Read the findings that :meth:`save` wrote."""
        try:
            fields: dict[str, Any] = json.loads((folder / PROGRESS).read_text(encoding="utf-8"))
            return cls(**fields)
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"nothing to resume in {folder} ({error}): begin without --resume") from None


def run_campaign(
    campaign: Campaign,
    cases: int | None,
    seconds: float,
    output: Path | None,
    findings: Findings,
    watch: Callable[[Case], None],
) -> None:
    """Run the cases of the seeds from ``findings.next_seed`` on, and add what is found to ``findings``.

    Args:
        campaign: the campaign.
        cases: how many cases; None for as many as there is time for.
        seconds: the time after which no case is begun.
        output: a folder for the files of defective cases, a list of the defects, and the progress of the run.
        findings: updated after every case, so that an interrupted run has them too.
        watch: called after every case.
    """
    children, began, number = ChildProcesses(campaign.limits, campaign.preload), time.monotonic(), 0
    while (cases is None or number < cases) and time.monotonic() - began < seconds:
        case = _run_case(campaign, children, findings.next_seed, output)
        findings.add(case)
        if output is not None:
            findings.save(output)
        watch(case)
        number += 1


def _run_case(campaign: Campaign, children: ChildProcesses, seed: int, output: Path | None) -> Case:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="countless-fuzz-", ignore_cleanup_errors=True) as folder:
        outcome, ended = children.run(campaign.job, seed, folder)
        if ended is not None:
            outcome = Outcome(CRASHED, "", (ended,))
        case = Case(seed, campaign.about(seed), outcome, time.monotonic() - started)
        if outcome.defects and output is not None:
            _keep(case, Path(folder), output)
    return case


def _keep(case: Case, folder: Path, output: Path) -> None:
    """Keep the files of a case, and a line about it."""
    shutil.copytree(folder, output / f"case-{case.seed}", dirs_exist_ok=True)
    with open(output / DEFECTS, "a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(case)) + "\n")
