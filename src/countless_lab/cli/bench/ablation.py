"""``countless bench ablation``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from countless.cli.parameters.options import ChosenNames, Duration, Names, json_option
from countless.cli.terminal import display as show
from countless.cli.terminal.sheets import show_sheet
from countless.data.atomic_files import json_bytes, write_bytes
from countless_lab.ablation.ideas import IDEAS
from countless_lab.ablation.study import gather, plan, sheets
from countless_lab.cli.options import count_option
from countless_lab.cli.sweep_display import run_sweep, say_failures
from countless_lab.measurement.requirements import require_lab
from countless_lab.measurement.subjects import subjects


@click.command(
    epilog="\b\nExamples:\n"
    "  countless bench ablation adult --exclude fnlwgt --ideas default,paper --seconds 20s\n"
    "  countless bench ablation people.parquet flights.parquet --seconds 90s --seconds 6m -o ablation/"
)
@click.argument("tables", metavar="TABLE...", nargs=-1, required=True)
@click.option("--exclude", type=Names(), default=(), help="Columns to leave out, of whichever table has them.")
@click.option("--ideas", type=ChosenNames(IDEAS), default=tuple(IDEAS), help="Which ideas to try  [default: all]")
@click.option(
    "--seconds",
    type=Duration(),
    multiple=True,
    default=(90.0,),
    help="Processor time to train each for; given twice, the ranks of both are compared  [default: 90s]",
)
@count_option("--queries", 1000, "Questions per table.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default="ablation",
    show_default=True,
    help="The folder for the results.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes at once  [default: one per core]")
@json_option
def ablation(
    tables: tuple[str, ...],
    exclude: tuple[str, ...],
    ideas: tuple[str, ...],
    seconds: tuple[float, ...],
    queries: int,
    output: Path,
    workers: int | None,
    as_json: bool,
) -> int:
    """Which ideas make better models in equal time?

    Each idea is a set of options of a fit. Every one is trained on every TABLE for the same processor time, one thread
    each, and asked the same random queries, of a seed that no published figure uses. The folder gets ablation.json,
    ablation.md and the models. What it holds already is not run again: after Ctrl-C, the same command goes on.
    """
    require_lab()
    jobs = plan(subjects(list(dict.fromkeys(tables)), exclude), ideas, seconds, queries)
    outcome = run_sweep(jobs, output, workers, threads=1)
    names = " ".join(Path(table).name for table in tables)
    lengths = " ".join(f"--seconds {length:g}s" for length in seconds)
    left_out = f" --exclude {','.join(exclude)}" if exclude else ""
    command = (
        f"countless bench ablation {names}{left_out} --ideas {','.join(ideas)} {lengths} --queries {queries} -o DIR"
    )
    record = {"command": command, **gather(output, jobs)}
    page_sheets = sheets(record)
    page = "\n\n".join(sheet.markdown() for sheet in page_sheets) + "\n"
    for name, content in (("ablation.json", json_bytes(record)), ("ablation.md", page.encode())):
        write_bytes(output / name, content)
        show.progress().print(f"wrote {output / name}", soft_wrap=True)
    if as_json:
        click.echo(json.dumps(record))
    else:
        for sheet in page_sheets:
            show_sheet(show.results(), sheet)
    return say_failures(outcome)
