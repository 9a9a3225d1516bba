"""How much sooner does this code reach the bits per row that older code reaches?

.venv/bin/python benchmarks/sooner.py TABLE.parquet [--old OLD/src] [--exclude A,B] [--seconds 60] [--shares 0.5,0.33]

OLD/src is the source of the older code: git worktree add OLD COMMIT, and put its compiled kernels beside their sources.
The older code trains for --seconds of processor time, this code for each share of that time. Each fit is a process with
one thread, and they run one after the other. All models answer the same random queries. The last line is JSON. Without
--old only this code is fitted, for results of the older code that are known.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from countless import workload
from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.evaluation.evaluate import random_workload
from countless.options import EncodeOptions
from countless_lab.measurement.script import exclude_option, script_parser

QUESTION_SEED = 7_001  # of queries to select by, as in the ablation
NEW = Path(__file__).parents[1] / "src"
CHILD = """
import dataclasses, json, sys
import numpy as np
import torch
import countless
from countless import workload
from countless.evaluation.evaluate import evaluate

torch.set_num_threads(1)
table, seconds, questions, exclude = sys.argv[1], float(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
network = countless.Network(hidden=256, blocks=3)
options = {"budget": seconds, "clock": "processor", "network": network, "calibrate": False}
# older code has no evidence rows
if any(field.name == "evidence" for field in dataclasses.fields(countless.StorageOptions)):
    options["evidence"] = "none"
estimator = countless.fit(table, exclude=exclude, **options)
errors = np.array(evaluate(estimator.estimate, workload.load(questions), "particles").q_errors)
report = estimator.report
result = {name: report[name] for name in ("masked_bits", "unmasked_bits", "epochs", "rows_per_second")}
percents = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
result["q_error"] = {name: round(float(np.percentile(errors, percent)), 3) for name, percent in percents.items()}
print(json.dumps({"seconds": seconds, **result}))
"""


def fitted(source: Path, table: str, seconds: float, questions: Path, exclude: tuple[str, ...]) -> dict[str, Any]:
    """The result of a fit by the code at ``source``."""
    command = [sys.executable, "-c", CHILD, table, str(seconds), str(questions), json.dumps(exclude)]
    environment = {**os.environ, "PYTHONPATH": str(source.resolve()), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("table")
    parser.add_argument("--old", type=Path, help="the source of the older code")
    exclude_option(parser)
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time of the older code")
    parser.add_argument("--shares", default="0.5,0.33", help="of this time, for the code here")
    parser.add_argument("--queries", type=int, default=300)
    arguments = parser.parse_args()
    source = Source.open(arguments.table)
    schema = Table.encode(source, EncodeOptions(exclude=arguments.exclude)).schema
    runs = [("new", NEW, float(share)) for share in arguments.shares.split(",")]
    if arguments.old is not None:
        runs.insert(0, ("old", arguments.old, 1.0))
    results = []
    with tempfile.TemporaryDirectory() as folder:
        questions = Path(folder) / "questions.jsonl"
        workload.save(questions, random_workload(schema, source, arguments.queries, QUESTION_SEED))
        for name, code, share in runs:
            result = fitted(code, arguments.table, share * arguments.seconds, questions, arguments.exclude)
            results.append({"code": name, **result})
            line = f"{result['seconds']:6g} s {result['masked_bits']:9.3f} bits, {result['rows_per_second']:,} rows/s"
            sys.stdout.write(f"{name:4}{line}, q-errors {result['q_error']}\n")
            sys.stdout.flush()
    sys.stdout.write(json.dumps({"table": Path(arguments.table).name, "results": results}) + "\n")


if __name__ == "__main__":
    main()
