"""A fit as a person sees it: stages, live progress, and a summary. Used by ``fit`` and ``demo``."""

from __future__ import annotations

import glob
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from countless.bench.memory import peak_memory
from countless.cli.show import asked_for, characters, duration, error_bars, plural, size, storage
from countless.data.codes import is_codes, remove, remove_spills
from countless.data.progress import Reading
from countless.data.schema import Schema
from countless.data.table import EXCLUDED
from countless.errors import ModelFileError
from countless.estimator.estimator import Estimator
from countless.estimator.fit import fit
from countless.estimator.learning import Listener
from countless.store import is_model
from countless.workload import Asked

if TYPE_CHECKING:
    from countless.train.loop import Progress as TrainProgress

FEW_EPOCHS = 3  # a model of fewer is worth a warning
HARDLY = f"fewer than {FEW_EPOCHS} passes over the table: what columns have to do with each other is hardly learned"
AFTER_TRAINING = ("counting pairs", "counting n-grams", "calibrating")  # stages
MANY_CUT = 0.05  # so many strings that are cut are worth a warning
LINE_SECONDS = 10.0  # without a terminal: at most one line of progress in this time


class FitView(Listener):
    """Shows a fit on ``console``: a live bar on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.last = ""
        self.trained = False
        self._texts_left, self._fraction = 0, 1.0
        self._last_line = 0.0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> FitView:
        if self.console.is_terminal:
            bar = BarColumn(30 if self.console.width >= 140 else 8)
            self._bar = Progress(
                TextColumn("{task.description}"), bar, TextColumn("{task.fields[text]}"), console=self.console
            )
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def stage(self, name: str) -> None:
        self.last = name.removeprefix("stopped early, ")
        self.trained |= name.startswith("training")
        self._texts_left -= name.startswith("training on the text")
        if self._bar is None:
            self.console.print(f"{name} ...")
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(name, total=1.0, text="")

    @property
    def more_to_train(self) -> bool:
        """Whether training was stopped, or there is text still to be learned."""
        return self._fraction < 1.0 or self._texts_left > 0

    def loading(self, done: int, expected: int | None) -> None:
        if not done:
            self.stage("reading from PostgreSQL")
        known = expected is not None and expected >= done
        text = f"{plural(done, 'row')}{f' of about {expected:,}' if known else ''}"
        self._show(done / expected if known and expected else 0.0, text, text if done else None)

    def table(self, schema: Schema) -> None:
        self._texts_left = len(schema.texts)
        texts = f", {plural(len(schema.texts), 'text column')}" if schema.texts else ""
        columns = f", {plural(len(schema.columns), 'column')}" if schema.columns or not texts else ""
        self.console.print(f"{plural(schema.rows, 'row')}{columns}{texts}")
        for text in schema.texts:
            self.console.print(f"{text.name} is text: {characters(text)}", soft_wrap=True)
            if text.cut > MANY_CUT * schema.rows:
                hint = f"{text.cut / schema.rows:.0%} of the strings are cut, and what comes later is only guessed"
                self.console.print(f"{hint}: give a larger --max-length", style="yellow", soft_wrap=True)
        for column in schema.left_out:
            if column.reason == EXCLUDED:
                continue
            self.console.print(f"left out {column.name}: {column.reason}", style="yellow", soft_wrap=True)

    def workload(self, asked: Asked) -> None:
        self.console.print(f"workload: {asked_for(asked.queries, len(asked.sets))}")
        if asked.passed_over:
            passed_over = plural(asked.passed_over, "clause")
            hint = f"passed over {passed_over} of the workload: nothing is filtered, or text alone"
            self.console.print(hint, style="yellow", soft_wrap=True)

    def training(self, progress: TrainProgress) -> None:
        self._fraction = progress.fraction
        epochs = f"/{progress.epochs}" if progress.epochs else ""
        held_out = ""
        if progress.masked_bits is not None and progress.unmasked_bits is not None:
            held_out = f", held-out {progress.masked_bits:.2f} masked {progress.unmasked_bits:.2f} unmasked"
        text = (
            f"epoch {progress.epoch}{epochs}  bits/{progress.unit} {progress.train_bits:.2f}{held_out}  "
            f"{progress.rows_per_second:,.0f} rows/s  {duration(progress.seconds_left)} left"
        )
        self._show(progress.fraction, text, f"{100 * progress.fraction:3.0f}%  {text}")

    def reading(self, reading: Reading) -> None:
        speed = "" if reading.rows_per_second is None else f"{reading.rows_per_second:,.0f} rows/s  "
        text = f"{speed}{duration(reading.seconds_left)} left"
        self._show(reading.fraction, text, f"{100 * reading.fraction:3.0f}%  {text}")

    def calibrating(self, done: int, total: int) -> None:
        self._show(done / total, f"{done}/{total} queries", None)

    def _show(self, fraction: float, text: str, line: str | None) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=fraction, text=text)
        elif line is not None and (time.monotonic() - self._last_line > LINE_SECONDS or fraction >= 1.0):
            self._last_line = time.monotonic()
            self.console.print(line, soft_wrap=True)


def fit_and_save(
    console: Console, source: Any, output: Path, *, resume: bool, beside: Path | None = None, **options: Any
) -> Estimator:
    """Fit ``source``, shown on ``console``, and write ``output``.

    The checkpoint, and the folder of codes if there is one, are ``beside`` it unless they have another place, and stay
    only if the fit was stopped.
    """
    require_writable(output)
    beside = beside or output
    checkpoint, codes = checkpoint_of(beside), codes_of(beside)
    remove_spills(codes)
    view = FitView(console)
    try:
        with view:
            estimator = fit(source, checkpoint=checkpoint, codes=codes, resume=resume, listener=view, **options)
    except KeyboardInterrupt:
        told = _stopped(view, beside)
        if told is None:
            raise
        console.print(told, style="yellow", soft_wrap=True)
        raise click.exceptions.Exit(130) from None
    estimator.save(output)
    _summarize(console, estimator, output)
    if not estimator.report["interrupted"]:
        for left in checkpoints_left(beside):
            left.unlink(missing_ok=True)
        if is_codes(codes):
            remove(codes)
    return estimator


def _stopped(view: FitView, beside: Path) -> str | None:
    """Where a fit stood that was stopped, and what --resume does; None if nothing is left of it."""
    left = [codes_of(beside)] if is_codes(codes_of(beside)) else []
    if view.trained:
        left = [*checkpoints_left(beside), *left]
    if not left:
        return None
    kept = f"what is done is kept in {' and '.join(map(str, left))}; add --resume to go on"
    if not view.last.startswith(AFTER_TRAINING):
        return f"interrupted while {view.last}: {kept}"
    if view.more_to_train:
        return f"interrupted while {view.last}, which comes after training: {kept}"
    return f"interrupted while {view.last}, after training was finished: {kept}, and have the model in a moment"


def checkpoint_of(output: Path) -> Path:
    """Where training towards ``output`` keeps its state."""
    return output.with_name(output.name + ".checkpoint")


def codes_of(output: Path) -> Path:
    """Where a fit of ``output`` with limited memory keeps the table's codes."""
    return output.with_name(output.name + ".codes")


def checkpoints_left(output: Path) -> list[Path]:
    """What a stopped fit of ``output`` has left: a checkpoint of the columns' model, of text models, or both."""
    return sorted(output.parent.glob(glob.escape(checkpoint_of(output).name) + "*"))


def require_writable(output: Path) -> None:
    """Say now, not after training, that the model file cannot be written, or that something else would be lost."""
    if output.is_dir():
        raise ModelFileError(f"cannot write {output}: it is a directory; give the name of a file")
    if output.exists() and not is_model(output):
        raise ModelFileError(f"{output} exists and is not a Countless model: remove it first, or choose another -o")
    if not output.parent.is_dir():
        raise ModelFileError(f"cannot write {output}: there is no directory {output.parent}; make it first")
    try:
        tempfile.TemporaryFile(dir=output.parent).close()
    except OSError as error:
        raise ModelFileError(f"cannot write in {output.parent}: {error.strerror}; choose another -o") from None


def hardly_trained(estimator: Estimator) -> bool:
    """Whether the columns were learned in so few epochs that :data:`HARDLY` should be told."""
    return bool(estimator.schema.columns) and estimator.report.get("epochs", FEW_EPOCHS) < FEW_EPOCHS


def _summarize(console: Console, estimator: Estimator, path: Path) -> None:
    """What was fitted: every column and how it is stored, what was left out, how good, how large."""
    table = Table("column", "type", "distinct", "NULLs", "stored as", box=None, pad_edge=False, header_style="bold")
    for column in estimator.schema.columns:
        table.add_row(
            column.name,
            column.type,
            f"{column.distinct:,}",
            "yes" if column.has_null else "",
            storage(
                estimator.rows, column.size, len(column.radices), None if column.grid is None else column.grid.cells
            ),
        )
    for text in estimator.schema.texts:
        nulls = "yes" if text.has_null else ""
        table.add_row(text.name, text.type, f"{text.distinct:,}", nulls, f"text, {characters(text)}")
    console.print(table)
    excluded = [column.name for column in estimator.schema.left_out if column.reason == EXCLUDED]
    if excluded:
        console.print(f"excluded: {', '.join(excluded)}", soft_wrap=True)
    for left_out in estimator.schema.left_out:
        if left_out.reason != EXCLUDED:
            console.print(f"left out: {left_out.name}, because {left_out.reason}", style="yellow", soft_wrap=True)
    report = estimator.report
    for name, text_report in report["texts"].items():
        trained = f"{plural(text_report['epochs'], 'epoch')} in {duration(text_report['seconds'])}"
        console.print(f"text of {name}: {trained}; {_bits(text_report)}")
    if estimator.schema.columns:
        console.print(f"{plural(report['epochs'], 'epoch')} in {duration(report['seconds'])}; {_bits(report)}")
    if hardly_trained(estimator):
        console.print(f"{HARDLY}; give it more time (--epochs, --budget)", style="yellow", soft_wrap=True)
    if estimator.schema.columns and report["options"]["masking"] == "none":
        hint = "trained without masking, it cannot leave columns out of a question: ask it with --method progressive"
        console.print(hint, style="yellow", soft_wrap=True)
    console.print(f"error bars: {error_bars(estimator.info()['interval'])}", soft_wrap=True)
    console.print(f"peak memory {size(peak_memory())}")
    written = f"wrote {path} ({size(path.stat().st_size)}); {_holds(estimator)}"
    console.print(written, soft_wrap=True)


def _holds(estimator: Estimator) -> str:
    """What of the table's values the file tells."""
    schema, kept = estimator.schema, estimator.info()["kept_rows"]
    holds = "it holds every distinct value of the fitted columns"
    less = [("a grid only its knots", any(column.grid for column in schema.columns))]
    less.append(("text only what its model learned", bool(schema.texts)))
    rest = [f"of {what}" for what, so in less if so]
    holds = f"{holds}, but {' and '.join(rest)}" if rest else holds
    return f"{holds}; and {plural(kept, 'row')} of the table, whole" if kept else holds


def _bits(report: dict[str, Any]) -> str:
    """How well the model knows the table's rows, and rows it has not seen."""
    text = f"bits a {report['unit']}: {report['train_bits']:.2f} on training rows"
    if report["held_out_rows"]:
        text += f", held-out {report['masked_bits']:.2f} masked {report['unmasked_bits']:.2f} unmasked"
    return text
