"""Error handling after training: a later step that fails must not lose the trained model."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from countless.estimator.fitting.learning import Listener

logger = logging.getLogger(__name__)

MISSING = "missing"  # key in a report: the parts that a model lacks, and why
CALIBRATION = "calibration"
CONSEQUENCES = {
    CALIBRATION: "without a calibration the error bars of estimates reach from 0 to all rows; calibrate adds it",
}


@contextmanager
def salvaged(part: str, report: dict[str, Any], listener: Listener) -> Iterator[None]:
    """Make a ``part`` of a model inside this block. If that fails, note why in ``report`` and continue without it.

    An interrupt by the user is not caught.
    """
    try:
        yield
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        logger.debug("making the %s failed", part, exc_info=error)
        report[MISSING] = {**missing_parts(report), part: reason}
        listener.notice(f"making the {part} failed ({reason}): {CONSEQUENCES[part]}")


def missing_parts(report: dict[str, Any]) -> dict[str, str]:
    """The parts that a model lacks, and why."""
    parts = report.get(MISSING)
    return {str(part): str(why) for part, why in parts.items()} if isinstance(parts, dict) else {}


def without_missing(report: dict[str, Any], part: str) -> dict[str, Any]:
    """The report of a model that no longer lacks a ``part``."""
    missing = {name: reason for name, reason in missing_parts(report).items() if name != part}
    rest = {name: value for name, value in report.items() if name != MISSING}
    return {**rest, MISSING: missing} if missing else rest
