"""The ``countless explain`` command: show how an estimate was computed."""

from __future__ import annotations

import json
from pathlib import Path

import click

from countless.cli.model_files.longer_training import longer_training, more_evidence
from countless.cli.parameters.options import json_option, method_options, model_argument
from countless.estimator.answers.estimate import Estimate
from countless.estimator.estimator import Estimator
from countless_command import leaving_at_once

WIDE = 2.0  # a larger factor between the ends of an error bar is worth advice
FEW = 5  # rows: intervals up to here are never narrower


@click.command(epilog="\b\nExample:\n  countless explain people.countless \"age > 35 AND city IN ('Oslo', 'Rome')\"")
@model_argument
@click.argument("where")
@method_options()
@click.option("--legend", is_flag=True, help="Explain the words of the output.")
@json_option
def explain(model: Path, where: str, method: str, particles: int | None, legend: bool, as_json: bool) -> None:
    """How is WHERE answered?

    Shows which source gave the answer, which columns the model visited and skipped, whether the answer is exact or
    sampled, which values do not occur in the table, and how long each stage took. If the error bar is wide, it says
    what to do.
    """
    with leaving_at_once():
        estimator = Estimator.load(model)
        explanation = estimator.explain(where, method=method, particles=particles)
    if as_json:
        click.echo(json.dumps(explanation.to_json(), ensure_ascii=False))
        return
    click.echo(str(explanation))
    if advice := _advice(model, estimator.rows, explanation.estimate):
        click.echo(f"advice    {advice}")
    if not legend:
        click.echo("(--legend explains the words)")
        return
    click.echo("\nwords:")
    for word, meaning in explanation.legend:
        click.echo(f"  {word:<14}  {meaning}")


def _advice(model: Path, rows: int, answer: Estimate) -> str:
    """What to do about an answer with a wide error bar; the table has ``rows`` rows.

    >>> answer = Estimate("a > 3", 75.2, 0.1, 7.0, 80.0, 0.9, "fused", exact=False, ms=1.0)
    >>> _advice(Path("m"), 150_000, answer)
    'the interval is wide: fit with --evidence all, or train longer with countless train m TABLE --budget 5m'
    >>> _advice(Path("m"), 150_000, Estimate("a > 3", 1.0, 0.1, 0.0, 2.0, 0.9, "fused", exact=False, ms=1.0))
    'an interval of a few rows is usual for so small a count: nothing to do'
    """
    if answer.exact or answer.high - answer.low < 1:
        return ""
    if answer.high <= FEW:
        return "an interval of a few rows is usual for so small a count: nothing to do"
    if answer.high <= WIDE * max(1.0, answer.low):
        return ""
    reason = "" if answer.hits is None else ", because few evidence rows match"
    longer = longer_training(model, ["TABLE"])
    more = more_evidence(rows, answer.evidence_rows or 0)
    return f"the interval is wide{reason}: fit with {more}, or train longer with {longer}"
