"""A fit on a Ray cluster of this machine against one in a single process: the same table and options.

.venv/bin/python benchmarks/cluster.py TABLE.parquet [--exclude COLUMN,COLUMN] [--epochs 3] [--batch ROWS] [--workers 2]
    [-o FILE.json]

Each worker and the single process have one thread, and read the same codes in the same order, so that bits are those of
the same rows: only masks differ. Bits a row must agree within 0.5%.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import countless
from countless.cluster.session import ray_module
from countless_lab.measurement.machine import machine_facts
from countless_lab.measurement.script import exclude_option, script_parser, write_result

MAX_DIFFERENCE = 0.005  # of the bits
MEMORY = 4 * 10**9  # of either; it decides how rows are shuffled
OUT = Path(__file__).parents[1] / "docs" / "results" / "scaling" / "ray.json"


def fitted(table: str, exclude: tuple[str, ...], epochs: int, **backend: Any) -> dict[str, Any]:
    """The report of a fit on this machine, or on a cluster."""
    started = time.perf_counter()
    report = countless.fit(
        table, exclude=exclude, epochs=epochs, memory=MEMORY, calibrate=False, summary=False, **backend
    ).report
    names = ("train_bits", "masked_bits", "unmasked_bits", "train_rows", "epochs", "rows_per_second", "parameters")
    return {
        **{name: report[name] for name in names},
        "training_seconds": report["seconds"],
        "seconds": round(time.perf_counter() - started, 2),
        "stages": {stage["name"]: stage["seconds"] for stage in report["stages"]},
    }


def main() -> int:
    """Fit twice, and compare."""
    parser = script_parser(__doc__)
    parser.add_argument("table")
    exclude_option(parser)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, help="rows per step, of all workers together")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=OUT)
    options = parser.parse_args()
    torch.set_num_threads(1)
    alone = fitted(options.table, options.exclude, options.epochs, batch=options.batch)
    ray = ray_module()
    ray.init(
        num_cpus=options.workers,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=200 * 2**20,
    )
    try:
        with tempfile.TemporaryDirectory() as shared:
            cluster = {"ray": "auto", "workers": options.workers, "shared": shared}
            together = fitted(options.table, options.exclude, options.epochs, batch=options.batch, **cluster)
    finally:
        ray.shutdown()
    difference = together["train_bits"] / alone["train_bits"] - 1
    result = {
        "table": Path(options.table).name,
        "exclude": list(options.exclude),
        "workers": options.workers,
        "batch": options.batch,
        "alone": alone,
        "together": together,
        "bits_difference": round(difference, 5),
        "speedup": round(together["rows_per_second"] / alone["rows_per_second"], 3),
        "machine": machine_facts(),
    }
    write_result(result, options.output)
    return 0 if abs(difference) <= MAX_DIFFERENCE else 1


if __name__ == "__main__":
    sys.exit(main())
