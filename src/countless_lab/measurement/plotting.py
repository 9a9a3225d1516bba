"""Pictures as the content of PNG files, and numbers on them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from countless_lab.measurement.requirements import require_plotting

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def png(draw: Callable[[Figure], None], width: float, height: float, dpi: int = 100) -> bytes:
    """What ``draw`` draws on a figure of a size in inches."""
    require_plotting()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    draw(figure)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=dpi, metadata={"Software": None})
    return content.getvalue()


def short(value: float) -> str:
    """Two digits and a unit, for a picture.

    >>> short(7.2), short(940), short(6_700), short(2_310_000)
    ('7.2', '940', '6.7k', '2.3M')
    """
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.2g}{unit}" if value < 99.5 * scale else f"{value / scale:.0f}{unit}"
    return f"{value:.2g}" if value < 99.5 else f"{value:.0f}"
