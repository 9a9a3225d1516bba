"""Which digits for wide columns: forms of them compared in equal processor time, on the same random queries.

.venv/bin/python benchmarks/digits.py TABLE.parquet --forms 2000:500,300:500,300:32 [--seconds 60] [--exclude A,B]

A form is two numbers: columns of more values than the first are written in digits, each of at most the second. Every
fit has one thread. The queries are the paper's (5 to 12 filters) and questions as people ask them; each is answered by
the model alone, and with --fused also with evidence rows. The output is one line of JSON for each form. With --steps 50
no model is fitted: training steps of each form are timed by turns, so that other work slows all alike.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import countless
from countless.data.columns import digits
from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.evaluation.evaluate import evaluate, random_workload
from countless.options import EncodeOptions
from countless.spec import ModelSpec
from countless.train.adam import Adam
from countless.train.options import TrainOptions
from countless.train.tasks.columns import ColumnsTask
from countless.train.tasks.task import stream
from countless.workload import Query
from countless_lab.measurement.script import exclude_option, percentiles, script_parser

QUESTION_SEED = 7_001  # of queries to select by, as in the ablation
REPORTED = ("unmasked_bits", "epochs", "rows_per_second", "parameters")
STEP_ROWS = 40_000  # of the table, for steps that are only timed
PERCENTS = (50, 90, 95, 99, 100)


def answered(estimator: countless.Estimator, queries: Sequence[Query], method: str | None) -> dict[str, Any]:
    """Q-errors, their spread (root mean square of the logarithm), and the processor time of an answer."""
    began = time.process_time()
    ask = estimator.estimate if method is None else partial(estimator.estimate, method=method)
    errors = np.array(evaluate(ask, list(queries), method or "default").q_errors)
    milliseconds = (time.process_time() - began) / len(queries) * 1000
    deviation = float(np.sqrt(np.mean(np.log(errors) ** 2)))
    return {**percentiles(errors, PERCENTS), "spread": round(deviation, 4), "mean_ms": round(milliseconds, 3)}


def tried(options: argparse.Namespace, form: str, seed: int, workloads: dict[str, list[Query]]) -> dict[str, Any]:
    """The result of a fit with digits of this form."""
    digits.DIGITS_FROM, digits.WIDEST_DIGIT = map(int, form.split(":"))
    plain: dict[str, Any] = {} if options.fused else {"calibrate": False, "evidence": "none"}
    estimator = countless.fit(
        options.table,
        exclude=options.exclude,
        budget=options.seconds,
        seed=seed,
        clock="processor",
        network=countless.Network(hidden=256, blocks=3),
        **plain,
    )
    with tempfile.TemporaryDirectory() as folder:
        size = estimator.save(Path(folder) / "model.countless").stat().st_size
    methods = {"model": "particles", **({"fused": None} if options.fused else {})}
    answers = {
        f"{name}, {kind}": answered(estimator, queries, method)
        for name, method in methods.items()
        for kind, queries in workloads.items()
    }
    training = {name: estimator.report[name] for name in REPORTED}
    positions = len(estimator.schema.sizes)
    about = {"table": Path(options.table).stem, "form": form, "seed": seed, "seconds": options.seconds}
    return {**about, "positions": positions, **training, "bytes": size, **answers}


def step_of(options: argparse.Namespace, form: str) -> tuple[Callable[[], float], int]:
    """A training step with digits of this form, which returns its processor time, and the number of parameters."""
    digits.DIGITS_FROM, digits.WIDEST_DIGIT = map(int, form.split(":"))
    table = Table.encode(Source.open(options.table), EncodeOptions(exclude=options.exclude))
    spec = ModelSpec(table.schema.sizes, groups=table.schema.groups)
    task = ColumnsTask(table.matrix()[:STEP_ROWS], spec, TrainOptions())
    adam, generator = Adam(task.model.parameters()), stream(0, 0)

    def step() -> float:
        rows = torch.randint(task.rows, (task.batch,), generator=generator)
        began = time.process_time()
        task.learn(rows, generator, 0.0, 1.0)
        adam.step(1e-3, clip=1.0)
        return time.process_time() - began

    return step, spec.parameters


def timed(options: argparse.Namespace) -> dict[str, Any]:
    """The processor time of a training step in each form: the fifth of the steps that is fastest takes at most this."""
    steps = {form: step_of(options, form) for form in options.forms.split(",")}
    times: dict[str, list[float]] = {form: [] for form in steps}
    for _ in range(options.steps):
        for form, (step, _) in steps.items():
            times[form].append(step())
    return {
        form: {"parameters": steps[form][1], "step_ms": round(1000 * float(np.percentile(times[form], 20)), 2)}
        for form in steps
    }


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("table")
    parser.add_argument("--forms", required=True, help="such as 2000:500,300:32")
    exclude_option(parser)
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time of a fit")
    parser.add_argument("--queries", type=int, default=400, help="of each of the two sorts")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--fused", action="store_true", help="calibrate, and answer with evidence rows too")
    parser.add_argument("--steps", type=int, help="only time this number of training steps of each form")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.steps:
        sys.stdout.write(json.dumps({"table": Path(options.table).stem, **timed(options)}) + "\n")
        return
    source = Source.open(options.table)
    schema = Table.encode(source, EncodeOptions(exclude=options.exclude)).schema
    workloads = {
        "paper": random_workload(schema, source, options.queries, QUESTION_SEED),
        "people": [  # two columns are compared by evidence rows only
            query
            for query in random_workload(schema, source, options.queries, QUESTION_SEED, kinds=True)
            if query.kind != "two columns"
        ],
    }
    for seed in map(int, options.seeds.split(",")):
        for form in options.forms.split(","):
            sys.stdout.write(json.dumps(tried(options, form, seed, workloads)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
