"""How long does a question take, and how good is its answer? Two installations side by side, on the same questions.

.venv/bin/python benchmarks/latency.py MODEL.countless QUESTIONS.jsonl [OTHER/.venv/bin/python] [--prepared] [--table T]
.venv/bin/python benchmarks/latency.py MODEL.countless QUESTIONS.jsonl --many

QUESTIONS are the lines of ``countless evaluate --save``. Each installation answers in a process of its own, with one
thread. They take turns, a block of questions each, so that a busy machine slows both alike. Times are processor time,
that of the sandbox in which DuckDB evaluates expressions included; each question is asked once. With ``--prepared``,
each question is compiled before its clock starts. With ``--table``, a Parquet file, DuckDB counts the same questions in
memory, in turn with the others. ``--many`` measures ``estimate_many`` with two threads: questions a second of
processor time and of the clock, from text, prepared, and the parts that a query optimizer asks for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from countless_lab.measurement.script import script_parser

BLOCK = 20  # questions in turn
WARM = 30  # questions that are asked first and not counted
MOST_TOGETHER = 3  # filters of a part that an optimizer asks for

CLOCK = """
import json, os, sys, time
from pathlib import Path
def children():
    total = 0
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            for thread in Path(f"/proc/{pid}/task").iterdir():
                total += int((thread / "schedstat").read_text().split()[0])
    return total
"""

WORKER = (
    CLOCK
    + """
from countless import load
from countless.errors import CountlessError
est, prepared = load(sys.argv[1]), sys.argv[2] == "1"
print("ready", flush=True)
for line in sys.stdin:
    answers = []
    for where in json.loads(line):
        try:
            ask = est.prepare(where).estimate if prepared else None
            before, start = children(), time.process_time_ns()
            answer = ask() if prepared else est.estimate(where)
            ns = time.process_time_ns() - start
            ns += children() - before
            answers.append([answer.rows, answer.low, answer.high, ns / 1e6, answer.forward_rows])
        except CountlessError:
            answers.append(None)
    print(json.dumps(answers), flush=True)
"""
)

EXACT = """
import json, sys, time, duckdb
connection = duckdb.connect(config={"threads": 1})
connection.execute("SET enable_progress_bar = false")
connection.execute(f"CREATE TABLE t AS SELECT * FROM '{sys.argv[1]}'")
print("ready", flush=True)
for line in sys.stdin:
    answers = []
    for where in json.loads(line):
        start = time.process_time_ns()
        (rows,) = connection.execute(f"SELECT count(*) FROM t WHERE {where}").fetchone()
        answers.append([rows, rows, rows, (time.process_time_ns() - start) / 1e6, 0])
    print(json.dumps(answers), flush=True)
"""


class Installation:
    """A process that answers questions, with the Countless that ``python`` finds or with DuckDB."""

    def __init__(self, python: str, program: str, *arguments: str) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [python, "-c", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads},
        )
        self._read()
        self.answers: list[Any] = []

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def ask(self, clauses: list[str]) -> list[Any]:
        """The answer of each clause."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(clauses) + "\n")
        self._process.stdin.flush()
        return list(json.loads(self._read()))


def main(model: str, questions: str, pythons: list[str], prepared: bool, table: str | None) -> None:
    """Ask all installations, and print their figures."""
    queries = [json.loads(line) for line in Path(questions).read_text(encoding="utf-8").splitlines()]
    clauses = [query["where"] for query in queries]
    names = [*pythons, *(["DuckDB"] if table else [])]
    installations = [Installation(python, WORKER, model, str(int(prepared))) for python in pythons]
    installations += [Installation(sys.executable, EXACT, table)] if table else []
    for installation in installations:
        installation.ask(clauses[:WARM])
    for first in range(WARM, len(clauses), BLOCK):
        for installation in installations:
            installation.answers += installation.ask(clauses[first : first + BLOCK])
    truths = [query["rows"] for query in queries[WARM:]]
    answered = [
        index for index in range(len(truths)) if all(installation.answers[index] for installation in installations)
    ]
    truth = np.array([truths[index] for index in answered], dtype=float)
    times = []
    for name, installation in zip(names, installations, strict=True):
        rows, low, high, ms, forward = np.array([installation.answers[index] for index in answered], dtype=float).T
        errors = np.maximum(rows, 1) / np.maximum(truth, 1)
        errors = np.maximum(errors, 1 / errors)
        inside = (np.round(low) <= truth) & (truth <= np.round(high))
        times.append(ms)
        figures = {
            "ms p50/p90/p99": _percentiles(ms, (50, 90, 99)),
            "mean": f"{ms.mean():.3f}",
            "q-error p50/p90/p95/p99/max": _percentiles(errors, (50, 90, 95, 99, 100)),
            "mean log q-error": f"{np.log(errors).mean():.4f}",
            "inside": f"{inside.mean():.3f}",
            "forward rows p50/p99": _percentiles(forward, (50, 99)),
            "questions": len(answered),
        }
        sys.stdout.write(f"{name}\n  " + ", ".join(f"{key} {value}" for key, value in figures.items()) + "\n")
    for name, times_of_other in zip(names[1:], times[1:], strict=True):
        old, new = (np.array([np.median(ms), ms.mean(), np.percentile(ms, 99)]) for ms in (times_of_other, times[0]))
        shown = " / ".join(f"{x:.2f}" for x in old / new)
        sys.stdout.write(f"times faster than {name} by median, mean and p99: {shown}\n")


def many(model: str, questions: str) -> None:
    """Measure ``estimate_many``."""
    import time

    from countless import load
    from countless.query.filter_cache import conjuncts

    lines = Path(questions).read_text(encoding="utf-8").splitlines()
    clauses = [json.loads(line)["where"] for line in lines]
    parts = [" AND ".join(filters) for clause in clauses for filters in _parts(conjuncts(clause) or [clause])]
    for name, questions_of_kind in (("from text", clauses), ("prepared", clauses), ("parts of a query", parts)):
        est = load(model)
        est.estimate_many(clauses[:WARM])
        requests: list[Any] = (
            [est.prepare(clause) for clause in questions_of_kind] if name == "prepared" else questions_of_kind
        )
        clock, processor = time.perf_counter(), time.process_time()
        answers = (
            [question.estimate() for question in requests]
            if name == "prepared"
            else est.estimate_many(requests, threads=2)
        )
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
        rates = f"{len(answers) / clock:,.0f} a second of the clock, {len(answers) / processor:,.0f} of a processor"
        sys.stdout.write(f"{name}: {len(answers)} questions, {rates}\n")


def _parts(filters: list[str]) -> list[tuple[str, ...]]:
    """The parts of a conjunction that a query optimizer asks for: every combination of up to three filters."""
    return [part for size in range(1, MOST_TOGETHER + 1) for part in combinations(filters, size)]


def _percentiles(values: Any, shares: tuple[int, ...]) -> str:
    return " / ".join(f"{value:.4g}" for value in np.percentile(values, shares))


if __name__ == "__main__":
    parser = script_parser(__doc__)
    parser.add_argument("model")
    parser.add_argument("questions")
    parser.add_argument("others", nargs="*", help="interpreters of other installations")
    parser.add_argument("--prepared", action="store_true")
    parser.add_argument("--table", help="a Parquet file that DuckDB counts in")
    parser.add_argument("--many", action="store_true")
    options = parser.parse_args()
    if options.many:
        many(options.model, options.questions)
    else:
        main(options.model, options.questions, [sys.executable, *options.others], options.prepared, options.table)
