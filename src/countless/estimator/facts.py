"""What a model holds, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from countless import store
from countless.data.ngrams import NGrams
from countless.data.schema import Schema
from countless.engine.counts import Counts
from countless.engine.kernel import compiled
from countless.engine.runtimes import Runtimes
from countless.estimator.lookups import unpacked
from countless.estimator.parts import COLUMNS_MODEL, PAIRS, ROWS, SUMMARY, TEXT_MODEL, summary_of


def held_facts(schema: Schema, models: Mapping[str, store.StoredModel], runtimes: Runtimes) -> dict[str, Any]:
    """The columns of a table and what models hold of them."""
    return {
        "rows": schema.rows,
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "distinct": column.distinct,
                "has_null": column.has_null,
                "codes": column.size,
                "digits": len(column.radices),
                "grid_cells": None if column.grid is None else column.grid.cells,
            }
            for column in schema.coded
        ],
        "left_out": [{"name": column.name, "type": column.type, "reason": column.reason} for column in schema.left_out],
        "texts": [
            {
                "name": column.name,
                "type": column.type,
                "distinct": column.distinct,
                "distinct_is_estimate": column.estimated,
                "has_null": column.has_null,
                "characters": len(column.characters),
                "rare_characters": len(column.rare),
                "length": column.length,
                "cut": column.cut,
                "summary": _summary_facts(runtimes.summaries[index], models.get(summary_of(index))),
            }
            for index, column in enumerate(schema.texts)
        ],
        "model": models[COLUMNS_MODEL].spec if runtimes.columns else None,
        "text_model": models[TEXT_MODEL].spec if runtimes.texts else None,
        "counts": _counts_facts(runtimes.counts, models.get(PAIRS)),
        "parameters": sum(
            array.size
            for model in models.values()
            for array in unpacked(model.arrays).values()
            if model.spec["kind"] not in (SUMMARY, PAIRS, ROWS)
        ),
        "kept_rows": int(models[ROWS].spec["rows"]) if ROWS in models else 0,
        "compiled": compiled() is not None,
    }


def without_history(report: dict[str, Any]) -> dict[str, Any]:
    """The report of a training without what happened at each step."""
    short = {name: value for name, value in report.items() if name != "history"}
    if "text" in report:
        short["text"] = without_history(report["text"])
    return short


def _summary_facts(summary: NGrams | None, model: store.StoredModel | None) -> dict[str, Any] | None:
    if summary is None or model is None:
        return None
    size = sum(array.nbytes for array in model.arrays.values())
    facts = {"ngrams": sum(map(len, summary.counts)), "threshold": summary.threshold, "bytes": size}
    return facts if summary.sampled is None else {**facts, "sampled_rows": summary.sampled}


def _counts_facts(counts: Counts | None, model: store.StoredModel | None) -> dict[str, Any] | None:
    if counts is None or model is None:
        return None
    size = sum(array.nbytes for array in model.arrays.values())
    return {"columns": len(counts.pairs.counts), "pairs": len(counts.pairs.tables), "bytes": size}
