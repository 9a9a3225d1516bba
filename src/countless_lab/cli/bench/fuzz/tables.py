"""``countless bench fuzz tables``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from countless.cli.parameters.options import Duration
from countless.cli.terminal import display as show
from countless_lab.fuzz.run import Case, Findings, fuzz_tables


@click.command(
    epilog="\b\nExamples:\n"
    "  countless bench fuzz tables --seconds 10m\n"
    "  countless bench fuzz tables --seed 17 --cases 1 -o defects/"
)
@click.option("--seconds", type=Duration(), default=600.0, show_default="10m", help="Begin no case after this time.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the first table.")
@click.option(
    "--cases", type=click.IntRange(min=1), help="Fit this many tables  [default: as many as there is time for]"
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the tables of defects in this folder.",
)
def tables(seconds: float, seed: int, cases: int | None, output: Path | None) -> int:
    """Fit random tables, each for a second in a process of its own, and check what comes of it.

    A fit must end with a model, or with an error that names the column and a remedy. The remedy is tried. The model is
    loaded again and asked about some of the table's values. The exit code is 1 if a defect was found. Ctrl-C ends the
    run and reports what was found so far.
    """
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    findings, console, interrupted = Findings(), show.progress(), False
    try:
        fuzz_tables(seed, cases, seconds, output, findings, lambda case: _print_case(console, findings, case))
    except KeyboardInterrupt:
        console.print("interrupted")
        interrupted = True
    found = show.plural(len(findings.defective), "case") + " with a defect"
    summary = f"{show.plural(findings.cases, 'table')}: {show.plural(findings.models, 'model')}, "
    show.results().print(f"{summary}{findings.refused} refused with a remedy that works, {found}", soft_wrap=True)
    return 1 if findings.defective else 130 if interrupted else 0


def _print_case(console: Console, findings: Findings, case: Case) -> None:
    """A line for each case, and one for each of its defects, with the command that repeats it."""
    outcome = case.outcome
    console.print(f"[{findings.cases}] seed {case.seed}: {case.about}: {outcome.result} in {case.seconds:.1f}s")
    for defect in outcome.defects:
        show.results().print(f"    defect: {defect}", style="red", soft_wrap=True)
    if outcome.defects:
        again = f"countless bench fuzz tables --seed {case.seed} --cases 1"
        show.results().print(f"    repeat: {again}", soft_wrap=True)
