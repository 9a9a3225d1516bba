"""How long does a question take, and how good is its answer? Two installations side by side, on the same questions.

.venv/bin/python benchmarks/latency.py MODEL.countless QUESTIONS.jsonl [OTHER/.venv/bin/python] [--prepared]

QUESTIONS are the lines of ``countless evaluate --save``. Each installation answers in a process of its own, with one
thread. They take turns, a block of questions each, so that a busy machine slows both alike. Times are processor time;
each question is asked once. With ``--prepared``, each question is compiled before its clock starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 20  # questions in turn
WARM = 30  # questions that are asked first and not counted

WORKER = """
import json, sys, time
from countless import load
from countless.errors import CountlessError
est, prepared = load(sys.argv[1]), sys.argv[2] == "1"
print("ready", flush=True)
for line in sys.stdin:
    found = []
    for where in json.loads(line):
        try:
            ask = est.prepare(where).estimate if prepared else None
            start = time.process_time_ns()
            answer = ask() if prepared else est.estimate(where)
            ns = time.process_time_ns() - start
            found.append([answer.rows, answer.low, answer.high, ns / 1e6, answer.forward_rows])
        except CountlessError:
            found.append(None)
    print(json.dumps(found), flush=True)
"""


class Installation:
    """A process that answers questions with the Countless that ``python`` finds."""

    def __init__(self, python: str, model: str, prepared: bool) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [python, "-c", WORKER, model, str(int(prepared))],
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


def main(model: str, questions: str, pythons: list[str], prepared: bool) -> None:
    """Ask, and print what was found."""
    queries = [json.loads(line) for line in Path(questions).read_text(encoding="utf-8").splitlines()]
    clauses = [query["where"] for query in queries]
    installations = [Installation(python, model, prepared) for python in pythons]
    for each in installations:
        each.ask(clauses[:WARM])
    asked = range(WARM, len(clauses), BLOCK)
    for first in asked:
        for each in installations:
            each.answers += each.ask(clauses[first : first + BLOCK])
    truths = [query["rows"] for query in queries[WARM:]]
    kept = [place for place in range(len(truths)) if all(each.answers[place] for each in installations)]
    truth = np.array([truths[place] for place in kept], dtype=float)
    times = []
    for python, each in zip(pythons, installations, strict=True):
        rows, low, high, ms, forward = np.array([each.answers[place] for place in kept], dtype=float).T
        errors = np.maximum(rows, 1) / np.maximum(truth, 1)
        errors = np.maximum(errors, 1 / errors)
        inside = (np.round(low) <= truth) & (truth <= np.round(high))
        times.append(ms)
        found = {
            "ms p50/p90/p99": _shown(ms, (50, 90, 99)),
            "mean": f"{ms.mean():.3f}",
            "q-error p50/p90/p95/p99/max": _shown(errors, (50, 90, 95, 99, 100)),
            "mean log q-error": f"{np.log(errors).mean():.4f}",
            "inside": f"{inside.mean():.3f}",
            "forward rows p50/p99": _shown(forward, (50, 99)),
            "questions": len(kept),
        }
        sys.stdout.write(f"{python}\n  " + ", ".join(f"{name} {value}" for name, value in found.items()) + "\n")
    if len(times) == 2:
        old, new = (np.array([np.median(ms), ms.mean(), np.percentile(ms, 99)]) for ms in (times[1], times[0]))
        sys.stdout.write("times faster by median, mean and p99: " + " / ".join(f"{x:.2f}" for x in old / new) + "\n")


def _shown(values: Any, shares: tuple[int, ...]) -> str:
    return " / ".join(f"{value:.4g}" for value in np.percentile(values, shares))


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != "--prepared"]
    main(given[0], given[1], [sys.executable, *given[2:]], "--prepared" in sys.argv)
