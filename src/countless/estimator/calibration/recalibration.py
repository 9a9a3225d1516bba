"""Recalibration: new error bars for a model from its table."""

from __future__ import annotations

from typing import Any

from countless.errors import EmptyTableError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.calibrating import calibrated
from countless.estimator.fitting.fit import LoggingListener
from countless.estimator.fitting.learning import Listener
from countless.estimator.fitting.preflight import preflight
from countless.estimator.fitting.salvage import CALIBRATION, without_missing
from countless.estimator.fitting.time_budget import TimePlan
from countless.estimator.model_table import open_table


def recalibrated(estimator: Estimator, table: Any, seed: int, listener: Listener | None) -> Estimator:
    """The estimator with error bars from random questions about ``table``: :meth:`countless.Estimator.calibrate`."""
    listener = listener or LoggingListener()
    listener.stage("reading the table")
    source = open_table(table, estimator.schema, listener.loading)
    rows = source.count()
    if rows == 0:
        raise EmptyTableError("the table has no rows: give the table that the model was fitted on")
    if rows != estimator.rows:
        listener.notice(
            f"the table has {rows:,} rows, and the model was made of {estimator.rows:,}: its error bars will also "
            "cover what has changed since; fit or update the model for narrower ones"
        )
    preflight(source, estimator.schema)
    listener.stage("calibrating")
    found = calibrated(source, estimator, seed, listener, TimePlan(None))
    found.report = without_missing(estimator.report, CALIBRATION)
    return found
