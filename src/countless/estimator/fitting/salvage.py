"""Error handling after training: a later step that fails must not lose the trained model."""

from __future__ import annotations

import logging
from typing import Any

from countless.estimator.fitting.learning import Listener

logger = logging.getLogger(__name__)

MISSING = "missing"  # in a report: the parts that a model lacks, and why
CALIBRATION = "calibration"
LACK = {
    CALIBRATION: "without a calibration the error bars of estimates reach from 0 to all rows; calibrate adds it",
}


class Salvage:
    """Makes a ``part`` of a model inside a block; if that fails, notes why in ``report`` and goes on without it.

    A user's interrupt is no failure: it passes through.
    """

    def __init__(self, part: str, report: dict[str, Any], listener: Listener) -> None:
        self._part, self._report, self._listener = part, report, listener

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Exception):
            return False
        part, reason = self._part, (str(error) or type(error).__name__).splitlines()[0]
        logger.debug("making the %s failed", part, exc_info=error)
        self._report[MISSING] = {**missing_parts(self._report), part: reason}
        self._listener.notice(f"making the {part} failed ({reason}): {LACK[part]}")
        return True


def missing_parts(report: dict[str, Any]) -> dict[str, str]:
    """The parts that a model lacks, and why."""
    parts = report.get(MISSING)
    return {str(part): str(why) for part, why in parts.items()} if isinstance(parts, dict) else {}


def without_missing(report: dict[str, Any], part: str) -> dict[str, Any]:
    """The report of a model that has got a ``part`` that it lacked."""
    lacking = {name: reason for name, reason in missing_parts(report).items() if name != part}
    rest = {name: value for name, value in report.items() if name != MISSING}
    return {**rest, MISSING: lacking} if lacking else rest
