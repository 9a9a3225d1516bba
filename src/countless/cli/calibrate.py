"""The ``countless calibrate`` command: compute new error bars for a model."""

from __future__ import annotations

from pathlib import Path

import click

from countless.cli.model_files.rewriting import output_option, rewritten, summarize_written
from countless.cli.parameters.options import model_argument, table_argument
from countless.data.sources.csv_files import CsvFile


@click.command(
    epilog="\b\nExamples:\n"
    "  countless calibrate people.countless people.parquet\n"
    "  countless calibrate orders.countless shop.duckdb::orders\n"
    "  countless calibrate people.countless people.parquet --seed 1 -o other.countless"
)
@model_argument
@table_argument()
@output_option
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of the random questions."
)
def calibrate(model: Path, table: str | CsvFile, output: Path | None, seed: int) -> None:
    """Measure how far MODEL's estimates are off, and give it new error bars.

    TABLE is the table that MODEL was fitted on, as countless fit takes one. The table of a database follows the
    database after two colons. Random questions are counted in the table and estimated by the model. Nothing is trained.
    countless fit does this itself; you need it only if the fit said that it could not, or that it had time for few
    questions. The old file is replaced only when the new one is complete.
    """
    output = output or model
    calibrated = rewritten(
        "calibrate", model, output, table, lambda old, view: old.calibrate(table, seed=seed, listener=view)
    )
    summarize_written(calibrated, output)
