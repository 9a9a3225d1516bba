"""What a method returns for one box."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """A density, and how it was found.

    ``exact`` says that it is the model's own density, with no sampling error. ``particles`` is the largest number
    of particles (or samples) held at once, 0 if counts alone gave the answer; ``forward_rows`` the rows of logits
    computed in all. ``sampling_error`` is the relative standard error that sampling adds, where independent replicates
    have told it. ``texts`` are the text columns that were asked. ``counted`` says that the density is the table's own,
    from rows that were counted.

    By counts beside the model, the table's own density is between ``least`` and ``most``. The model's answer was
    multiplied by ``factor``, because of the columns ``corrected``, and is no larger than the rows of the columns
    ``clipped``.
    """

    density: float
    exact: bool
    particles: int
    visited: tuple[int, ...]
    forward_rows: int
    sampling_error: float | None = None
    texts: tuple[int, ...] = ()
    counted: bool = False
    least: float = 0.0
    most: float = 1.0
    clipped: tuple[int, ...] = ()
    factor: float = 1.0
    corrected: tuple[int, ...] = ()
