"""The scoreboard as a page: a sheet for each group of figures, with those of the previous run in brackets."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from countless.data.atomic_files import write_bytes
from countless.errors import DataError
from countless.human_format import duration, factor, size
from countless.sheet import Sheet
from countless_lab.scoreboard.history import Run, measured_tables, read_runs
from countless_lab.scoreboard.picture import draw_picture
from countless_lab.scoreboard.tables import known_tables
from countless_lab.scoreboard.texts import HOW_TO_READ, INTRODUCTION

PICTURE = "scoreboard.png"
BEGIN, END = "<!-- scoreboard: made by `make scoreboard` -->", "<!-- end of scoreboard -->"
WORKLOADS = {"paper": "the paper's kind", "people": "as people ask"}
OPPONENTS = {"sample": "sample of 100,000 rows", "same bytes": "sample of as many bytes", "scan": "C scan of codes"}
QUANTILES = ("p50", "p95", "p99", "p99.9", "max")
Figure = Callable[[float], str]


def write_page(results: Path, page: Path) -> None:
    """Write the page and its picture from the results in a folder. Of quick runs it has the history only."""
    runs, quick = _all_runs(results, "full", required=False), _all_runs(results, "quick", required=False)
    if not runs and not quick:
        raise _no_results(results)
    sections = _whole_runs(results, runs, page) if runs else ["# Scoreboard"]
    sections += ["## History", history_sheet("Whole runs", runs).markdown()]
    sections += [history_sheet("Quick runs, two seeds", quick).markdown(), HOW_TO_READ]
    write_bytes(page, ("\n\n".join(sections) + "\n").encode())


def _whole_runs(results: Path, runs: dict[str, list[Run]], page: Path) -> list[str]:
    """The sections about the newest whole run of each table."""
    write_bytes(results / PICTURE, draw_picture({name: table_runs[0] for name, table_runs in runs.items()}))
    picture = os.path.relpath(results / PICTURE, page.parent)
    newest = next(iter(runs.values()))[0]
    return [
        INTRODUCTION.format(picture=picture, machine=_machine(newest), **_scale(newest)),
        "## Fit",
        fit_sheet(runs).markdown(),
        "## File",
        file_sheet(runs).markdown(),
        "## Accuracy",
        *(accuracy_sheet(runs, workload).markdown() for workload in WORKLOADS),
        "## Speed",
        *(speed_sheet(runs, workload).markdown() for workload in WORKLOADS),
        "## By kind of question",
        *(kinds_sheet(name, table_runs).markdown() for name, table_runs in runs.items()),
    ]


def write_readme(results: Path, readme: Path) -> None:
    """Replace the table of figures in a README."""
    replace_figures(readme, BEGIN, END, lambda: readme_table(results))


def replace_figures(page: Path, begin: str, end: str, make: Callable[[], str]) -> None:
    """Replace the text between the lines ``begin`` and ``end`` of a page by what ``make`` returns."""
    text = page.read_text(encoding="utf-8")
    if begin not in text or end not in text:
        raise DataError(f"{page} has no place for the figures: put the lines {begin} and {end} where they belong")
    before, after = text.split(begin, 1)
    write_bytes(page, f"{before}{begin}\n{make()}\n{end}{after.split(end, 1)[1]}".encode())


def readme_table(results: Path) -> str:
    """The figures that a README shows."""
    rows = []
    for name, (run, *_) in _all_runs(results, "full").items():
        if not _answered(run):
            continue
        fit = next(fit for fit in run["fits"] if "people" in fit)
        rows.append(
            (
                name,
                f"{run['table']['rows']:,}",
                size(fit["bytes"]),
                _quantiles(fit["paper"]),
                _quantiles(fit["people"]),
                _quantiles(run["opponents"]["people"]["sample"]),
                f"{fit['people']['coverage']:.0%}",
                _ms(fit["people"]["latency_ms"]["p50"]),
                _ms(run["opponents"]["people"]["duckdb"]["latency_ms"]["p50"]),
            )
        )
    headings = ("table", "rows", "model", "q-error, 5-12 filters", "as people ask", "sample of 100,000 rows")
    return Sheet("", (*headings, "90% hold", "ms", "exact count, ms"), tuple(rows)).markdown().split("\n\n", 1)[1]


def fit_sheet(runs: dict[str, list[Run]]) -> Sheet:
    """The time of fits, stage by stage, and their memory."""
    stages = ("read", "encode", "train", "count", "calibrate")
    rows = []
    for name, table_runs in runs.items():
        failed = next((fit["failed"] for fit in table_runs[0]["fits"] if "failed" in fit), None)
        if failed is not None:
            rows.append((name, f"failed: {failed}", *[""] * (4 + len(stages))))
            continue
        fields = [_fits(table_runs, "seconds", _integer), _fits(table_runs, "cpu_seconds", _integer)]
        fields += [_fits(table_runs, f"stages.{stage}.seconds", _integer) for stage in stages]
        fields.append(_fits(table_runs, "fit_peak_bytes", lambda value: size(int(value))))
        fields += [_range(_at(table_runs, f"rate.{how}"), _integer) for how in ("alone", "busy")]
        rows.append((name, *fields))
    return Sheet(
        "Seconds and memory of a fit",
        ("table", "wall", "processor", *stages, "peak memory", "rows/s", "rows/s, busy machine"),
        tuple(rows),
    )


def file_sheet(runs: dict[str, list[Run]]) -> Sheet:
    """How large a model is, on disk and in memory."""
    rows = []
    for name, table_runs in runs.items():
        ratios = [
            [fit["bytes"] / run["table"]["parquet_bytes"] for fit in run["fits"] if "bytes" in fit]
            for run in table_runs[:2]
        ]
        rows.append(
            (
                name,
                f"{table_runs[0]['table']['rows']:,}",
                _fits(table_runs, "bytes", lambda value: size(int(value))),
                _range(ratios, lambda value: f"{value:.2f}"),
                _fits(table_runs, "load_ms", _integer),
                _fits(table_runs, "resident_bytes", lambda value: size(int(value))),
            )
        )
    headings = ("table", "rows", "model file", "of Parquet (zstd)", "ms to load", "memory after 1,000 questions")
    return Sheet("Bytes", headings, tuple(rows))


def accuracy_sheet(runs: dict[str, list[Run]], workload: str) -> Sheet:
    """q-errors of the model and of two samples."""
    rows = []
    for name, table_runs in runs.items():
        if not _answered(table_runs[0]):
            continue
        rows.append(
            (
                name,
                "Countless",
                *(_fits(table_runs, (workload, "q_error", quantile), factor) for quantile in QUANTILES),
                *(
                    _fits(table_runs, f"{workload}.q_error_10_rows.{percentile}", factor)
                    for percentile in ("p95", "p99")
                ),
                _fits(table_runs, f"{workload}.coverage", _percent),
                _fits(table_runs, f"{workload}.width", factor),
                _nearer(table_runs[0], workload),
            )
        )
        for method, title in (("sample", "100,000 rows"), ("same bytes", "as many bytes")):
            figures = table_runs[0]["opponents"][workload].get(method)
            if figures is not None:
                errors = [figures["q_error"][quantile] for quantile in QUANTILES]
                errors += [figures["q_error_10_rows"][quantile] for quantile in ("p95", "p99")]
                rows.append(("", f"sample of {title}", *map(_factor, errors), "", "", ""))
    return Sheet(
        f"q-errors, questions of {WORKLOADS[workload]}" if workload == "paper" else "q-errors, questions as people ask",
        ("table", "", *QUANTILES, "p95, 10+ rows", "p99", "90% hold", "width", "nearer : sample"),
        tuple(rows),
        labels=2,
    )


def speed_sheet(runs: dict[str, list[Run]], workload: str) -> Sheet:
    """Processor milliseconds of an answer, beside those of the alternatives."""
    rows = []
    for name, table_runs in runs.items():
        if not _answered(table_runs[0]):
            continue
        opponents = table_runs[0]["opponents"][workload]
        exact = opponents["duckdb"]
        rows.append(
            (
                name,
                _fits(table_runs, f"{workload}.latency_ms.p50", _ms),
                _fits(table_runs, f"{workload}.latency_ms.p99", _ms),
                _ms(exact["latency_ms"]["p50"]),
                _ms(exact["latency_ms"]["p99"]),
                "" if exact.get("time_ratio") is None else f"{_ms(exact['time_ratio'])}x",
                *(
                    _ms(opponents[opponent]["latency_ms"]["p50"]) if opponent in opponents else ""
                    for opponent in OPPONENTS
                ),
            )
        )
    return Sheet(
        f"Milliseconds of one core, questions {'of ' if workload == 'paper' else ''}{WORKLOADS[workload]}",
        ("table", "Countless p50", "p99", "DuckDB exact p50", "p99", "DuckDB / Countless", *OPPONENTS.values()),
        tuple(rows),
    )


def kinds_sheet(table: str, runs: list[Run]) -> Sheet:
    """Every kind of question that people ask of one table."""
    if not _answered(runs[0]):
        return Sheet(table, ("kind",), ())
    fit, opponents = runs[0]["fits"][0], runs[0]["opponents"]["people"]
    rows = []
    for kind, figures in fit["people"]["kinds"].items():
        sample, exact = (opponents[name]["kinds"].get(kind) for name in ("sample", "duckdb"))
        won, lost = opponents["sample"]["nearer"]["kinds"].get(kind, (0, 0))
        rows.append(
            (
                kind,
                f"{figures['queries']:,}",
                f"{figures['refused']:,}" if figures["refused"] else "",
                *(
                    _fits(runs, ("people", "kinds", kind, "q_error", quantile), factor)
                    for quantile in ("p50", "p95", "max")
                ),
                _fits(runs, ("people", "kinds", kind, "coverage"), _percent),
                *("" if sample is None else factor(sample["q_error"][quantile]) for quantile in ("p50", "p95", "max")),
                f"{won} : {lost}",
                _fits(runs, ("people", "kinds", kind, "latency_ms", "p50"), _ms),
                *("" if figures_of is None else _ms(figures_of["latency_ms"]["p50"]) for figures_of in (exact, sample)),
            )
        )
    headings = ("kind", "asked", "refused", "q-error p50", "p95", "max", "90% hold")
    beside = ("sample p50", "p95", "max", "nearer", "ms", "DuckDB ms", "sample ms")
    return Sheet(table, headings + beside, tuple(rows))


def history_sheet(title: str, runs: dict[str, list[Run]]) -> Sheet:
    """The main figures of every run, the newest of a table first."""
    rows = []
    for name, table_runs in runs.items():
        for run in table_runs:
            alone = [run]
            rows.append(
                (
                    name,
                    f"{run['date']} {run['commit'] or ''}",
                    _fits(alone, "seconds", _integer),
                    _fits(alone, "bytes", lambda value: size(int(value))),
                    *(_fits(alone, f"paper.q_error.{quantile}", factor) for quantile in ("p50", "p95", "p99")),
                    *(_fits(alone, f"people.q_error.{quantile}", factor) for quantile in ("p50", "p95", "p99")),
                    _fits(alone, "people.coverage", _percent),
                    _fits(alone, "people.latency_ms.p50", _ms),
                    _range(_at(alone, "rate.alone"), _integer),
                )
            )
    headings = ("table", "run", "fit s", "file", "paper p50", "p95", "p99", "people p50", "p95", "p99")
    return Sheet(title, (*headings, "hold", "ms", "rows/s"), tuple(rows), labels=2)


def _all_runs(results: Path, scale: str, required: bool = True) -> dict[str, list[Run]]:
    """The runs of every table, the tables in the order of their file."""
    measured = measured_tables(results, scale)
    if required and not measured:
        raise _no_results(results)
    listed = [name for name in known_tables() if name in measured]
    return {name: read_runs(results, name, scale) for name in [*listed, *sorted(set(measured) - set(listed))]}


def _no_results(results: Path) -> DataError:
    return DataError(f"no results in {results}: run countless bench scoreboard -o {results}")


def _answered(run: Run) -> bool:
    return any("people" in fit for fit in run["fits"])


def _fits(runs: Sequence[Run], path: str | tuple[str, ...], figure: Figure) -> str:
    """A figure of every seed of the newest run, and in brackets that of the run before."""
    keys = path if isinstance(path, tuple) else tuple(path.split("."))
    return _range([[_get(fit, keys) for fit in run["fits"]] for run in runs[:2]], figure)


def _at(runs: Sequence[Run], path: str) -> list[list[Any]]:
    return [[_get(run, tuple(path.split(".")))] for run in runs[:2]]


def _get(figures: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        if not isinstance(figures, dict) or key not in figures:
            return None
        figures = figures[key]
    return figures


def _range(values: Sequence[Sequence[Any]], figure: Figure) -> str:
    """``values`` are those of the newest run, and of the one before if there was one.

    >>> _range([[1.0, 1.5], [2.0]], factor), _range([[1.0]], factor), _range([[None]], factor)
    ('1.00-1.50 (2.00)', '1.00', '')
    """
    texts = []
    for seeds in values:
        present = [value for value in seeds if value is not None]
        ends = dict.fromkeys(figure(end) for end in (min(present), max(present))) if present else {}
        texts.append("-".join(ends))
    newest, previous = [*texts, ""][:2]
    return f"{newest} ({previous})" if newest and previous else newest


def _nearer(run: Run, workload: str) -> str:
    nearer = run["opponents"][workload]["sample"].get("nearer")
    return "" if nearer is None else " : ".join(f"{count:,}" for count in nearer["all"])


def _quantiles(figures: dict[str, Any]) -> str:
    return " / ".join(factor(figures["q_error"][quantile]) for quantile in ("p50", "p95", "p99"))


def _scale(run: Run) -> dict[str, str]:
    """How long a fit was, and whether the tables were cut."""
    rows = run["scale"]["rows"]
    return {
        "budget": duration(run["scale"]["budget"]),
        "cut": "" if rows is None else f", on at most {rows:,} rows of each table",
    }


def _machine(run: Run) -> str:
    machine = run["machine"]
    sets = ", ".join(machine["instruction_sets"])
    versions = ", ".join(f"{name} {machine[name]}" for name in ("duckdb", "numpy", "torch") if machine.get(name))
    memory = size(machine["memory_bytes"])
    return f"{machine['cores']} cores ({sets}), {memory} of memory, Python {machine['python']}, {versions}"


def _integer(value: float) -> str:
    return f"{value:,.0f}"


def _ms(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _factor(value: float | None) -> str:
    return "" if value is None else factor(value)
