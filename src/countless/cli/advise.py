"""``countless advise``."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table as TextTable

from countless.advise import Advised
from countless.advise import advise as find_advice
from countless.advise.planner import Planner
from countless.advise.questions import random_questions, read_questions
from countless.cli import show
from countless.cli.fitting import FitView
from countless.cli.options import Duration, json_option
from countless.estimator.estimator import Estimator
from countless.estimator.fit import fit


@click.command(
    epilog="\b\nExamples:\n"
    "  countless advise postgresql://ann@db/shop --table sales.orders --budget 2m\n"
    "  countless advise postgresql://ann@db/shop::orders --model orders.countless --workload queries.sql --count\n"
    "  countless advise postgresql://ann@db/shop::orders --model orders.countless --try\n"
    "  countless advise postgresql://ann@db/shop::orders --model orders.countless --apply --json",
)
@click.argument("url")
@click.option("--table", help="The table: orders, or sales.orders; not needed if there is only one.")
@click.option("--model", type=click.Path(path_type=Path), help="A model of the table  [default: one is fitted now]")
@click.option("--budget", type=Duration(), default="60s", show_default=True, help="Without --model: time to train for.")
@click.option(
    "--workload",
    type=click.Path(path_type=Path),
    help="A file of WHERE clauses that are asked, one a line or each ended by a semicolon  [default: random ones]",
)
@click.option(
    "--queries", type=click.IntRange(1), default=200, show_default=True, help="Without --workload: so many questions."
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of the questions.")
@click.option("--most", type=click.IntRange(1), default=5, show_default=True, help="Statistics to suggest at most.")
@click.option("--worst", type=click.IntRange(1), default=10, show_default=True, help="Questions to show.")
@click.option("--count", is_flag=True, help="Count the rows of the questions that are shown, too.")
@click.option("--try", "trial", is_flag=True, help="Create the statistics, ask the planner again, and undo it all.")
@click.option("--apply", "keep", is_flag=True, help="Create the statistics, ask the planner again, and keep them.")
@json_option
def advise(
    url: str,
    table: str | None,
    model: Path | None,
    budget: float,
    workload: Path | None,
    queries: int,
    seed: int,
    most: int,
    worst: int,
    count: bool,
    trial: bool,
    keep: bool,
    as_json: bool,
) -> None:
    """Find out where PostgreSQL's planner errs most, and which statistics would help it.

    URL is a postgresql:// URL. The rows that the planner expects (EXPLAIN) are compared with those that a model of the
    table expects, for the questions of a workload, or for random ones about two to four columns. Then come the CREATE
    STATISTICS statements that explain most of the difference, the best first.

    The database is only read. With --try the statements are run, with ANALYZE, in a transaction that is undone; with
    --apply it is kept. Both take the table's owner, and keep other ANALYZEs of the table waiting meanwhile.
    """
    if trial and keep:
        raise click.UsageError("give either --try or --apply")
    console = show.progress()
    with Planner(url, table, writing=trial or keep) as planner:
        estimator = Estimator.load(model) if model is not None else _fitted(console, url, table, budget)
        if workload is not None:
            questions = read_questions(workload, estimator.schema)
        else:
            questions = random_questions(estimator, queries, seed)
        found = find_advice(
            planner,
            estimator,
            questions,
            most=most,
            worst=worst,
            count=count,
            apply="keep" if keep else "try" if trial else None,
            tell=lambda stage: console.print(f"{stage} ..."),
        )
    if as_json:
        click.echo(json.dumps(found.to_json()))
    else:
        _show(found)


def _fitted(console: Console, url: str, table: str | None, budget: float) -> Estimator:
    with FitView(console) as view:
        return fit(url, table=table, budget=budget, calibrate=False, listener=view)


def _show(found: Advised) -> None:
    console = show.results()
    against = "the true count" if any(finding.rows is not None for finding in found.findings) else "the model"
    console.print(f"{found.table}: {show.plural(found.questions, 'question')}; the worst by the planner's factor off:")
    if found.passed_over:
        console.print(f"passed over {show.plural(found.passed_over, 'question')} that PostgreSQL cannot read")
    if not found.analyzed:
        console.print("the table was never analyzed: run ANALYZE first, or the planner knows nothing of it")
    counted, tried = against != "the model", found.after is not None
    table = TextTable(box=None, pad_edge=False, header_style="bold")
    for heading in ("planner", "model", *(["rows"] if counted else []), *(["after"] if tried else []), "factor"):
        table.add_column(heading, justify="right")
    table.add_column("question", overflow="fold")
    for finding in found.findings:
        figures = [finding.planner, finding.model, *([finding.rows] if counted else [])]
        figures += [finding.after] if tried else []
        texts = ["" if figure is None else f"{figure:,.0f}" for figure in figures]
        table.add_row(*texts, show.factor(finding.error), finding.where)
    console.print(table)
    console.print(f"the planner against the model: {_quantiles(found.before)}")
    if not found.suggestions:
        console.print("no statistics would help: the planner's errors are not of columns that depend on each other")
    for place, suggestion in enumerate(found.suggestions, 1):
        explained = f"{suggestion.share:.0%} of its error, {show.plural(suggestion.questions, 'question')}"
        console.print(f"{place}. {', '.join(suggestion.statistics.columns)}: {explained}")
        for statement in suggestion.statistics.statements:
            console.print(f"   {statement};", soft_wrap=True, highlight=False)
    if found.suggestions and found.after is None:
        console.print(f"   ANALYZE {found.table};", soft_wrap=True, highlight=False)
    if found.after is not None:
        what = "they were created, and ANALYZE was run" if found.applied == "kept" else "all of it was undone"
        console.print(f"with them: {_quantiles(found.after)}; {what}")


def _quantiles(facts: dict[str, float]) -> str:
    return ", ".join(f"{name} {show.factor(value)}" for name, value in facts.items())
