"""The files beside a model file: checkpoints and codes of a stopped fit, and the state for further training."""

from __future__ import annotations

import glob
from pathlib import Path

from rich.console import Console

from countless.cli.terminal.display import size
from countless.data.encoding.code_files import PARTIAL
from countless.errors import TrainingError
from countless.estimator.fitting.backends import checkpoint_of as of_network
from countless.store import COLUMNS, TEXT

MOST_KEPT = 250_000_000  # bytes of the state for further training; a larger one is kept only on request


def checkpoint_of(output: Path) -> Path:
    """The checkpoint of a fit of ``output``."""
    return output.with_name(output.name + ".checkpoint")


def codes_of(output: Path) -> Path:
    """The folder of codes of a fit of ``output`` with limited memory."""
    return output.with_name(output.name + ".codes")


def training_of(output: Path) -> Path:
    """The file with the state for further training of ``output``."""
    return output.with_name(output.name + ".training")


def checkpoints_left(output: Path) -> list[Path]:
    """The checkpoints of a stopped fit of ``output``: of the network of columns, of that of text, or both."""
    return [path for path in checkpoint_files(output) if path.suffix != PARTIAL]


def checkpoint_files(output: Path) -> list[Path]:
    """The same, with partial checkpoints of a process that was killed."""
    return sorted(output.parent.glob(glob.escape(checkpoint_of(output).name) + "*"))


def remove_checkpoints(output: Path) -> None:
    """Remove the checkpoints of a stopped fit of ``output`` and its record, but not the codes."""
    for path in (*checkpoint_files(output), output.with_name(output.name + ".run")):
        path.unlink(missing_ok=True)


def keep_training(console: Console, beside: Path, output: Path, keep: bool | None) -> None:
    """Write the state for further training from the checkpoints of a finished fit."""
    if keep is False:
        return
    from countless.train.checkpoint import Checkpoint

    for name in (COLUMNS, TEXT):
        checkpoint, target = of_network(checkpoint_of(beside), name), of_network(training_of(output), name)
        if not checkpoint.exists():
            continue
        if keep is None and checkpoint.stat().st_size > MOST_KEPT:
            large = size(checkpoint.stat().st_size)
            console.print(f"{target.name} is not kept, since it would take {large}: --keep-training keeps it")
            continue
        try:
            Checkpoint.load(checkpoint).without_model().save(target)
        except TrainingError as error:  # the model is written
            console.print(f"{error}; countless train will start without it", style="yellow", soft_wrap=True)


def kept_training(output: Path) -> str:
    """A line about the files that further training needs, if there are any; it begins with a line break."""
    files = [of_network(training_of(output), name) for name in (COLUMNS, TEXT)]
    files = [file for file in files if file.exists()]
    if not files:
        return ""
    bytes_kept = size(sum(file.stat().st_size for file in files))
    they_are = "they are" if len(files) > 1 else "it is"
    return f"\nwrote {' and '.join(map(str, files))} ({bytes_kept}): {they_are} for countless train, and may be deleted"
