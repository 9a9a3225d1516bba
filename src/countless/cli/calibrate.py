"""The ``countless calibrate`` command: compute new error bars for a model."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from countless.cli.model_files.locking import hold
from countless.cli.parameters.options import model_argument, table_argument
from countless.cli.terminal import display as show
from countless.cli.terminal.fit_progress import FitView, require_writable
from countless.data.sources.csv_files import CsvFile
from countless.data.sources.file_formats import with_default_options
from countless.data.sources.source import require_file
from countless.errors import TrainingError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.salvage import CALIBRATION, missing_parts


@click.command(
    epilog="\b\nExamples:\n"
    "  countless calibrate people.countless people.parquet\n"
    "  countless calibrate orders.countless shop.duckdb::orders\n"
    "  countless calibrate people.countless people.parquet --seed 1 -o other.countless"
)
@model_argument
@table_argument()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The model file to write  [default: MODEL is replaced]"
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of the random questions."
)
def calibrate(model: Path, table: str | CsvFile, output: Path | None, seed: int) -> int:
    """Measure how far MODEL's estimates are off, and give it new error bars.

    TABLE is the table that MODEL was fitted on, as countless fit takes one. The table of a database follows the
    database after two colons. Random questions are counted in the table and estimated by the model. Nothing is trained.
    countless fit does this itself; you need it only if the fit said that it could not. The old file is replaced only
    when the new one is complete.
    """
    output = output or model
    require_writable(output)
    hold("calibrate", output)
    console = show.progress()
    estimator = Estimator.load(model)
    require_file(with_default_options(table, estimator.schema.csv))
    try:
        with FitView(console) as view:
            calibrated = estimator.calibrate(table, seed=seed, listener=view)
    except KeyboardInterrupt:
        console.print(f"\nstopped, and nothing was written: {model} is unchanged", style="yellow", soft_wrap=True)
        return 130
    calibrated.save(output)
    console.print(f"error bars: {show.error_bars(calibrated.info()['interval'])}", soft_wrap=True)
    console.print(f"wrote {output} ({show.size(output.stat().st_size)})", soft_wrap=True)
    return 0


def require_whole(report: dict[str, Any], model: Path, table: Sequence[str]) -> None:
    """Say what a model that was written lacks, and which command adds it.

    Raises:
        TrainingError: a step after training failed, so that the model was written without what it makes.
    """
    missing = missing_parts(report)
    if CALIBRATION in missing:
        command = shlex.join(["countless", "calibrate", str(model), *table])
        told = f"{model} is written, but it could not be calibrated ({missing[CALIBRATION]})"
        raise TrainingError(f"{told}: until then, error bars reach from 0 to all rows. To calibrate it: {command}")
