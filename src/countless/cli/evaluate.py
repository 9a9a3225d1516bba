"""The ``countless evaluate`` command: measure a model's errors on random queries or on a workload."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table as TextTable

from countless import workload
from countless.cli.model_files.longer_training import more_evidence, table_words
from countless.cli.parameters.options import Names, json_option, method_options, model_argument, table_argument
from countless.cli.rules import measure_rules
from countless.cli.terminal import display as show
from countless.data.datasets import EMBEDDED
from countless.data.sources.csv_files import CsvFile
from countless.data.sources.file_formats import with_default_options
from countless.data.sources.location import is_postgres, locate, shown
from countless.data.sources.source import Source
from countless.engine.methods import MODEL_METHOD, uses_evidence
from countless.estimator.answers.estimate import Estimate
from countless.estimator.estimator import Estimator
from countless.estimator.model_table import open_table
from countless.evaluation.baselines.compare import Compared, compare, put_to
from countless.evaluation.baselines.registry import BASELINES, SHARE, Material, check, make
from countless.evaluation.evaluate import (
    LEAST_COVERAGE,
    QUANTILES,
    REFUSED,
    Evaluation,
    or_refused,
    random_workload,
    too_narrow,
)
from countless.evaluation.evaluate import evaluate as evaluate_answers
from countless.workload import Query

ALL = "all"
PARQUET = (".parquet", ".pq")
NARROW = " !"  # marks error bars that are too narrow
COMPARED = ("p50", "p95", "p99", "max")  # quantiles of the q-error in the table of baselines


@click.command(
    epilog="\b\nExamples:\n"
    "  countless evaluate people.countless people.parquet --queries 1000 --save workload.jsonl\n"
    "  countless evaluate people.countless people.parquet --workload workload.jsonl --method skipping --json\n"
    "  countless evaluate urls.countless urls.txt --patterns mix\n"
    "  countless evaluate people.countless people.parquet --kinds\n"
    "  countless evaluate people.countless people.parquet --rules\n"
    "  countless evaluate people.countless people.parquet --queries 200 --baselines\n"
    "  countless evaluate people.countless people.parquet --baselines independence,row-sample-0.1%,postgres"
)
@model_argument
@table_argument()
@click.option("--queries", type=click.IntRange(min=1), default=1000, show_default=True, help="How many random queries.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random queries.")
@method_options(*BASELINES)
@click.option(
    "--baselines",
    type=Names(),
    is_flag=False,
    flag_value=ALL,
    help="Compare with baselines in one table: those named, or all if none is named.",
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=SHARE,
    show_default=True,
    help="Share of the rows that row-sample keeps.",
)
@click.option(
    "--patterns",
    type=click.Choice(["contains", "mix", "both"]),
    help="Ask about text: the paper's pieces of 3 to 5 characters, patterns of many kinds, or columns and text both.",
)
@click.option(
    "--kinds",
    is_flag=True,
    help="Ask questions as people do instead, 1 to 5 filters, as many of each kind: equality, ranges, IN, OR, NOT, "
    "functions, parts of dates, patterns and more. Show each kind, and groups by filters and by predicted rows. "
    "A question that is refused counts as an answer of 0 rows.",
)
@click.option(
    "--rules",
    is_flag=True,
    help="Measure how often answers break the rules of counts instead: this many random cases of each rule.",
)
@click.option("--summary/--no-summary", default=True, help="Use the counts that are stored with the model, or not.")
@click.option(
    "--save", "save_to", type=click.Path(path_type=Path), help="Write the queries and their true counts, as JSON lines."
)
@click.option(
    "--workload",
    "workload_file",
    type=click.Path(path_type=Path),
    help="Use the queries of such a file instead of random ones.",
)
@json_option
def evaluate(
    model: Path,
    table: str | CsvFile,
    queries: int,
    seed: int,
    method: str,
    particles: int | None,
    baselines: tuple[str, ...] | None,
    share: float,
    patterns: str | None,
    kinds: bool,
    rules: bool,
    summary: bool,
    save_to: Path | None,
    workload_file: Path | None,
    as_json: bool,
) -> None:
    """Measure MODEL against true counts on TABLE.

    Draws random queries as in the paper (5 to 12 filters with the literals of a random row; for text, whether it
    contains a piece of 3 to 5 characters), counts them with DuckDB, and reports q-errors, latency, and how often the
    true count lies inside the error bar.

    Baselines are the alternatives: independence (per-column histograms, multiplied; not for text), row-sample (1% of
    the rows; row-sample-0.1% keeps 0.1%), duckdb-guess and postgres (the optimizers' estimates; a PostgreSQL server is
    started and stopped), postgres-extended (with extended statistics), and scan (the exact count, for its time). Ask
    one with --method, or several with --baselines.

    --rules needs no true counts. It tests that the same question gets the same answer, that a filter that keeps
    everything changes nothing, that an impossible filter gives zero, that one more filter or a tighter range does not
    give more rows, and that two parts of a range add up.
    """
    rows = Source.open(table) if is_postgres(table) else table
    if rules:
        if method in BASELINES or not summary or any((baselines, patterns, kinds, save_to, workload_file)):
            raise click.UsageError(
                "--rules draws its own questions: give no more than --queries, --seed, --method and --particles"
            )
        measure_rules(model, rows, queries, seed, method, particles, as_json)
        return
    if workload_file is not None and save_to is not None:
        raise click.UsageError("give either --save or --workload: a workload that was read is already saved")
    if kinds and patterns is not None:
        raise click.UsageError("give either --kinds or --patterns: kinds ask about text too, if there is any")
    names = check(BASELINES if baselines == (ALL,) else baselines or ())
    if names and method in BASELINES:
        raise click.UsageError("--baselines are compared with the model: give a --method of the model, or no --method")
    console = show.progress()
    estimator = Estimator.load(model)
    rows = with_default_options(rows, estimator.schema.csv)
    if workload_file is not None:
        questions = workload.load(workload_file)
    else:
        opened = open_table(rows, estimator.schema)
        console.print("drawing random queries ...")
        questions = random_workload(
            estimator.schema,
            opened,
            queries,
            seed,
            patterns,
            kinds,
            lambda count: console.print(f"counting {count:,} random queries on {shown(table)} ..."),
        )
    if save_to is not None:
        workload.save(save_to, questions)
        console.print(f"wrote {save_to}")

    if uses_evidence(method):
        method = estimator.estimate("TRUE").method  # the model's own, if there are no evidence rows

    def answer_by(name: str) -> Callable[[str], Estimate]:
        answer = partial(estimator.estimate, method=name, particles=particles, summary=summary)
        return or_refused(answer) if kinds else answer

    with (
        Material(rows, estimator.schema, share, lambda stage: console.print(f"{stage} ...")) as material,
        Progress(console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        if not names:
            task = bar.add_task("answering", total=len(questions))
            with ExitStack() as stack:
                answer = answer_by(method)
                if method in BASELINES:
                    answer = stack.enter_context(closing(make(method, material))).estimate
                evaluation = evaluate_answers(
                    answer, questions, method, lambda done, total: bar.update(task, completed=done)
                )
        else:
            model_methods = [method, MODEL_METHOD] if uses_evidence(method) else [method]  # with and without evidence
            task = bar.add_task("answering", total=len(questions) * (len(model_methods) + len(names)))
            size = model.stat().st_size
            compared = [
                put_to(name, answer_by(name), questions, size, on_query=lambda: bar.advance(task))
                for name in model_methods
            ]
            comparisons = compare(_with_share(names, share), material, questions, lambda: bar.advance(task))
            compared += _announced(comparisons, console)
    if names:
        _show_compared(compared, questions, as_json)
        return
    report = {**evaluation.to_json(), **(evaluation.groups() if kinds else {}), **_sizes(model, os.fspath(table))}
    if as_json:
        click.echo(json.dumps(report))
    else:
        _show(evaluation, report, "" if method in BASELINES else _better_bars(estimator, model, table))


def _better_bars(estimator: Estimator, model: Path, table: str | CsvFile) -> str:
    """What to do about error bars that are too narrow."""
    calibrate = shlex.join(["countless", "calibrate", str(model), *table_words(table, kept=estimator.schema.csv)])
    more = more_evidence(estimator.rows, (estimator.info()["evidence"] or {"rows": 0})["rows"])
    return f"{calibrate}, or fit again with {more}"


def _sizes(model: Path, table: str) -> dict[str, int | None]:
    """The bytes of the model file, and of the table if it is a Parquet file."""
    if locate(table) is not None:
        return {"model_bytes": model.stat().st_size, "table_bytes": None}
    path = EMBEDDED[table]() if table in EMBEDDED and not Path(table).is_file() else Path(table)
    parquet = path.is_file() and path.suffix.lower() in PARQUET
    return {"model_bytes": model.stat().st_size, "table_bytes": path.stat().st_size if parquet else None}


def _with_share(names: Sequence[str], share: float) -> list[str]:
    """The names, with the share in that of the row sample unless it is the default."""
    usual = share == SHARE
    return [f"row-sample-{100 * share:.10g}%" if name == "row-sample" and not usual else name for name in names]


def _announced(comparisons: Iterable[Compared], console: Console) -> list[Compared]:
    """All comparisons; each is announced on standard error when it is finished."""
    finished = []
    for method in comparisons:
        console.print(f"{method.method}: " + (f"{method.answered:,} answers" if method.answered else "no answers"))
        finished.append(method)
    return finished


def _show_compared(compared: Sequence[Compared], questions: Sequence[Query], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([method.to_json() for method in compared]))
        return
    console = show.results()
    table = show.plain_table("method", right=("kept", "prepared", "median ms", "p99 ms", *COMPARED))
    for method in compared:
        table.add_row(method.method, *_figures(method))
    console.print(f"{len(questions):,} queries; bytes kept, seconds to prepare, latency, q-errors:")
    console.print(table)
    for method in compared:
        if method.problem is not None and not method.answered:
            console.print(f"{method.method} cannot answer: {method.problem}", soft_wrap=True)
        elif method.answered < len(questions):
            reason = method.problem or "it is slow, so it was asked the first ones only"
            console.print(
                f"{method.method} answered {method.answered:,} of {len(questions):,} queries: {reason}", soft_wrap=True
            )


def _figures(method: Compared) -> list[str]:
    figures = method.to_json()
    stored = "-" if method.bytes is None else show.size(method.bytes)
    prepared = "-" if method.seconds is None else f"{method.seconds:.1f} s"
    if method.evaluation is None:
        return [stored, prepared, *["-"] * (2 + len(COMPARED))]
    latency = [f"{figures['latency_ms'][name]:.2f}" for name in ("p50", "p99")]
    return [stored, prepared, *latency, *(show.factor(figures["q_error"][name]) for name in COMPARED)]


def _show(evaluation: Evaluation, report: dict[str, Any], better_bars: str) -> None:
    """Print a report. ``better_bars`` says what to do about narrow error bars; empty if they are not marked."""
    console = show.results()
    console.print(
        f"{report['queries']:,} queries, method {report['method']}; q-error, the factor between estimate and truth:"
    )
    console.print(_errors(report))
    groups = [
        (report["by_class"], ""),
        (report.get("by_filters", {}), " filters"),
        (report.get("by_estimate", {}), " rows"),
    ]
    if any(group for group, _ in groups):
        console.print(_groups(groups, bool(better_bars)))
    if better_bars and any(too_narrow(figures) for group, _ in groups for figures in group.values()):
        console.print(
            f"{NARROW.strip()} marks error bars that are too narrow: they hold for fewer than {LEAST_COVERAGE:.0%} of "
            f"the answers that are not exact. To get better ones: {better_bars}",
            soft_wrap=True,
        )
    latency = report["latency_ms"]
    console.print(f"latency {latency['p50']:.2f} ms median, {latency['p99']:.2f} ms p99")
    console.print(_bars_text(report), soft_wrap=True)
    console.print(_sizes_text(report))
    if evaluation.refused:
        refused = show.plural(evaluation.refused, "question")
        console.print(f"{refused} refused, which counts as an answer of 0 rows; countless explain says why")
    console.print("worst:")
    for error, query, estimate in evaluation.worst():
        answer = "refused" if estimate.method == REFUSED else f"estimate {show.rows(estimate.rows)}"
        console.print(f"  {show.factor(error)}  {answer}, truth {query.rows:,}  {query.where}", soft_wrap=True)


def _bars_text(report: dict[str, Any]) -> str:
    """How often the error bar holds for answers that are not exact, and how wide it is."""
    exact, others = report["exact"], report["queries"] - report["exact"]
    if not others:
        return "all answers are exact"
    return (
        f"{exact:,} answers are exact; for the other {others:,}, the truth is inside the 90% error bar in "
        f"{report['coverage_not_exact']:.1%} of cases (high end / low end, median: "
        f"{show.factor(report['width_not_exact'])})"
    )


def _errors(report: dict[str, Any]) -> TextTable:
    """The q-errors of all queries, and of those that keep some rows."""
    table = show.plain_table("", "queries", *report["q_error"])
    for label, ending in (("all", ""), ("10 true rows or more", "_10_rows")):
        if report[f"queries{ending}"]:
            errors = report[f"q_error{ending}"].values()
            table.add_row(label, f"{report[f'queries{ending}']:,}", *map(show.factor, errors))
    return table


def _groups(groups: Iterable[tuple[dict[str, Any], str]], marks_narrow: bool) -> TextTable:
    """A line for every group that has queries: q-errors, and bars of the answers that are not exact.

    Of the bars: how often they hold, and their median width.
    """
    table = show.plain_table("group", "queries", "refused", *QUANTILES, "exact", "in the bar", "high/low")
    for group, ending in groups:
        for label, figures in group.items():
            if figures["queries"]:
                errors = [show.factor(figures[name]) for name in QUANTILES]
                bars = ("-", "-")
                if figures["queries"] > figures["exact"]:
                    mark = NARROW if marks_narrow and too_narrow(figures) else ""
                    bars = (f"{figures['coverage_not_exact']:.1%}{mark}", show.factor(figures["width_not_exact"]))
                counts = (f"{figures['queries']:,}", f"{figures['refused']:,}")
                table.add_row(label + ending, *counts, *errors, f"{figures['exact']:,}", *bars)
    return table


def _sizes_text(report: dict[str, Any]) -> str:
    model_size, table_size = report["model_bytes"], report["table_bytes"]
    ratio = "" if table_size is None else f", {model_size / table_size:.1%} of the table's {show.size(table_size)}"
    return f"the model file has {show.size(model_size)}{ratio}"
