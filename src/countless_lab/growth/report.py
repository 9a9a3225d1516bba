"""The report on growth: a record for every measured point, and ratios between the largest and the smallest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from countless_lab.growth.dimensions import GrowthPoint
from countless_lab.growth.jobs import FittedModel, ServedPoint
from countless_lab.measurement.machine import machine_facts
from countless_lab.runner.store import ResultStore

Record = dict[str, Any]


def report(points: Sequence[GrowthPoint], store: ResultStore, command: str) -> Record:
    """All results of ``points`` so far, from any run, as plain data."""
    records = []
    for point in points:
        fit, serving = store.result(FittedModel(point.fit)), store.result(ServedPoint(point))
        if fit is not None and serving is not None:
            about = {"dimension": point.dimension, "value": point.value}
            records.append({**about, "fit": fit, "serving": serving, "settings": point.settings})
    return {"command": command, "machine": machine_facts(), "ratios": ratios(records), "points": records}


def ratios(records: Sequence[Record]) -> dict[str, float]:
    """How much longer the largest point of a dimension takes than the smallest, and the gain of ``estimate_many``."""
    latency_ratios = {}
    for dimension in ("columns", "distinct", "filters", "rows"):
        along = records_along(records, dimension)
        if len(along) > 1:
            smallest, largest = (
                (point["value"], point["serving"]["latency_ms"]["p50"]) for point in (along[0], along[-1])
            )
            latency_ratios[f"latency p50, {dimension} {largest[0]:,} over {smallest[0]:,}"] = largest[1] / smallest[1]
    for record in records_along(records, "batch")[-1:]:
        serving = record["serving"]
        name = f"throughput, estimate_many({record['value']:,}) over the loop"
        latency_ratios[name] = serving["many_per_second"] / serving["loop_per_second"]
    return {name: round(value, 3) for name, value in latency_ratios.items()}


def records_along(records: Sequence[Record], dimension: str) -> list[Record]:
    """The records of one dimension, smallest first."""
    return sorted(
        (record for record in records if record["dimension"] == dimension), key=lambda record: int(record["value"])
    )
