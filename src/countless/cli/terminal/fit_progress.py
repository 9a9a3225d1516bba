"""Terminal display of a fit, for ``fit`` and ``demo``: stages, live progress and a summary."""

from __future__ import annotations

import math
import shlex
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    kept_training,
    remove_checkpoints,
    training_of,
)
from countless.cli.model_files.longer_training import longer_training, more_evidence, short_training, table_words
from countless.cli.parameters.settings import command_with_csv, with_csv_flags
from countless.cli.terminal.display import (
    CommandConsole,
    characters,
    columns_table,
    duration,
    error_bars,
    known_values,
    plural,
    size,
    trained,
    validation,
    wide_intervals,
    workload_summary,
)
from countless.data.columns.schema import Schema
from countless.data.encoding.available_memory import peak_memory
from countless.data.encoding.code_files import is_codes, remove, remove_spills
from countless.data.encoding.table import EXCLUDED
from countless.data.progress import ScanProgress
from countless.errors import ModelFileError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.backends import checkpoint_of as of_network
from countless.estimator.fitting.calibrating import ENOUGH_QUERIES, QUESTIONS
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
KINDS_OF_STAGES = (
    ("counting pairs", "counting"),
    ("counting substrings", "counting"),
    ("training", "training"),
    ("calibrating", "error bars"),
)
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
    _summarize(console, estimator, output, table, options.training.workload)
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


def _summarize(console: CommandConsole, estimator: Estimator, path: Path, source: Sequence[str], workload: Any) -> None:
    """Print how each column is stored, what was left out, and how good and how large the model is."""
    console.print(columns_table(estimator.schema))
    excluded = [column.name for column in estimator.schema.left_out if column.reason == EXCLUDED]
    if excluded:
        console.print(f"excluded: {', '.join(excluded)}", soft_wrap=True)
    for left_out in estimator.schema.left_out:
        if left_out.reason != EXCLUDED:
            console.print(f"left out: {left_out.name}, because {left_out.reason}", style="yellow", soft_wrap=True)
    report = estimator.report
    if estimator.schema.coded:
        console.print(trained(report), soft_wrap=True)
    if "text" in report:
        console.print(f"text of {', '.join(report['text']['columns'])}: {trained(report['text'])}", soft_wrap=True)
    # After Ctrl-C the remedy is --resume.
    for warning in [] if report["interrupted"] else _remedies(estimator, path, source, workload):
        console.print(warning, style="yellow", soft_wrap=True)
    for text in estimator.info()["texts"]:
        if text["summary"] and "sampled_rows" in text["summary"]:
            console.print(
                f"substrings of {text['name']}: estimated from {text['summary']['sampled_rows']:,} random rows, since "
                "there was no time to count all"
            )
    if estimator.schema.coded and report["options"]["masking"] == "none":
        hint = "the model was trained without masking, so it cannot skip columns: ask it with --method progressive"
        console.print(hint, style="yellow", soft_wrap=True)
    if _holds_every_row(estimator):
        console.print("counts are exact: the file holds all rows of the table")
    else:
        console.print(f"error bars: {error_bars(estimator.info()['interval'])}", soft_wrap=True)
    if "on_disk" in report:
        needed, memory = size(report["on_disk"]["bytes"]), size(report["on_disk"]["memory"])
        console.print(f"the encoded table was kept on disk: it would take {needed} of {memory} of memory")
    console.print(f"peak memory {size(peak_memory())}")
    console.print(f"wrote {path} ({size(path.stat().st_size)})", soft_wrap=True)
    console.print(f"it holds {_holds(estimator)}{kept_training(path)}", soft_wrap=True)


def _remedies(estimator: Estimator, path: Path, source: Sequence[str], workload: Any) -> list[str]:
    """What to do about a model that was trained too little, or whose error bars are wide."""
    if _holds_every_row(estimator):
        return []
    hints = short_training(estimator, path, source, workload)
    if few := few_questions(estimator.report, path, source):
        hints.append(few)
    wide = wide_intervals(estimator.info()["interval"])
    if hints or wide is None:
        return hints
    more = more_evidence(estimator.rows, (estimator.info()["evidence"] or {"rows": 0})["rows"])
    return [f"{wide}: fit with {more}, or train longer with {longer_training(path, source, workload)}"]


def few_questions(report: Mapping[str, Any], path: Path, source: Sequence[str]) -> str:
    """The warning that error bars were made from few questions, with the command that asks all of them.

    >>> report = {QUESTIONS: {"asked": 114, "planned": 2000}}
    >>> few_questions(report, Path("m.countless"), ["a.csv"]).split("; ")
    ['error bars rest on 114 of 2,000 planned questions', 'ask them all: countless calibrate m.countless a.csv']
    """
    asked, planned = (report.get(QUESTIONS, {}).get(name, 0) for name in ("asked", "planned"))
    if asked >= min(planned, ENOUGH_QUERIES):
        return ""
    command = shlex.join(["countless", "calibrate", str(path), *source])
    return f"error bars rest on {asked:,} of {planned:,} planned questions; ask them all: {command}"


def time_spent(stages: Sequence[Mapping[str, Any]], total: float, budget: float | None) -> str:
    """How long a fit and its stages took.

    >>> stages = [{"name": "encoding rows", "seconds": 4.0}, {"name": "counting pairs of columns", "seconds": 2.0}]
    >>> time_spent([*stages, {"name": "training", "seconds": 40.0}], 47.2, 60.0)
    'took 47s (budget 1m00s): reading 4s, counting 2s, training 40s, starting and writing 1s'
    >>> time_spent(stages, 6.4, None)
    'took 6s: reading 4s, counting 2s'
    """
    seconds: dict[str, float] = {}
    for stage in stages:
        name = next((kind for sign, kind in KINDS_OF_STAGES if sign in stage["name"]), "reading")
        seconds[name] = seconds.get(name, 0.0) + stage["seconds"]
    seconds["starting and writing"] = total - sum(seconds.values())
    spent_on = ", ".join(f"{name} {duration(spent)}" for name, spent in seconds.items() if spent >= 1.0)
    of = "" if budget is None else f" (budget {duration(budget)})"
    return f"took {duration(total)}{of}{': ' if spent_on else ''}{spent_on}"


def _holds_every_row(estimator: Estimator) -> bool:
    """Whether the evidence rows are all rows of the table."""
    evidence = estimator.info()["evidence"]
    return bool(evidence) and evidence["rows"] == estimator.rows


def _holds(estimator: Estimator) -> str:
    """Which values of the table the file holds."""
    schema, evidence = estimator.schema, estimator.info()["evidence"]
    holds = "every distinct value of the fitted columns"
    network = " and the weights of a network" if "text" in estimator.report else ""
    text = f"frequent pieces of text{network}" if schema.texts else ""
    less = [part for part in (known_values(schema.coded), text) if part]
    if less:
        holds += f". Exceptions: it holds only {', and only '.join(less)}"
    if not evidence:
        return holds
    rows = f"{plural(evidence['rows'], 'row')} of the table as they are"
    return f"{rows}{', text included' if schema.texts else ''} ({size(evidence['bytes'])}), and {holds}"
