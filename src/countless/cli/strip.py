"""The ``countless strip`` command: write a model file without rows of the table."""

from __future__ import annotations

from pathlib import Path

import click

from countless.cli.model_files.locking import hold
from countless.cli.parameters.options import model_argument
from countless.cli.terminal import display as show
from countless.cli.terminal.fit_progress import require_writable
from countless.estimator.estimator import Estimator
from countless.estimator.stripping import left_out

STAYS = (
    "it still holds every distinct value of the fitted columns{grids}, counts of values and of pairs of values, "
    "frequent pieces of text, and the model: leave columns out with countless fit --exclude, counts with --no-summary"
)

TEXT_ALONE = (
    "warning: without the rows, patterns on text are multiplied with filters on other columns as if they were "
    "independent, and error bars of such questions are too narrow; fit with --text-model to give a model of both away"
)


@click.command(epilog="\b\nExample:\n  countless strip people.countless -o public.countless")
@model_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The model file to write.")
def strip(model: Path, output: Path) -> None:
    """Write MODEL without rows of its table, to give it to others.

    Left out are the evidence rows, the calibration questions (they contain values of random rows), and digests of the
    table. Answers then come from the model alone. The error bars stay. Functions of text that need rows are refused,
    and without a network of text (fit --text-model) patterns are multiplied with filters on other columns.
    """
    require_writable(output)
    hold("strip", output)
    estimator = Estimator.load(model)
    without = left_out(estimator)
    estimator.stripped().save(output)
    console = show.progress()
    for part in without or ["nothing: there was nothing to leave out"]:
        console.print(f"left out: {part}", soft_wrap=True)
    grids = show.known_values(estimator.schema.coded)
    console.print(STAYS.format(grids=f" (but only {grids})" if grids else ""), soft_wrap=True)
    if without and len(estimator.schema.texts) < len(estimator.schema.columns) and _lacks_text_network(estimator):
        console.print(TEXT_ALONE, soft_wrap=True)
    console.print(f"wrote {output} ({show.size(output.stat().st_size)})", soft_wrap=True)


def _lacks_text_network(estimator: Estimator) -> bool:
    """Whether the table has text that no network has learned."""
    return bool(estimator.schema.texts) and "text" not in estimator.report
