"""``countless bench scoreboard``."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from countless.cli.parameters.options import Duration
from countless.cli.terminal import display as show
from countless_lab.measurement.requirements import require_lab
from countless_lab.scoreboard.page import write_page, write_readme
from countless_lab.scoreboard.run import StepListener, measure_tables
from countless_lab.scoreboard.steps import ScoreboardStep
from countless_lab.scoreboard.tables import FULL, QUICK, choose_tables, known_tables


class _Lines(StepListener):
    """Prints a line when a step begins and one when it ends."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def begins(self, step: ScoreboardStep, done: int, total: int, seconds_left: float) -> None:
        time_left = show.duration(seconds_left)
        self._console.print(f"[{done + 1}/{total}] {step.title} ... (at most about {time_left} left)", soft_wrap=True)

    def ends(self, seconds: float | None, failure: str | None = None) -> None:
        message = "kept from an earlier run" if seconds is None else f"done in {show.duration(seconds)}"
        if failure is not None:
            message = f"failed after {show.duration(seconds or 0.0)}: {failure}"
        self._console.print(f"    {message}", style="yellow" if failure else None, soft_wrap=True)


@click.command(
    epilog="\b\nExamples:\n"
    "  countless bench scoreboard -o docs/results/scoreboard --page docs/scoreboard.md\n"
    "  countless bench scoreboard --quick -o docs/results/scoreboard\n"
    "  countless bench scoreboard adult flights --data ~/tables -o /tmp/scoreboard\n"
    "\b\nTables: " + ", ".join(known_tables())
)
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The folder of the results.")
@click.option("--quick", is_flag=True, help="Three tables, a minute of training each, two seeds, fewer questions.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=lambda: os.environ.get("COUNTLESS_DATA", "."),
    show_default="COUNTLESS_DATA, or the current folder",
    help="The folder of the tables that do not come with Countless.",
)
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".scoreboard"),
    show_default=True,
    help="Where models, questions and answers are kept, so that a stopped run goes on.",
)
@click.option("--page", type=click.Path(path_type=Path), help="A Markdown page to write, with every figure.")
@click.option(
    "--readme", type=click.Path(path_type=Path), help="A README whose table of figures to renew; not with --quick."
)
@click.option("--budget", type=Duration(), help="Time of each fit  [default: 5m; 1m with --quick]")
@click.option("--rows", type=click.IntRange(min=100), help="Use at most this many rows of each table.")
@click.option("--questions", type=click.IntRange(min=10), help="Questions of the paper's kind.")
@click.option("--per-kind", type=click.IntRange(min=1), help="Questions of each kind that people ask.")
@click.option("--seconds", type=Duration(), help="Time for the answers to each workload, at most.")
def scoreboard(
    tables: tuple[str, ...],
    output: Path,
    quick: bool,
    data: Path,
    work: Path,
    page: Path | None,
    readme: Path | None,
    budget: float | None,
    rows: int | None,
    questions: int | None,
    per_kind: int | None,
    seconds: float | None,
) -> None:
    """Measure the product as shipped: fit, file, accuracy and speed, on real tables.

    Everything is measured with default options, beside DuckDB's exact count, row samples and a scan of packed codes.
    Each step is a process of its own, and is kept: run the same command again after a stop, and it goes on. Run it on
    an idle machine. Without TABLE all tables that this machine has are measured (docs/scoreboard.md says how to read
    the results).
    """
    console = show.progress()
    require_lab()
    scale = QUICK if quick else FULL
    changed: dict[str, Any] = {
        "budget": budget,
        "rows": rows,
        "paper_questions": questions,
        "questions_per_kind": per_kind,
        "seconds": seconds,
        "opponent_seconds": seconds,
    }
    scale = replace(scale, **{name: value for name, value in changed.items() if value is not None})
    present, missing = choose_tables(tables, quick, data)
    for name in missing:
        console.print(f"skipping {name}: it is not in {data} (--data names the folder)", style="yellow", soft_wrap=True)
    output.mkdir(parents=True, exist_ok=True)
    measure_tables(present, data, scale, work.absolute(), output, _Lines(console))
    if page is not None:
        write_page(output, page)
        console.print(f"wrote {page}")
    if readme is not None and not quick:
        write_readme(output, readme)
        console.print(f"renewed the figures of {readme}")
