"""The figures as Markdown, written into a page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from countless.errors import DataError
from countless.human_format import duration, factor, number, size
from countless.sheet import Sheet
from countless_lab.scaling.picture import METHODS
from countless_lab.scaling.report import QUANTILES, SAMPLE_METHODS
from countless_lab.scoreboard.page import replace_figures

BEGIN, END = "<!-- scaling figures: made by benchmarks/scale.py -->", "<!-- end of scaling figures -->"
EXACT = ("DuckDB in memory", "DuckDB on Parquet", "scan of codes")

Report = dict[str, Any]


def write_figures(report: Report, page: Path, picture: Path) -> None:
    """Replace the figures of a page, and link the picture if there is one."""

    def figures() -> str:
        blocks = [figures_text(report)]
        if picture.is_file():
            title = "Milliseconds and megabytes against the rows of the table, a line for each method"
            blocks.append(f"![{title}]({os.path.relpath(picture, page.parent)})")
        return "\n\n".join(blocks)

    replace_figures(page, BEGIN, END, figures)


def figures_text(report: Report) -> str:
    """All figures of the largest part, and a sheet of all parts."""
    if not report["parts"]:
        raise DataError("no part of the table is measured yet: run the steps first")
    largest = max(report["parts"], key=lambda part: int(part["rows"]))
    sheets = [fit_sheet(largest), size_sheet(largest), accuracy_sheet(largest), time_sheet(largest)]
    if len(report["parts"]) > 1:
        sheets.append(parts_sheet(report["parts"]))
    machine = report["machine"]
    introduction = (
        f"Measured on {report['date']}, {machine['cores']} cores, {size(machine['memory_bytes'])} of memory, DuckDB "
        f"{machine['duckdb']}. {report['questions']['per_kind']} questions of each kind; exact counts are timed for "
        f"{report['questions']['timed_per_kind']} of each kind."
    )
    return "\n\n".join([introduction, *(sheet.markdown() for sheet in sheets)])


def fit_sheet(part: Report) -> Sheet:
    """The stages of the fit."""
    fit = part["fit"]
    rows = [
        (stage["name"], duration(stage["seconds"]), duration(stage["cpu_seconds"]))
        for stage in fit["stages"]
        if stage["seconds"] >= 1
    ]
    peak = (f"Peak memory: {size(fit['fit_peak_bytes'])}.",) if "fit_peak_bytes" in fit else ()
    rows.append(("all", duration(fit["seconds"]), duration(fit["cpu_seconds"])))
    title = f"A fit of {part['rows']:,} rows"
    return Sheet(title, ("stage, if longer than a second", "time", "processor time"), tuple(rows), notes=peak)


def size_sheet(part: Report) -> Sheet:
    """The bytes that each method stores, and the memory of a process that answers."""
    rows = []
    for method, (label, _) in METHODS.items():
        figures = part["methods"].get(method)
        if figures is not None:
            memory, rows_kept = figures.get("resident_bytes"), figures.get("rows")
            label = label if rows_kept is None else f"{label} ({rows_kept:,} rows)"
            rows.append((label, size(figures["bytes"]), size(memory) if memory else ""))
    return Sheet("Bytes", ("method", "file, or data in memory", "memory of the process"), tuple(rows))


def accuracy_sheet(part: Report) -> Sheet:
    """q-errors by class and by kind of question, beside two samples."""
    methods = part["methods"]
    rows = [_accuracy(methods, "classes", name, f"all: {name}") for name in methods["countless"]["classes"]]
    rows += [_accuracy(methods, "kinds", name, name) for name in methods["countless"]["kinds"]]
    behind = "; ".join(part["behind_samples"]) or "none"
    return Sheet(
        "q-error p50 / p95 / p99",
        ("questions", "Countless", "90% hold", *(METHODS[name][0] for name in SAMPLE_METHODS)),
        tuple(rows),
        notes=(
            "Each group of a GROUP BY counts as one answer.",
            f"Where the better of the two samples is nearer (its q-error in brackets): {behind}.",
        ),
    )


def _accuracy(methods: Report, by: str, name: str, label: str) -> tuple[str, ...]:
    figures = methods["countless"][by][name]
    sample_errors = (_errors(methods[sample][by].get(name)) if sample in methods else "" for sample in SAMPLE_METHODS)
    return label, _errors(figures), f"{figures['coverage']:.0%}", *sample_errors


def _errors(figures: Report | None) -> str:
    return "" if figures is None else " / ".join(factor(figures["q_error"][quantile]) for quantile in QUANTILES)


def time_sheet(part: Report) -> Sheet:
    """Milliseconds of one thread by class of question."""
    methods, rows = part["methods"], []
    for name, model in methods["countless"]["classes"].items():
        fields = [number(model["latency_ms"]["p50"]), number(model["latency_ms"]["p99"])]
        for method in (*SAMPLE_METHODS, *EXACT):
            figures = methods.get(method, {"classes": {}})["classes"].get(name)
            fields.append("" if figures is None else number(figures["latency_ms"]["p50"]))
        ratio = methods.get(EXACT[0], {}).get("time_ratio", {}).get(name)
        rows.append((name, *fields, "" if ratio is None else f"{ratio:,.0f}x"))
    headings = ("questions", "Countless p50", "p99", *(METHODS[name][0] for name in (*SAMPLE_METHODS, *EXACT)))
    note = "The last column compares the same questions."
    title = "Milliseconds of one processor"
    return Sheet(title, (*headings, "DuckDB in memory / Countless"), tuple(rows), notes=(note,))


def parts_sheet(parts: list[Report]) -> Sheet:
    """How time and bytes grow with the table."""
    rows = []
    for part in sorted(parts, key=lambda part: int(part["rows"])):
        model, ratio = part["methods"]["countless"], part["methods"].get(EXACT[0], {}).get("time_ratio", {})
        classes = model["classes"]
        rows.append(
            (
                f"{part['rows']:,}",
                duration(part["fit"]["seconds"]),
                size(model["bytes"]),
                size(part["parquet_bytes"]),
                *(_errors(figures) for figures in classes.values()),
                *(f"{ratio[name]:,.1f}x" if name in ratio else "" for name in classes),
            )
        )
    classes = parts[0]["methods"]["countless"]["classes"]
    headings = ("rows", "fit", "model", "Parquet", *(f"q-error, {name}" for name in classes))
    headings += tuple(f"times as fast as DuckDB in memory, {name}" for name in classes)
    return Sheet("Parts of the table", headings, tuple(rows))
