"""What ``train``, ``update`` and ``calibrate`` share: they load a model file, and write a new model in its place."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from countless.cli.model_files.locking import hold
from countless.cli.terminal import display as show
from countless.cli.terminal.fit_progress import FitView, require_writable
from countless.data.sources.csv_files import CsvFile
from countless.data.sources.file_formats import with_default_options
from countless.data.sources.source import require_file
from countless.errors import TrainingError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.salvage import CALIBRATION, missing_parts

output_option = click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The model file to write  [default: MODEL is replaced]"
)


def rewritten(
    command: str,
    model: Path,
    output: Path,
    table: str | CsvFile,
    make: Callable[[Estimator, FitView], Estimator],
    beside: AbstractContextManager[None] | None = None,
) -> Estimator:
    """Load ``model``, make a new one of it with ``make``, and write it to ``output``.

    Ctrl-C leaves the old file unchanged. ``beside`` provides files that ``make`` needs beside the output.
    """
    require_writable(output)
    hold(command, output)
    console = show.progress()
    estimator = Estimator.load(model)
    require_file(with_default_options(table, estimator.schema.csv))
    try:
        with beside or nullcontext(), FitView(console) as view:
            result = make(estimator, view)
            result.save(output)
    except KeyboardInterrupt:
        console.print(f"\nstopped, and nothing was written: {model} is unchanged", style="yellow", soft_wrap=True)
        raise click.exceptions.Exit(130) from None
    return result


def summarize_written(estimator: Estimator, output: Path, lines: Sequence[str] = (), more: str = "") -> None:
    """Print ``lines``, how wide the error bars are, and what was written; ``more`` follows."""
    console = show.progress()
    bars = f"error bars: {show.error_bars(estimator.info()['interval'])}"
    for line in (*lines, bars, f"wrote {output} ({show.size(output.stat().st_size)}){more}"):
        console.print(line, soft_wrap=True)


def require_whole(report: dict[str, Any], model: Path, table: Sequence[str]) -> None:
    """Raise an error if a model was written without error bars; it names the command that adds them.

    Raises:
        TrainingError: the model could not be calibrated.
    """
    missing = missing_parts(report)
    if CALIBRATION in missing:
        command = shlex.join(["countless", "calibrate", str(model), *table])
        problem = f"{model} is written, but it could not be calibrated ({missing[CALIBRATION]})"
        raise TrainingError(f"{problem}: until then, error bars reach from 0 to all rows. To calibrate it: {command}")
