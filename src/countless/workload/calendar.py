"""Random filters on parts of a date: the year, the weekday, the hour."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import numpy as np


def calendar_filter(name: str, value: str, choose: Callable[..., str], rng: np.random.Generator) -> str | None:
    """A filter on a calendar part of ``value``, a date or time as DuckDB prints it. The value itself matches.

    None if it has no such parts: infinity, or a year before 1 or after 9999.
    """
    try:
        moment = datetime.fromisoformat(value[:19])
    except ValueError:
        return None
    month = f"DATE '{moment:%Y-%m}-01'"
    filters = {
        "year": f"year({name}) = {moment.year}",
        "month": f"month({name}) = {moment.month}",
        "extract": f"extract(month FROM {name}) IN ({moment.month}, {moment.month % 12 + 1})",
        "weekday": f"extract(dow FROM {name}) = {moment.isoweekday() % 7}",
        "day": f"day({name}) = {moment.day}",
        "date": f"CAST({name} AS DATE) = DATE '{moment:%Y-%m-%d}'",
        "date_trunc": f"date_trunc('month', {name}) = {month}",
    }
    if len(value) > len("2000-01-31"):  # it has a time of day
        first_hour = max(0, moment.hour - int(rng.integers(4)))
        filters |= {
            "hour": f"hour({name}) = {moment.hour}",
            "hours": f"hour({name}) BETWEEN {first_hour} AND {moment.hour}",
            "before": f"hour({name}) < {moment.hour + 1}",
            "minute": f"extract(minute FROM {name}) = {moment.minute}",
        }
    return filters[choose(*filters)]
