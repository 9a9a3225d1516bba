"""The command line of every campaign: its options, and the output of cases, defects and the summary."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from countless.cli.terminal import display as show
from countless_lab.fuzz.campaign import Campaign
from countless_lab.fuzz.run import Case, Findings, run_campaign

MINUTES = 10.0


def campaign_options(command: Callable[..., int]) -> Callable[..., int]:
    """``--minutes``, ``--seed``, ``--cases``, ``--output`` and ``--resume``, the arguments of :func:`run_command`."""
    options = (
        click.option(
            "--minutes", type=click.FloatRange(min=0), default=MINUTES, show_default=True, help="Begin no case later."
        ),
        click.option(
            "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the first case."
        ),
        click.option(
            "--cases", type=click.IntRange(min=1), help="Run this many  [default: as many as there is time for]"
        ),
        click.option(
            "-o",
            "--output",
            type=click.Path(path_type=Path, file_okay=False),
            help="Keep the files of defects in this folder, and how far the run is.",
        ),
        click.option("--resume", is_flag=True, help="Go on after the last case of the folder of -o."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def run_with_models(make_campaign: Callable[[Path], Campaign], **options: Any) -> int:
    """Run a campaign whose models are made in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="countless-fuzz-") as folder:
        return run_command(make_campaign(Path(folder)), **options)


def run_command(
    campaign: Campaign, minutes: float, seed: int, cases: int | None, output: Path | None, resume: bool
) -> int:
    """Run a campaign and print its findings; the exit code is 1 if there is a defect."""
    if resume and output is None:
        raise click.UsageError("--resume needs the folder of the earlier run: -o FOLDER")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    findings = Findings.load(output) if resume and output is not None else Findings(next_seed=seed)
    console, interrupted = show.progress(), False
    try:
        run_campaign(
            campaign, cases, minutes * 60, output, findings, lambda case: _print_case(console, campaign, findings, case)
        )
    except KeyboardInterrupt:
        console.print("interrupted")
        interrupted = True
    show.results().print(_summary(campaign, findings), soft_wrap=True)
    return 1 if findings.defective else 130 if interrupted else 0


def _print_case(console: Console, campaign: Campaign, findings: Findings, case: Case) -> None:
    """A line for each case, and one for each of its defects, with the command that repeats it."""
    outcome = case.outcome
    about = f"{case.about}: " if case.about else ""
    checks = f", {show.plural(outcome.checks, campaign.check)}" if outcome.checks != 1 else ""
    line = f"[{findings.cases}] seed {case.seed}: {about}{outcome.result}{checks} in {case.seconds:.1f}s"
    console.print(line, soft_wrap=True)
    for defect in outcome.defects:
        show.results().print(f"    defect: {defect}", style="red", soft_wrap=True)
    if outcome.defects:
        show.results().print(f"    repeat: {campaign.repeat(case.seed)}", soft_wrap=True)


def _summary(campaign: Campaign, findings: Findings) -> str:
    """The summary of a run, in one line."""
    counts = [show.plural(findings.cases, campaign.case)]
    if findings.checks != findings.cases:
        counts.append(show.plural(findings.checks, campaign.check))
    results = [f"{count:,} {result}" for result, count in sorted(findings.results.items())]
    defects = f"{show.plural(findings.defective, 'case')} with a defect"
    return f"{', '.join(counts)} in {show.duration(findings.seconds)}: {', '.join([*results, defects])}"
