"""The steps of the scoreboard, each in a process of its own.

``python -m countless_lab.scoreboard.steps NAME`` takes arguments as JSON and prints what it found as JSON.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from countless.data.scan import quote_path
from countless.data.types import quote_identifier
from countless_lab.growth.jobs import Facts, main
from countless_lab.measurement.memory import held_memory

ASKED_BEFORE_MEMORY = 1_000  # questions after which the memory of a process that answers is read
RATE_ROWS = 50_000
OFTEN = 7  # scans of one question; the quickest counts, since one is too short to be timed
STAGES = (  # by how the names of a fit's stages begin
    ("read", ("opening", "reading", "copying")),
    ("encode", ("encoding", "shuffling", "finding")),
    ("train", ("training",)),
    ("count", ("counting",)),
    ("calibrate", ("calibrating", "stopped early")),
)


def prepare(source: str, exclude: list[str], rows: int | None, table: str) -> Facts:
    """Write the table as it is measured: without the excluded columns, cut to a sample, as Parquet with zstd."""
    from countless.data.source import Source

    path = Path(table)
    given = Source.open(source)
    if rows is not None and given.count() > rows:
        given = given.sampled(rows, 0)
    left_out = ", ".join(map(quote_identifier, exclude))
    columns = f"* EXCLUDE ({left_out})" if exclude else "*"
    partial = path.with_suffix(".partial")
    copied = (
        f"COPY (SELECT {columns} FROM {given.table}) TO {quote_path(str(partial))} (FORMAT parquet, COMPRESSION zstd)"
    )
    given.run(copied)
    os.replace(partial, path)
    written = Source.open(path)
    return {"rows": written.count(), "columns": len(written.columns()), "parquet_bytes": path.stat().st_size}


def questions(table: str, paper: int, per_kind: int, folder: str) -> Facts:
    """Draw both workloads, count their true rows, and keep them."""
    from countless.data.source import Source
    from countless.workload import save
    from countless_lab.scoreboard.workloads import draw_workloads

    found = draw_workloads(Source.open(table), paper, per_kind)
    for name, queries in found.items():
        save(Path(folder) / f"{name}.jsonl", queries)
    return {name: len(queries) for name, queries in found.items()}


def fit(table: str, model: str, budget: float, seed: int) -> Facts:
    """Fit the table by the command line, with default options but for the budget and the seed."""
    from countless import load

    command = [sys.executable, "-P", "-m", "countless.cli.main", "fit", table, "-o", model]
    command += ["--budget", f"{budget:g}s", "--seed", str(seed)]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    facts: Facts = {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "fit_peak_bytes": used.ru_maxrss * 1024,
    }
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"ended with exit code {done.returncode}"]
        return {**facts, "failed": lines[-1][-500:]}
    report = load(model).report
    return {**facts, "stages": _grouped(report.get("stages", [])), "training": _trained(report)}


def _grouped(stages: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Wall and processor seconds of the groups of stages."""
    found = {name: {"seconds": 0.0, "cpu_seconds": 0.0} for name, _ in STAGES}
    for stage in stages:
        group = next((name for name, starts in STAGES if stage["name"].startswith(starts)), "read")
        for unit in ("seconds", "cpu_seconds"):
            found[group][unit] = round(found[group][unit] + stage[unit], 2)
    return found


def _trained(report: dict[str, Any]) -> dict[str, Any]:
    """Rows a second and passes of each network."""
    networks = {"columns": report} if "rows_per_second" in report else {}
    networks |= {"text": report["text"]} if "text" in report else {}
    return {
        name: {"rows_per_second": round(found["rows_per_second"]), "epochs": round(found["epochs"], 3)}
        for name, found in networks.items()
    }


def rate(table: str, seconds: float) -> Facts:
    """Training rows a second on a sample of the rows: with the machine to itself, and beside a busy loop per core."""
    from countless.data.source import Source

    source = Source.open(table)
    sample = source.sampled(RATE_ROWS, 0) if source.count() > RATE_ROWS else source
    alone = _rate(sample, seconds)
    loop = f"import time\nend = time.monotonic() + {10 * seconds + 120}\nwhile time.monotonic() < end: pass"
    busy = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(os.cpu_count() or 1)]
    try:
        beside = _rate(sample, seconds)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    return {"alone": alone, "busy": beside, "ratio": round(beside / alone, 3)}


def _rate(sample: Any, seconds: float) -> float:
    """Rows a second of the network that learns the columns, or else of the first that learns text."""
    from countless import fit as fit_table

    trained = _trained(fit_table(sample, budget=seconds, summary=False, calibrate=False).report)
    return float(next(iter(trained.values()))["rows_per_second"])


def ask(model: str, folder: str, answers: str, seconds: float) -> Facts:
    """Load the model and ask it both workloads, each question once."""
    from countless import load
    from countless.errors import QueryError
    from countless.workload import load as load_queries
    from countless_lab.measurement.timer import timed
    from countless_lab.scoreboard.answers import Answers, write_answers
    from countless_lab.scoreboard.answers import ask as ask_all

    estimator, load_ms = timed(lambda: load(model))
    found: dict[str, dict[str, Answers]] = {}
    memory: list[int] = []
    asked = 0

    def answer(where: str) -> Any:
        nonlocal asked
        asked += 1
        if asked == ASKED_BEFORE_MEMORY:
            memory.append(held_memory(os.getpid()))
        return estimator.estimate(where)

    estimator.estimate("1 = 1")  # what a process does once is not part of a question
    for name in ("people", "paper"):
        queries = load_queries(Path(folder) / f"{name}.jsonl")
        found[name] = {"countless": ask_all("countless", answer, queries, seconds, QueryError)}
    write_answers(Path(answers), found)
    return {
        "load_ms": round(load_ms, 1),
        "resident_bytes": memory[0] if memory else held_memory(os.getpid()),
        "bytes": Path(model).stat().st_size,
    }


def oppose(table: str, folder: str, answers: str, seconds: float, model_bytes: int | None) -> Facts:
    """Ask DuckDB's exact count, a sample of 100,000 rows, one of as many bytes as the model, and a scan of codes."""
    from countless.workload import load as load_queries
    from countless_lab.scoreboard.answers import ask as ask_all
    from countless_lab.scoreboard.answers import write_answers
    from countless_lab.scoreboard.opponents import SAMPLE_ROWS, TableInMemory

    memory = TableInMemory(Path(table))
    methods = {"duckdb": memory.exact, "sample": memory.sample(SAMPLE_ROWS)}
    facts: Facts = {"sample_rows": min(SAMPLE_ROWS, memory.rows)}
    if model_bytes is not None:
        rows = int(memory.rows * model_bytes / Path(table).stat().st_size)
        facts["same_bytes_rows"] = min(rows, memory.rows)
        methods["same bytes"] = memory.sample(rows)
    found = {}
    for name in ("people", "paper"):
        queries = load_queries(Path(folder) / f"{name}.jsonl")
        found[name] = {method: ask_all(method, answer, queries, seconds) for method, answer in methods.items()}
        scanned = _scanned(memory, queries, seconds) if name == "paper" else None
        if scanned is not None:
            found[name]["scan"] = scanned
    write_answers(Path(answers), found)
    return facts


def _scanned(memory: Any, queries: Any, seconds: float) -> Any:
    """The paper's questions by a scan of codes; None where it is not compiled, or the questions are about text."""
    from countless.estimator.estimate import Estimate
    from countless.query.parse import parse
    from countless_lab.codes import PackedCodes, has_scan
    from countless_lab.measurement.timer import timed
    from countless_lab.scoreboard.answers import Answers

    names = sorted({column.name for query in queries for column in parse(query.where).find_all(_column())})
    if not has_scan() or any("LIKE" in query.where for query in queries):
        return None
    codes = PackedCodes(memory.arrow(names))
    found = Answers("scan")
    deadline = time.monotonic() + seconds
    for number, query in enumerate(queries):
        scan = codes.prepare(query.where)
        if scan is None or time.monotonic() > deadline:
            continue
        rows, ms = min((timed(scan) for _ in range(OFTEN)), key=lambda measured: measured[1])
        if rows != query.rows:
            raise AssertionError(f"the scan found {rows} rows instead of {query.rows}")
        found.add(number, Estimate("", rows, 0.0, rows, rows, 1.0, "scan", True, ms), ms, refused=False)
    return found


def _column() -> Any:
    from sqlglot import exp

    return exp.Column


if __name__ == "__main__":
    main({"prepare": prepare, "questions": questions, "fit": fit, "rate": rate, "ask": ask, "oppose": oppose})
