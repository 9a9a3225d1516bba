"""What a sample of the rows is worth: q-errors against the share of the rows that were trained on, in equal time.

.venv/bin/python benchmarks/sample_rows.py TABLE.parquet [--exclude a,b] [--budget 5m] [-o docs/results/scaling]

All models answer the same random queries about the whole table. Finished measurements are kept: the same command
continues. The results are sample-NAME.json and a picture.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from countless import fit
from countless.cli.parameters.options import Amount, Duration, Names
from countless.data.sources.source import Source
from countless.evaluation.evaluate import evaluate, random_workload
from countless_lab.growth.picture import draw_lines
from countless_lab.measurement.machine import machine_facts
from countless_lab.measurement.requirements import require_plotting
from countless_lab.measurement.script import script_parser

SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
SEED = 11
QUANTILES = ("p50", "p95", "p99")


def measured(settings: argparse.Namespace, share: float, rows: int, queries: list[Any]) -> dict[str, Any]:
    """The errors of a model that was trained on a share of the rows."""
    estimator = fit(
        settings.table,
        exclude=settings.exclude,
        budget=settings.budget,
        memory=settings.memory,
        sample_rows=max(1, round(share * rows)),
        summary=not settings.no_summary,
        calibrate=False,
        seed=SEED,
    )
    queries[:] = queries or random_workload(estimator.schema, settings.table, settings.queries, SEED)
    errors = evaluate(estimator.estimate, queries, "particles").to_json()["q_error"]
    trained = {name: estimator.report[name] for name in ("train_rows", "epochs", "train_bits", "masked_bits")}
    return {"share": share, **trained, "q_error": {quantile: errors[quantile] for quantile in QUANTILES}}


def tell(line: str) -> None:
    sys.stderr.write(line + "\n")


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--exclude", type=lambda text: Names().convert(text, None, None), default=())
    parser.add_argument("--budget", type=lambda text: Duration().convert(text, None, None), default=300.0)
    parser.add_argument("--memory", type=lambda text: Amount().convert(text, None, None))
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--no-summary", action="store_true", help="without exact counts, which all rows are read for")
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/results/scaling"))
    settings = parser.parse_args()
    require_plotting()
    settings.out.mkdir(parents=True, exist_ok=True)
    path = settings.out / f"sample-{settings.table.stem}.json"
    used_settings = {
        "exclude": list(settings.exclude),
        "budget": settings.budget,
        "memory": settings.memory,
        "queries": settings.queries,
        "summary": not settings.no_summary,
    }
    earlier = json.loads(path.read_text()) if path.exists() else {}
    points = earlier["points"] if earlier.get("settings") == used_settings else []
    rows = Source.open(settings.table).count()
    queries: list[Any] = []
    for share in SHARES:
        if any(point["share"] == share for point in points):
            continue
        tell(f"training on {share:.0%} of {rows:,} rows")
        points = sorted([*points, measured(settings, share, rows, queries)], key=lambda point: float(point["share"]))
        tell(json.dumps(next(point for point in points if point["share"] == share)))
        record = {"rows": rows, "settings": used_settings, "machine": machine_facts(), "points": points}
        path.write_text(json.dumps(record, indent=1) + "\n")
    lines = {quantile: [point["q_error"][quantile] for point in points] for quantile in QUANTILES}
    sizes = [point["train_rows"] for point in points]
    picture = draw_lines(sizes, lines, f"rows trained on, of {rows:,}", f"q-error after {settings.budget:g} s")
    path.with_suffix(".png").write_bytes(picture)
    tell(f"wrote {path} and {path.with_suffix('.png').name}")


if __name__ == "__main__":
    main()
