"""The time budget of a fit: how it is divided among reading, counting, training and calibration."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

DEFAULT_BUDGET = 300.0  # seconds
LEAST_SHARE = 1 / 3  # of the budget, for training and calibrating, however long reading took
LEAST_COUNTING_SHARE, COUNTING_SHARE = 0.1, 0.2  # of the time after reading, for substrings of text
COUNTING_ALONE = 0.6  # COUNTING_SHARE if no text network is trained
CALIBRATION_SHARE = 0.08  # of the time after reading and counting
TEXT_CALIBRATION_SHARE = 0.15  # CALIBRATION_SHARE if there is text, whose patterns take longer to count
CALIBRATION_ALONE = 0.4  # CALIBRATION_SHARE if there is text but no text network is trained
CALIBRATION_SECONDS, MOST_CALIBRATION_SHARE = 12.0, 0.25  # the least time, but at most this share of a short budget
GRACE = 0.05  # of the budget: calibration may take this much longer if error bars would be useless otherwise
SAVING_SHARE, SAVING_SECONDS, MOST_SAVING_SHARE = 0.01, 1.0, 0.05  # share of the budget; at least so long; at most
LEAST_TRAINING = 0.02  # of the budget, for each network, even if others took longer than planned
GAIN_EXPONENT = 2 / 3  # see TimePlan.training


class TimePlan:
    """The time plan of a fit. Without a ``budget`` (in seconds) there are no limits, and every share is None.

    The plan starts when it is made, or ``spent`` seconds before. Time that a stage does not use goes to later stages.

    >>> now = [0.0]
    >>> plan = TimePlan(300.0, clock=lambda: now[0])
    >>> now[0] = 60.0  # reading took a minute
    >>> round(plan.counting(1), 1)
    47.4
    >>> now[0] = 80.0  # and counting 20 seconds
    >>> plan.start_training(texts=True)
    >>> [round(plan.training(0, [8.0, 64.0])), round(plan.training(1, [8.0, 64.0]))]
    [37, 184]
    """

    def __init__(
        self,
        budget: float | None,
        clock: Callable[[], float] = time.monotonic,
        spent: float = 0.0,
        calibrates: bool = True,
    ) -> None:
        self.budget, self._clock, self._calibrates = budget, clock, calibrates
        self._started = clock() - spent
        self._end = math.inf if budget is None else self._started + budget - saving_seconds(budget)
        self._calibration = 0.0
        self._counted_by: float | None = None
        self.extended = False

    @property
    def clock(self) -> Callable[[], float]:
        """The clock that measures the time."""
        return self._clock

    @property
    def spent(self) -> float:
        """Seconds since the plan began."""
        return self._clock() - self._started

    @property
    def left(self) -> float | None:
        """Seconds until the end; None without a budget, and 0 after the end."""
        return None if self.budget is None else max(0.0, self._end - self._clock())

    @property
    def left_with_grace(self) -> float | None:
        """Seconds until the end plus the grace time."""
        return None if self.budget is None else max(0.0, self._end + GRACE * self.budget - self._clock())

    def counting(self, columns: int, text_network: bool = True) -> float | None:
        """Seconds to count the substrings of the next text column, if ``columns`` are still to be counted."""
        if self.left is None:
            return None
        if self._counted_by is None:
            spare = self.left - LEAST_SHARE * (self.budget or 0.0)  # not needed by training and calibrating
            default_share = COUNTING_SHARE if text_network else COUNTING_ALONE
            share = min(default_share * self.left, max(LEAST_COUNTING_SHARE * self.left, spare))
            self._counted_by = self._clock() + share
        return max(0.0, self._counted_by - self._clock()) / max(1, columns)

    def start_training(self, texts: bool, text_network: bool = True) -> None:
        """Plan training and calibration, after the table is read and counted. If too little time is left, extend it."""
        if self.budget is None or self.left is None:
            return
        if self.left < LEAST_SHARE * self.budget:
            self._end = self._clock() + LEAST_SHARE * self.budget
            self.extended = True
        if self._calibrates:
            text_share = TEXT_CALIBRATION_SHARE if text_network else CALIBRATION_ALONE
            share = text_share if texts else CALIBRATION_SHARE
            least = min(CALIBRATION_SECONDS, MOST_CALIBRATION_SHARE * self.left)
            self._calibration = max(share * self.left, least)

    def training(self, network: int, bits: Sequence[float]) -> float | None:
        """Seconds to train the network at index ``network``; ``bits`` are the bits per row of all networks.

        Earlier networks are trained already. The loss of a network falls about with the square root of the training
        time, from its ``bits`` at the start. The last second of training is then equally useful for all networks if
        their times are proportional to the bits to the power of 2/3.
        """
        if self.left is None:
            return None
        weights: list[float] = [max(1.0, network_bits) ** GAIN_EXPONENT for network_bits in bits[network:]]
        share = (self.left - self._calibration) * weights[0] / sum(weights)
        return max(LEAST_TRAINING * (self.budget or 0.0), share)


def saving_seconds(budget: float) -> float:
    """The seconds of a budget that are reserved for writing the file and for ending the process.

    >>> [round(saving_seconds(budget), 1) for budget in (10.0, 60.0, 300.0)]
    [0.5, 1.0, 3.0]
    """
    return max(SAVING_SHARE * budget, min(SAVING_SECONDS, MOST_SAVING_SHARE * budget))
