"""The ``countless train`` command: train a finished model longer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from countless.cli.calibrate import require_whole
from countless.cli.model_files.files_beside import checkpoint_of, kept_training, remove_checkpoints, training_of
from countless.cli.model_files.locking import hold
from countless.cli.model_files.longer_training import table_words
from countless.cli.parameters.options import model_argument, table_argument
from countless.cli.parameters.settings import GroupedCommand, options_from
from countless.cli.terminal import display as show
from countless.cli.terminal.fit_progress import FitView, require_writable
from countless.data.sources.csv_files import CsvFile
from countless.data.sources.file_formats import with_default_options
from countless.data.sources.source import require_file
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.backends import checkpoint_of as of_network
from countless.options import MoreTrainingOptions
from countless.store import COLUMNS, TEXT


@click.command(
    cls=GroupedCommand,
    epilog="\b\nExamples:\n"
    "  countless train people.countless people.parquet --budget 5m\n"
    "  countless train orders.countless shop.duckdb::orders --epochs 10 -o better.countless",
)
@model_argument
@table_argument()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The model file to write  [default: MODEL is replaced]"
)
@options_from(MoreTrainingOptions)
def train(model: Path, table: str | CsvFile, output: Path | None, **given: Any) -> int:
    """Train a finished MODEL further, on the table that it was fitted on.

    TABLE is that table, as countless fit takes one. The table of a database follows the database after two colons. A
    table that has changed is an error. Error bars are measured again. The model does not get worse: weights that do not
    improve are not kept.

    countless fit keeps the weights in full precision and the state of the optimizer in MODEL.training. Without that
    file, training starts from the weights in MODEL. The old file is replaced only when the new one is complete. Ctrl-C
    stops training after the current step and keeps the best weights so far; at any other time it leaves the old file
    unchanged.
    """
    output = output or model
    require_writable(output)
    hold("train", output)
    console = show.progress()
    estimator = Estimator.load(model)
    require_file(with_default_options(table, estimator.schema.csv))
    try:
        with FitView(console) as view, _training_beside(model, output):
            trained = estimator.train(table, checkpoint=training_of(output), listener=view, **given)
            trained.save(output)
    except KeyboardInterrupt:
        told = f"\nstopped, and nothing was written: {model} is unchanged"
        console.print(told, style="yellow", soft_wrap=True)
        return 130
    remove_checkpoints(output)
    entry = trained.report["more_training"][-1]
    for name, part in (("rows", entry), ("text", entry.get("text", {}))):
        if "after" in part:
            console.print(f"{name}: {_told(part)}", soft_wrap=True)
    console.print(f"error bars: {show.error_bars(trained.info()['interval'])}", soft_wrap=True)
    console.print(f"wrote {output} ({show.size(output.stat().st_size)}){kept_training(output)}", soft_wrap=True)
    if entry["interrupted"]:
        console.print("stopped early: the file holds the best model so far; the same command trains on", style="yellow")
        return 130
    require_whole(trained.report, output, table_words(table))
    return 0


@contextmanager
def _training_beside(model: Path, output: Path) -> Iterator[None]:
    """Put what training of ``model`` goes on from beside ``output``, and take it away if nothing comes of it.

    That is what the fit has kept, or the checkpoint of a fit that was stopped.
    """
    copied = []
    try:
        for name in (COLUMNS, TEXT):
            target = of_network(training_of(output), name)
            for place in (checkpoint_of(model), training_of(model)):
                source = of_network(place, name)
                if source != target and source.exists():
                    shutil.copyfile(source, target)
                    copied.append(target)
                    break
        yield
    except BaseException:
        for target in copied:
            target.unlink(missing_ok=True)
        raise


def _told(part: dict[str, Any]) -> str:
    """How long a network was trained, and what came of it."""
    before, after = part["before"], part["after"]
    bits = "masked_bits" if after["masked_bits"] is not None else "train_bits"
    which = "validation" if bits == "masked_bits" else "training rows"
    trained = f"{show.plural(part['epochs'], 'more epoch')} in {show.duration(part['seconds'])}"
    return f"{trained}; {which}: {before[bits]:.2f} bits/{part['unit']}, now {after[bits]:.2f}"
