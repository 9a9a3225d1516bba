"""When a model is worth it: a large table, counted by its model, by DuckDB, by a scan of codes and by samples.

.venv/bin/python benchmarks/scale.py TABLE.parquet --work FOLDER [--model MODEL.countless] [--sweep] [-o FOLDER]

Questions are drawn as people ask: filters on columns, LIKE in all forms, both together, and GROUP BY. The model and two
uniform samples (100,000 rows; as many bytes as the model file) answer all of them. DuckDB (in memory, and on Parquet)
and a scan of packed codes in C are timed for a few of each kind. All times are of one thread.

Each step is a process of its own, and its result stays in --work: run the same command after a stop, and it continues.
Without --model the table is fitted with default options. With --sweep, parts of the table (100,000, 1 million and 10
million random rows) are measured too, each with a model of its own, and the picture is drawn.

examples:
  benchmarks/scale.py debian.parquet --work work --model debian.countless --only truth,countless,samples
  benchmarks/scale.py debian.parquet --work work --model debian.countless --sweep
  benchmarks/scale.py debian.parquet --work work --model debian.countless --sweep --page docs/scaling.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from countless.data.atomic_files import json_bytes, make_folder, write_bytes
from countless.errors import CountlessError, DataError
from countless_lab.cli.sweep_display import run_sweep
from countless_lab.measurement.script import script_parser
from countless_lab.scaling.page import figures_text, write_figures
from countless_lab.scaling.picture import draw_scaling
from countless_lab.scaling.report import report
from countless_lab.scaling.steps import DrawScaleQuestions, LargeTable, ScaleStep, TablePart, part_steps

PARTS = (100_000, 1_000_000, 10_000_000)


def table_parts(options: argparse.Namespace) -> list[TablePart]:
    """The parts to measure, the whole table last."""
    if not options.table.is_file():
        raise DataError(f"there is no file {options.table}: make it with benchmarks/debian_files.py")
    file = options.table.absolute()
    table = LargeTable(file, file.stat().st_size, options.per_kind, options.timed_per_kind)
    fit_options = tuple(options.fit_options.split())
    smaller = options.parts if options.sweep else ()
    parts = [TablePart(table, rows, fit_options=fit_options) for rows in smaller]
    if options.no_whole:
        return parts
    model, version = options.model, ""
    if model is not None:
        if not model.is_file():
            raise DataError(f"there is no model {model}")
        model, status = model.resolve(), model.stat()
        version = f"{status.st_size} {status.st_mtime_ns}"
    return [*parts, TablePart(table, None, model, version, fit_options if model is None else ())]


def chosen_steps(parts: Sequence[TablePart], only: Sequence[str]) -> list[ScaleStep]:
    """All steps, or those with these names and what they need."""
    steps: dict[str, ScaleStep] = {DrawScaleQuestions(parts[0]).name: DrawScaleQuestions(parts[0])}
    steps |= {step.name: step for part in parts for step in part_steps(part)}
    if not only:
        return list(steps.values())
    step_names = list(dict.fromkeys(step.kind for step in steps.values()))
    if unknown := [name for name in only if name not in step_names]:
        raise DataError(f"there is no step {unknown[0]}: choose from {', '.join(step_names)}")
    needed = {name for name, step in steps.items() if step.kind in only}
    while more := {need for name in needed for need in steps[name].needs} - needed:
        needed |= more
    return [step for name, step in steps.items() if name in needed]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = script_parser(__doc__)
    parser.add_argument("table", type=Path, help="a Parquet file")
    parser.add_argument("--work", type=Path, required=True, help="folder of parts, models, questions and answers")
    parser.add_argument("--model", type=Path, help="a model of the whole table; default: fit one")
    parser.add_argument("--sweep", action="store_true", help="measure parts of the table too, and draw the picture")
    parser.add_argument(
        "--parts", type=_sizes, default=PARTS, help="rows of the parts; default: 100000,1000000,10000000"
    )
    parser.add_argument("--no-whole", action="store_true", help="with --sweep: leave the whole table out")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help="steps to run, such as truth,fit")
    parser.add_argument("--per-kind", type=int, default=50, help="questions of each kind; default: 50")
    parser.add_argument("--timed-per-kind", type=int, default=5, help="exact counts of each kind; default: 5")
    parser.add_argument("--fit-options", default="", help="options of countless fit, such as '--budget 60s'")
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/results/scaling"), help="folder of the results")
    parser.add_argument("--page", type=Path, help="a Markdown page whose figures to renew")
    options = parser.parse_args(arguments)
    if options.no_whole and not options.sweep:
        parser.error("--no-whole needs --sweep")
    return options


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(","))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing and write the results; return the exit code."""
    options = _parse(arguments)
    try:
        parts = table_parts(options)
        make_folder(options.work)
        make_folder(options.out)
        outcome = run_sweep(chosen_steps(parts, options.only), options.work.resolve(), alone=True)
        record = report(parts, options.work.resolve())
        write_bytes(options.out / f"{options.table.stem}.json", json_bytes(record))
        sys.stdout.write(figures_text(record) + "\n")
        picture = options.out / f"{options.table.stem}.png"
        if options.sweep:
            write_bytes(picture, draw_scaling(record["parts"]))
        if options.page is not None:
            write_figures(record, options.page, picture)
    except CountlessError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 1 if outcome.failed else 0


if __name__ == "__main__":
    sys.exit(main())
