"""A description of a model's contents as plain data."""

from __future__ import annotations

from typing import Any

from countless.data.columns.schema import Schema
from countless.data.summaries.substrings import Substrings
from countless.engine.columns.kernel import compiled
from countless.engine.fusion.pair_bounds import Counts
from countless.engine.runtimes import Runtimes
from countless.store import COLUMNS, EVIDENCE, PAIRS, TEXT, Sections, StoredRows, StoredSummary, substrings_of


def describe_contents(schema: Schema, sections: Sections, runtimes: Runtimes) -> dict[str, Any]:
    """The columns of a table, and what the sections of its model file hold."""
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
        "derived": [{"name": item.name, "sql": item.sql} for item in schema.derived],
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
                "summary": _describe_substrings(
                    runtimes.summaries[index], sections.summaries.get(substrings_of(index))
                ),
            }
            for index, column in enumerate(schema.texts)
        ],
        "model": sections.networks[COLUMNS].spec if runtimes.columns else None,
        "text_model": sections.networks[TEXT].spec if runtimes.texts else None,
        "counts": _describe_pairs(runtimes.counts, sections.summaries.get(PAIRS)),
        "parameters": sum(network.weights.size for network in sections.networks.values()),
        "evidence": _describe_evidence(sections.rows.get(EVIDENCE)),
        "compiled": compiled() is not None,
    }


def without_history(report: dict[str, Any]) -> dict[str, Any]:
    """The report of a training without its history, which has an entry for each step."""
    short = {name: value for name, value in report.items() if name != "history"}
    if "text" in report:
        short["text"] = without_history(report["text"])
    return short


def _describe_substrings(counts: Substrings | None, summary: StoredSummary | None) -> dict[str, Any] | None:
    if counts is None or summary is None:
        return None
    description = {"substrings": len(counts), "threshold": counts.threshold, "bytes": summary.bytes}
    return description if counts.sampled is None else {**description, "sampled_rows": counts.sampled}


def _describe_evidence(rows: StoredRows | None) -> dict[str, Any] | None:
    """The number of evidence rows in the model file, and their size in bytes."""
    return None if rows is None else {"rows": rows.arrays["codes-0"].shape[1], "bytes": rows.bytes}


def _describe_pairs(counts: Counts | None, summary: StoredSummary | None) -> dict[str, Any] | None:
    if counts is None or summary is None:
        return None
    pairs = counts.pairs
    return {
        "columns": len(pairs.counts),
        "pairs": len(pairs.tables),
        "sparse_pairs": len(pairs.sparse),
        "bytes": summary.bytes,
    }
