"""Bands of questions: by their number of filtered columns, and by their predicted row count."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

FILTERS = {"1-2": 1, "3-4": 3, "5-8": 5, "9-12": 9, "13-16": 13, "17+": 17}  # the least number of each band
PREDICTED = {"0-1": 0, "1-10": 1, "10-100": 10, "100-1000": 100, "1000+": 1000}


def band(bands: Mapping[str, int], value: float) -> str:
    """The name of the band that has ``value``; an empty name if it is below all bands.

    >>> band(PREDICTED, 9.99), band(PREDICTED, 10.0), band(FILTERS, 0)
    ('1-10', '10-100', '')
    """
    return ["", *bands][bisect_right(list(bands.values()), value)]
