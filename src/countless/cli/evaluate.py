"""``countless evaluate``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
from rich.progress import Progress
from rich.table import Table as TextTable

from countless import workload
from countless.baselines.duckdb_guess import DuckDbGuess
from countless.baselines.independence import Independence
from countless.baselines.row_sample import RowSample
from countless.baselines.sample_scan import SampleScan
from countless.cli import show
from countless.cli.options import json_option, method_options, model_argument
from countless.data.table import EncodeOptions, Table
from countless.estimator.estimate import Estimate
from countless.estimator.estimator import Estimator
from countless.estimator.evaluate import Evaluation, random_workload
from countless.estimator.evaluate import evaluate as evaluate_answers


@click.command(
    epilog="\b\nExamples:\n"
    "  countless evaluate people.countless people.parquet --queries 1000 --save workload.jsonl\n"
    "  countless evaluate people.countless people.parquet --workload workload.jsonl --method skipping --json\n"
    "  countless evaluate urls.countless urls.txt --patterns mix"
)
@model_argument
@click.argument("table")
@click.option("--queries", type=click.IntRange(min=1), default=1000, show_default=True, help="How many random queries.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random queries.")
@method_options("independence", "row-sample", "duckdb-guess")
@click.option(
    "--patterns",
    type=click.Choice(["contains", "mix"]),
    help="Ask about text: the paper's pieces of 3 to 5 characters, or patterns of many kinds.",
)
@click.option("--summary/--no-summary", default=True, help="Use the counts of n-grams beside text models, or not.")
@click.option(
    "--save", "save_to", type=click.Path(path_type=Path), help="Write the queries and their true counts, as JSON lines."
)
@click.option(
    "--workload", "workload_file", type=click.Path(path_type=Path), help="Use the queries of such a file instead."
)
@json_option
def evaluate(
    model: Path,
    table: str,
    queries: int,
    seed: int,
    method: str,
    particles: int | None,
    patterns: str | None,
    summary: bool,
    save_to: Path | None,
    workload_file: Path | None,
    as_json: bool,
) -> None:
    """Measure MODEL against true counts on TABLE.

    Draws the paper's random queries (5 to 12 filters with the literals of a random row; of text, whether it contains a
    piece of 3 to 5 characters), takes the truth from DuckDB, and reports q-errors, latency and how often the error bar
    holds the truth. Methods that need the table stand beside the model's: independence (per-column histograms,
    multiplied; not for text), row-sample (1% of the rows), and duckdb-guess, what DuckDB's optimizer expects.
    """
    if workload_file is not None and save_to is not None:
        raise click.UsageError("give either --save or --workload: a workload that is read needs no saving")
    console = show.progress()
    estimator = Estimator.load(model)
    answer = _answerer(estimator, table, method, particles, summary)
    if workload_file is not None:
        asked = workload.load(workload_file)
    else:
        console.print(f"counting {queries:,} random queries on {table} ...")
        asked = random_workload(estimator.schema, table, queries, seed, patterns)
    if save_to is not None:
        workload.save(save_to, asked)
        console.print(f"wrote {save_to}")
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("answering", total=len(asked))
        found = evaluate_answers(answer, asked, method, lambda done, total: bar.update(task, completed=done))
    if as_json:
        click.echo(json.dumps(found.to_json()))
    else:
        _show(found)


def _answerer(
    estimator: Estimator, table: str, method: str, particles: int | None, summary: bool
) -> Callable[[str], Estimate]:
    """The chosen method's ``estimate``."""
    if method == "duckdb-guess":
        return DuckDbGuess(table).estimate
    if method == "row-sample" and estimator.schema.texts:
        return SampleScan(table).estimate
    if method in ("independence", "row-sample"):
        encoded = Table.encode(table, EncodeOptions(columns=estimator.columns))
        return (Independence(encoded) if method == "independence" else RowSample(encoded)).estimate
    return lambda where: estimator.estimate(where, method=method, particles=particles, summary=summary)


def _show(found: Evaluation) -> None:
    console = show.results()
    facts = found.to_json()
    table = TextTable(*facts["q_error"], box=None, pad_edge=False, header_style="bold")
    table.add_row(*(show.factor(value) for value in facts["q_error"].values()))
    console.print(f"{facts['queries']:,} queries, method {facts['method']}; q-error:")
    console.print(table)
    if facts["by_class"]:
        classes = TextTable("class", "queries", *facts["q_error"], box=None, pad_edge=False, header_style="bold")
        for kind, quantiles in facts["by_class"].items():
            errors = [show.factor(quantiles[name]) for name in facts["q_error"]]
            classes.add_row(kind, f"{quantiles['queries']:,}", *errors)
        console.print(classes)
    latency = facts["latency_ms"]
    console.print(
        f"latency {latency['p50']:.2f} ms median, {latency['p99']:.2f} ms p99; "
        f"the error bar holds the truth in {facts['coverage']:.1%}"
    )
    console.print("worst:")
    for error, query, estimate in found.worst():
        console.print(
            f"  {show.factor(error)}  {show.rows(estimate.rows)} for {query.rows:,}  {query.where}",
            soft_wrap=True,
        )
