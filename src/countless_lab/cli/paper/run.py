"""The commands of the exhibits: measure what is missing, gather, write, show."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from countless.cli.parameters.options import Names, json_option
from countless.cli.terminal import display as show
from countless.cli.terminal.sheets import show_sheet
from countless.errors import DataError
from countless.estimator.fitting.model_kinds import require_kind
from countless.estimator.plugins import PLUGINS
from countless.spec import RESMADE
from countless_lab.cli.sweep_display import run_sweep, say_failures
from countless_lab.measurement.machine import machine_facts
from countless_lab.measurement.requirements import require_lab
from countless_lab.paper import results
from countless_lab.paper.cells import Data
from countless_lab.paper.exhibits import EXHIBITS, Exhibit
from countless_lab.paper.numbers import Record
from countless_lab.paper.scale import SCALES
from countless_lab.paper.study import Study, with_needs
from countless_lab.paper.tables import data_sets
from countless_lab.runner.sweep import ResultStore, SweepOutcome


def exhibit_command(name: str, summary: str) -> click.Command:
    """The command ``countless paper NAME``."""

    @click.command(
        name,
        help=f"{summary}\n\nTABLE is a path, or a data set's name; give one or several. A table of columns is asked"
        " about its columns, without any text among them; a table of nothing but text is for the exhibit of text.",
        epilog=_examples(name),
    )
    @click.argument("tables", metavar="TABLE...", nargs=-1, required=True)
    @click.option("--exclude", type=Names(), default=(), help="Columns to leave out, of whichever table has them.")
    @click.option(
        "--scale",
        type=click.Choice(list(SCALES)),
        default="small",
        show_default=True,
        help="How much of the paper's protocol to run (see countless paper --help).",
    )
    @click.option(
        "--orders",
        type=click.IntRange(min=1),
        help="Random orders to measure under  [default: as many as the scale has]",
    )
    @click.option(
        "-o",
        "--out",
        type=click.Path(path_type=Path),
        default="paper-results",
        show_default=True,
        help="The folder for results.",
    )
    @click.option(
        "--kind", default=RESMADE, show_default=True, help="Kind of model for the columns; plugins may bring others."
    )
    @click.option("--workers", type=click.IntRange(min=1), help="Processes at once  [default: one per core]")
    @click.option(
        "--ray",
        metavar="ADDRESS",
        help="Measure on a Ray cluster: HOST:PORT, or auto. All its machines must see the tables and the folder.",
    )
    @json_option
    def run(
        tables: tuple[str, ...],
        exclude: tuple[str, ...],
        scale: str,
        orders: int | None,
        out: Path,
        kind: str,
        workers: int | None,
        ray: str | None,
        as_json: bool,
    ) -> int:
        require_lab()
        require_kind(kind)  # before the tables are read
        paper_scale = SCALES[scale] if orders is None else replace(SCALES[scale], orders=orders)
        data = data_sets(list(dict.fromkeys(tables)), exclude, paper_scale)
        plan = _plan(name, [Study(data_set, paper_scale, kind) for data_set in data])
        results.claim(out, paper_scale, data)
        outcome = _measure(plan, out, workers, ray)
        command = _command(name, tables, exclude, scale, orders, kind)
        written = {exhibit.name: _write(exhibit, studies, out, command) for exhibit, studies in plan.items()}
        if as_json:
            click.echo(json.dumps({"exhibits": written, "failed": outcome.failed}))
        else:
            for exhibit in plan:
                _show(exhibit, written[exhibit.name])
        return say_failures(outcome)

    return run


Plan = dict[Exhibit, list[Study]]


def _plan(name: str, studies: Sequence[Study]) -> Plan:
    """The exhibits to make, and of which data sets."""
    exhibits = list(EXHIBITS.values()) if name == "all" else [EXHIBITS[name]]
    plan: Plan = {}
    for exhibit in exhibits:
        suitable = [study for study in studies if study.data.text == exhibit.text]
        if name != "all" and len(suitable) < len(studies):
            raise DataError(_unfit(exhibit, next(study.data for study in studies if study not in suitable)))
        if suitable:
            plan[exhibit] = suitable
    left_out = [exhibit.name for exhibit in exhibits if exhibit not in plan]
    if left_out:
        kind = "text only" if EXHIBITS[left_out[0]].text else "columns"
        show.progress().print(f"no table of {kind} was given: {', '.join(left_out)} left out")
    return plan


def _unfit(exhibit: Exhibit, data: Data) -> str:
    if exhibit.text:
        return (
            f"{data.name} has other columns than text: give countless paper text a table with one text column, or "
            "--exclude the others"
        )
    return f"{data.name} is text only: {exhibit.name} is about columns; text is what countless paper text is about"


def _measure(plan: Plan, out: Path, workers: int | None, ray: str | None) -> SweepOutcome:
    """Run the cells that have no result yet."""
    cells = with_needs(cell for exhibit, studies in plan.items() for study in studies for cell in exhibit.cells(study))
    return run_sweep(cells, out, workers, ray=ray)


def _write(exhibit: Exhibit, studies: Sequence[Study], out: Path, command: str) -> list[Record]:
    """Write the files of an exhibit from the results so far; return the facts of its data sets."""
    store = ResultStore(out)
    gathered = [exhibit.gather(study, store) for study in studies]
    tables = [{**record, "command": command, "machine": machine_facts()} for record in gathered if record is not None]
    for path in results.write(exhibit, tables, out):
        show.progress().print(f"wrote {path}", soft_wrap=True)
    return tables


def _command(
    name: str, tables: Sequence[str], exclude: Sequence[str], scale: str, orders: int | None, kind: str
) -> str:
    """The command line that was run, without folders of this machine."""
    words = ["countless", "paper", name, *(Path(table).name for table in tables)]
    words += ["--exclude", ",".join(exclude)] if exclude else []
    words += ["--kind", kind] if kind != RESMADE else []
    plugins = [f"{PLUGINS}={os.environ[PLUGINS]}"] if os.environ.get(PLUGINS) else []
    size = ["--scale", scale] + ([] if orders is None else ["--orders", str(orders)])
    return shlex.join([*plugins, *words, *size, "-o", "DIR"])


def _show(exhibit: Exhibit, tables: Sequence[Record]) -> None:
    console = show.results()
    if not tables:
        console.print(f"{exhibit.title}: nothing is measured yet")
        return
    for sheet in exhibit.sheets(tables):
        show_sheet(console, sheet)


def _examples(name: str) -> str:
    table = "npm_urls" if name == "text" else "adult npm_urls" if name == "all" else "adult"
    arguments = "urls.parquet" if name == "text" else "people.parquet flights.parquet --exclude id"
    return (
        f"\b\nExamples:\n  countless paper {name} {table} --scale smoke\n"
        f"  countless paper {name} {arguments} -o results/ --workers 2"
    )
