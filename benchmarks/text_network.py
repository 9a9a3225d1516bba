"""Networks for text at equal training time: the paper's, the default, and what lies between.

    .venv/bin/python benchmarks/text_network.py TABLE.parquet SECONDS > networks.json

Every network is trained for so long, and asked the same 200 questions of the paper's kind, without the summary.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

from countless.data.sources.source import Source
from countless.estimator.fitting.fit import fit
from countless.evaluation.evaluate import evaluate, random_workload
from countless.options import TEXT_PRESETS
from countless_lab.measurement.script import write_result

QUERIES, SEED = 200, 3
DEFAULT = TEXT_PRESETS["default"]
NETWORKS = {
    "default": DEFAULT,
    "default without n-grams": replace(DEFAULT, grams=()),
    "default with 4 blocks": replace(DEFAULT, blocks=4),
    "the paper's": TEXT_PRESETS["paper"],
}


def main() -> None:
    table, seconds = Source.open(sys.argv[1]), float(sys.argv[2])
    results_of = {}
    for name, network in NETWORKS.items():
        estimator = fit(table, budget=seconds, text_network=network, summary=False)
        queries = random_workload(estimator.schema, table, QUERIES, SEED, "contains")
        results = evaluate(partial(estimator.estimate, summary=False), queries, "particles").to_json()
        report = estimator.report["text"]
        bits = {key: report[key] for key in ("masked_bits", "unmasked_bits", "rows_per_second", "parameters", "epochs")}
        results_of[name] = {"q_error": results["q_error"], "latency_ms": results["latency_ms"], **bits}
    write_result(results_of)


if __name__ == "__main__":
    main()
