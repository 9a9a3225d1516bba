"""The ``countless train`` command: train a finished model longer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from countless.cli.model_files.files_beside import checkpoint_of, kept_training, remove_checkpoints, training_of
from countless.cli.model_files.longer_training import table_words
from countless.cli.model_files.rewriting import output_option, require_whole, rewritten, summarize_written
from countless.cli.parameters.options import model_argument, table_argument
from countless.cli.parameters.settings import GroupedCommand, options_from
from countless.cli.terminal import display as show
from countless.data.sources.csv_files import CsvFile
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
@output_option
@options_from(MoreTrainingOptions)
def train(model: Path, table: str | CsvFile, output: Path | None, **options: Any) -> int:
    """Train a finished MODEL further, on the table that it was fitted on.

    TABLE is that table, as countless fit takes one. The table of a database follows the database after two colons. A
    table that has changed is an error. Error bars are measured again. The model does not get worse: weights that do not
    improve are not kept.

    countless fit keeps the weights in full precision and the state of the optimizer in MODEL.training. Without that
    file, training starts from the weights in MODEL. The old file is replaced only when the new one is complete. Ctrl-C
    stops training after the current step and keeps the best weights so far; at any other time it leaves the old file
    unchanged.
    """
    target = output or model
    beside = _training_beside(model, target)
    trained = rewritten(
        "train",
        model,
        target,
        table,
        lambda old, view: old.train(table, checkpoint=training_of(target), listener=view, **options),
        beside,
    )
    remove_checkpoints(target)
    entry = trained.report["more_training"][-1]
    networks = (("rows", entry), ("text", entry.get("text", {})))
    lines = [f"{name}: {_summary(part)}" for name, part in networks if "after" in part]
    summarize_written(trained, target, lines, kept_training(target))
    if entry["interrupted"]:
        early = "stopped early: the file holds the best model so far; the same command trains on"
        show.progress().print(early, style="yellow")
        return 130
    require_whole(trained.report, target, table_words(table, kept=trained.schema.csv))
    return 0


@contextmanager
def _training_beside(model: Path, output: Path) -> Iterator[None]:
    """Copy the training state of ``model``, or its checkpoint, beside ``output``; remove the copy after an error."""
    copied = []
    try:
        for name in (COLUMNS, TEXT):
            target = of_network(training_of(output), name)
            for path in (checkpoint_of(model), training_of(model)):
                source = of_network(path, name)
                if source != target and source.exists():
                    shutil.copyfile(source, target)
                    copied.append(target)
                    break
        yield
    except BaseException:
        for target in copied:
            target.unlink(missing_ok=True)
        raise


def _summary(part: dict[str, Any]) -> str:
    """How long a network was trained, and its bits before and after."""
    before, after = part["before"], part["after"]
    bits = "masked_bits" if after["masked_bits"] is not None else "train_bits"
    rows = "validation" if bits == "masked_bits" else "training rows"
    trained = f"{show.plural(part['epochs'], 'more epoch')} in {show.duration(part['seconds'])}"
    return f"{trained}; {rows}: {before[bits]:.2f} bits/{part['unit']}, now {after[bits]:.2f}"
