"""The ``countless explain`` command: show how an estimate was computed."""

from __future__ import annotations

import json
from pathlib import Path

import click

from countless.cli.options import json_option, method_options, model_argument
from countless.estimator.estimator import Estimator


@click.command(epilog="\b\nExample:\n  countless explain people.countless \"age > 35 AND city IN ('Oslo', 'Rome')\"")
@model_argument
@click.argument("where")
@method_options()
@json_option
def explain(model: Path, where: str, method: str, particles: int | None, as_json: bool) -> None:
    """How is WHERE answered?

    Shows the columns that are visited and those that are skipped, whether the model's answer is exact or sampled,
    literals that the table does not hold, and the time by stage.
    """
    found = Estimator.load(model).explain(where, method=method, particles=particles)
    click.echo(json.dumps(found.to_json(), ensure_ascii=False) if as_json else str(found))
