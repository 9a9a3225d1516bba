"""How latency, training, memory and file size grow: one dimension at a time, the rest held still.

A point is a fit and some questions, each in a process of its own. What it found is kept at once, so that a run that is
stopped loses only the point it was at.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from countless_lab.growth.clauses import clauses
from countless_lab.growth.dimensions import Fit, Point
from countless_lab.growth.kept import Kept
from countless_lab.measurement.machine import machine_facts
from countless_lab.runner.run_job import run_job

Record = dict[str, Any]
Tell = Callable[[Point, str], None]


def measure(points: Iterable[Point], kept: Kept, tell: Tell | None = None) -> Iterator[tuple[Point, Record]]:
    """Measure every point that is not kept yet, and keep it. ``tell`` hears what is being done for which.

    Points with the same table and training share one model, which is made when it is needed and then thrown away.
    """
    tell = tell or (lambda point, doing: None)
    by_fit: dict[Fit, list[Point]] = {}
    for point in points:
        by_fit.setdefault(point.fit, []).append(point)
    for fit, sharing in by_fit.items():
        done = {point: record for point in sharing if (record := kept.find(point)) is not None}
        yield from done.items()
        missing = [point for point in sharing if point not in done]
        if not missing:
            continue
        with tempfile.TemporaryDirectory(prefix="countless-growth-") as folder:
            model = Path(folder) / "model.countless"
            fitted = _fit(fit, model, partial(tell, missing[0]))
            for point in missing:
                tell(point, "asking")
                record = {"fit": fitted, "serving": _serve(point, model)}
                kept.keep(point, record)
                yield point, record


def _fit(fit: Fit, model: Path, tell: Callable[[str], None]) -> Record:
    """Make the model; the table is gone when it is there."""
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        tell("generating")
        source = fit.table.write(Path(folder))
        tell("fitting")
        return run_job(
            "fit",
            source=source,
            model=str(model),
            budget=fit.budget,
            seed=fit.table.seed,
            max_distinct=fit.max_distinct,
            network=asdict(fit.network),
        )


def _serve(point: Point, model: Path) -> Record:
    asked = clauses(point.fit.table, point.queries, point.filters, point.always)
    return run_job("serve", one_thread=True, model=str(model), clauses=asked, repeats=point.repeats, batch=point.batch)


def report(points: Sequence[Point], kept: Kept, command: str) -> Record:
    """Everything that is kept of ``points``, whichever run measured it, as plain data."""
    records = [
        {"dimension": point.dimension, "value": point.value, **record}
        for point in points
        if (record := kept.find(point)) is not None
    ]
    return {"command": command, "machine": machine_facts(), "ratios": ratios(records), "points": records}


def ratios(records: Sequence[Record]) -> dict[str, float]:
    """How much more the largest point of a dimension takes than the smallest, and what asking many at once saves."""
    found = {}
    for dimension in ("columns", "distinct", "filters", "rows"):
        along = {
            record["value"]: record["serving"]["latency_ms"]["p50"] for record in records_along(records, dimension)
        }
        if len(along) > 1:
            least, most = min(along), max(along)
            found[f"latency p50, {dimension} {most:,} over {least:,}"] = along[most] / along[least]
    for record in records_along(records, "batch")[-1:]:
        serving = record["serving"]
        name = f"throughput, estimate_many({record['value']:,}) over the loop"
        found[name] = serving["many_per_second"] / serving["loop_per_second"]
    return {name: round(value, 3) for name, value in found.items()}


def records_along(records: Sequence[Record], dimension: str) -> list[Record]:
    """The records of one dimension, smallest first."""
    return sorted((record for record in records if record["dimension"] == dimension), key=lambda one: int(one["value"]))
