"""The ``countless advise`` command: find misestimates of PostgreSQL's planner and suggest extended statistics."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from countless.advise import Advised
from countless.advise import advise as find_advice
from countless.advise.findings import Suggestion
from countless.advise.planner import Planner
from countless.advise.questions import random_questions, read_questions
from countless.cli.model_files.longer_training import HARDLY, hardly_trained
from countless.cli.parameters.options import Duration, json_option
from countless.cli.terminal import display as show
from countless.cli.terminal.fit_progress import FitView
from countless.errors import QueryError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit


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
    help="A file of WHERE clauses, one per line or with semicolons  [default: random questions]",
)
@click.option(
    "--queries",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="Without --workload: number of random questions.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of the questions.")
@click.option("--most", type=click.IntRange(1), default=5, show_default=True, help="Most statistics to suggest.")
@click.option("--worst", type=click.IntRange(1), default=10, show_default=True, help="Questions to show.")
@click.option("--count", is_flag=True, help="Count the rows of the questions that are shown, too.")
@click.option("--try", "trial", is_flag=True, help="Create the statistics, ask the planner again, and undo it all.")
@click.option("--apply", "keep", is_flag=True, help="The same, but keep those that help.")
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
    """Find out where PostgreSQL's planner is most wrong, and which statistics would help it.

    URL is a postgresql:// URL. The planner's estimates (EXPLAIN) are compared with those of a model of the table, for
    the questions of a workload, or for random questions about two to four columns. The output has the CREATE STATISTICS
    statements that explain most of the difference, the best first.

    Their effect is a prediction, and the database is only read. With --try each statement is run, with ANALYZE, in a
    transaction that is rolled back; the output says which statements bring the planner closer to the model. With
    --apply those statements stay. Both need the owner of the table, and block other ANALYZE commands on it.

    Questions that the model or PostgreSQL cannot read are skipped. With --count, the true counts of the worst questions
    are shown too, and the questions are sorted by the planner's error.
    """
    if trial and keep:
        raise click.UsageError("give either --try or --apply")
    console = show.progress()
    with Planner(url, table, writing=trial or keep) as planner:
        estimator = Estimator.load(model) if model is not None else _fitted(console, url, table, budget)
        if hardly_trained(estimator):
            console.print(f"{HARDLY}; do not trust its advice", style="yellow", soft_wrap=True)
        wrong: list[QueryError] = []
        if workload is not None:
            questions, wrong = read_questions(workload, estimator.schema)
        else:
            questions = random_questions(estimator, queries, seed)
        if wrong:
            message = f"skipped {show.plural(len(wrong), 'question')} of the workload; {str(wrong[0]).splitlines()[0]}"
            console.print(message, style="yellow", soft_wrap=True)
        advised = find_advice(
            planner,
            estimator,
            questions,
            most=most,
            worst=worst,
            count=count,
            apply="keep" if keep else "try" if trial else None,
            tell=lambda stage: console.print(f"{stage} ..."),
        )
    advised = replace(advised, passed_over=advised.passed_over + len(wrong))
    if as_json:
        click.echo(json.dumps(advised.to_json()))
    else:
        _show(advised)


def _fitted(console: show.CommandConsole, url: str, table: str | None, budget: float) -> Estimator:
    with FitView(console) as view:
        return fit(url, table=table, budget=budget, calibrate=False, listener=view)


def _show(advised: Advised) -> None:
    console = show.results()
    counted, tried = any(finding.rows is not None for finding in advised.findings), advised.after is not None
    worst = "those in which the planner is furthest from the model"
    worst += ", by its factor off the true count:" if counted else ":"
    console.print(f"{advised.table}: {show.plural(advised.questions, 'question')}; {worst}", soft_wrap=True)
    if advised.passed_over:
        passed_over = show.plural(advised.passed_over, "question")
        console.print(f"passed over {passed_over} that PostgreSQL or the model cannot read", style="yellow")
    if not advised.analyzed:
        console.print("the table was never analyzed: run ANALYZE first, or the planner knows nothing of it")
    headings = ("planner", "model", *(["rows"] if counted else []), *(["after"] if tried else []), "factor")
    table = show.plain_table(right=headings)
    table.add_column("question", overflow="fold")
    for finding in advised.findings:
        figures = [finding.planner, finding.model, *([finding.rows] if counted else [])]
        figures += [finding.after] if tried else []
        texts = ["" if figure is None else f"{figure:,.0f}" for figure in figures]
        table.add_row(*texts, show.factor(finding.error), finding.where)
    console.print(table)
    console.print(f"the planner against the model: {_factors(advised.before)}")
    if not advised.suggestions:
        console.print("no statistics would help: the planner's errors are not of columns that depend on each other")
    for index, suggestion in enumerate(advised.suggestions, 1):
        _show_suggestion(console, index, suggestion)
    if advised.suggestions and advised.after is None:
        console.print(f"   ANALYZE {advised.table};", soft_wrap=True, highlight=False)
        console.print("these are predictions: --try measures each of them, and keeps nothing")
    if advised.after is not None:
        console.print(_outcome(advised, advised.after), soft_wrap=True)


def _show_suggestion(console: Console, number: int, suggestion: Suggestion) -> None:
    """Print the effect of statistics as predicted and, if they were tried, as measured; and their SQL if they help."""
    effect = suggestion.effect
    expected = f"{suggestion.share:.0%} of its error, {show.plural(suggestion.questions, 'question')}"
    line = f"{number}. {', '.join(suggestion.statistics.columns)}: {expected}"
    if effect is not None:
        factors = f"the mean factor {show.factor(effect.before)} became {show.factor(effect.after)}"
        line += f"; tried, {factors}" + ("" if effect.helped else ": they do not help, and are left out")
    console.print(line, style=None if effect is None or effect.helped else "yellow", soft_wrap=True)
    if effect is None or effect.helped:
        for statement in suggestion.statistics.statements:
            console.print(f"   {statement};", soft_wrap=True, highlight=False)


def _outcome(advised: Advised, after: dict[str, float]) -> str:
    helped = sum(suggestion.effect is not None and suggestion.effect.helped for suggestion in advised.suggestions)
    if not helped:
        return "none of them helps: all of it was undone"
    outcome = "they were created, and ANALYZE was run" if advised.applied == "kept" else "all of it was undone"
    statistics = (
        "them" if helped == len(advised.suggestions) else f"the {helped} of {len(advised.suggestions)} that help"
    )
    return f"with {statistics}: {_factors(after)}; {outcome}"


def _factors(quantiles: dict[str, float]) -> str:
    return ", ".join(f"{name} {show.factor(value)}" for name, value in quantiles.items())
