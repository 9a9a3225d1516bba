"""The ``countless check`` command: check whether a model still fits its table."""

from __future__ import annotations

import json
from pathlib import Path

import click

from countless.cli.parameters.options import json_option, model_argument, table_argument
from countless.cli.terminal import display as show
from countless.data.sources.csv_files import CsvFile
from countless.estimator.estimator import Estimator
from countless.estimator.updating.check import QUERIES, SAMPLE, THRESHOLD, Check

DRIFTED = 3  # the exit code if the model no longer matches the table


@click.command(
    epilog="\b\nExamples:\n"
    "  countless check people.countless people.parquet\n"
    "  countless check people.countless people.parquet --quiet\n"
    "  [ $? -ne 3 ] || countless update people.countless today.parquet\n"
    "  countless check people.countless people.parquet --sample 0 --threshold 0.02 --json"
)
@model_argument
@table_argument()
@click.option(
    "--sample",
    type=click.IntRange(min=0),
    default=SAMPLE,
    show_default=True,
    help="Random rows of the table to compare with; 0 for all.",
)
@click.option(
    "--queries",
    type=click.IntRange(min=0),
    default=QUERIES,
    show_default=True,
    help="Random questions to ask; 0 for none.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=THRESHOLD,
    show_default=True,
    help="The share of rows that may differ: in a column, in the number of rows, and of wrong error bars.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of the sample.")
@click.option("--quiet", "-q", is_flag=True, help="Print one line if the model no longer matches, otherwise nothing.")
@json_option
def check(
    model: Path,
    table: str | CsvFile,
    sample: int,
    queries: int,
    threshold: float,
    seed: int,
    quiet: bool,
    as_json: bool,
) -> int:
    """Does MODEL still match TABLE?

    TABLE is the whole table as it is now, not only its new rows. Every column of a random sample is compared with the
    model, and random questions are asked. The exit code is 0 if no difference is larger than --threshold, 3 if one is,
    and 1 after an error. Differences that a random sample has by chance are subtracted.
    """
    estimator = Estimator.load(model)
    result = estimator.check(table, sample=sample or None, queries=queries, threshold=threshold, seed=seed)
    if as_json:
        click.echo(json.dumps(result.to_json(), ensure_ascii=False))
    elif not quiet:
        _show(result)
    if not as_json and not (quiet and result.ok):
        click.echo(f"{model}: {result}")
    return 0 if result.ok else DRIFTED


def _show(result: Check) -> None:
    console = show.results()
    compared = "all of them" if result.sample == result.table_rows else f"{show.plural(result.sample, 'row')} of them"
    console.print(
        f"{show.plural(result.table_rows, 'row')}, {result.growth:+.1%} since the model was made; compared: {compared}"
    )
    table = show.plain_table("column", "drift", "new values", "what differs most")
    for drift in sorted(result.columns, key=lambda drift: -drift.drift):
        style = "yellow" if drift.column in result.drifted else None
        moved = f"{drift.moved.what}: {drift.moved.model:.1%}, now {drift.moved.table:.1%}" if drift.drift else ""
        new = f"{drift.new:.1%}" if drift.new else ""
        table.add_row(drift.column, f"{drift.drift:.1%}" if drift.drift else "none", new, moved, style=style)
    console.print(table)
    for pair in result.pairs:
        console.print(f"{' and '.join(pair.columns)}: {pair.drift:.1%} of the rows no longer go together as they did")
    if result.answers is not None:
        answers = result.answers
        errors = ", ".join(
            f"{name} {show.factor(value)}" for name, value in answers.q_errors.items() if value is not None
        )
        console.print(
            f"{show.plural(answers.queries, 'question')}: {answers.coverage:.0%} of error bars hold, "
            f"{answers.level:.0%} should; q-error {errors or 'unknown'}",
            soft_wrap=True,
        )
