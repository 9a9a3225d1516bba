"""The paper's network and training, for a few epochs: how far its samplers are from the truth then, and their time.

OMP_NUM_THREADS=1 .venv/bin/python benchmarks/six_epochs.py census_income.parquet --exclude instance_weight

The published implementation was run once by hand with the same settings; docs/paper.md has its figures beside these.
The last line is JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

import countless
from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.estimator.answers.estimate import q_error
from countless.evaluation.evaluate import random_workload
from countless.options import EncodeOptions
from countless_lab.measurement.script import exclude_option, percentiles, script_parser
from countless_lab.paper.cells import QUESTION_SEED
from countless_lab.paper.scale import SCALES

METHODS = (("skipping", 100), ("skipping", 1_000), ("plain-skipping", 100), ("particles", 1_000))


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("table")
    exclude_option(parser)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--queries", type=int, default=300)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    scale, source = SCALES["full"], Source.open(arguments.table)
    queries = random_workload(
        Table.encode(source, EncodeOptions(exclude=arguments.exclude)).schema, source, arguments.queries, QUESTION_SEED
    )
    began = time.process_time()
    estimator = countless.fit(
        arguments.table,
        exclude=arguments.exclude,
        epochs=arguments.epochs,
        batch=scale.batch,
        learning_rate=scale.learning_rate,
        schedule="cosine",
        network=countless.Network(scale.hidden, 3, scale.embedding, units="even"),
        summary=False,
        evidence="none",
        calibrate=False,
    )
    training = {"epochs": arguments.epochs, "processor_seconds": round(time.process_time() - began, 1)}
    training |= {name: round(estimator.report[name], 3) for name in ("unmasked_bits", "masked_bits")}
    results = []
    for method, samples in METHODS:
        errors, milliseconds = [], []
        for query in queries:
            started = time.process_time()
            rows = estimator.estimate(query.where, method=method, particles=samples).rows
            milliseconds.append(1e3 * (time.process_time() - started))
            errors.append(q_error(rows, query.rows))
        results.append(
            {
                "method": method,
                "samples": samples,
                **percentiles(errors),
                "ms": round(float(np.median(milliseconds)), 2),
            }
        )
        sys.stdout.write(f"{results[-1]}\n")
        sys.stdout.flush()
    sys.stdout.write(json.dumps({"table": Path(arguments.table).name, **training, "results": results}) + "\n")


if __name__ == "__main__":
    main()
