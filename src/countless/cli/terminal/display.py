"""Consoles and styles of the command line: one console for results, one for progress.

Neither reads markup: names of columns and files are shown as they are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from countless.data.columns.schema import Column, Schema
from countless.data.columns.strings.text import TextColumn
from countless.estimator.answers.estimate import format_rows
from countless.human_format import duration as duration
from countless.human_format import factor as factor
from countless.human_format import plural as plural
from countless.human_format import size as size

NARROWEST = 120
MAX_NAMED = 3  # columns with a grid
WARNING = "yellow"  # the style of a warning

rows = format_rows
WIDE = 5.0  # an error bar with a larger factor between its ends is hardly useful
FEW_QUESTIONS = 100  # with fewer, a share of them says little
SMALL_COUNTS = ("0-1", "1-10")  # rows: such intervals are always wide
UNCALIBRATED = (
    "from 0 to all rows where an answer is not exact: no calibration query needed one, or none was asked "
    "(countless calibrate MODEL TABLE asks some)"
)


class CommandConsole(Console):
    """A console that remembers its warnings, and raises BrokenPipeError when the pipe it writes to is closed.

    With ``only_warnings`` it prints nothing else, and with ``as_json`` each message is a line of JSON.
    """

    def __init__(self, file: TextIO, only_warnings: bool = False, as_json: bool = False) -> None:
        super().__init__(file=file, highlight=False, markup=False, emoji=False)
        self.only_warnings, self.as_json = only_warnings, as_json
        self.warnings: list[str] = []

    @property
    def shows_bars(self) -> bool:
        """Whether progress is shown as a bar that moves."""
        return self.is_terminal and not self.only_warnings and not self.as_json

    def print(self, *objects: Any, style: Any = None, **about: Any) -> None:
        """Print as rich does, or as JSON; with ``only_warnings`` print warnings alone."""
        if style == WARNING:
            self.warnings.append(" ".join(map(str, objects)))
        if self.as_json and all(isinstance(text, str) for text in objects):
            self.event("warning" if style == WARNING else "message", message=" ".join(objects))
        elif style == WARNING or not (self.only_warnings or self.as_json):
            super().print(*objects, style=style, **about)

    def event(self, kind: str, **fields: Any) -> None:
        """Write a line of JSON, if the console prints JSON."""
        if self.as_json and (kind == "warning" or not self.only_warnings):
            self.file.write(json.dumps({"event": kind, **fields}, ensure_ascii=False) + "\n")
            self.file.flush()

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def results() -> CommandConsole:
    """The console on standard output."""
    return _wide_enough(CommandConsole(sys.stdout))


def progress(only_warnings: bool = False, as_json: bool = False) -> CommandConsole:
    """The console on standard error, for progress and notices."""
    return _wide_enough(CommandConsole(sys.stderr, only_warnings, as_json))


def wrote(count: int, noun: str, path: Path) -> None:
    """Say on standard error how many rows were written to a file."""
    progress().print(f"wrote {plural(count, noun)} to {path}", soft_wrap=True)


def workload_summary(queries: int, column_sets: int) -> str:
    """The numbers of clauses and of sets of columns in a workload.

    >>> workload_summary(200, 10)
    '200 clauses about 10 sets of columns'
    """
    return f"{plural(queries, 'clause')} about {plural(column_sets, 'set')} of columns"


def validation(unit: str, train: float | None, masked: float | None, unmasked: float | None) -> str:
    """The bits per unit that a model needs for validation rows, or for training rows if there are no others.

    >>> validation("row", 38.1, 38.95, 28.59)
    'validation: 38.95 bits/row with columns masked, 28.59 without'
    >>> validation("character", 2.1, None, None), validation("character", None, None, None)
    ('training rows: 2.10 bits/character, none are held out for validation', '')
    """
    if masked is not None and unmasked is not None:
        masked_input = "columns" if unit == "row" else "text"
        return f"validation: {masked:.2f} bits/{unit} with {masked_input} masked, {unmasked:.2f} without"
    return "" if train is None else f"training rows: {train:.2f} bits/{unit}, none are held out for validation"


def trained(report: dict[str, Any]) -> str:
    """How long a model was trained, and its bits on validation rows.

    >>> trained({"epochs": 0.086114, "seconds": 3.2}), trained({"epochs": 12.34})
    ('0.086 epochs in 3s', '12.34 epochs')
    """
    bits = (report.get(name) for name in ("train_bits", "masked_bits", "unmasked_bits"))
    time = f" in {duration(report['seconds'])}" if "seconds" in report else ""
    bits_text = validation(report.get("unit", "row"), *bits)
    epochs = report.get("epochs", 0)
    epochs = epochs if epochs >= 1 else float(f"{epochs:.2g}")
    return "; ".join(filter(None, (f"{plural(epochs, 'epoch')}{time}", bits_text)))


def storage(rows: int, codes: int, digits: int, cells: int | None) -> str:
    """How a column is stored, and with what resolution.

    >>> storage(48_842, 74, 1, None), storage(181_458, 11_060, 2, None), storage(336_776, 1_024, 2, 1_024)
    ('74 codes', '11,060 codes, in 2 digits', 'grid of 1,024 cells, about 329 rows each')
    """
    if cells is not None:
        return f"grid of {plural(cells, 'cell')}, about {plural(round(rows / cells), 'row')} each"
    return plural(codes, "code") if digits == 1 else f"{codes:,} codes, in {digits} digits"


def columns_table(schema: Schema) -> Table:
    """Every column of a model, and how it is stored."""
    table = plain_table("column", "type", "distinct", "NULLs", "stored as")
    for column in schema.coded:
        cells = None if column.grid is None else column.grid.cells
        nulls = "yes" if column.has_null else ""
        stored = storage(schema.rows, column.size, len(column.radices), cells)
        table.add_row(column.name, column.type, f"{column.distinct:,}", nulls, stored)
    for text in schema.texts:
        nulls = "yes" if text.has_null else ""
        table.add_row(text.name, text.type, distinct(text), nulls, f"text, {characters(text)}")
    return table


def plain_table(*headings: str, right: Iterable[str] = ()) -> Table:
    """A table without lines. The columns of ``right`` follow the others, and are aligned right."""
    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for heading in right:
        table.add_column(heading, justify="right")
    return table


def known_values(columns: Iterable[Column]) -> str:
    """How many of their values the file holds of columns with a grid, the largest share first.

    >>> from countless.data.columns.grids.grid import Grid
    >>> grid = Grid(starts=(0,), shares=(0.0, 1.0), distinct=(3,))
    >>> known_values([Column("price", "DOUBLE", ("0.5", "2.5"), False, radices=(1,), grid=grid)])
    '2 of the 3 values of price'
    """
    grids = [column for column in columns if column.grid is not None and len(column.values) < column.distinct]
    grids.sort(key=lambda column: len(column.values) / column.distinct, reverse=True)
    lines = [
        f"{len(column.values):,} of the {column.distinct:,} values of {column.name}" for column in grids[:MAX_NAMED]
    ]
    unnamed = grids[MAX_NAMED:]
    return ", ".join([*lines, *([f"a smaller share of {plural(len(unnamed), 'more column')}"] if unnamed else [])])


def distinct(text: TextColumn) -> str:
    """How many distinct strings a text column has; an estimate has three digits.

    >>> distinct(TextColumn("t", "VARCHAR", "abc", 100, False, 7_311_952))
    '7,311,952'
    >>> distinct(TextColumn("t", "VARCHAR", "abc", 100, False, 7_311_952, estimated=True))
    'about 7,310,000'
    """
    if not text.estimated:
        return f"{text.distinct:,}"
    return f"about {round(text.distinct, 3 - len(str(text.distinct))):,}"


def characters(text: TextColumn) -> str:
    """How many characters of a text column, and how much of each string, the model reads.

    >>> characters(TextColumn("t", "VARCHAR", "abc", 100, False, 9, (("é", 2),), (9, 9, 9), cut=3))
    '3 characters (1 rarer one as unknown), up to 100 of a string (3 strings are cut there)'
    """
    rare = f" ({plural(len(text.rare), 'rarer one')} as unknown)" if text.rare else ""
    cut = f" ({plural(text.cut, 'string')} are cut there)" if text.cut else ""
    cut = cut.replace("string are", "string is")
    return f"{plural(len(text.characters), 'character')}{rare}, up to {text.length} of a string{cut}"


def error_bars(interval: dict[str, Any]) -> str:
    """How often a model's error bars hold on its calibration queries, and how wide they are.

    >>> widths = {"0-1": None, "1-10": 3.2, "10-100": 1.5}
    >>> print(error_bars({"level": 0.9, "queries": 400, "coverage": 0.914, "width": widths}).replace("; ", "\\n"))
    91.4% of 400 calibration questions are inside their 90% error bar
    high end / low end, typically: 3.20 for counts of 1-10, 1.50 for 10-100
    >>> print(error_bars({"level": 0.9, "queries": 49, "coverage": 0.939, "width": widths}).partition(" (")[0])
    from only 49 calibration questions, too few to say how often they hold
    """
    if interval["coverage"] is None:
        return UNCALIBRATED
    widths = [f"{factor(value)} for {name}" for name, value in interval["width"].items() if value is not None]
    typical = "high end / low end, typically: " + ", ".join(widths).replace(" for ", " for counts of ", 1)
    if interval["queries"] < FEW_QUESTIONS:
        few = f"from only {plural(interval['queries'], 'calibration question')}, too few to say how often they hold"
        return f"{few} (if more were planned, countless calibrate MODEL TABLE asks all); {typical}"
    coverage = f"{interval['coverage']:.1%} of {interval['queries']:,} calibration questions are inside their"
    return f"{coverage} {interval['level']:.0%} error bar; {typical}"


def wide_intervals(interval: dict[str, Any]) -> str | None:
    """For which counts error bars are too wide to be useful; None if for none. Those of a few rows are always wide.

    >>> wide_intervals({"width": {"0-1": 9.0, "1-10": 9.0, "10-100": 9.0, "100-1000": 1.5, "1000+": 1.1}})
    'intervals are wide for counts under 100'
    >>> wide_intervals({"width": {"1-10": 9.0, "10-100": 2.0, "100-1000": None, "1000+": 12.0}})
    'intervals are wide, also for large counts'
    >>> wide_intervals({"width": {"1-10": 9.0, "10-100": 2.0}})
    """
    wide = [name for name, times in interval["width"].items() if times is not None and times > WIDE]
    upper = [name.partition("-")[2] for name in wide if name not in SMALL_COUNTS]
    if not upper:
        return None
    return (
        f"intervals are wide for counts under {int(upper[-1]):,}"
        if upper[-1]
        else ("intervals are wide, also for large counts")
    )


def _wide_enough(console: CommandConsole) -> CommandConsole:
    """The console, wide enough for tables when it is not a terminal."""
    if not console.is_terminal:
        console.width = max(console.width, NARROWEST)
    return console
