"""Terminal display of a fit, for ``fit`` and ``demo``: stages, live progress, and what happens when it is stopped."""

from __future__ import annotations

import math
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from countless.cli.model_files.files_beside import (
    checkpoints_left,
    codes_of,
    keep_training,
    remove_checkpoints,
    training_of,
)
from countless.cli.model_files.longer_training import table_words
from countless.cli.parameters.settings import command_with_csv, with_csv_flags
from countless.cli.terminal.display import (
    CommandConsole,
    characters,
    duration,
    plural,
    validation,
    workload_summary,
)
from countless.cli.terminal.fit_summary import print_summary, time_spent
from countless.data.columns.schema import Schema
from countless.data.encoding.code_files import is_codes, remove, remove_spills
from countless.data.encoding.table import EXCLUDED
from countless.data.progress import ScanProgress
from countless.errors import ModelFileError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.backends import checkpoint_of as of_network
from countless.estimator.fitting.fit import fit_with_options
from countless.estimator.fitting.learning import Listener
from countless.estimator.fitting.stage_times import OPENING
from countless.estimator.fitting.time_budget import DEFAULT_BUDGET
from countless.options import FitOptions
from countless.store import COLUMNS, TEXT, is_model
from countless.workload import WorkloadColumns

if TYPE_CHECKING:
    from countless.train.loop import Progress as TrainProgress

STOPPING = (
    "Ctrl-C: training stops; its error bars and the model file come next. A second Ctrl-C ends without a model file"
)
INTERRUPTED, TERMINATED = 130, 143  # exit codes
AFTER_TRAINING = ("calibrating",)  # stages
CSV_FLAG = "--csv "
MANY_CUT = 0.05  # a larger share of strings that are cut is worth a warning
LINE_SECONDS, EVENT_SECONDS = 10.0, 1.0  # without a terminal: at most one line, or JSON event, in this time
TRAINING_FACTS = ("epoch", "loss", "train_bits", "masked_bits", "unmasked_bits", "rows_per_second", "seconds_left")


class FitView(Listener):
    """Shows a fit on ``console``: with a bar on a terminal, otherwise with a line every few seconds.

    The budget ends at ``ends``, by ``time.monotonic``. ``how_it_starts`` is printed when the options are checked.
    """

    def __init__(
        self,
        console: CommandConsole,
        on_training: Callable[[], None] = lambda: None,
        ends: float = math.inf,
        how_it_starts: str = "",
    ) -> None:
        self.console, self._ends, self._how_it_starts = console, ends, how_it_starts
        self._on_training = on_training
        self.last = OPENING
        self.trained = False
        self.csv_command = ""  # this command with the CSV options that were advised; repeated at the end
        self._csv_notices: list[str] = []
        self._text_left, self._fraction = False, 1.0
        self._last_line = 0.0
        self._stage_began = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> FitView:
        if self.console.shows_bars:
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
        if self._how_it_starts:
            self.console.print(self._how_it_starts, soft_wrap=True)
            self._how_it_starts = ""
        if self._csv_notices and not self.csv_command:
            self.csv_command = command_with_csv(self._csv_notices)
            self.console.print(f"if this is so, press Ctrl-C and run: {self.csv_command}", soft_wrap=True)
        self._begin(name)

    def _begin(self, name: str) -> None:
        self.last = name.removeprefix("stopped early, ")
        self._stage_began = time.monotonic()
        if name.startswith("training") and not self.trained:
            self.trained = True
            self._on_training()
        self._text_left &= not name.startswith("training on the text")
        if self.console.as_json:
            self.console.event("stage", name=name)
            return
        if self._bar is None:
            self.console.print(f"{name} ...")
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(name, total=1.0, text="")

    @property
    def more_to_train(self) -> bool:
        """Whether training was stopped, or there is text still to be learned."""
        return self._fraction < 1.0 or self._text_left

    def loading(self, done: int, expected: int | None) -> None:
        if not done:
            self._begin("reading from PostgreSQL")  # before the options are checked
        is_plausible = expected is not None and expected >= done
        text = f"{plural(done, 'row')}{f' of about {expected:,}' if is_plausible else ''}"
        self._show(done / expected if is_plausible and expected else 0.0, text, text if done else None)

    def table(self, schema: Schema) -> None:
        self._text_left = bool(schema.texts)
        columns = plural(len(schema.columns), "column" if schema.coded or not schema.texts else "text column")
        texts = f", {len(schema.texts)} of them text" if schema.coded and schema.texts else ""
        self.console.print(f"{plural(schema.rows, 'row')}, {columns}{texts}")
        for text in schema.texts:
            self.console.print(f"{text.name} is text: {characters(text)}", soft_wrap=True)
            if text.cut > MANY_CUT * schema.rows:
                hint = f"{text.cut / schema.rows:.0%} of the strings are longer, and the model only guesses the rest"
                self.console.print(f"{hint}: give a larger --max-length", style="yellow", soft_wrap=True)
        for column in schema.left_out:
            if column.reason == EXCLUDED:
                continue
            self.console.print(f"left out {column.name}: {column.reason}", style="yellow", soft_wrap=True)

    def notice(self, message: str) -> None:
        text = with_csv_flags(message)
        if CSV_FLAG in text:
            self._csv_notices.append(message)
        self.console.print(text, style="yellow", soft_wrap=True)

    def workload(self, asked: WorkloadColumns) -> None:
        self.console.print(f"workload: {workload_summary(asked.queries, len(asked.sets))}")
        if asked.passed_over:
            passed_over = plural(asked.passed_over, "clause")
            hint = f"skipped {passed_over} of the workload: they have no filter, or only filters on text"
            self.console.print(hint, style="yellow", soft_wrap=True)

    def training(self, progress: TrainProgress) -> None:
        self._fraction = progress.fraction
        if progress.stopping:
            self.console.print(STOPPING, soft_wrap=True)
            return
        epochs = f"/{progress.epochs}" if progress.epochs else ""
        measured = validation(progress.unit, progress.train_bits, progress.masked_bits, progress.unmasked_bits)
        text = (
            f"epoch {progress.epoch}{epochs}  loss {progress.loss:.2f}  {measured + '  ' if measured else ''}"
            f"{progress.rows_per_second:,.0f} rows/s  {duration(progress.seconds_left)} left"
        )
        fields = {name: getattr(progress, name) for name in TRAINING_FACTS}
        self._show(progress.fraction, text, f"{100 * progress.fraction:3.0f}%  {text}", **fields)

    def reading(self, reading: ScanProgress) -> None:
        speed = "" if reading.rows_per_second is None else f"{reading.rows_per_second:,.0f} rows/s  "
        text = "" if reading.seconds_left is None else f"{speed}{duration(reading.seconds_left)} left"
        self._show(reading.fraction, text, f"{100 * reading.fraction:3.0f}%  {text}" if text else None)

    def calibrating(self, done: int, total: int) -> None:
        text = f"{done:,}/{total:,} queries"
        if done:
            now = time.monotonic()
            seconds_left = min((now - self._stage_began) * (total - done) / done, max(0.0, self._ends - now))
            text += f"  at most {duration(seconds_left)} left" if seconds_left >= 1 else ""
        self._show(done / total, text, text)

    def _show(self, fraction: float, text: str, line: str | None, **fields: Any) -> None:
        due = time.monotonic() - self._last_line
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=fraction, text=text)
        elif self.console.as_json and (due > EVENT_SECONDS or fraction >= 1.0):
            self._last_line = time.monotonic()
            self.console.event("progress", stage=self.last, fraction=round(fraction, 4), **fields)
        elif line is not None and (due > LINE_SECONDS or fraction >= 1.0):
            self._last_line = time.monotonic()
            self.console.print(line, soft_wrap=True)


def fit_and_save(
    console: CommandConsole,
    source: Any,
    output: Path,
    options: FitOptions,
    *,
    how_it_starts: str = "",
    beside: Path | None = None,
    on_training: Callable[[], None] = lambda: None,
    report_fields: Mapping[str, Any] | None = None,
    keep: bool | None = False,
    began: float | None = None,
) -> Estimator:
    """Fit ``source``, shown on ``console``, and write ``output``. ``how_it_starts`` is about an earlier fit.

    The checkpoint and the folder of codes are ``beside`` it, unless the options name other paths; they stay only if the
    fit was stopped. ``on_training`` is called when training begins. ``report_fields`` are added to the report. With
    ``keep``, the files for :meth:`.Estimator.train` are kept beside ``output``; None keeps them unless they are large.
    The budget counts from ``began``, by default from now.
    """
    began = time.monotonic() if began is None else began
    require_writable(output)
    beside = beside or output
    codes = codes_of(beside)
    remove_spills(codes)
    training = options.training
    budget = DEFAULT_BUDGET if training.budget is None and training.epochs is None else training.budget
    view = FitView(console, on_training, math.inf if budget is None else began + budget, how_it_starts)
    with _termination_as_interrupt() as signals:
        try:
            with view:
                estimator = fit_with_options(source, options, view, began)
            estimator.report.update(report_fields or {})
            _save(estimator, output, beside)
        except KeyboardInterrupt:
            how = "terminated" if signals else "interrupted"
            console.print(_stopped(how, view, beside, options.resources.resume), style="yellow", soft_wrap=True)
            raise click.exceptions.Exit(TERMINATED if signals else INTERRUPTED) from None
    for old in (of_network(training_of(output), name) for name in (COLUMNS, TEXT)):
        old.unlink(missing_ok=True)
    if not estimator.report["interrupted"]:
        keep_training(console, beside, output, keep)
        remove_checkpoints(beside)
        if is_codes(codes):
            remove(codes)
    reading = options.reading
    table = ["TABLE"]
    if isinstance(source, str | Path):
        table = table_words(str(source), reading.table, reading.query)  # the model keeps the options of --csv
    print_summary(console, estimator, output, table, options.training.workload)
    console.print(time_spent(estimator.report["stages"], time.monotonic() - began, budget))
    if view.csv_command:
        console.print(f"columns were perhaps read wrongly, see above; if so, run: {view.csv_command}", soft_wrap=True)
    return estimator


def _save(estimator: Estimator, output: Path, beside: Path) -> None:
    """Write the model; if that fails, say where the training is kept."""
    try:
        estimator.save(output)
    except ModelFileError as error:
        if not (checkpoints := checkpoints_left(beside)):
            raise
        hint = f"the training is kept in {' and '.join(map(str, checkpoints))}"
        raise ModelFileError(f"{error}; {hint}: then add --resume, which needs only a moment") from None


@contextmanager
def _termination_as_interrupt() -> Iterator[list[int]]:
    """Inside this block SIGTERM acts as two Ctrl-Cs: save a checkpoint, then end. The list receives the signal."""
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for _ in range(2):
            handler = signal.getsignal(signal.SIGINT)
            (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    previous = signal.signal(signal.SIGTERM, handle)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, previous)


def _stopped(how: str, view: FitView, beside: Path, resumed: bool) -> str:
    """A message about a fit that was stopped, and what --resume does."""
    leftovers = [codes_of(beside)] if is_codes(codes_of(beside)) else []
    if view.trained or resumed:
        leftovers = [*checkpoints_left(beside), *leftovers]
    if not leftovers:
        return f"{how} while {view.last}: nothing was kept yet, so the same command starts again"
    hint = f"what is done is kept in {' and '.join(map(str, leftovers))}; add --resume to continue"
    if not view.last.startswith(AFTER_TRAINING):
        return f"{how} while {view.last}: {hint}"
    if view.more_to_train:
        return f"{how} while {view.last}, which comes after training: {hint}"
    return f"{how} while {view.last}, after training was finished: {hint}, which needs only a moment"


def require_writable(output: Path) -> None:
    """Raise an error before any work if the model file cannot be written, or if another file would be replaced."""
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
