"""The ``countless demo`` command: fit, estimate and compare on the embedded tables."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.table import Table as TextTable

from countless._version import __version__
from countless.cli.model_files.files_beside import checkpoint_of, checkpoints_left, codes_of
from countless.cli.model_files.locking import hold
from countless.cli.terminal import display as show
from countless.cli.terminal.fit_progress import fit_and_save
from countless.data.datasets import adult, npm_urls
from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.engine.methods import MODEL_METHOD
from countless.errors import ModelFileError, TrainingError
from countless.estimator.answers.estimate import Estimate, q_error
from countless.estimator.estimator import Estimator
from countless.evaluation.baselines.duckdb_guess import DuckDbGuess
from countless.evaluation.baselines.independence import Independence
from countless.evaluation.baselines.row_sample import RowSample
from countless.evaluation.evaluate import evaluate, random_workload
from countless.options import FitOptions

QUERIES = (
    "age > 35 AND income = '>50K'",
    "relationship = 'Husband' AND sex = 'Female'",
    "education = 'Doctorate' AND education_num = 16",
    "age < 20 AND marital_status = 'Never-married' AND income = '<=50K'",
    "occupation = 'Prof-specialty' AND education IN ('Masters', 'Doctorate') AND hours_per_week >= 50",
    "workclass IS NULL AND occupation IS NULL AND age BETWEEN 60 AND 75",
    "capital_gain > 10000 AND income = '>50K' AND sex = 'Male'",
    "native_country = 'India' AND race = 'Asian-Pac-Islander' AND education = 'Masters'",
    "education LIKE '%th' AND native_country = 'Mexico' AND age % 10 = 0",
    "(relationship = 'Wife' OR relationship = 'Husband') AND NOT marital_status LIKE 'Married%'",
    "marital_status = 'Widowed' OR (age >= 65 AND sex = 'Female')",
    "occupation = 'Farming-fishing' AND workclass = 'Self-emp-not-inc' AND hours_per_week >= 60 AND income = '<=50K'",
)
PATTERNS = (
    "url LIKE '%webpack%'",
    "url LIKE 'https://github.com/a%' AND url LIKE '%react%'",
    "regexp_matches(url, '/[a-z]+-cli$')",
    "url NOT LIKE 'https://github.com/%'",
)
URLS_MODEL = "npm_urls.countless"
COLUMNS_SECONDS = 70.0
TEXT_SECONDS = 20.0
SURVEY_WEIGHT = ("fnlwgt",)  # nobody filters on it
EVIDENCE = "10%"  # by default the file would hold all rows of these small tables, and the network would not be used
EVIDENCE_NOTE = (
    "By default a fit keeps tables of up to 100,000 rows whole, and counts: on these two every answer would be exact.\n"
    "Here it keeps one row in ten, the evidence rows, to show how a large table is answered."
)
RANDOM_QUERIES = 500
RANDOM_SEED = 2020


@dataclass(frozen=True)
class DemoContender:
    """A method that the demo compares, and its name."""

    name: str
    answer: Callable[[str], Estimate]


@click.command(epilog="\b\nExample:\n  countless demo")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    default=Path("adult.countless"),
    show_default=True,
    help="The model file to make, or to use again.",
)
@click.option("--refit", is_flag=True, help="Fit again even if the model file exists.")
def demo(model: Path, refit: bool) -> int:
    """Fit UCI Adult, which comes with Countless, and compare a dozen estimates with the true counts.

    Also shows the model alone, the evidence rows alone, and common alternatives. Then the same for patterns in 20,000
    URLs. Takes less than two minutes. A second run uses the same models.
    """
    progress, console = show.progress(), show.results()
    estimator = _fitted(
        model, progress, refit, adult(), budget=COLUMNS_SECONDS, evidence=EVIDENCE, exclude=SURVEY_WEIGHT
    )
    urls = _fitted(model.with_name(URLS_MODEL), progress, refit, npm_urls(), budget=TEXT_SECONDS, evidence=EVIDENCE)
    if estimator.report["interrupted"] or urls.report["interrupted"]:
        progress.print("stopped early: run it again to continue training")
        return 130
    table = Table.encode(adult())
    contenders = (*_halves(estimator), DemoContender("independence", Independence(table).estimate))
    source = Source.open(adult())
    console.print(f"\n{EVIDENCE_NOTE}", soft_wrap=True)
    console.print(f"\nhow many of {estimator.rows:,} people?", style="bold")
    for line in _beside_the_truth(QUERIES, contenders, source.counts(QUERIES)):
        console.print(line, soft_wrap=True)
    console.print(f"\nhow many of {urls.rows:,} URLs?", style="bold")
    countless, _, evidence = _halves(urls)  # text has no network by default, and counts and evidence answer
    readers = (countless, evidence, DemoContender("DuckDB's guess", DuckDbGuess(npm_urls()).estimate))
    for line in _beside_the_truth(PATTERNS, readers, Source.open(npm_urls()).counts(PATTERNS)):
        console.print(line, soft_wrap=True)
    console.print()
    progress.print(f"counting {RANDOM_QUERIES} random queries of 5 to 12 filters ...")
    sample = DemoContender("1% sample", RowSample(table).estimate)
    console.print(_random(estimator, (*contenders, sample), source))
    command = "countless" if shutil.which("countless") else sys.argv[0]  # in a .venv that is not active
    console.print(f"ask your own:  {command} estimate {model} \"age > 35 AND income = '>50K'\"", soft_wrap=True)
    return 0


def _halves(estimator: Estimator) -> tuple[DemoContender, ...]:
    """Countless, and the two halves of its answers: the model alone, and the evidence rows alone."""

    def evidence_alone(where: str) -> Estimate:
        answer = estimator.estimate(where)
        rows = 0.0 if not answer.evidence_rows else (answer.hits or 0) / answer.evidence_rows * estimator.rows
        return replace(answer, rows=rows)

    return (
        DemoContender("Countless", estimator.estimate),
        DemoContender("model alone", lambda where: estimator.estimate(where, method=MODEL_METHOD, summary=False)),
        DemoContender("evidence alone", evidence_alone),
    )


def _existing(model: Path, console: show.CommandConsole) -> Estimator | None:
    """The model of an earlier run, if it is whole and of this version."""
    if not model.exists() or checkpoints_left(model):
        return None
    try:
        estimator = Estimator.load(model)
    except ModelFileError as error:
        console.print(f"fitting again: {error}")
        return None
    if estimator.library != __version__:
        return None
    console.print(f"using {model} from an earlier run (--refit fits it again)")
    return estimator


def _fitted(model: Path, console: show.CommandConsole, refit: bool, table: Path, **options: Any) -> Estimator:
    """The model of an earlier run, or a new one."""
    estimator = None if refit else _existing(model, console)
    if estimator is not None:
        return estimator
    hold("demo", model)
    try:
        resuming = {"resume": not refit, "checkpoint": checkpoint_of(model), "codes": codes_of(model)}
        return fit_and_save(console, table, model, FitOptions.of(resuming | options))
    except TrainingError as error:
        raise TrainingError(f"{error} (countless demo --refit starts again)") from None


def _beside_the_truth(queries: Sequence[str], contenders: tuple[DemoContender, ...], truths: list[int]) -> list[str]:
    """Two lines for each query: the clause, and the numbers below their headings."""
    layout = "{:>8} {:>9} {:>17} {:>8} {:>6}" + " {:>25}" * (len(contenders) - 1)
    headings = [f"{contender.name} (q-error)" for contender in contenders[1:]]
    lines = [layout.format("truth", "estimate", "90% interval", "q-error", "ms", *headings)]
    for where, truth in zip(queries, truths, strict=True):
        estimate, *alternatives = (contender.answer(where) for contender in contenders)
        numbers = layout.format(
            show.rows(truth),
            show.rows(estimate.rows),
            f"{show.rows(estimate.low)} - {show.rows(estimate.high)}",
            show.factor(q_error(estimate.rows, truth)),
            f"{estimate.ms:.1f}",
            *(f"{show.rows(answer.rows)} ({show.factor(q_error(answer.rows, truth))})" for answer in alternatives),
        )
        lines += ["", where, numbers]
    return lines


def _random(estimator: Estimator, contenders: tuple[DemoContender, ...], source: Source) -> TextTable:
    queries = random_workload(estimator.schema, source, RANDOM_QUERIES, RANDOM_SEED)
    table = TextTable(title=f"q-error over {RANDOM_QUERIES} random queries", title_justify="left")
    table.add_column("method")
    for heading in ("median", "p95", "p99", "max", "ms (median)"):
        table.add_column(heading, justify="right")
    for contender in contenders:
        figures = evaluate(contender.answer, queries, contender.name).to_json()
        errors = [show.factor(figures["q_error"][name]) for name in ("p50", "p95", "p99", "max")]
        table.add_row(contender.name, *errors, f"{figures['latency_ms']['p50']:.2f}")
    return table
