"""Stripping: a copy of a model without rows of its table, to give to people who may not see them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from countless.store import Sections

if TYPE_CHECKING:
    from countless.estimator.estimator import Estimator

DIGESTS = ("table", "digest")  # keys in a report and in the record of an update; their values identify a table


def stripped(estimator: Estimator, sections: Sections) -> Estimator:
    """The estimator without rows, clauses and digests: :meth:`countless.Estimator.stripped`."""
    calibration = estimator.calibration
    queries = tuple(replace(query, where="", hits=0) for query in calibration.queries)
    report = _without_digests(estimator.report)
    if "updates" in report:
        report["updates"] = [_without_digests(entry) for entry in report["updates"]]
    return type(estimator)(
        estimator.schema,
        replace(sections, rows={}),
        replace(calibration, queries=queries),
        report,
        estimator.library,
    )


def left_out(estimator: Estimator) -> list[str]:
    """What :func:`stripped` leaves out of an estimator, for people to read."""
    evidence, descriptions = estimator.info()["evidence"], []
    if evidence:
        descriptions.append(f"{evidence['rows']:,} evidence rows of the table")
    if count := sum(bool(query.where) for query in estimator.calibration.queries):
        descriptions.append(f"the texts of {count:,} calibration questions, which have values of random rows in them")
    report = estimator.report
    if any(_without_digests(part) != part for part in (report, *report.get("updates", ()))):
        descriptions.append("the digests of the table and of updates")
    return descriptions


def _without_digests(report: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in report.items() if name not in DIGESTS}
