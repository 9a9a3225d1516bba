"""The ``countless diagnose`` command: find the queries and columns where a model errs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from countless import workload
from countless.cli.parameters.options import json_option, model_argument, table_argument
from countless.cli.terminal import display as show
from countless.cli.terminal.sheets import show_sheet
from countless.data.atomic_files import json_bytes, make_folder, write_bytes
from countless.data.sources.csv_files import CsvFile
from countless.errors import MissingExtraError
from countless.estimator.estimator import Estimator
from countless.evaluation.diagnosis.convergence import FIRST, MOST, ConvergenceLimits
from countless.evaluation.diagnosis.diagnosis import Diagnosis
from countless.evaluation.diagnosis.diagnosis import diagnose as find_out
from countless.evaluation.diagnosis.sheets import findings, markdown, sheets
from countless.extensions import PICTURES, installed, load


class Numbers(click.ParamType[tuple[int, int]]):
    """A number, or a range of numbers: ``5-12``."""

    name = "a-b"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", str(value).strip())
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= low <= high:
            self.fail(f"{value!r} is not a range: write 8, or 5-12", param, ctx)
        return low, high


@click.command(
    epilog="\b\nExamples:\n"
    "  countless diagnose people.countless people.parquet\n"
    "  countless diagnose people.countless people.parquet --filters 1-16 -o diagnosis/\n"
    "  countless diagnose people.countless people.parquet --workload workload.jsonl --json"
)
@model_argument
@table_argument()
@click.option("--queries", type=click.IntRange(min=1), default=1000, show_default=True, help="How many random queries.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random queries.")
@click.option(
    "--filters",
    type=Numbers(),
    help="Filters in a random query  [default: 5-12; of a table with fewer than 10 columns, any number]",
)
@click.option(
    "--workload",
    "workload_file",
    type=click.Path(path_type=Path),
    help="Use the queries of a file that evaluate --save wrote instead.",
)
@click.option(
    "--particles", type=click.IntRange(min=1), help="Number of particles  [default: chosen for each question]"
)
@click.option(
    "--most-particles",
    type=click.IntRange(min=FIRST),
    default=MOST,
    show_default=True,
    help="Most particles to use, to measure the model's own error.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="A folder for diagnosis.json, .md, .svg and .png."
)
@json_option
def diagnose(
    model: Path,
    table: str | CsvFile,
    queries: int,
    seed: int,
    filters: tuple[int, int] | None,
    workload_file: Path | None,
    particles: int | None,
    most_particles: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Find out where MODEL is wrong on TABLE, and why.

    Asks random queries with the literals of random rows, and counts them with DuckDB. Reports q-errors by number of
    filters and by true count; columns and pairs of columns that are frequent in bad queries; how much of the error is
    sampling error, which more particles reduce; and the columns that cause the error in each of the worst twenty
    queries. With -o everything is written to files, with a picture.
    """
    if workload_file is not None and filters is not None:
        raise click.UsageError("--filters is for random queries: leave it out with --workload")
    draw = None if output is None else _drawer()
    if output is not None:
        make_folder(output)
    estimator = Estimator.load(model)
    questions = None if workload_file is None else workload.load(workload_file)
    with Stages(show.progress()) as stages:
        diagnosis = find_out(
            estimator,
            table,
            queries=queries,
            seed=seed,
            filters=filters,
            workload=questions,
            particles=particles,
            effort=ConvergenceLimits(most=most_particles),
            tell=stages.tell,
        )
    if output is not None and draw is not None:
        _write(diagnosis, draw(diagnosis), output, f"Diagnosis of {model.name}")
    if as_json:
        click.echo(json.dumps(diagnosis.to_json()))
    else:
        _show(diagnosis, tables=output is None)


class Stages:
    """A line on standard error for every stage, and on a terminal a progress bar."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("")
        self._stage = ""

    def __enter__(self) -> Stages:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()

    def tell(self, stage: str, done: int, total: int) -> None:
        """Show the stage, and how much of it is done."""
        if stage != self._stage:
            self._stage = stage
            queries = f"{total:,} quer{'y' if total == 1 else 'ies'}"
            self._console.print(f"{stage} ({queries}) ..." if total else f"{stage} ...")
        self._bar.update(self._task, description=stage, completed=done, total=total)


def _drawer() -> Callable[[Diagnosis], dict[str, bytes]]:
    """The function that draws a diagnosis: the laboratory brings it, with matplotlib."""
    entry = installed(PICTURES).get("diagnosis")
    if entry is None:
        raise MissingExtraError("drawing needs matplotlib: pip install 'countless[lab]'")
    drawer: Callable[[], Callable[[Diagnosis], dict[str, bytes]]] = load(entry)
    return drawer()


def _write(diagnosis: Diagnosis, pictures: dict[str, bytes], folder: Path, title: str) -> None:
    contents = {f"diagnosis.{kind}": content for kind, content in pictures.items()}
    contents["diagnosis.md"] = markdown(diagnosis, title, "diagnosis.svg").encode()
    contents["diagnosis.json"] = json_bytes(diagnosis.to_json(answers=True))
    for name, content in contents.items():
        show.progress().print(f"wrote {write_bytes(folder / name, content)}", soft_wrap=True)


def _show(diagnosis: Diagnosis, tables: bool) -> None:
    console = show.results()
    for sentence in findings(diagnosis):
        console.print(sentence, soft_wrap=True)
    if tables:
        console.print()
        for sheet in sheets(diagnosis):
            show_sheet(console, sheet)
