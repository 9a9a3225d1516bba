"""The scoreboard as a page: one table for each group of figures, the previous run's beside each."""

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
Figure = Callable[[float], str]


def write_page(results: Path, page: Path) -> None:
    """Write the page and its picture, from the results in a folder. Quick runs alone make no more than a history."""
    runs, quick = _all_runs(results, "full", required=False), _all_runs(results, "quick", required=False)
    if not runs and not quick:
        raise _no_results(results)
    parts = _whole_runs(results, runs, page) if runs else ["# Scoreboard"]
    parts += ["## History", history_sheet("Whole runs", runs).markdown()]
    parts += [history_sheet("Quick runs, two seeds", quick).markdown(), HOW_TO_READ]
    write_bytes(page, ("\n\n".join(parts) + "\n").encode())


def _whole_runs(results: Path, runs: dict[str, list[Run]], page: Path) -> list[str]:
    """What the page shows of the newest whole run of each table."""
    write_bytes(results / PICTURE, draw_picture({name: found[0] for name, found in runs.items()}))
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
        *(kinds_sheet(name, found).markdown() for name, found in runs.items()),
    ]


def write_readme(results: Path, readme: Path) -> None:
    """Renew the table of figures in a README."""
    text = readme.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise DataError(f"{readme} has no place for the figures: put the lines {BEGIN} and {END} where they belong")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    write_bytes(readme, f"{before}{BEGIN}\n{readme_table(results)}\n{END}{after}".encode())


def readme_table(results: Path) -> str:
    """The figures that a README shows."""
    rows = []
    for name, (run, *_) in _all_runs(results, "full").items():
        if not _answered(run):
            continue
        own = next(fit for fit in run["fits"] if "people" in fit)
        rows.append(
            (
                name,
                f"{run['table']['rows']:,}",
                size(own["bytes"]),
                _quantiles(own["paper"]),
                _quantiles(own["people"]),
                _quantiles(run["opponents"]["people"]["sample"]),
                f"{own['people']['coverage']:.0%}",
                _ms(own["people"]["latency_ms"]["p50"]),
                _ms(run["opponents"]["people"]["duckdb"]["latency_ms"]["p50"]),
            )
        )
    headings = (
        "table",
        "rows",
        "model",
        "q-error, 5-12 filters",
        "as people ask",
        "sample of 100,000 rows",
        "90% hold",
        "ms",
        "exact count, ms",
    )
    return Sheet("", headings, tuple(rows)).markdown().split("\n\n", 1)[1]


def fit_sheet(runs: dict[str, list[Run]]) -> Sheet:
    """How long fits take, stage by stage, and what they take."""
    stages = ("read", "encode", "train", "count", "calibrate")
    rows = []
    for name, found in runs.items():
        failed = next((fit["failed"] for fit in found[0]["fits"] if "failed" in fit), None)
        if failed is not None:
            rows.append((name, f"failed: {failed}", *[""] * (4 + len(stages))))
            continue
        fields = [_fits(found, "seconds", _whole), _fits(found, "cpu_seconds", _whole)]
        fields += [_fits(found, f"stages.{stage}.seconds", _whole) for stage in stages]
        fields.append(_fits(found, "fit_peak_bytes", lambda value: size(int(value))))
        fields += [_shown(_at(found, f"rate.{how}"), _whole) for how in ("alone", "busy")]
        rows.append((name, *fields))
    return Sheet(
        "Seconds and memory of a fit",
        ("table", "wall", "processor", *stages, "peak memory", "rows/s", "rows/s, busy machine"),
        tuple(rows),
    )


def file_sheet(runs: dict[str, list[Run]]) -> Sheet:
    """How large a model is, on disk and in memory."""
    rows = []
    for name, found in runs.items():
        ratios = [
            [fit["bytes"] / run["table"]["parquet_bytes"] for fit in run["fits"] if "bytes" in fit] for run in found[:2]
        ]
        rows.append(
            (
                name,
                f"{found[0]['table']['rows']:,}",
                _fits(found, "bytes", lambda value: size(int(value))),
                _shown(ratios, lambda value: f"{value:.2f}"),
                _fits(found, "load_ms", _whole),
                _fits(found, "resident_bytes", lambda value: size(int(value))),
            )
        )
    headings = ("table", "rows", "model file", "of Parquet (zstd)", "ms to load", "memory after 1,000 questions")
    return Sheet("Bytes", headings, tuple(rows))


def accuracy_sheet(runs: dict[str, list[Run]], workload: str) -> Sheet:
    """q-errors of the model and of two samples."""
    rows = []
    for name, found in runs.items():
        if not _answered(found[0]):
            continue
        rows.append(
            (
                name,
                "Countless",
                *(
                    _fits(found, f"{workload}.q_error.{place}", factor)
                    for place in ("p50", "p95", "p99", "p99.9", "max")
                ),
                *(_fits(found, f"{workload}.q_error_10_rows.{place}", factor) for place in ("p95", "p99")),
                _fits(found, f"{workload}.coverage", _percent),
                _fits(found, f"{workload}.width", factor),
                _nearer(found[0], workload),
            )
        )
        for method, title in (("sample", "100,000 rows"), ("same bytes", "as many bytes")):
            facts = found[0]["opponents"][workload].get(method)
            if facts is not None:
                errors = [facts["q_error"][place] for place in ("p50", "p95", "p99", "p99.9", "max")]
                errors += [facts["q_error_10_rows"][place] for place in ("p95", "p99")]
                rows.append(("", f"sample of {title}", *map(_factor, errors), "", "", ""))
    return Sheet(
        f"q-errors, questions of {WORKLOADS[workload]}" if workload == "paper" else "q-errors, questions as people ask",
        (
            "table",
            "",
            "p50",
            "p95",
            "p99",
            "p99.9",
            "max",
            "p95, 10+ rows",
            "p99",
            "90% hold",
            "width",
            "nearer : sample",
        ),
        tuple(rows),
        labels=2,
    )


def speed_sheet(runs: dict[str, list[Run]], workload: str) -> Sheet:
    """Processor milliseconds of an answer, beside what one would do instead."""
    rows = []
    for name, found in runs.items():
        if not _answered(found[0]):
            continue
        others = found[0]["opponents"][workload]
        exact = others["duckdb"]
        rows.append(
            (
                name,
                _fits(found, f"{workload}.latency_ms.p50", _ms),
                _fits(found, f"{workload}.latency_ms.p99", _ms),
                _ms(exact["latency_ms"]["p50"]),
                _ms(exact["latency_ms"]["p99"]),
                "" if exact.get("time_ratio") is None else f"{exact['time_ratio']:.2g}x",
                *(_ms(others[other]["latency_ms"]["p50"]) if other in others else "" for other in _OTHERS),
            )
        )
    return Sheet(
        f"Milliseconds of one core, questions {'of ' if workload == 'paper' else ''}{WORKLOADS[workload]}",
        (
            "table",
            "Countless p50",
            "p99",
            "DuckDB exact p50",
            "p99",
            "DuckDB / Countless",
            "sample of 100,000 rows",
            "sample of as many bytes",
            "C scan of codes",
        ),
        tuple(rows),
    )


_OTHERS = ("sample", "same bytes", "scan")


def kinds_sheet(table: str, found: list[Run]) -> Sheet:
    """Every kind of question that people ask of one table."""
    if not _answered(found[0]):
        return Sheet(table, ("kind",), ())
    fit, opponents = found[0]["fits"][0], found[0]["opponents"]["people"]
    rows = []
    for kind, facts in fit["people"]["kinds"].items():
        sample, exact = (opponents[name]["kinds"].get(kind) for name in ("sample", "duckdb"))
        won, lost = opponents["sample"]["nearer"]["kinds"].get(kind, (0, 0))
        rows.append(
            (
                kind,
                f"{facts['queries']:,}",
                f"{facts['refused']:,}" if facts["refused"] else "",
                *(_fits(found, ("people", "kinds", kind, "q_error", place), factor) for place in ("p50", "p95", "max")),
                _fits(found, ("people", "kinds", kind, "coverage"), _percent),
                *("" if sample is None else factor(sample["q_error"][place]) for place in ("p50", "p95", "max")),
                f"{won} : {lost}",
                _fits(found, ("people", "kinds", kind, "latency_ms", "p50"), _ms),
                *("" if other is None else _ms(other["latency_ms"]["p50"]) for other in (exact, sample)),
            )
        )
    own = ("kind", "asked", "refused", "q-error p50", "p95", "max", "90% hold")
    beside = ("sample p50", "p95", "max", "nearer", "ms", "DuckDB ms", "sample ms")
    return Sheet(table, own + beside, tuple(rows))


def history_sheet(title: str, runs: dict[str, list[Run]]) -> Sheet:
    """The main figures of every run, the newest of a table first."""
    rows = []
    for name, found in runs.items():
        for run in found:
            alone = [run]
            rows.append(
                (
                    name,
                    f"{run['date']} {run['commit'] or ''}",
                    _fits(alone, "seconds", _whole),
                    _fits(alone, "bytes", lambda value: size(int(value))),
                    *(_fits(alone, f"paper.q_error.{place}", factor) for place in ("p50", "p95", "p99")),
                    *(_fits(alone, f"people.q_error.{place}", factor) for place in ("p50", "p95", "p99")),
                    _fits(alone, "people.coverage", _percent),
                    _fits(alone, "people.latency_ms.p50", _ms),
                    _shown(_at(alone, "rate.alone"), _whole),
                )
            )
    return Sheet(
        title,
        (
            "table",
            "run",
            "fit s",
            "file",
            "paper p50",
            "p95",
            "p99",
            "people p50",
            "p95",
            "p99",
            "hold",
            "ms",
            "rows/s",
        ),
        tuple(rows),
        labels=2,
    )


def _all_runs(results: Path, scale: str, required: bool = True) -> dict[str, list[Run]]:
    """The runs of every table, the tables in the order of their file."""
    measured = measured_tables(results, scale)
    if required and not measured:
        raise _no_results(results)
    known = [name for name in known_tables() if name in measured]
    return {name: read_runs(results, name, scale) for name in [*known, *sorted(set(measured) - set(known))]}


def _no_results(results: Path) -> DataError:
    return DataError(f"no results in {results}: run countless bench scoreboard -o {results}")


def _answered(run: Run) -> bool:
    return any("people" in fit for fit in run["fits"])


def _fits(runs: Sequence[Run], path: str | tuple[str, ...], figure: Figure) -> str:
    """A figure of every seed of the newest run, and in brackets that of the run before."""
    keys = path if isinstance(path, tuple) else tuple(path.split("."))
    if isinstance(path, str) and "p99.9" in path:
        keys = (*path.removesuffix(".p99.9").split("."), "p99.9")
    return _shown([[_get(fit, keys) for fit in run["fits"]] for run in runs[:2]], figure)


def _at(runs: Sequence[Run], path: str) -> list[list[Any]]:
    return [[_get(run, tuple(path.split(".")))] for run in runs[:2]]


def _get(facts: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        if not isinstance(facts, dict) or key not in facts:
            return None
        facts = facts[key]
    return facts


def _shown(values: Sequence[Sequence[Any]], figure: Figure) -> str:
    """``values`` are those of the newest run, and of the one before if there was one.

    >>> _shown([[1.0, 1.5], [2.0]], factor), _shown([[1.0]], factor), _shown([[None]], factor)
    ('1.00-1.50 (2.00)', '1.00', '')
    """
    texts = []
    for found in values:
        known = [value for value in found if value is not None]
        ends = dict.fromkeys(figure(end) for end in (min(known), max(known))) if known else {}
        texts.append("-".join(ends))
    newest, previous = [*texts, ""][:2]
    return f"{newest} ({previous})" if newest and previous else newest


def _nearer(run: Run, workload: str) -> str:
    found = run["opponents"][workload]["sample"].get("nearer")
    return "" if found is None else " : ".join(f"{count:,}" for count in found["all"])


def _quantiles(facts: dict[str, Any]) -> str:
    return " / ".join(factor(facts["q_error"][place]) for place in ("p50", "p95", "p99"))


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


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _ms(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _factor(value: float | None) -> str:
    return "" if value is None else factor(value)
